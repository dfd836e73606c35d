/* Explain: a selector beside an event, condition by condition. */
import assert from "node:assert/strict";
import { heading, hook, raise } from "../harness.mjs";

const judged = (page, name) => page.getByRole("row", { name });

export const cases = {
  async turns_each_condition_green_or_red(t) {
    const event = await raise(t, { Customer: "Ann", Total: 50, Lines: [1, 2] });
    const page = await t.open(`explain?event=${event.Id}`, null);
    await page.getByLabel("Selector").fill("/Shop.OrderPlaced/Total>=100&Customer=Ann&Lines.Length>1");
    await judged(page, /Total>=100 50 no/).locator(".badge.ill").waitFor();
    await judged(page, /Customer=.*Ann.* yes/).locator(".badge.well").waitFor();
    await judged(page, /Lines.Length>1 2 yes/).locator(".badge.well").waitFor();
    await page.getByText("does not match", { exact: true }).waitFor();
    await page.getByLabel("Selector").fill("/Shop.OrderPlaced/Total>=50");
    await page.getByText("matches", { exact: true }).waitFor();
    await page.getByLabel("Selector").fill("/Shop.OrderPlaced/Totall>=50");
    await page.locator(".problem", { hasText: "Totall" }).waitFor();
    await page.getByLabel("Selector").fill("");
    await page.getByText("Write a selector.").waitFor();
  },
  async judges_each_of_several_selectors(t) {
    const w = await hook(t, "/two", "Two of them", { EventSelector: undefined, EventSelectors: ["/Shop.OrderPlaced/Total>=100", "/Shop.OrderPlaced/Customer=Ann"] });
    const page = await t.open(`explain?webhook=${w.Id}`, null);
    await page.getByText("does not match", { exact: true }).waitFor();
    await page.getByText("matches", { exact: true }).waitFor();
    assert.equal(await page.getByRole("region", { name: "Conditions" }).count(), 2);
  },
  async judges_a_payload_that_was_never_raised(t) {
    const page = await t.open("explain?selector=/Shop.OrderPlaced/Total>=100", null);
    await page.getByLabel("Event").selectOption({ label: "one that I write" });
    await page.getByLabel("Payload").fill('{"Total": 100.0}');
    await judged(page, /Total>=100 100/).locator(".badge.well").waitFor();
    await page.getByLabel("Payload").fill("{");
    await page.locator(".problem").waitFor();
  },
  async says_what_no_selector_says(t) {
    const event = await raise(t, { Customer: "Ann", Total: 500 });
    const w = await hook(t, "/paused", "Paused all the time", { IsPaused: true });
    const page = await t.open(`explain?webhook=${w.Id}&event=${event.Id}`, null);
    await page.locator(".note", { hasText: "does not get it" }).waitFor();
    await page.getByText("matches", { exact: true }).waitFor();
  },
  async makes_a_webhook_of_it(t) {
    const page = await t.open("explain?selector=/Shop.OrderPlaced/Total>=100", null);
    await page.getByRole("button", { name: "Make a webhook of it" }).click();
    await heading(page, "New webhook");
    assert.equal(await page.getByLabel("Event selector").inputValue(), "/Shop.OrderPlaced/Total>=100");
    await page.getByLabel("Destination").fill(`${t.sink.url}/made`);
    await page.getByRole("button", { name: "Make it" }).click();
    await page.getByRole("button", { name: "Send a test" }).waitFor();
  },
};
