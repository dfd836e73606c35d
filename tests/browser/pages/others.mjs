/* Catalogue, errors, resources, keys, system. */
import assert from "node:assert/strict";
import { clipboard, counted, heading, hostile, keys, until } from "../harness.mjs";

const watcher = "watcher-key-of-the-test", customer = "customer-key-of-the-test";

export const settings = { ...keys([watcher, [{ Resources: ["Svc.Metrics", "Svc.Health"], Methods: ["GET"] }]],
  [customer, [{ Resources: ["Svc.OpenApi", "Shop.*"], Methods: ["GET"] }, { Resources: ["Svc.Event"], Methods: ["GET", "POST"] }], "acme"]), Limits: { Conditions: 77 } };

export const cases = {
  async catalogue_says_what_events_carry(t) {
    const page = await t.open("catalogue");
    await page.getByRole("heading", { name: "Shop.OrderPlaced" }).waitFor();
    await page.getByRole("cell", { name: "Who pays" }).first().waitFor();
    await page.getByRole("link", { name: "Subscribe" }).first().click();
    await heading(page, "New webhook");
    assert.equal(await page.getByLabel("Event selector").inputValue(), "/Shop.OrderPlaced");
  },
  async catalogue_says_it_to_who_may_not_read_declarations(t) {
    const page = await t.open("catalogue", customer);
    await heading(page, "Catalogue");
    await page.getByRole("row", { name: "Customer string Who pays" }).first().waitFor();
    await page.getByRole("row", { name: "Total number (required)" }).first().waitFor();
    await page.getByRole("row", { name: "At datetime" }).first().waitFor();
    await page.goto(`${t.base}/Svc.Console#/raise/Shop.OrderPlaced`);
    assert.equal(await page.getByLabel("At").inputValue(), "2026-01-31T12:00:00Z");
    await page.getByRole("button", { name: "Raise it" }).click();
    await heading(page, "Shop.OrderPlaced");
  },
  async nobody_is_offered_to_raise_what_the_server_alone_raises(t) {
    const page = await t.open("catalogue");
    const section = page.locator("section", { has: page.getByRole("heading", { name: "Svc.WebhookPaused" }) });
    await section.getByRole("link", { name: "Look at them" }).waitFor();
    await section.getByRole("cell", { name: "WebhookId" }).waitFor(); // what it carries is told
    assert.equal(await section.getByRole("link", { name: "Raise one" }).count(), 0);
    await section.getByRole("link", { name: "Look at them" }).click();
    await heading(page, "Events");
    await page.getByRole("link", { name: "Raise one" }).click();
    await heading(page, "Raise an event");
    assert.ok(!(await page.getByLabel("Event").locator("option").allTextContents()).some((one) => one.startsWith("Svc.")));
    const [w] = await t.api("POST", "/Svc.Admin.Webhook", { Label: "Notices", Destination: `${t.sink.url}/n`, EventSelector: "/Svc.WebhookPaused" });
    await page.goto(`${t.base}/Svc.Console#/webhook/${w.Id}`);
    await heading(page, "Notices");
    assert.equal(await page.getByRole("button", { name: "Send a test" }).count(), 0);
  },
  async raises_bytes_from_a_file(t) {
    await t.api("POST", "/Svc.Admin.Resource", { Name: "Shop.ReportReady", Kind: "EventResource", Payload: { ContentType: "application/pdf" } });
    const [w] = await t.api("POST", "/Svc.Admin.Webhook", { Label: "Reports", Destination: `${t.sink.url}/report`, EventSelector: "/Shop.ReportReady" });
    const file = { name: "report.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 of the test") };
    const page = await t.open("raise/Shop.ReportReady");
    await page.getByLabel("Payload, a file").setInputFiles(file);
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.getByText("Raised: 1 webhook gets it").waitFor();
    await heading(page, "Shop.ReportReady");
    await page.goto(`${t.base}/Svc.Console#/webhook/${w.Id}`);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByLabel("Payload, a file").setInputFiles(file);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await until("both arrive", () => t.sink.taken.filter((r) => r.url === "/report").length === 2);
    for (const r of t.sink.taken.filter((one) => one.url === "/report")) assert.deepEqual([r.headers["content-type"], r.body], ["application/pdf", "%PDF-1.4 of the test"]);
    await page.goto(`${t.base}/Svc.Console#/resources`);
    await page.getByRole("row", { name: "Shop.ReportReady events – application/pdf" }).waitFor();
    await page.getByRole("row", { name: "Shop.OrderPlaced events An order came in as Shop.Order" }).waitFor();
  },
  async errors_are_shown_as_text_and_can_be_deleted(t) {
    await fetch(`${t.base}/Shop.${encodeURIComponent(hostile)}`, { headers: { Authorization: "apikey admin-key-of-the-test" } });
    const page = await t.open("errors");
    await page.getByRole("region", { name: "Errors" }).getByRole("row").nth(1).getByRole("link").first().click();
    await page.getByRole("heading", { name: "Places in the server" }).waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    const before = await counted(t, "/Svc.Admin.Error");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await heading(page, "Errors");
    assert.equal(await counted(t, "/Svc.Admin.Error"), before - 1);
  },
  async declares_a_resource_and_raises_on_it(t) {
    const page = await t.open("resources");
    await page.getByRole("link", { name: "Declare one" }).click();
    await page.getByLabel("Begin with").selectOption("An event that carries anything");
    await page.getByLabel("Declaration").fill(JSON.stringify({ Name: "Lab", Kind: "EventResource" }));
    await page.getByRole("button", { name: "Declare", exact: true }).click();
    await page.locator(".problem", { hasText: "Name" }).waitFor();
    const properties = [{ Name: "Weight", Type: "number", Description: hostile }];
    await page.getByLabel("Declaration").fill(JSON.stringify([{ Name: "Lab.Mouse", Kind: "EntityResource", Properties: properties }, { Name: "Lab.Born", Kind: "EventResource", Payload: { Resource: "Lab.Mouse" } }]));
    await page.getByRole("button", { name: "Declare", exact: true }).click();
    await page.getByRole("link", { name: "Lab.Mouse" }).waitFor();
    await t.page_of();
    await page.goto(`${t.base}/Svc.Console#/raise/Lab.Born`);
    await page.getByLabel("Weight").fill("20.50");
    await page.getByRole("button", { name: "Raise it" }).click();
    await heading(page, "Lab.Born");
    await page.goto(`${t.base}/Svc.Console#/resources`);
    await page.getByRole("link", { name: "Lab.Born" }).click();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await heading(page, "Resources");
    assert.equal(await counted(t, "/Svc.Admin.Resource/Name=Lab.Born"), 0);
  },
  async every_example_of_a_declaration_is_taken(t) {
    const page = await t.open("resource/new");
    const examples = await page.getByLabel("Begin with").locator("option").allTextContents();
    for (const [i, example] of examples.entries()) {
      await page.goto("about:blank");
      await page.goto(`${t.base}/Svc.Console#/resource/new`);
      await page.getByLabel("Begin with").selectOption(example);
      const text = await page.getByLabel("Declaration").inputValue();
      await page.getByLabel("Declaration").fill(text.replaceAll('"Shop.', `"Example${i}.`));
      await page.getByRole("button", { name: "Declare", exact: true }).click();
      await heading(page, "Resources");
    }
  },
  async proposes_a_key_that_raises_events(t) {
    const page = await t.open("keys");
    await page.getByRole("button", { name: "Make a key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("raiser");
    await page.getByRole("button", { name: "Make it" }).click();
    const made = await page.getByRole("dialog", { name: "The new key" }).locator("pre").textContent();
    await t.api("POST", "/Svc.Event", { Resource: "Shop.OrderPlaced", Payload: { Total: 1 } }, { Authorization: `apikey ${made}` });
  },
  async makes_a_key_for_a_customer_and_a_link_to_the_portal(t) {
    await t.api("POST", "/Svc.Admin.Webhook", { Label: "Of nobody", Destination: `${t.sink.url}/nobody`, EventSelector: "/Shop.OrderPlaced" });
    const page = await t.open("keys");
    await page.getByRole("button", { name: "Make one for a customer" }).click();
    await page.getByLabel("Name", { exact: true }).fill("acme-portal");
    await page.getByLabel("Tenant").fill("acme");
    assert.match(await page.getByLabel("Expires on").inputValue(), /^\d{4}-\d\d-\d\d$/);
    await page.getByLabel("Expires on").fill("2099-12-31");
    assert.match(await page.getByLabel("Events the customer may select and see").inputValue(), /\bShop\.\*/);
    await page.getByLabel("Events the customer may select and see").fill("Shop.*");
    await page.getByRole("button", { name: "Make it" }).click();
    const dialog = page.getByRole("dialog", { name: "The new key" });
    const made = await dialog.locator("pre").textContent();
    assert.match(made, /^svck_.{43}$/);
    await dialog.getByRole("button", { name: "Copy the key" }).click();
    await page.getByText("Copied").first().waitFor();
    assert.equal(await clipboard(page), made);
    await dialog.getByRole("button", { name: "Copy a link to the portal" }).click();
    await page.getByText("Copied").nth(1).waitFor();
    const link = await clipboard(page);
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("cell", { name: "acme-portal" }).waitFor();
    assert.ok(!(await page.content()).includes(made));
    const [key] = await t.api("GET", "/Svc.Admin.ApiKey/Name=acme-portal");
    assert.match(key.ExpiresAt, /^2099-12-31/);

    const portal = await t.page_of(null);
    await portal.goto(link);
    await portal.getByRole("heading", { name: "Make the first webhook" }).waitFor();
    assert.ok(!portal.url().includes(made));
    assert.deepEqual(await portal.locator("#nav a").allTextContents(), ["Overview", "Webhooks", "Events", "Explain", "Catalogue", "Errors"]);
    await portal.getByLabel("Destination").fill(`${t.sink.url}/acme`);
    await portal.getByRole("button", { name: "Make it and send a test" }).click();
    await portal.getByRole("region", { name: "Attempts" }).getByText("200").waitFor();
    assert.deepEqual((await t.api("GET", "/Svc.Admin.Webhook/Tenant=acme")).map((w) => w.Owner), ["acme-portal"]);
    await portal.getByRole("link", { name: "Webhooks", exact: true }).click();
    await heading(portal, "Webhooks");
    assert.equal(await portal.getByText("Of nobody").count(), 0);

    await page.getByRole("row", { name: "acme-portal" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("row", { name: "acme-portal" }).waitFor({ state: "detached" });
    await portal.reload();
    await heading(portal, "Sign in");
  },
  async system_tells_of_journal_limits_and_memory(t) {
    const page = await t.open("system");
    await page.locator(".badge", { hasText: "ok" }).waitFor();
    for (const name of ["Journal", "Memory and work", "Limits that were reached", "Entities stored", "Errors since the start"]) await page.getByRole("heading", { name }).waitFor();
    const facts = await page.locator("dl").allTextContents();
    assert.match(facts[0], /On disk[\d.]+ (bytes|KiB|MiB).*Segment files\d.*has room/);
    assert.match(facts[1], /Memory[\d.]+ MiB.*Version\d/);
    assert.equal(await page.getByRole("heading", { name: "Nodes" }).count(), 0); // it is alone
    const rows = page.getByRole("region", { name: "Limits", exact: true }).getByRole("row");
    assert.equal(await rows.count(), 1 + (await counted(t, "/Svc.Admin.Limit")));
    assert.match(await rows.nth(1).textContent(), /^Conditions77 conditionsdefault 64 conditions/); // the one that is set is the first
    assert.match(await rows.filter({ hasText: "largest request body" }).textContent(), /^BodyBytes1.0 MiB/);
  },
  async limits_are_for_who_may_see_them(t) {
    const page = await t.open("system", watcher);
    await heading(page, "System");
    assert.equal(await page.getByRole("heading", { name: "Limits", exact: true }).count(), 0);
  },
};
