/* A selector beside a stored event: each condition with the value that it met. */
import { ask, can, get, of_kind, one, parse_exactly, quoted } from "./api.js";
import { button, empty, field, fill, h, head, json, link, problem, table, td } from "./dom.js";
import { selectors_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";

function judged(said) {
  return said.map((one_entity, i) => h("section", {},
    h("h3", {}, said.length > 1 ? `Entity ${i + 1}: ` : "", h("span", { class: `badge ${one_entity.Matches ? "well" : "ill"}` }, one_entity.Matches ? "matches" : "does not match")),
    one_entity.Reason && h("p", {}, one_entity.Reason),
    one_entity.Conditions?.length ? table("Conditions", ["Condition", "Value found", "Holds"], one_entity.Conditions.map((c) =>
      h("tr", {}, td("", h("code", {}, c.Condition)), td("long", h("code", {}, JSON.stringify(c.Value) ?? "–")),
        td("tight", h("span", { class: `badge ${c.Holds ? "well" : "ill"}` }, c.Holds ? "yes" : "no"))))) :
      h("p", { class: "quiet" }, "The selector has no conditions: each event of its resource matches.")));
}

async function recent_of(selector, signal) {
  if (!can("Svc.Event")) return [];
  const event = /^\/([^/]*)/.exec(selector)?.[1];
  const known = event && of_kind("EventResource").some((r) => r.Name === event);
  return (await get("Svc.Event", [known && `Resource=${quoted(event)}`], { offset: -20 }, signal)).reverse();
}

export async function show(view) {
  const webhook = view.query.get("webhook") && can(hook) ? await one(hook, view.query.get("webhook"), {}, view.signal) : null;
  const start = view.query.get("selector") || (webhook && selectors_of(webhook)[0]) || "";
  const chosen = view.query.get("event") ? [await one("Svc.Event", view.query.get("event"), {}, view.signal)] : [];
  const kept = [...chosen, ...await recent_of(start, view.signal)];
  const selector = h("textarea", { rows: 3, value: start, spellcheck: "false", placeholder: "/Shop.OrderPlaced/Total>=100" });
  const event = h("select", {}, kept.map((e) => h("option", { value: e.Id }, `${e.Resource}, ${new Date(e.Time).toLocaleString()}`)), h("option", { value: "" }, "one that I write"));
  const payload = h("textarea", { value: kept[0] ? json(kept[0].Payload) : "{}" });
  const result = h("div", { role: "status" });
  let due = null, asking = null;
  const look = async () => {
    const picked = kept.find((e) => e.Id === event.value);
    asking?.abort();
    asking = new AbortController();
    if (!selector.value.trim()) {
      fill(result, empty("Write a selector.", "It begins with the event: /Shop.OrderPlaced, then conditions after another /."));
      return;
    }
    try {
      const subject = picked && payload.value === json(picked.Payload) ? { EventId: picked.Id } :
        { Resource: picked?.Resource || /^\/([^/]*)/.exec(selector.value)?.[1], Payload: parse_exactly(payload.value) };
      const said = await ask("POST", "/Svc.Explain", { body: { EventSelector: selector.value.trim(), ...subject }, signal: asking.signal });
      fill(result, judged(said));
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
  h("div", { class: "split" }, h("section", {}, field("Selector", selector), result), h("section", {}, field("Event", event), field("Payload", payload))));
  await look();
}
