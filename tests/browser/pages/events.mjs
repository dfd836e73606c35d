/* Events: as they are raised, one of them, and raising one. */
import assert from "node:assert/strict";
import { counted, heading, hook, hostile, live, raise, until } from "../harness.mjs";

export const cases = {
  async follows_what_is_raised(t) {
    const page = await t.open("events?resource=Shop.OrderPlaced", null);
    await live(page);
    await raise(t, { Customer: hostile, Total: 7777 });
    await page.getByText("7777").waitFor();
    await raise(t, { Total: 8888 }, "Shop.OrderShipped");
    await raise(t, { Total: 9999 });
    await page.getByText("9999").waitFor();
    assert.equal(await page.getByText("8888").count(), 0, "another resource");
    await page.getByLabel("Condition").fill("Payload.0.Total>9000");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("7777").waitFor({ state: "detached" });
    await page.getByText("9999").waitFor();
    await page.getByLabel("Condition").fill("Nonsense>>");
    await page.getByRole("button", { name: "Show" }).click();
    await page.locator(".problem").waitFor();
  },
  async rests_out_of_sight_and_catches_up(t) {
    const streams = async () => Number(/^svc_streams_open (\d+)/m.exec(await (await fetch(`${t.base}/Svc.Metrics`)).text())[1]);
    const page = await t.open("events", null);
    await live(page);
    const show = (is_hidden) => page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, is_hidden);
    await until("one stream", async () => (await streams()) === 1);
    await show(true);
    await until("no stream", async () => (await streams()) === 0);
    await raise(t, { Total: 4242 });
    assert.equal(await page.getByText("4242").count(), 0);
    await show(false);
    await page.getByText("4242").waitFor();
    await live(page);
  },
  async raises_one_by_a_form_of_its_properties(t) {
    const w = await hook(t, "/raised", "Gets it");
    const page = await t.open("events?resource=Shop.OrderPlaced", null);
    await page.getByRole("link", { name: "Raise one" }).click();
    await page.getByText("Who pays").waitFor();
    await page.getByLabel("Customer").fill(hostile);
    await page.getByLabel("Total").fill("x");
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.locator(".problem", { hasText: "Total: 'x' is no number" }).waitFor();
    await page.getByLabel("Total").fill("123.50");
    await page.getByLabel("Express").selectOption("true");
    await page.getByLabel("Lines").fill('[{"Sku": 1}]');
    await page.getByLabel("At").fill("yesterday");
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.locator(".problem", { hasText: "At" }).waitFor();
    await page.getByLabel("At").fill("2026-01-31T12:00:00Z");
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.getByRole("heading", { name: "Who got it" }).waitFor();
    await page.getByRole("region", { name: "Deliveries" }).getByRole("link", { name: w.Label }).waitFor();
    const { body } = await until("the request", () => t.sink.taken.find((one) => one.url === "/raised"));
    assert.ok(body.includes('"Total":123.50'), "numbers as they were written");
    assert.equal(JSON.parse(body)[0].Customer, hostile);
  },
  async says_who_got_it_and_who_did_not(t) {
    await hook(t, "/who", "Wants more", { EventSelector: "/Shop.OrderPlaced/Total>=100000" });
    await hook(t, "/who", "One of two", { EventSelector: undefined, EventSelectors: ["/Shop.OrderShipped", "/Shop.OrderPlaced/Total>=200000"] });
    const event = await raise(t, { Customer: "Ann", Total: 500 });
    const page = await t.open(`event/${event.Id}`, null);
    await page.getByRole("region", { name: "Deliveries" }).getByRole("link", { name: "Gets it" }).waitFor();
    await page.getByRole("button", { name: "Ask which, and why" }).click();
    const missed = page.getByRole("region", { name: "Webhooks that did not get it" });
    await missed.getByRole("row", { name: "Wants more" }).getByText("Total>=100000 does not hold").waitFor();
    await missed.getByRole("row", { name: "One of two" }).waitFor();
    await missed.getByRole("row", { name: "Wants more" }).getByRole("link", { name: "Look" }).click();
    await heading(page, "Explain");
  },
  async sends_its_delivery_again(t) {
    const w = await hook(t, "/bad", "Of one event", { EventSelector: "/Shop.OrderShipped", Delivery: { RetrySchedule: [] } });
    const event = await raise(t, { Total: 1 }, "Shop.OrderShipped");
    await until("that it is dead", async () => (await counted(t, `/Svc.Admin.Delivery/WebhookId=${w.Id}&State=Dead`)) === 1);
    const page = await t.open(`event/${event.Id}`, null);
    await page.getByRole("row", { name: "Of one event" }).getByRole("button", { name: "Send again" }).click();
    await until("a second attempt", async () => (await counted(t, `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`)) === 2);
  },
};
