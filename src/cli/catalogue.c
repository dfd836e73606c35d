/* Names are looked up among what the key may use (Svc.AvailableResource), payloads in the
 * declarations, which it may not be allowed to read: then an example has no properties. */
#include "cli/catalogue.h"

#include "base/clock.h"
#include "cli/sample.h"
#include "cli/target.h"

static int get_names(struct cli *cli, struct entities *out)
{
    return client_get_all(cli, SPAN("/Svc.AvailableResource/Kind=EventResource"), out);
}

static int ambiguous(struct cli *cli, struct span typed, const struct entities *all)
{
    struct buf names;

    buf_init_arena(&names, cli->arena);
    for (size_t i = 0; i < all->count; i++) {
        struct span name = client_text(cli, all->items[i], "Name");

        if (target_means(typed, name))
            buf_printf(&names, "%s%.*s", names.n > 0 ? ", " : "", SPAN_FMT(name));
    }
    return cli_fail(CLI_REFUSED, "'%.*s' could be %.*s", SPAN_FMT(typed),
                    SPAN_FMT(buf_span(&names)));
}

int catalogue_find(struct cli *cli, struct span typed, struct span *out_name)
{
    struct entities all;
    size_t found = 0;
    int status = get_names(cli, &all);

    if (status != CLI_DONE)
        return status;
    for (size_t i = 0; i < all.count; i++) {
        struct span name = client_text(cli, all.items[i], "Name");

        if (span_ieq(name, typed)) {
            *out_name = name;
            return CLI_DONE;
        }
        if (!target_means(typed, name))
            continue;
        *out_name = name;
        found++;
    }
    if (found == 1)
        return CLI_DONE;
    if (found > 1)
        return ambiguous(cli, typed, &all);
    return cli_fail(CLI_REFUSED,
                    "there is no event resource '%.*s' that the key may use; "
                    "`svc get /Svc.AvailableResource/Kind=EventResource` lists them",
                    SPAN_FMT(typed));
}

int catalogue_first(struct cli *cli, struct span pattern, struct span *out_name)
{
    struct entities all;
    int status = get_names(cli, &all);

    if (status != CLI_DONE)
        return status;
    for (size_t i = 0; i < all.count; i++) {
        *out_name = client_text(cli, all.items[i], "Name");
        if (target_means(pattern, *out_name) && !span_starts(*out_name, SPAN("Svc.")))
            return CLI_DONE;
    }
    return cli_fail(CLI_REFUSED, "'%.*s' means no event resource that the key may use",
                    SPAN_FMT(pattern));
}

/* The declaration; absent when the key may not read it. */
static int get_declaration(struct cli *cli, struct span name, struct json_value *out)
{
    struct ask ask = {.method = "GET"};
    struct answer answer;
    int status;

    ask.target = target_named(cli->arena, "Svc.Admin.Resource", "Name", name);
    status = client_send(cli, &ask, &answer);
    if (status == CLI_DONE)
        *out = answer.status == 200 ? json_first(answer.json) : (struct json_value){NULL, NULL};
    return status;
}

int catalogue_payload(struct cli *cli, struct span event, struct payload *out)
{
    struct json_value declared, payload;
    struct span resource;
    int status = get_declaration(cli, event, &declared);

    if (status != CLI_DONE)
        return status;
    payload = json_member(declared, SPAN("Payload"));
    out->content_type = client_text(cli, payload, "ContentType");
    resource = client_text(cli, payload, "Resource");
    if (resource.p != NULL) {
        status = get_declaration(cli, resource, &declared);
        if (status != CLI_DONE)
            return status;
    }
    out->properties = json_member(declared, SPAN("Properties"));
    return CLI_DONE;
}

int catalogue_example(struct cli *cli, struct span event, struct span conditions,
                      struct span *out_json)
{
    struct payload payload;
    struct buf b;
    int status = catalogue_payload(cli, event, &payload);

    if (status != CLI_DONE)
        return status;
    if (payload.content_type.p != NULL)
        return cli_fail(CLI_MISUSE,
                        "'%.*s' carries %.*s, of which there is no example; give it by "
                        "--data @FILE",
                        SPAN_FMT(event), SPAN_FMT(payload.content_type));
    buf_init_arena(&b, cli->arena);
    sample_add(&b, payload.properties, conditions, clock_unix_ns(), cli->arena);
    *out_json = buf_span(&b);
    return CLI_DONE;
}
