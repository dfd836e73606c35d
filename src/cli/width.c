/* The C library knows the widths of characters, in a locale of UTF-8. One is opened for that alone,
 * so that what is printed does not depend on the user's. */
#include "cli/width.h"

#include "base/text.h"

#include <locale.h>
#include <wchar.h>

static size_t width_of_character(struct span character)
{
    int width = wcwidth((wchar_t)text_scalar(character));

    return width < 0 ? 1 : (size_t)width;
}

/* The prefix within `columns`; *out_width is what it takes. */
static struct span measure(struct span text, size_t columns, size_t *out_width)
{
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = utf8 != (locale_t)0 ? uselocale(utf8) : (locale_t)0;
    size_t at = 0, width = 0;

    while (at < text.n) {
        size_t n = text_utf8_bytes(span_sub(text, at, text.n));
        size_t more = n == 0 ? 1 : width_of_character(span_of(text.p + at, n));

        if (width + more > columns)
            break;
        width += more;
        at += n == 0 ? 1 : n;
    }
    if (utf8 != (locale_t)0) {
        uselocale(before);
        freelocale(utf8);
    }
    *out_width = width;
    return span_sub(text, 0, at);
}

/* Most texts are ASCII: a column a byte. */
static bool is_ascii(struct span text)
{
    return span_holds_only(text, 0x20, 0x7e, '\0');
}

size_t width_of(struct span text)
{
    size_t width;

    if (is_ascii(text))
        return text.n;
    (void)measure(text, SIZE_MAX, &width);
    return width;
}

struct span width_cut(struct span text, size_t columns)
{
    size_t width;

    if (is_ascii(text))
        return span_sub(text, 0, columns);
    return measure(text, columns, &width);
}
