/* What cases share: a server with keys of its own, a receiver, and pages of a real Chromium. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
/* Where tools/lib/packages.sh puts what comes from npm; NODE_PATH may name another place. */
const fetched = process.env.SVCD_FETCHED || path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "svcd-tests");
export const require = createRequire(path.join(fetched, "browser/packages.cjs"));
export const hostile = `<img src=x onerror="document.title='owned'">'"&</b>\u202e`;
export const admin = "admin-key-of-the-test";
const sha = (text) => createHash("sha256").update(text).digest("hex");
const patience_ms = 60000;

/* Programs that do not outlive this one. */
const children = [];
export const end_with_us = (child) => children.push(child);
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));

/* Asks again until it is so. */
export async function until(what, is_so, most_ms = patience_ms) {
  const end = Date.now() + most_ms;
  for (;;) {
    const found = await is_so();
    if (found) return found;
    assert.ok(Date.now() < end, `${what} did not happen`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/* Below those that connections are given, and those of tests/cluster: nobody takes it before it is listened at. */
export async function free_port() {
  for (;;) {
    const port = 10000 + Math.floor(Math.random() * 10000);
    const is_free = await new Promise((resolve) => {
      const s = net.createServer().once("error", () => resolve(false)).listen(port, "127.0.0.1", () => s.close(() => resolve(true)));
    });
    if (is_free) return port;
  }
}

/* Answers by path: /bad 500 with markup, /gone 410, /slow after a while, anything else 200. */
export async function receiver() {
  const taken = [];
  const answers = { "/bad": [500, hostile], "/gone": [410, "gone"], "/later": [503, "later"] };
  const server = http.createServer((request, response) => {
    let body = "";
    request.on("data", (d) => { body += d; });
    request.on("end", () => {
      taken.push({ url: request.url, headers: request.headers, body });
      const [status, text] = answers[request.url] || [200, "taken"];
      response.statusCode = status;
      if (status === 503) response.setHeader("Retry-After", "600");
      response.end(text);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    taken, answers, url: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

const order = [{ Name: "Customer", Type: "string", Description: "Who pays" }, { Name: "Total", Type: "number", Required: true },
  { Name: "Express", Type: "boolean" }, { Name: "Lines", Type: "array" }, { Name: "At", Type: "datetime" }];
export const shop = [{ Name: "Shop.Order", Kind: "EntityResource", Description: "What was ordered", Properties: order },
  { Name: "Shop.OrderPlaced", Kind: "EventResource", Description: "An order came in", Payload: { Resource: "Shop.Order" } },
  { Name: "Shop.OrderShipped", Kind: "EventResource", Description: "An order left the house", Payload: { Resource: "Shop.Order" } }];

/* A server at `base`, and `api`, which asks it as its administrator. Without `settings.ApiKeys` nobody needs a key. What
 * depends on its port is a function of that. */
export async function service(settings = {}) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "svc-browser-"));
  const port = await free_port(), base = `http://127.0.0.1:${port}/v1`;
  const config = { BasePath: "/v1", Resources: shop, ...(typeof settings === "function" ? settings(port) : settings) };
  const file = path.join(dir, "config.json"), log = fs.openSync(path.join(dir, "log"), "w");
  fs.writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const program = process.env.SVCD || path.join(root, "build/dev/svcd");
  const child = spawn(program, ["--config", file, "--data", path.join(dir, "data"), "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", log, log] });
  const ended = new Promise((done) => child.on("exit", done));
  end_with_us(child);
  await until("that the server answers", async () => {
    assert.equal(child.exitCode, null, fs.readFileSync(path.join(dir, "log"), "utf8"));
    return fetch(`${base}/readyz`).then((r) => r.ok, () => false);
  });
  const api = async (method, target, body, headers = {}) => {
    const answer = await fetch(base + target, {
      method, headers: { ...(config.RequireApiKey && { Authorization: `apikey ${admin}` }), "Content-Type": "application/json", ...headers }, body: body && JSON.stringify(body),
    });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${target}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : [];
  };
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    fs.rmSync(dir, { recursive: true, force: true });
  };
  return { base, api, stop, pid: child.pid };
}

export const keys = (...more) => ({
  RequireApiKey: true,
  ApiKeys: [{ Name: "admin", KeySha256: sha(admin), AllowAccess: [{ Resources: ["*"], Methods: ["*"] }] },
    ...more.map(([name, access, tenant]) => ({ Name: name, KeySha256: sha(name), AllowAccess: access, ...(tenant ? { Tenant: tenant } : {}) }))],
});

/* To start the browser's own processes, and what they say to each other, takes a quarter of the time of all cases. */
const few_processes = ["--in-process-gpu", "--enable-features=NetworkServiceInProcess2", "--renderer-process-limit=1"];

export function launch() {
  const { chromium } = require("playwright-core");
  return chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium-headless-shell", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...few_processes] });
}

/* Pages of one browser onto one server. `complaints` collects what a page says that nobody should have to read. */
export function pages(browser, base) {
  const complaints = [];
  const page_of = async (key = admin, options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, permissions: ["clipboard-read", "clipboard-write"], ...options });
    await context.addInitScript((k) => {
      if (k && origin !== "null" && !sessionStorage.getItem("key")) sessionStorage.setItem("key", k);
    }, key);
    const page = await context.newPage();
    page.setDefaultTimeout(patience_ms);
    page.on("pageerror", (e) => complaints.push(e.message));
    page.on("console", (m) => {
      if (/Content Security|Trusted/.test(m.text())) complaints.push(m.text());
    });
    page.on("request", (r) => {
      if (!r.url().startsWith(base)) complaints.push(`asks ${r.url()}`);
    });
    return page;
  };
  const go = (page, route) => page.goto(`${base}/Svc.Console#/${route}`);
  const open = async (route, key, options) => {
    const page = await page_of(key, options);
    await go(page, route);
    return page;
  };
  return { complaints, page_of, open };
}

export const heading = (page, text) => page.getByRole("heading", { level: 1, name: text }).waitFor();
export const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());
export const live = (page) => page.locator(".live.on").waitFor();

/* Webhooks and events of the shop, by the interface. */
export const hook = async ({ api, sink }, path, label, more = {}) =>
  (await api("POST", "/Svc.Admin.Webhook", { Label: label, Destination: sink.url + path, EventSelector: "/Shop.OrderPlaced/Total>=100", ...more }))[0];
export const raise = async ({ api }, payload, resource = "Shop.OrderPlaced") => (await api("POST", "/Svc.Event", { Resource: resource, Payload: payload }))[0];
export const counted = async ({ api }, target) => (await api("REPORT", target))[0].Count;
