/* export: webhooks, resources and keys as one document, an entity a line, so that it can be kept
 * and compared. */
#include "cli/kinds.h"
#include "cli/show.h"
#include "svc/command.h"

static int add_kind(struct cli *cli, const struct kind *kind, struct buf *b)
{
    struct entities all;
    int status = kind_get_all(cli, kind, &all);

    if (status != CLI_DONE)
        return status;
    buf_printf(b, "\"%s\":[", kind->member);
    for (size_t i = 0; i < all.count; i++) {
        buf_add_str(b, i > 0 ? ",\n" : "\n");
        kind_add_entity(cli, kind, all.items[i], b);
    }
    buf_add_char(b, ']');
    return CLI_DONE;
}

int run_export(struct cli *cli)
{
    struct buf b;

    buf_init_arena(&b, cli->arena);
    buf_add_char(&b, '{');
    for (size_t i = 0; i < KIND_COUNT; i++) {
        int status;

        if (i > 0)
            buf_add_str(&b, ",\n");
        status = add_kind(cli, &kinds[i], &b);
        if (status != CLI_DONE)
            return status;
    }
    buf_add_char(&b, '}');
    return cli_print_line(buf_span(&b));
}
