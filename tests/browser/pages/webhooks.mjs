/* The list of webhooks, and the form. */
import assert from "node:assert/strict";
import { heading, hook } from "../harness.mjs";

export const cases = {
  async says_what_to_do_first(t) {
    const page = await t.open("webhooks", null);
    await page.getByRole("link", { name: "Make the first one" }).click();
    await page.getByRole("heading", { name: "Make the first webhook" }).waitFor();
  },
  async makes_one_with_everything(t) {
    const page = await t.open("new", null);
    await page.getByLabel("Label").fill("With everything");
    await page.getByLabel("Destination").fill("nonsense");
    await page.getByLabel("Event selector").fill("/Shop.OrderPlaced/Total>=900\n/Shop.OrderPlaced/Customer=Bo");
    await page.getByRole("button", { name: "Make it" }).click();
    await page.locator(".problem", { hasText: "Destination" }).waitFor();
    await page.getByLabel("Destination").fill(`${t.sink.url}/everything`);
    await page.getByLabel("Method").selectOption("PUT");
    await page.getByLabel("Headers", { exact: false }).first().fill("X-Shop: north\nAuthorization: Bearer of-the-receiver");
    await page.getByLabel("Format").selectOption("StandardWebhooks");
    await page.getByLabel("Tags").fill("warehouse, north");
    await page.getByLabel("Tenant").fill("acme");
    await page.getByText("Time-outs, retries, limits").click();
    await page.getByLabel("TimeoutSeconds").fill("7.5");
    await page.getByLabel("RetrySchedule").fill("[1,2]");
    await page.getByLabel("Ordered").selectOption("true");
    await page.getByText("Custom payload request").click();
    await page.getByLabel("URI of the request").fill("/Shop.Order");
    await page.getByLabel("Abort the delivery when it fails").check();
    await page.getByRole("button", { name: "Make it" }).click();
    await heading(page, "With everything");
    const [made] = await t.api("GET", "/Svc.Admin.Webhook/Label='With%20everything'");
    assert.deepEqual(made.EventSelectors, ["/Shop.OrderPlaced/Total>=900", "/Shop.OrderPlaced/Customer=Bo"]);
    assert.deepEqual([made.Method, made.Format, made.Tags, made.Tenant], ["PUT", "StandardWebhooks", ["warehouse", "north"], "acme"]);
    assert.deepEqual([made.Delivery.TimeoutSeconds, made.Delivery.RetrySchedule, made.Delivery.Ordered], [7.5, [1, 2], true]);
    assert.deepEqual([made.CustomPayloadRequest.URI, made.CustomPayloadRequest.BreakOnError], ["/Shop.Order", true]);
    assert.equal(made.Headers["X-Shop"], "north");
  },
  async offers_what_the_server_enumerates(t) {
    const schemas = (await t.api("GET", "/Svc.OpenApi")).components.schemas["Svc.Admin.Webhook"].properties;
    const page = await t.open("new", null);
    await heading(page, "New webhook");
    for (const name of ["Method", "Format", "Verify"].filter((one) => schemas[one]?.enum)) {
      const offered = await page.getByLabel(name, { exact: false }).first().locator("option").evaluateAll((all) => all.map((o) => o.value).filter(Boolean));
      assert.deepEqual(offered, schemas[name].enum.filter(Boolean), name);
    }
  },
  async changes_only_what_was_changed(t) {
    const w = await hook(t, "/changed", "To be changed", { Headers: { Authorization: "Bearer secret-of-it", "X-Old": "1" }, Delivery: { TimeoutSeconds: 5, MaxInFlight: 2 } });
    const page = await t.open(`webhook/${w.Id}`, null);
    await page.getByRole("button", { name: "Change" }).click();
    const dialog = page.getByRole("dialog");
    assert.match(await dialog.getByLabel("Headers").inputValue(), /Authorization: \*{7}/);
    await dialog.getByLabel("Headers").fill("Authorization: *******\nX-New: 2");
    await dialog.getByText("Time-outs, retries, limits").click();
    await dialog.getByLabel("TimeoutSeconds").fill("");
    await dialog.getByLabel("Event selector").fill("/Shop.OrderPlaced");
    const sent = page.waitForRequest((r) => r.method() === "PATCH");
    await dialog.getByRole("button", { name: "Save" }).click();
    assert.deepEqual(Object.keys((await sent).postDataJSON()).sort(), ["Delivery", "EventSelector", "Headers"]);
    await page.getByText("Saved").waitFor();
    const [changed] = await t.api("GET", `/Svc.Admin.Webhook/Id=${w.Id}`);
    assert.deepEqual(changed.Headers, { Authorization: "*******", "X-New": "2" });
    assert.deepEqual([changed.Delivery.TimeoutSeconds, changed.Delivery.MaxInFlight, changed.EventSelector], [30, 2, "/Shop.OrderPlaced"]);
    await t.api("POST", "/Svc.Event", { Resource: "Shop.OrderPlaced", Payload: { Total: 1 } });
    await page.getByRole("region", { name: "Attempts" }).getByText("200").waitFor();
    assert.equal(t.sink.taken.find((one) => one.url === "/changed").headers.authorization, "Bearer secret-of-it");
  },
  async finds_by_text_and_goes_on_page_by_page(t) {
    await t.api("POST", "/Svc.Admin.Webhook", Array.from({ length: 120 }, (_, i) => ({ Label: `Customer ${i}`, Destination: `${t.sink.url}/many`, EventSelector: "/Shop.OrderShipped/Total>1000" })));
    const page = await t.open("webhooks", null);
    const rows = page.getByRole("region", { name: "Webhooks" }).locator("tbody tr");
    await rows.nth(49).waitFor();
    assert.equal(await rows.count(), 50);
    await page.getByRole("button", { name: "More" }).click();
    await rows.nth(99).waitFor();
    await page.getByRole("searchbox").fill("Customer 119");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Customer 119" }).waitFor();
    assert.equal(await rows.count(), 1);
    await page.getByRole("searchbox").fill("'nobody' has \"this\"");
    await page.keyboard.press("Enter");
    await page.getByText("No webhook is like that.").waitFor();
  },
};
