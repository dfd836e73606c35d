// A client of svcd, on what openapi-typescript makes of /openapi.json: docs/guide/clients.md.
//
//     SVC_URL=http://localhost:8080 HOOK_URL=http://localhost:8081/hook node client.mjs
import createClient from "openapi-fetch";
import type { components, paths } from "./svc.js";

type Problem = components["schemas"]["Problem"];
type Person = components["schemas"]["Shop.Person"];

const url = process.env.SVC_URL ?? "http://localhost:8080";
const hook = process.env.HOOK_URL ?? "http://localhost:8081/hook";
const key = process.env.SVC_KEY;
const svc = createClient<paths>({ baseUrl: url, headers: key ? { Authorization: `apikey ${key}` } : {} });

/** What was answered; a Problem, which says what is wrong, is thrown. */
function good<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.data === undefined) throw new Error(answer.error?.detail ?? "nothing was found");
  return answer.data;
}

/** All persons, page by page: each begins behind the last one. */
async function* pages(size: number): AsyncGenerator<Person[]> {
  for (let last = 0; ;) {
    const page = good(await svc.GET("/Shop.Person", {
      params: { query: { where: [`ObjectNo>${last}`], order_asc: "ObjectNo", limit: size } },
    }));
    if (page.length === 0) return;
    yield page;
    last = page[page.length - 1]?.ObjectNo ?? 0;
  }
}

/** The entries of the webhook's log, as soon as there are so many. */
async function attempts(webhook: string, count: number) {
  for (;;) {
    const entries = good(await svc.GET("/Svc.Admin.WebhookLog", {
      params: { query: { where: [`WebhookId=${webhook}`], order_asc: "ObjectNo" } },
    }));
    if (entries.length >= count) return entries;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const declared = good(await svc.POST("/Svc.Admin.Resource", {
  body: {
    Name: "Shop.Review", Kind: "EventResource", Description: "Somebody rated what they bought",
    Properties: [{ Name: "Stars", Type: "integer", Required: true }, { Name: "Text", Type: "string" }],
  },
}));
console.log(`declared ${declared[0]?.Name}`);

const inserted = good(await svc.POST("/Shop.Person", {
  body: [{ Name: "Ada", Email: "ada@example.com" }, { Name: "Grace", Age: 85 }, { Name: "Mary", Born: "1780-12-26" }],
}));
console.log(`inserted ${inserted.map((person) => person.Name).join(", ")}`);

for await (const page of pages(2)) console.log(`a page: ${page.map((person) => person.Name).join(", ")}`);

const webhooks = good(await svc.POST("/Svc.Admin.Webhook", {
  body: { Label: "bad reviews", Destination: hook, EventSelector: "/Shop.Review/Stars<3" },
}));
const webhook = webhooks[0]?.Id ?? "";
console.log(`subscribed: ${webhooks[0]?.Label}`);

const events = good(await svc.POST("/Svc.Event", {
  body: [
    { Resource: "Shop.Review", Payload: { Stars: 5, Text: "Lovely" } },
    { Resource: "Shop.Review", Payload: { Stars: 1, Text: "Late" }, ClientId: "review-2" },
  ],
}));
console.log(`raised, for webhooks: ${events.map((event) => event.Webhooks).join(", ")}`);

for (const entry of await attempts(webhook, 1)) console.log(`attempt ${entry.Attempt}: ${entry.StatusCode}`);

const replayed = good(await svc.PATCH("/Svc.Admin.Delivery", {
  params: { query: { where: [`WebhookId=${webhook}`, "State=Delivered"], unsafe: true } },
  body: { State: "Pending" },
}));
console.log(`replayed ${replayed.length}`);
for (const entry of await attempts(webhook, 2)) console.log(`attempt ${entry.Attempt}: ${entry.StatusCode}`);

const wrong = await svc.GET("/Shop.Person", { params: { query: { where: ["Nmae=Ada"] } } });
console.log(`refused: ${wrong.error?.ErrorCode}`);
