/* Pictures of the console with a small shop in it: Overview, Webhook and Explain, light and dark, for docs/pictures; with
 * --all=FOLDER every page there, light, dark and narrow, to be looked at. Called by tools/screenshots. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { counted, heading, hook, launch, live, pages, raise, receiver, root, service, until } from "./harness.mjs";

const bytes_most = 150000;
const all = process.argv.find((a) => a.startsWith("--all="))?.slice(6);
const names = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Edsger Dijkstra", "Barbara Liskov"];

const s = await service(), sink = await receiver(), browser = await launch();
const t = { ...s, sink, ...pages(browser, s.base) };
const order = (i) => ({ Customer: names[i % names.length], Total: 20 + (i * 37) % 300 + 0.5, Express: i % 3 === 0, Lines: [{ Sku: `K-${100 + i}`, Count: 1 + i % 4 }], At: "2026-11-20T09:30:00Z" });

Object.assign(sink.answers, { "/crm/orders": [502, "upstream timed out"], "/labels": [503, "busy"] });
const warehouse = await hook(t, "/warehouse/orders", "Orders to the warehouse", { Signing: {}, Headers: { "X-Shop": "north", Authorization: "Bearer of-the-warehouse" }, Tags: ["warehouse"] });
const crm = await hook(t, "/crm/orders", "Orders to the CRM", { EventSelector: "/Shop.OrderPlaced/Total>=100&Customer!=null", Delivery: { RetrySchedule: [300, 1800] } });
await hook(t, "/labels", "Shipping labels", { EventSelector: "/Shop.OrderShipped" });
await hook(t, "/accounting", "Accounting", { EventSelector: "/Shop.OrderPlaced" });
await hook(t, "/newsletter", "Newsletter", { EventSelector: undefined, EventSelectors: ["/Shop.OrderPlaced/Express=true", "/Shop.OrderShipped"], IsPaused: true });
for (let i = 0; i < 40; i++) {
  if (i === 25) sink.answers["/crm/orders"] = [200, "taken"];
  if (i === 32) sink.answers["/crm/orders"] = [502, "upstream timed out"];
  await raise(t, order(i));
  if (i % 10 === 9) await until("that nothing is due", async () => (await counted(t, "/Svc.Admin.Delivery/State=Pending")) + (await counted(t, "/Svc.Admin.Delivery/State=InFlight")) === 0);
}
await raise(t, order(7), "Shop.OrderShipped");
await until("that labels are held back", async () => (await counted(t, "/Svc.Admin.Webhook/Status.State=HeldBack")) === 1);
const event = await raise(t, { ...order(3), Total: 64.5 });
await fetch(`${s.base}/Shop.Ordr`);
const [attempt] = await s.api("GET", `/Svc.Admin.WebhookLog/WebhookId=${crm.Id}&IsSuccess=false/offset=-1`);
const [error] = await s.api("GET", "/Svc.Admin.Error/_/limit=1");

const shown = [["overview", "overview", "Overview"], ["webhook", `webhook/${crm.Id}`, "Orders to the CRM"], ["explain", `explain?webhook=${crm.Id}&event=${event.Id}`, "Explain"]];
const others = [["webhooks", "webhooks"], ["warehouse", `webhook/${warehouse.Id}`], ["new", "new"], ["first", "first"], ["events", "events"], ["event", `event/${event.Id}`], ["raise", "raise/Shop.OrderPlaced"],
  ["attempt", `attempt/${attempt.Id}`], ["catalogue", "catalogue"], ["errors", "errors"], ["error", `error/${error.Id}`], ["resources", "resources"], ["declare", "resource/new"], ["keys", "keys"], ["system", "system"]];

async function picture(folder, name, route, title, options, more = {}) {
  const page = await t.open(route, null, { viewport: { width: 1120, height: 700 }, ...options });
  if (title) await heading(page, title);
  else await page.locator("main h1").waitFor();
  if (["overview", "webhook"].includes(name)) await live(page);
  const file = path.join(folder, `${name}.png`);
  await page.screenshot({ path: file.replace(".png", `-${more.suffix}.png`), fullPage: more.whole === true });
  await page.context().close();
}

const folder = all || path.join(root, "docs/pictures");
fs.mkdirSync(folder, { recursive: true });
for (const colorScheme of ["light", "dark"])
  for (const [name, route, title] of all ? [...shown, ...others] : shown)
    await picture(folder, all ? name : `console-${name}`, route, title, { colorScheme }, { suffix: colorScheme, whole: Boolean(all) });
if (all) for (const [name, route, title] of [...shown, ...others]) await picture(folder, name, route, title, { viewport: { width: 360, height: 740 } }, { suffix: "narrow", whole: true });
await browser.close();
sink.stop();
await s.stop();
for (const name of fs.readdirSync(folder)) {
  const { size } = fs.statSync(path.join(folder, name));
  console.log(`${name}: ${size} bytes`);
  if (!all) assert.ok(size <= bytes_most, `${name} has ${size} bytes, at most ${bytes_most}`);
}
