/* One attempt: what was sent, what was answered, what took how long. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { clipboard, counted, heading, hook, hostile, raise, until } from "../harness.mjs";

async function attempt_of(t, w) {
  return until("an attempt", async () => (await t.api("GET", `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`))[0]);
}

export const cases = {
  async shows_request_answer_and_times(t) {
    const w = await hook(t, "/bad", "Looked at", { Headers: { "X-Shop": "north", Authorization: "Bearer of-the-receiver" } });
    await raise(t, { Customer: "Ann", Total: 100 });
    const a = await attempt_of(t, w);
    const page = await t.open(`attempt/${a.Id}`, null);
    await heading(page, "Attempt 1");
    for (const name of ["DNS", "connect", "TLS", "first byte", "whole"]) await page.locator(".legend").getByText(name).first().waitFor();
    const label = await page.locator("svg.phases").getAttribute("aria-label");
    assert.match(label, /^DNS \d+ ms, connect \d+ ms, TLS \d+ ms, first byte \d+ ms, rest \d+ ms$/);
    await page.getByLabel("Header fields").getByText("X-Shop: north").waitFor();
    assert.ok((await page.getByLabel("Body", { exact: true }).textContent()).includes('"Ann"'));
    await page.getByText("answered 500").first().waitFor();
    assert.ok(!(await page.content()).includes("of-the-receiver"));
  },
  async shows_hostile_answers_as_text(t) {
    const w = await hook(t, "/bad", hostile, { EventSelector: "/Shop.OrderShipped", Headers: { "X-Hostile": "<img src=x onerror=alert(1)>" } });
    await raise(t, { Customer: hostile, Total: 1 }, "Shop.OrderShipped");
    const a = await attempt_of(t, w);
    const page = await t.open(`attempt/${a.Id}`, null);
    await page.getByLabel("Answer").waitFor();
    assert.ok((await page.getByLabel("Answer").textContent()).includes("<img src=x"));
    assert.equal(await page.locator("main img").count(), 0);
    assert.equal(await page.title(), "Attempt – Svc");
  },
  async copies_as_curl_what_a_shell_takes_as_it_is(t) {
    const w = await hook(t, "/curl", "Copied", { EventSelector: "/Shop.OrderShipped", Headers: { "X-Quoted": "it's $(touch /tmp/never) `id` \"x\"" } });
    await raise(t, { Customer: "it's $(touch /tmp/never) @x 'quoted' \\ \"", Total: 12.5 }, "Shop.OrderShipped");
    const a = await attempt_of(t, w);
    const page = await t.open(`attempt/${a.Id}`, null);
    await page.getByRole("button", { name: "Copy as curl" }).click();
    await page.getByText("Copied").first().waitFor();
    const command = await clipboard(page);
    const before = t.sink.taken.filter((one) => one.url === "/curl");
    const { stdout } = await promisify(execFile)("sh", ["-c", command.replace("curl -i", "curl -s -m 10 -i --noproxy '*'")]);
    assert.match(stdout, /200 OK/);
    const again = t.sink.taken.filter((one) => one.url === "/curl").at(-1);
    assert.equal(t.sink.taken.filter((one) => one.url === "/curl").length, before.length + 1);
    assert.deepEqual(JSON.parse(again.body), JSON.parse(before[0].body));
    assert.equal(again.headers["x-quoted"], before[0].headers["x-quoted"]);
    assert.equal(again.headers["webhook-id"], before[0].headers["webhook-id"]);
  },
  async shows_what_the_log_has_kept_of_the_request(t) {
    const properties = (await t.api("GET", "/Svc.OpenApi")).components.schemas["Svc.Admin.WebhookLog"].properties;
    const w = await hook(t, "/kept", "Kept", { Headers: { "X-Then": "then" } });
    await raise(t, { Customer: "Ann", Total: 100 });
    const a = await attempt_of(t, w);
    await t.api("PATCH", `/Svc.Admin.Webhook/Id=${w.Id}`, { Headers: { "X-Then": "now" } });
    const page = await t.page_of(null);
    /* The answer as servers give it that keep the request. */
    if (!properties.RequestHeaders) {
      const of = (url) => JSON.stringify(url.includes("OpenApi") ? { components: { schemas: { "Svc.Admin.WebhookLog": { properties: { RequestHeaders: {}, RequestBody: {} } } } } } :
        [{ ...a, RequestHeaders: { "X-Then": "then", "Content-Type": "application/json" }, RequestBody: '[{"Customer":"Ann","Total":100}]' }]);
      await page.route(/Svc\.OpenApi|Svc\.Admin\.WebhookLog/, (route) => {
        if (route.request().url().includes("WebhookLog")) assert.match(decodeURIComponent(route.request().url()), /add=RequestHeaders,RequestBody/);
        return route.fulfill({ contentType: "application/json", body: of(route.request().url()) });
      });
    }
    await page.goto(`${t.base}/Svc.Console#/attempt/${a.Id}`);
    await page.getByLabel("Header fields").getByText("X-Then: then").waitFor();
    assert.ok((await page.getByLabel("Body", { exact: true }).textContent()).includes('"Ann"'));
  },
  async sends_it_again(t) {
    const w = await hook(t, "/again", "Again");
    await raise(t, { Total: 100 });
    const a = await attempt_of(t, w);
    const page = await t.open(`attempt/${a.Id}`, null);
    await page.getByRole("button", { name: "Send again" }).click();
    await page.getByText("Queued again").waitFor();
    await until("a second attempt", async () => (await counted(t, `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`)) === 2);
  },
};
