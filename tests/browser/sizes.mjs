/* How long the first page of each list takes with 10 000 webhooks and a million deliveries: `SVCD=build/optimized/svcd
 * node tests/browser/sizes.mjs`. A webhook in a hundred fails, one in ten has had answers, the others may send once in
 * hours, so that their deliveries are pending. Prints a line a page: until its
 * rows stand in a browser that has nothing cached, and what its requests take when they are asked again, one after the
 * other, without a browser. `--webhooks=100 --deliveries=1000 --events=1000` tells what a page takes on this machine anyway.
 * Exit status 1 when a page takes more than a second. */
import os from "node:os";
import { launch, pages, service, until } from "./harness.mjs";

const number = (name, otherwise) => Number(process.argv.find((a) => a.startsWith(`--${name}=`))?.split("=")[1] ?? otherwise);
const webhooks = number("webhooks", 10000), events = number("deliveries", 1000000) / webhooks, most_ms = number("ms", 1000), others = number("events", 50000);
const shares = { failing: webhooks / 100, answered: webhooks / 10 };

const base_of = (path) => ({ Resource: "Shop.OrderPlaced", Payload: { Customer: `c${path}`, Total: path } });
const started = performance.now();
const say = (text) => console.error(`${((performance.now() - started) / 1000).toFixed(1)} s: ${text}`);

const s = await service({ Limits: { PendingDeliveries: 2 * webhooks * events } }); /* an account has half */

function webhook(i) {
  const common = { Label: `Customer ${i}`, EventSelector: "/Shop.OrderPlaced/Total>=0" };
  if (i < shares.failing) return { ...common, Destination: "http://127.0.0.1:9/closed", Delivery: { MaxInFlight: 1 } };
  if (i < shares.failing + shares.answered) return { ...common, Method: "GET", Destination: "/Svc.Echo/Taken=true" };
  return { ...common, Method: "GET", Destination: "/Svc.Echo/Taken=true", Delivery: { RatePerSecond: 0.0001 } };
}

for (let i = 0; i < webhooks; i += 500)
  await s.api("POST", "/Svc.Admin.Webhook", Array.from({ length: Math.min(500, webhooks - i) }, (_, j) => webhook(i + j)), { Prefer: "return=minimal" });
say(`${webhooks} webhooks`);
for (let i = 0; i < events; i++)
  await until("that there is room", () => s.api("POST", "/Svc.Event", base_of(i)).catch((e) => (/: 503 /.test(e.message) ? null : Promise.reject(e))));
say(`${events} events`);
for (let i = 0; i < others; i += 1000)
  await s.api("POST", "/Svc.Event", Array.from({ length: 1000 }, (_, j) => ({ ...base_of(i + j), Resource: "Shop.OrderShipped" })), { Prefer: "return=minimal" });
for (let i = 0; i < 2000; i++) await fetch(`${s.base}/Shop.Nothing${i}`);
await until("that answers are in", async () => (await s.api("REPORT", "/Svc.Admin.Webhook/Delivery=null&Status.Pending>0"))[0].Count === 0, 300000);
const kept = {};
for (const resource of ["Svc.Admin.Webhook", "Svc.Admin.Delivery", "Svc.Admin.WebhookLog", "Svc.Event", "Svc.Admin.Error"]) kept[resource] = (await s.api("REPORT", `/${resource}`))[0].Count;
say(JSON.stringify(kept));

const browser = await launch();
const { page_of } = pages(browser, s.base);
const row = "main tbody tr";
const [failing] = await s.api("GET", "/Svc.Admin.Webhook/_/limit=1");
const [answering] = await s.api("GET", `/Svc.Admin.Webhook/_/offset=${shares.failing + 1}&limit=1`);
const [waiting] = await s.api("GET", "/Svc.Admin.Webhook/_/offset=-1");
const [event] = await s.api("GET", "/Svc.Event/_/limit=1");
const [attempt] = await s.api("GET", "/Svc.Admin.WebhookLog/_/offset=-1");
const routes = [["Overview", "overview", row], ["Webhooks", "webhooks", row], ["Webhooks, failing", "webhooks?state=Failing", row],
  ["Webhooks, searched", `webhooks?search=Customer ${webhooks - 1}`, row], ["Webhook, fails", `webhook/${failing.Id}`, row], ["Webhook, answers", `webhook/${answering.Id}`, row],
  ["Webhook, waits", `webhook/${waiting.Id}`, row], ["Attempt", `attempt/${attempt.Id}`, "main .phases"], ["Events", "events", row],
  ["Events of a resource", "events?resource=Shop.OrderPlaced", row], ["Event", `event/${event.Id}`, row], ["Explain", `explain?webhook=${answering.Id}`, row],
  ["Catalogue", "catalogue", row], ["Errors", "errors", row], ["Resources", "resources", row], ["System", "system", row]];
const median_of = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];

/* What the server has of it. */
async function asked_again(requests) {
  let sum = 0, longest = ["", 0];
  for (const r of requests) {
    const times = [];
    for (let i = 0; i < 5; i++) {
      const began = performance.now();
      await (await fetch(r.url(), { method: r.method(), body: r.postData(), headers: r.postData() ? { "Content-Type": "application/json" } : {} })).text();
      times.push(performance.now() - began);
    }
    const took = median_of(times);
    sum += took;
    if (took > longest[1]) longest = [`${r.method()} ${decodeURIComponent(r.url().slice(s.base.length))}`, took];
  }
  return { sum, longest };
}

let slow = 0;
const measured = [];
for (const [name, route, shown] of routes) {
  const times = [];
  let requests = [];
  for (let i = 0; i < 3; i++) {
    const page = await page_of(null);
    requests = [];
    page.on("request", (r) => {
      if (!r.url().includes("Svc.Console") && r.headers().accept !== "text/event-stream") requests.push(r);
    });
    const began = performance.now();
    await page.goto(`${s.base}/Svc.Console#/${route}`);
    await page.locator(shown).first().waitFor();
    times.push(performance.now() - began);
    await page.context().close();
  }
  const median = median_of(times), { sum, longest } = await asked_again(requests);
  if (median > most_ms) slow++;
  measured.push(`| ${name} | ${median.toFixed(0)} | ${requests.length} | ${sum.toFixed(0)} | ${longest[1].toFixed(1)} |`);
  console.log(`${name}: ${times.map((t) => t.toFixed(0)).join(", ")} ms; its ${requests.length} requests ${sum.toFixed(1)} ms, the longest ${longest[1].toFixed(1)} ms: ${longest[0]}`);
}
console.log(`\n${os.cpus().length} processors, ${Object.entries(kept).map(([name, n]) => `${n} of ${name}`).join(", ")}\n| page | in the browser, ms | requests | these alone, ms | the longest, ms |\n|---|---:|---:|---:|---:|\n${measured.join("\n")}`);
await browser.close();
await s.stop();
console.log(`${routes.length - slow} passed, ${slow} failed`);
process.exitCode = slow ? 1 : 0;
