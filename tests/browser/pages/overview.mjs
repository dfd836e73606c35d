/* Overview: what fails, since when, as it happens; and the way to a first webhook. */
import assert from "node:assert/strict";
import { counted, heading, hook, hostile, live, raise, until } from "../harness.mjs";

export const cases = {
  async leads_to_a_first_webhook(t) {
    const page = await t.open("overview", null);
    await page.getByRole("heading", { name: "Make the first webhook" }).waitFor();
    await page.getByText("It carries Customer, Total").waitFor();
    await page.getByRole("button", { name: "Use its address" }).click();
    assert.equal(await page.getByLabel("Destination").inputValue(), "http://127.0.0.1:8081/hook");
    await page.getByLabel("Destination").fill("nonsense");
    await page.getByRole("button", { name: "Make it and send a test" }).click();
    await page.locator(".problem", { hasText: "Destination" }).waitFor();
    await page.getByLabel("Destination").fill(`${t.sink.url}/first`);
    await page.getByRole("button", { name: "Make it and send a test" }).click();
    await heading(page, "OrderPlaced, first webhook");
    await page.getByRole("region", { name: "Attempts" }).getByText("200").waitFor();
    assert.equal(t.sink.taken.filter((one) => one.url === "/first").length, 1);
  },
  async shows_what_fails_as_it_happens(t) {
    const page = await t.open("overview", null);
    await live(page);
    const w = await hook(t, "/bad", hostile, { EventSelector: "/Shop.OrderPlaced", Delivery: { RetrySchedule: [600, 600] } });
    await raise(t, { Customer: hostile, Total: 5 });
    const row = page.getByRole("region", { name: "Webhooks that need attention" }).getByRole("row").nth(1);
    await row.getByText("Failing", { exact: true }).waitFor();
    await row.getByText("answered 500").waitFor();
    await row.getByRole("img", { name: "0 of the last 1 attempts succeeded" }).waitFor();
    assert.ok((await row.getByRole("link").textContent()).includes("<img src=x"));
    const cells = await row.getByRole("cell").allTextContents();
    assert.equal(cells[4], "0 %");
    assert.equal(cells[5], "1", "what waits");
    assert.match(cells[6], /^in /, "the next attempt");
    assert.match(await row.locator("time").first().getAttribute("title"), /^.*\d{4}.*$/);
    await raise(t, { Total: 6 });
    await row.getByRole("img", { name: "0 of the last 2 attempts succeeded" }).waitFor();
    await t.api("PATCH", `/Svc.Admin.Webhook/Id=${w.Id}`, { Destination: `${t.sink.url}/ok` });
    await t.api("PATCH", `/Svc.Admin.Delivery/WebhookId=${w.Id}/unsafe=true`, { State: "Pending" });
    await page.getByText("Nothing fails.").waitFor();
    assert.equal(await page.title(), "Overview – Svc");
  },
  async counts_states(t) {
    await hook(t, "/later", "Asked to wait", { EventSelector: "/Shop.OrderShipped" });
    await raise(t, { Total: 1 }, "Shop.OrderShipped");
    await until("held back", async () => (await counted(t, "/Svc.Admin.Webhook/Status.State=HeldBack")) === 1);
    const page = await t.open("overview", null);
    await page.getByRole("link", { name: "1 held back" }).click();
    await heading(page, "Webhooks");
    await page.getByRole("row", { name: "Asked to wait" }).waitFor();
    assert.equal(await page.getByRole("row").count(), 2, "the columns, and the one");
  },
  async asks_for_pages_and_is_told_what_is_new(t) {
    await hook(t, "/told", "Told", { EventSelector: "/Shop.OrderPlaced" });
    const page = await t.open("overview", null);
    await live(page);
    const asked = [];
    page.on("request", (r) => asked.push(r.url()));
    await raise(t, { Total: 10 });
    await until("the row is looked at", () => asked.length > 0);
    for (const url of asked.map(decodeURIComponent)) assert.match(url, /where=Id=|limit=|offset=-|where=State|where=Status|Svc\.Admin\.Webhook$/, url);
  },
};
