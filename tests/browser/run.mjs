/* Drives the console in a real Chromium: `SVCD=build/dev/svcd node tests/browser/run.mjs [name]`. Needs the program
 * chromium and the package playwright-core, in NODE_PATH or a node_modules above. Prints each case; exit status 1 when one
 * fails. Pictures of three pages go to the folder that SHOTS names. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const hostile = `<img src=x onerror="document.title='owned'">'"&</b>`;
const admin = "admin-key-of-the-test", reader = "reader-key-of-the-test";
const sha = (text) => createHash("sha256").update(text).digest("hex");

function free_port() {
  return new Promise((resolve) => {
    const s = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => resolve(port));
    });
  });
}

function receiver() {
  const taken = [];
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (d) => { body += d; });
    request.on("end", () => {
      taken.push({ url: request.url, headers: request.headers, body });
      response.statusCode = request.url === "/bad" ? 500 : 200;
      response.end(request.url === "/bad" ? hostile : "taken");
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ server, taken, url: `http://127.0.0.1:${server.address().port}` })));
}

async function begin() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "svc-browser-"));
  const port = await free_port();
  const base = `http://127.0.0.1:${port}/v1`;
  const every = [{ Resources: ["*"], Methods: ["*"] }];
  const config = {
    BasePath: "/v1", RequireApiKey: true,
    ApiKeys: [{ Name: "admin", KeySha256: sha(admin), AllowAccess: every },
      { Name: "reader", KeySha256: sha(reader), AllowAccess: [{ Resources: ["Svc.Admin.Webhook", "Svc.Admin.WebhookLog"], Methods: ["GET"] }] }],
    Resources: [{ Name: "Shop.Order", Kind: "EntityResource", Properties: [{ Name: "Customer", Type: "string" }, { Name: "Total", Type: "number" }] },
      { Name: "Shop.OrderPlaced", Kind: "EventResource", Payload: { Resource: "Shop.Order" } }],
  };
  const file = path.join(dir, "config.json");
  fs.writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const server = spawn(process.env.SVCD || "build/dev/svcd", ["--config", file, "--data", path.join(dir, "data"), "--listen", `127.0.0.1:${port}`], { stdio: "ignore" });
  for (let i = 0; i < 400; i++) {
    try {
      if ((await fetch(`${base}/readyz`)).ok) break;
    } catch { /* not yet */ }
    await new Promise((done) => setTimeout(done, 25));
  }
  return { dir, base, server };
}

const s = await begin();
const sink = await receiver();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const complaints = [];

async function api(method, target, body) {
  const answer = await fetch(s.base + target, { method, headers: { Authorization: `apikey ${admin}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${target}: ${answer.status}`);
  const text = await answer.text();
  return text ? JSON.parse(text) : [];
}

async function open(route, key = admin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  await context.addInitScript((k) => { if (k && origin !== "null" && !sessionStorage.getItem("key")) sessionStorage.setItem("key", k); }, key);
  const page = await context.newPage();
  page.setDefaultTimeout(10000);
  page.on("pageerror", (e) => complaints.push(e.message));
  page.on("console", (m) => { if (/Content Security|Trusted/.test(m.text())) complaints.push(m.text()); });
  await page.goto(`${s.base}/Svc.Console#/${route}`);
  return page;
}

async function hook(destination, label, selector = "/Shop.OrderPlaced/Total>=100") {
  return (await api("POST", "/Svc.Admin.Webhook", { Label: label, Destination: sink.url + destination, EventSelector: selector }))[0];
}

const raise = (payload) => api("POST", "/Svc.Event", { Resource: "Shop.OrderPlaced", Payload: payload });
const heading = (page, text) => page.getByRole("heading", { level: 1, name: text }).waitFor();

const cases = {
  async signs_in_and_out() {
    const page = await open("overview", null);
    await heading(page, "Sign in");
    await page.getByLabel("API key").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".problem").waitFor();
    await page.getByLabel("API key").fill(admin);
    await page.keyboard.press("Enter");
    await heading(page, "Overview");
    await page.getByRole("button", { name: "Sign out" }).click();
    await heading(page, "Sign in");
  },
  async takes_a_key_out_of_the_address() {
    const page = await open("none", null);
    await page.goto("about:blank");
    await page.goto(`${s.base}/Svc.Console#key=${admin}`);
    await heading(page, "Overview");
    assert.ok(!page.url().includes(admin));
  },
  async says_what_to_do_first() {
    const page = await open("overview");
    await page.getByRole("link", { name: "make the first one" }).click();
    await page.getByLabel("Label").fill("By hand");
    await page.getByLabel("Destination").fill("nonsense");
    await page.getByLabel("Event selector").fill("/Shop.OrderPlaced/Total>=100");
    await page.getByRole("button", { name: "Make it" }).click();
    await page.locator(".problem", { hasText: "Destination" }).waitFor();
    await page.getByLabel("Destination").fill(`${sink.url}/hand`);
    await page.getByRole("button", { name: "Make it" }).click();
    await heading(page, "By hand");
  },
  async shows_what_fails_as_it_happens() {
    const page = await open("overview");
    await page.locator(".live.on").waitFor();
    await hook("/bad", hostile, "/Shop.OrderPlaced");
    await raise({ Customer: hostile, Total: 5 });
    const row = page.getByRole("region", { name: "Webhooks that need attention" }).getByRole("row", { name: hostile });
    await row.getByText("Failing", { exact: true }).waitFor();
    await row.getByText("answered 500").waitFor();
    assert.equal(await page.title(), "Overview – Svc");
  },
  async sends_a_test_and_shows_its_attempt() {
    const w = await hook("/test", "Tested", "/Shop.OrderPlaced/Total>=100&Customer='Ann Lee'");
    const page = await open(`webhook/${w.Id}`);
    await page.getByText("No attempt yet.").waitFor();
    await page.locator(".live.on").waitFor();
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Attempts" }).getByRole("link").first().click();
    await heading(page, "Attempt 1");
    await page.getByText("first byte").waitFor();
    assert.deepEqual(JSON.parse(sink.taken.find((t) => t.url === "/test").body), [{ Customer: "Ann Lee", Total: 100 }]);
  },
  async shows_hostile_answers_as_text() {
    const [entry] = await api("GET", "/Svc.Admin.WebhookLog/IsSuccess=false/limit=1");
    const page = await open(`attempt/${entry.Id}`);
    await page.getByLabel("Answer").getByText(hostile).waitFor();
    assert.equal(await page.locator("main img").count(), 0);
  },
  async pauses_and_undoes() {
    const w = await hook("/pause", "Paused one");
    const page = await open(`webhook/${w.Id}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    assert.equal((await api("GET", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].IsPaused, false);
  },
  async shows_a_new_secret_once() {
    const w = await hook("/signed", "Signed");
    const page = await open(`webhook/${w.Id}`);
    for (const [name, answer] of [["Sign requests", "Make a secret"], ["Rotate the secret", "Rotate"]]) {
      await page.getByRole("button", { name }).click();
      await page.getByRole("button", { name: answer, exact: true }).click();
      const secret = await page.getByRole("dialog", { name: "The new secret" }).locator("pre").textContent();
      assert.match(secret, /^whsec_/);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Rotate the secret" }).waitFor();
      assert.ok(!(await page.content()).includes(secret));
    }
  },
  async takes_several_selectors() {
    const page = await open("new");
    await page.getByLabel("Label").fill("Two selectors");
    await page.getByLabel("Destination").fill(`${sink.url}/two`);
    await page.getByLabel("Event selector").fill("/Shop.OrderPlaced/Total>=900\n/Shop.OrderPlaced/Customer=Bo");
    await page.getByRole("button", { name: "Make it" }).click();
    await heading(page, "Two selectors");
    await page.getByText("/Shop.OrderPlaced/Customer=Bo").waitFor();
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByLabel("Event selector").fill("/Shop.OrderPlaced");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved").waitFor();
    const [changed] = await api("GET", "/Svc.Admin.Webhook/Label='Two%20selectors'");
    assert.deepEqual([changed.EventSelector, changed.EventSelectors], ["/Shop.OrderPlaced", null]);
  },
  async asks_before_it_deletes() {
    const w = await hook("/gone", "To be deleted");
    const page = await open(`webhook/${w.Id}`);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal((await api("REPORT", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].Count, 1);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await heading(page, "Webhooks");
    assert.equal((await api("REPORT", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].Count, 0);
  },
  async sends_dead_ones_again_after_counting() {
    const w = await hook("/bad", "Dies at once");
    await api("PATCH", `/Svc.Admin.Webhook/Id=${w.Id}`, { Delivery: { RetrySchedule: [] } });
    await raise({ Customer: "a", Total: 500 });
    for (let i = 0; i < 400 && !(await api("REPORT", `/Svc.Admin.Delivery/WebhookId=${w.Id}&State=Dead`))[0].Count; i++) await new Promise((done) => setTimeout(done, 25));
    const page = await open(`webhook/${w.Id}`);
    await page.locator(".live.on").waitFor();
    await page.getByRole("button", { name: "Send dead ones again" }).click();
    await page.getByRole("button", { name: "Count them" }).click();
    await page.getByRole("button", { name: "Send 1 again" }).click();
    await page.getByText("1 deliveries are queued again").waitFor();
    for (let i = 0; i < 400 && (await api("REPORT", `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`))[0].Count < 2; i++) await new Promise((done) => setTimeout(done, 25));
    assert.equal((await api("REPORT", `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`))[0].Count, 2);
  },
  async follows_and_raises_events() {
    const page = await open("events?resource=Shop.OrderPlaced");
    await page.locator(".live.on").waitFor();
    await raise({ Customer: hostile, Total: 7777 });
    await page.getByText("7777").waitFor();
    await page.getByRole("link", { name: "Raise one" }).click();
    await page.getByLabel("Total").fill("x");
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.locator(".problem", { hasText: "Total" }).waitFor();
    await page.getByLabel("Total").fill("123.50");
    await page.getByRole("button", { name: "Raise it" }).click();
    await page.getByRole("heading", { name: "Who got it" }).waitFor();
    await page.getByRole("region", { name: "Deliveries" }).waitFor();
  },
  async explains_condition_by_condition() {
    const [event] = await raise({ Customer: "Ann", Total: 50 });
    const page = await open(`explain?event=${event.Id}`);
    await page.getByLabel("Selector").fill("/Shop.OrderPlaced/Total>=100&Customer=Ann");
    const rows = page.getByRole("region", { name: "Conditions" }).getByRole("row");
    await rows.nth(1).getByText("no", { exact: true }).waitFor();
    await rows.nth(2).getByText("yes", { exact: true }).waitFor();
    await page.getByLabel("Selector").fill("/Shop.OrderPlaced/Total>=50");
    await page.getByText("matches", { exact: true }).waitFor();
  },
  async makes_a_key_and_shows_it_once() {
    const page = await open("keys");
    await page.getByRole("button", { name: "Make a key" }).click();
    await page.getByLabel("Name").fill("acme-portal");
    await page.getByLabel("Tenant").fill("acme");
    await page.getByRole("button", { name: "Make it" }).click();
    const made = await page.getByRole("dialog").locator("pre").textContent();
    assert.match(made, /^svck_.{43}$/);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("cell", { name: "acme-portal" }).waitFor();
    assert.ok(!(await page.content()).includes(made));
  },
  async declares_a_resource() {
    const page = await open("resource/new");
    await page.getByLabel("Declaration").fill(JSON.stringify({ Name: "Lab.Mouse", Kind: "EventResource" }));
    await page.getByRole("button", { name: "Declare" }).click();
    await page.getByRole("link", { name: "Lab.Mouse" }).waitFor();
  },
  async shows_no_control_that_would_be_refused() {
    const page = await open("webhooks", reader);
    await heading(page, "Webhooks");
    const names = await page.locator("#nav a").allTextContents();
    assert.deepEqual(names, ["Overview", "Webhooks", "Catalogue"]);
    assert.equal(await page.getByRole("link", { name: "Add a webhook" }).count(), 0);
    await page.getByRole("region", { name: "Webhooks" }).getByRole("link").first().click();
    await page.getByRole("heading", { name: "How it is doing" }).waitFor();
    for (const name of ["Pause", "Delete", "Change", "Send a test"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  },
  async fits_narrow_screens() {
    const [w] = await api("GET", "/Svc.Admin.Webhook/_/limit=1");
    const [event] = await api("GET", "/Svc.Event/_/limit=1");
    const page = await open("overview", admin, { viewport: { width: 360, height: 700 } });
    for (const route of ["overview", "webhooks", `webhook/${w.Id}`, "new", "events", `event/${event.Id}`, "raise/Shop.OrderPlaced", "explain", "catalogue", "errors", "resources", "keys", "system"]) {
      await page.goto("about:blank");
      await page.goto(`${s.base}/Svc.Console#/${route}`);
      await page.locator("main h1").waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${route} is ${wide} pixels too wide`);
    }
  },
};

async function shots(folder) {
  fs.mkdirSync(folder, { recursive: true });
  const [w] = await api("GET", "/Svc.Admin.Webhook/Label=Tested/limit=1");
  for (const colorScheme of ["light", "dark"])
    for (const [name, route] of [["overview", "overview"], ["webhook", `webhook/${w.Id}`], ["explain", `explain?webhook=${w.Id}`]]) {
      const page = await open(route, admin, { colorScheme });
      await page.locator("main h1").waitFor();
      await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}.png`) });
    }
}

let failures = 0;
for (const [name, run] of Object.entries(cases)) {
  if (process.argv[2] && !name.includes(process.argv[2])) continue;
  try {
    await run();
    assert.deepEqual(complaints.splice(0), []);
    console.log(`ok ${name}`);
  } catch (error) {
    failures++;
    complaints.length = 0;
    console.log(`FAILED ${name}: ${error.message}`);
  }
  for (const context of browser.contexts()) await context.close();
}
if (process.env.SHOTS) await shots(process.env.SHOTS);
await browser.close();
s.server.kill("SIGTERM");
sink.server.close();
sink.server.closeAllConnections();
s.server.on("exit", () => {
  fs.rmSync(s.dir, { recursive: true, force: true });
  process.exit(failures ? 1 : 0);
});
