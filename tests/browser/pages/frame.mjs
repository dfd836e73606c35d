/* What all pages have: signing in, rights, keyboard, narrow screens, colours, and that nothing from outside is markup. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { admin, counted, heading, hook, hostile, keys, live, raise, require, root, until } from "../harness.mjs";

const read = (...resources) => ({ Resources: resources, Methods: ["GET"] });
export const settings = keys(["reader", [read("Svc.Admin.Webhook", "Svc.Admin.WebhookLog")]], ["poster", [{ Resources: ["Svc.Event"], Methods: ["POST"] }]],
  ["acme", [{ Resources: ["Svc.Admin.Webhook"], Methods: ["GET", "POST", "PATCH", "DELETE"] }, read("Svc.Admin.WebhookLog", "Svc.Admin.Delivery", "Svc.Admin.Error", "Svc.OpenApi", "Shop.*"),
    { Resources: ["Svc.Event", "Svc.Explain"], Methods: ["GET", "POST"] }], "acme"]);

const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/* Everything there is a page for, with markup in it wherever something from outside is shown. */
async function every_page(t) {
  const w = await hook(t, "/bad", hostile, { EventSelectors: ["/Shop.OrderPlaced", "/Shop.OrderShipped/Total>5"], EventSelector: undefined, Headers: { "X-Hostile": hostile.replace("\u202e", "") }, Tags: [hostile] });
  const event = await raise(t, { Customer: hostile, Total: 7, Lines: [hostile] });
  await fetch(`${t.base}/Shop.${encodeURIComponent(hostile)}`, { headers: { Authorization: `apikey ${admin}`, "X-Hostile": "<b>" } });
  const [attempt] = await until("an attempt", async () => {
    const found = await t.api("GET", `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`);
    return found.length && found;
  });
  const [error] = await t.api("GET", "/Svc.Admin.Error/_/limit=1");
  const [resource] = await t.api("GET", "/Svc.Admin.Resource/Name=Shop.Order");
  return ["overview", "webhooks", `webhook/${w.Id}`, "new", "first", "events", `event/${event.Id}`, `raise/Shop.OrderPlaced?like=${event.Id}`,
    `explain?webhook=${w.Id}&event=${event.Id}`, `attempt/${attempt.Id}`, "catalogue", "errors", `error/${error.Id}`, "resources", `resource/${resource.Id}`, "resource/new", "keys", "system"];
}

/* No page asks for what is refused, so it leaves no error behind. */
async function at_each(t, options, look) {
  const routes = await every_page(t), before = await counted(t, "/Svc.Admin.Error");
  const page = await t.page_of(admin, options);
  for (const route of routes) {
    await page.goto("about:blank");
    await page.goto(`${t.base}/Svc.Console#/${route}`);
    await page.locator("main h1").waitFor();
    await look(page, route);
    assert.equal(await counted(t, "/Svc.Admin.Error"), before, `${route} asks for what is refused`);
  }
}

async function serious(page, what) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  const { violations } = await page.evaluate((runOnly) => window.axe.run(document, { runOnly, resultTypes: ["violations"] }), what);
  return violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`);
}

export const cases = {
  async signs_in_and_out({ open }) {
    const page = await open("overview", null);
    await heading(page, "Sign in");
    await page.getByLabel("API key").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".problem", { hasText: "There is no such API key" }).waitFor();
    await page.getByLabel("API key").fill(admin);
    await page.keyboard.press("Enter");
    await heading(page, "Overview");
    await page.getByRole("button", { name: "Sign out" }).click();
    await heading(page, "Sign in");
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  },
  async signs_in_where_the_key_has_a_right(t) {
    const page = await t.open("overview", null);
    await heading(page, "Sign in");
    await page.getByLabel("API key").fill("poster");
    await page.keyboard.press("Enter");
    await heading(page, "Catalogue");
    assert.match(page.url(), /#\/catalogue$/);
  },
  async takes_a_key_out_of_the_address({ page_of, base }) {
    const page = await page_of(null);
    await page.goto(`${base}/Svc.Console#key=${admin}`);
    await heading(page, "Overview");
    assert.ok(!page.url().includes(admin));
    assert.ok(!(await page.evaluate(() => JSON.stringify(history.state))).includes(admin));
  },
  async says_what_the_server_said(t) {
    const page = await t.open("webhook/01a20605-176d-7c90-b7c6-cfef48c00d96");
    await page.locator(".problem", { hasText: "There is no Svc.Admin.Webhook" }).waitFor();
    await page.getByRole("button", { name: "Try again" }).waitFor();
  },
  async shows_no_control_that_would_be_refused(t) {
    await hook(t, "/ok", "Seen by readers");
    const page = await t.open("webhooks", "reader");
    await heading(page, "Webhooks");
    assert.deepEqual(await page.locator("#nav a").allTextContents(), ["Overview", "Webhooks", "Catalogue"]);
    assert.equal(await page.getByRole("link", { name: "Add a webhook" }).count(), 0);
    await page.getByRole("region", { name: "Webhooks" }).getByRole("link").first().click();
    await page.getByRole("heading", { name: "How it is doing" }).waitFor();
    for (const name of ["Pause", "Delete", "Change", "Send a test", "Rotate the secret", "Sign requests"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  },
  async shows_a_customer_the_own_things(t) {
    await hook(t, "/ok", "Of another");
    await hook(t, "/ok", "Of acme", { Tenant: "acme" });
    const page = await t.open("webhooks", "acme");
    await page.getByRole("link", { name: "Of acme" }).waitFor();
    assert.deepEqual(await page.locator("#nav a").allTextContents(), ["Overview", "Webhooks", "Events", "Explain", "Catalogue", "Errors"]);
    assert.equal(await page.getByText("Of another").count(), 0);
    await page.getByRole("link", { name: "Add a webhook" }).click();
    await page.getByLabel("Destination").fill(`${t.sink.url}/acme`);
    assert.equal(await page.getByLabel("Tenant").count(), 0);
    await page.getByLabel("Event selector").fill("/Shop.OrderPlaced");
    await page.getByRole("button", { name: "Make it" }).click();
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Attempts" }).getByRole("link").first().click();
    await heading(page, "Attempt 1");
  },
  async fits_narrow_screens_and_runs_nothing_from_outside(t) {
    await at_each(t, { viewport: { width: 360, height: 700 } }, async (page, route) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${route} is ${wide} pixels too wide`);
      assert.equal(await page.locator("main :is(img, script, iframe, object, b[onclick])").count(), 0, route);
      assert.match(await page.title(), /– Svc$/);
      await page.waitForFunction(() => {
        const here = document.querySelector("#nav [aria-current]").getBoundingClientRect();
        return here.left >= 0 && here.right <= innerWidth;
      });
    });
  },
  async puts_everything_where_it_stays(t) {
    const page = await t.page_of(admin);
    await page.addInitScript(() => {
      window.moved = 0;
      new PerformanceObserver((list) => {
        for (const one of list.getEntries()) window.moved += one.hadRecentInput ? 0 : one.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    const rested = () => page.evaluate(() => new Promise((done) => {
      requestAnimationFrame(() => requestAnimationFrame(() => requestIdleCallback(() => done(window.moved))));
    }));
    for (const route of await every_page(t)) {
      await page.goto("about:blank");
      await page.goto(`${t.base}/Svc.Console#/${route}`);
      await page.locator("main h1").waitFor();
      const moved = await rested();
      assert.ok(moved < 0.1, `${route} moves by ${moved}`);
    }
    await page.evaluate(() => { document.querySelector("main").style.paddingTop = "200px"; });
    await until("what moves is counted", async () => await rested() >= 0.1);
  },
  async has_nothing_serious_for_axe_and_enough_contrast_in_the_dark(t) {
    const rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
    await at_each(t, { bypassCSP: true, reducedMotion: "reduce" }, async (page, route) => {
      await page.emulateMedia({ colorScheme: "light" });
      assert.deepEqual(await serious(page, rules), [], route);
      await page.emulateMedia({ colorScheme: "dark" });
      assert.deepEqual(await serious(page, { type: "rule", values: ["color-contrast"] }), [], `${route}, dark`);
    });
  },
  async is_judged_by_an_axe_that_finds_something(t) {
    const page = await t.page_of(admin, { bypassCSP: true });
    await page.goto(`${t.base}/Svc.Console#/overview`);
    await heading(page, "Overview");
    await page.evaluate(() => document.querySelector("main").append(document.createElement("input")));
    assert.match((await serious(page, ["wcag2a"])).join(), /^label/);
  },
  async works_by_keyboard(t) {
    const w = await hook(t, "/keys", "By keyboard");
    const page = await t.open("overview");
    await live(page);
    const press_until = async (what) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        const found = await page.evaluate(() => ({ text: document.activeElement.textContent, outline: getComputedStyle(document.activeElement).outlineStyle }));
        if (found.text === what) {
          assert.equal(found.outline, "solid", `focus on ${what} is to be seen`);
          return;
        }
      }
      assert.fail(`Tab does not reach ${what}`);
    };
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "To the content");
    await press_until("Webhooks");
    await page.keyboard.press("Enter");
    await heading(page, "Webhooks");
    await press_until("By keyboard");
    await page.keyboard.press("Enter");
    await heading(page, "By keyboard");
    await press_until("Delete");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await press_until("Pause");
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal((await t.api("GET", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].IsPaused, true);
  },
  async is_small_and_sent_compressed({ page_of, base }) {
    const files = fs.readdirSync(`${root}/src/console`).filter((name) => name !== "meson.build");
    const bytes = files.reduce((sum, name) => sum + fs.statSync(`${root}/src/console/${name}`).size, 0);
    assert.ok(bytes <= 150 * 1024, `${bytes} bytes`);
    const index = fs.readFileSync(`${root}/src/console/index.html`, "utf8");
    for (const name of files.filter((one) => one.endsWith(".js"))) assert.ok(index.includes(`/${name}"`), `${name} is asked for at once`);
    const page = await page_of();
    const seen = [];
    page.on("response", (r) => seen.push(r));
    await page.goto(`${base}/Svc.Console#/overview`);
    await heading(page, "Overview");
    for (const r of seen.filter((one) => one.url().includes("/Svc.Console") && one.status() === 200)) {
      assert.equal(r.headers()["content-encoding"], "gzip", r.url());
      assert.doesNotMatch(r.headers()["content-security-policy"], /unsafe|\*/);
      assert.match(r.headers()["content-security-policy"], /require-trusted-types-for 'script'/);
    }
  },
  async refuses_markup_where_the_browser_can({ open, complaints }) {
    const page = await open("overview");
    await heading(page, "Overview");
    const said = await page.evaluate(() => {
      try {
        document.createElement("div").innerHTML = "<b>x</b>";
        return "taken";
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(said, "TypeError");
    complaints.length = 0; // it was meant
  },
  async follows_the_light_of_the_system({ open }) {
    const grounds = [];
    for (const colorScheme of ["light", "dark"]) {
      const page = await open("overview", admin, { colorScheme });
      await heading(page, "Overview");
      grounds.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    }
    assert.notEqual(grounds[0], grounds[1]);
  },
};
