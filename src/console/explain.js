/* A selector beside a stored event: each condition with the value that it met. */
import { ask, can, get, of_kind, one, parse_exactly, quoted } from "./api.js";
import { button, empty, field, fill, h, head, json, link, problem, table, td } from "./dom.js";
import { event_of, selectors_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";
const selectors_most = 64; /* a webhook has no more */

function judged_entity(one_entity, i, count) {
  return h("section", {},
    h("h3", {}, count > 1 ? `Entity ${i + 1}: ` : "", h("span", { class: `badge ${one_entity.Matches ? "well" : "ill"}` }, one_entity.Matches ? "matches" : "does not match")),
    one_entity.Reason && h("p", {}, one_entity.Reason),
    one_entity.Conditions?.length ? table("Conditions", ["Condition", "Value found", "Holds"], one_entity.Conditions.map((c) =>
      h("tr", { class: c.Holds ? "holds" : "fails" }, td("", h("code", {}, c.Condition)), td("long", h("code", {}, JSON.stringify(c.Value) ?? "–")),
        td("tight", h("span", { class: `badge ${c.Holds ? "well" : "ill"}` }, c.Holds ? "yes" : "no"))))) :
      h("p", { class: "quiet" }, "The selector has no conditions: each event of its resource matches."));
}

/* An answer is an object for each selector and entity. */
function judged(text, answer, is_single) {
  return h("section", {}, !is_single && h("h3", {}, h("code", {}, text)),
    answer instanceof Error ? problem(answer) : answer.map((said, i) => judged_entity(said, i, answer.length)));
}

async function recent_of(selector, signal) {
  if (!can("Svc.Event")) return [];
  const event = /^\/([^/]*)/.exec(selector)?.[1];
  const known = event && of_kind("EventResource").some((r) => r.Name === event);
  return (await get("Svc.Event", [known && `Resource=${quoted(event)}`], { offset: -20 }, signal)).reverse();
}

/* What no selector says: a tenant, the owner's rights, a pause. Asked while the selectors are the webhook's own. */
async function what_hinders(webhook, lines, subject, told, signal) {
  const is_found = told.some((answer) => Array.isArray(answer) && answer.some((said) => said.Matches));
  if (!webhook || !is_found || lines.join("\n") !== selectors_of(webhook).join("\n")) return null;
  const said = await ask("POST", "/Svc.Explain", { body: { WebhookId: webhook.Id, ...subject }, signal });
  return said.some((one_entity) => one_entity.Matches) ? null : h("div", { class: "note" }, `${webhook.Label || webhook.Destination} does not get it: ${said[0]?.Reason}`);
}

export async function show(view) {
  const webhook = view.query.get("webhook") && can(hook) ? await one(hook, view.query.get("webhook"), {}, view.signal) : null;
  const start = view.query.get("selector") || (webhook ? selectors_of(webhook).join("\n") : "");
  const chosen = view.query.get("event") ? [await one("Svc.Event", view.query.get("event"), {}, view.signal)] : [];
  const kept = [...chosen, ...await recent_of(start, view.signal)];
  const selector = h("textarea", { rows: 3, class: "low", value: start, spellcheck: "false", placeholder: "/Shop.OrderPlaced/Total>=100" });
  const event = h("select", {}, kept.map((e) => h("option", { value: e.Id }, `${e.Resource}, ${new Date(e.Time).toLocaleString()}`)), h("option", { value: "" }, "one that I write"));
  const payload = h("textarea", { class: "high", spellcheck: "false", value: kept[0] ? json(kept[0].Payload) : "{}" });
  const result = h("div", { role: "status" });
  let due = null, asking = null;
  const look = async () => {
    const picked = kept.find((e) => e.Id === event.value);
    asking?.abort();
    asking = new AbortController();
    const { signal } = asking;
    const lines = selector.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, selectors_most);
    if (!lines.length) {
      fill(result, empty("Write a selector.", "It begins with the event: /Shop.OrderPlaced, then conditions after another /."));
      return;
    }
    try {
      const subject = picked && payload.value === json(picked.Payload) ? { EventId: picked.Id } :
        { Resource: picked?.Resource || event_of(lines[0]), Payload: parse_exactly(payload.value) };
      const told = await Promise.all(lines.map((line) => ask("POST", "/Svc.Explain", { body: { EventSelector: line, ...subject }, signal }).catch((error) => error)));
      const hindrance = await what_hinders(webhook, lines, subject, told, signal);
      if (!signal.aborted) fill(result, hindrance, told.map((answer, i) => judged(lines[i], answer, lines.length === 1)));
    } catch (error) {
      if (error.name !== "AbortError") fill(result, problem(error));
    }
  };
  const soon = () => {
    clearTimeout(due);
    due = setTimeout(look, 300);
  };
  selector.addEventListener("input", soon);
  payload.addEventListener("input", soon);
  event.addEventListener("change", () => {
    const picked = kept.find((e) => e.Id === event.value);
    if (picked) payload.value = json(picked.Payload);
    look();
  });
  view.signal.addEventListener("abort", () => {
    clearTimeout(due);
    asking?.abort();
  });
  view.root.append(head("Explain", webhook && link(webhook.Label || webhook.Destination, `#/webhook/${webhook.Id}`), h("span", { class: "spring" }),
    can(hook, "POST") && button("Make a webhook of it", () => { location.hash = `#/new?selector=${encodeURIComponent(selector.value)}`; })),
  h("div", { class: "split" }, h("section", {}, field("Selector", selector, "Several, one a line, as a webhook may have: each is judged."), result), h("section", {}, field("Event", event), field("Payload", payload))));
  await look();
}
