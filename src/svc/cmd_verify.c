/* verify: is a request that somebody kept what the server signed? */
#include "base/clock.h"
#include "cli/http_text.h"
#include "cli/signature.h"
#include "svc/command.h"

enum { REQUEST_BYTES_MOST = 64 << 20 };

/* A body that was kept with an editor has a line feed more: Content-Length says where it ends. */
static struct err *read_request(struct cli *cli, struct http_text *text, struct signed_request *out)
{
    struct span bytes;
    uint64_t length;

    TRY(cli_read_file(SPAN("-"), REQUEST_BYTES_MOST, cli->arena, &bytes));
    TRY(http_text_parse(bytes, text));
    if (!http_text_length(text, &length))
        return ERR(ERR_UNKNOWN, "Content-Length is no number");
    if (length > text->body.n)
        return ERR(ERR_UNKNOWN, "the body has %zu bytes, and Content-Length says %llu",
                   text->body.n, (unsigned long long)length);
    *out = signature_of(text, text->body);
    if (http_text_field(text, SPAN("Content-Length")).p != NULL)
        out->body = span_sub(text->body, 0, (size_t)length);
    return NULL;
}

int run_verify(struct cli *cli)
{
    struct signed_request request;
    struct http_text *text = ARENA_NEW(cli->arena, struct http_text);
    struct span secret;
    struct err *e;
    int status = cli_read_secret(cli, OPTION_SECRET, &secret);

    if (status != CLI_DONE)
        return status;
    e = read_request(cli, text, &request);
    if (e != NULL)
        return cli_fail_err(CLI_MISUSE, e);
    e = signature_verify(secret, &request, clock_unix_s(), args_has(&cli->args, OPTION_ANY_TIME));
    if (e != NULL)
        return cli_fail_err(CLI_REFUSED, err_prefix(e, "bad: "));
    return cli_print_line(cli->json ? SPAN("{\"Good\":true}") : SPAN("good"));
}
