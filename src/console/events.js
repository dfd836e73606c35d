/* Events: as they are raised, one of them with who got it, and a form that raises one. */
import { ask, can, carried_by, change, follow_quietly, get, is_raised, of_kind, one, parse_exactly, quoted, raise_event } from "./api.js";
import { attempt, badge, button, code, counted, empty, facts, field, fill, form, h, head, json, link, live_mark, number, problem, table, td, time, toast } from "./dom.js";
import { sample_of } from "./sample.js";

const events = "Svc.Event", delivery = "Svc.Admin.Delivery", hook = "Svc.Admin.Webhook";
const rows_most = 200, page_length = 50, glance = 160, candidates_most = 20, deliveries_most = 20;

const short = (value) => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > glance ? `${text.slice(0, glance)}…` : text;
};

function row(e) {
  return h("tr", {}, td("tight", h("a", { href: `#/event/${e.Id}` }, time(e.Time))), td("", e.Resource, e.Tenant && h("span", { class: "two" }, e.Tenant)),
    td("n", number(e.Webhooks)), td("long mono", h("span", { class: "few" }, short(e.Payload))));
}

export async function show(view) {
  const resource = view.query.get("resource") || "", condition = view.query.get("where") || "";
  const where = [resource && `Resource=${quoted(resource)}`, condition];
  const mark = live_mark();
  const select = h("select", {}, h("option", { value: "" }, "all"), of_kind("EventResource").map((r) => h("option", { value: r.Name, selected: r.Name === resource }, r.Name)));
  const input = h("input", { value: condition, placeholder: "Payload.0.Total>100", class: "mono" });
  const go = () => {
    location.hash = `#/events?${new URLSearchParams({ resource: select.value, where: input.value.trim() })}`;
  };
  select.addEventListener("change", go);
  const place = h("div", {});
  fill(view.root, head("Events", h("span", { class: "spring" }), mark, can(events, "POST") && link("Raise one", `#/raise/${is_raised(resource) ? resource : ""}`, "button main")),
    h("form", { class: "bar", onsubmit: (e) => {
      e.preventDefault();
      go();
    } }, h("label", {}, "Event ", select), h("label", {}, "Condition ", input), h("button", { type: "submit" }, "Show")), place);
  let found;
  try {
    found = await get(events, where, { offset: -page_length }, view.signal);
  } catch (error) {
    if (!condition || error.name === "AbortError") throw error;
    mark.hidden = true;
    fill(place, problem(error));
    return;
  }
  const rows = h("tbody", {}, [...found].reverse().map(row));
  const list = table("Events", ["When", "Event", "#Webhooks", "Payload"], []);
  list.querySelector("tbody").replaceWith(rows);
  const none = empty("No event that is kept is like this.", "Those that are raised from now on appear here by themselves.");
  list.hidden = !found.length;
  none.hidden = !list.hidden;
  fill(place, list, none);
  const [last] = found.length ? [found.at(-1)] : await get(events, [], { offset: -1, select: "ObjectNo" }, view.signal);
  follow_quietly(events, where, last?.ObjectNo, {
    state: (s) => mark.show(s),
    refused: (error) => {
      mark.show("lost");
      toast(error.message);
    },
    gap: () => toast("Some events are not kept any more, and are missing here."),
    entity: (e) => {
      const node = row(e);
      node.className = "fresh";
      rows.prepend(node);
      setTimeout(() => { node.className = ""; }, 3000);
      while (rows.children.length > rows_most) rows.lastChild.remove();
      list.hidden = false;
      none.hidden = true;
    },
  }, view.signal);
}

/* ---- one ---- */

async function label_of(id, signal) {
  const [w] = can(hook) ? await get(hook, [`Id=${id}`], { select: "Label,Destination" }, signal) : [];
  return w ? w.Label || w.Destination : id;
}

async function got_it(e, signal) {
  const found = await get(delivery, [`EventId=${e.Id}`], { limit: deliveries_most }, signal);
  if (!found.length) return empty("No delivery of it is kept.", e.Webhooks ? "Its webhooks are deleted, or the time is over." : "No webhook's selector found it.");
  const rows = await Promise.all(found.map(async (d) => h("tr", {}, td("long", link(await label_of(d.WebhookId, signal), `#/webhook/${d.WebhookId}`)), td("tight", badge(d.State)),
    td("n", d.Attempts), td("tight", time(d.NextAttemptTime)), td("long small", d.LastError || "–"),
    td("tight", h("span", { class: "bar none" }, can("Svc.Explain", "POST") && link("Why", `#/explain?webhook=${d.WebhookId}&event=${e.Id}`),
      can(delivery, "PATCH") && !["Pending", "InFlight"].includes(d.State) && button("Send again", () => attempt(async () => {
        await change(delivery, d.Id, { State: "Pending" });
        toast("Queued again");
      })))))));
  return [table("Deliveries", ["Webhook", "State", "#Attempts", "Next attempt", "Last error", "Do"], rows), found.next && h("p", { class: "quiet" }, `The first ${deliveries_most} are shown.`)];
}

/* Of webhooks that look at the same event resource, and were not meant. */
async function why_not(e, place, signal) {
  const selectors = [`/${e.Resource}`, `/${e.Resource.replace(/[^.]*$/, "*")}`, "/*"];
  const found = await Promise.all(selectors.flatMap((text) => ["EventSelector", "EventSelectors"].map((name) =>
    get(hook, [], { search: `${quoted(text)},${name}`, limit: candidates_most, select: "Id,Label,Destination" }, signal))));
  const candidates = [...new Map(found.flat().map((w) => [w.Id, w])).values()].slice(0, candidates_most);
  const rows = await Promise.all(candidates.map(async (w) => {
    const said = await ask("POST", "/Svc.Explain", { body: { WebhookId: w.Id, EventId: e.Id }, signal });
    if (said.some((s) => s.Matches)) return null;
    return h("tr", {}, td("long", link(w.Label || w.Destination, `#/webhook/${w.Id}`)), td("long", said[0]?.Reason || "–"), td("tight", link("Look", `#/explain?webhook=${w.Id}&event=${e.Id}`)));
  }));
  const shown = rows.filter(Boolean);
  fill(place, shown.length ? table("Webhooks that did not get it", ["Webhook", "Why not", "Explained"], shown) : h("p", { class: "quiet" }, `Of the first ${candidates_most} webhooks on this event, none.`));
}

export async function show_one(view) {
  const e = await one(events, view.ids[0], {}, view.signal);
  view.title(e.Resource);
  const missed = h("div", {});
  view.root.append(...fill(h("div", {}),
    head(e.Resource, h("span", { class: "spring" }), is_raised(e.Resource) && link("Raise one like it", `#/raise/${e.Resource}?like=${e.Id}`, "button")),
    facts([["Raised", time(e.Time)], ["Id", h("code", {}, e.Id)], ["Media type", e.ContentType], ["Tenant", e.Tenant], ["Webhooks", number(e.Webhooks)]]),
    h("h2", {}, "Payload"), code(typeof e.Payload === "string" ? e.Payload : json(e.Payload), "Payload"),
    can(delivery) && [h("h2", {}, "Who got it"), await got_it(e, view.signal)],
    can("Svc.Explain", "POST") && can(hook) && [h("h2", {}, "Who did not"), missed,
      fill(missed, button("Ask which, and why", () => attempt(() => why_not(e, missed, view.signal))))]).childNodes);
}

/* ---- the form ---- */

const blank = "";

function input_for(p) {
  if (p.Type === "boolean") return h("select", {}, ["", "true", "false"].map((v) => h("option", { value: v }, v || "–")));
  if (p.Type === "integer" || p.Type === "number") return h("input", { inputmode: "decimal" });
  if (p.Type === "object" || p.Type === "array" || p.Type === "any") return h("textarea", { rows: 2, class: "low" });
  return h("input", { placeholder: p.Type === "datetime" ? "2026-01-31T12:00:00Z" : null });
}

function read(p, text) {
  if (p.Type === "string" || p.Type === "datetime") return text;
  try {
    return parse_exactly(text);
  } catch {
    throw new Error(`${p.Name}: '${text}' is no ${p.Type}.`);
  }
}

function form_of(properties, start) {
  const inputs = properties.map((p) => [p, input_for(p)]);
  for (const [p, input] of inputs) {
    const value = start[p.Name];
    if (value !== undefined && value !== null) input.value = typeof value === "object" ? JSON.stringify(value) : String(value);
  }
  return {
    nodes: inputs.map(([p, input]) => field(p.Name, input, [p.Type, p.Required ? ", required" : null, p.Description ? `: ${p.Description}` : null])),
    value: () => Object.fromEntries(inputs.filter(([, input]) => input.value !== blank).map(([p, input]) => [p.Name, read(p, input.value)])),
  };
}

/* Bytes come from a file. */
export function file_form(bytes) {
  const input = h("input", { type: "file", required: true, accept: bytes });
  return { nodes: [field("Payload, a file", input, bytes)], file: () => input.files[0] };
}

function text_form(start) {
  const input = h("textarea", { value: json(start) });
  return { nodes: [field("Payload, as JSON", input)], value: () => parse_exactly(input.value) };
}

export async function show_raise(view) {
  const all = of_kind("EventResource").filter((r) => is_raised(r.Name)), [name] = view.ids;
  const select = h("select", {}, h("option", { value: "" }, "choose"), all.map((r) => h("option", { value: r.Name, selected: r.Name === name }, r.Name)));
  select.addEventListener("change", () => { location.hash = `#/raise/${select.value}`; });
  view.root.append(head("Raise an event"), h("div", { class: "bar" }, h("label", {}, "Event ", select)));
  if (!all.length) view.root.append(empty("There is no event resource.", "Declare one first: ", link("resources", "#/resources")));
  if (!name) return;
  const like = view.query.get("like") ? await one(events, view.query.get("like"), {}, view.signal) : null;
  const { properties, bytes } = await carried_by(name, view.signal);
  const start = like ? (Array.isArray(like.Payload) && like.Payload.length === 1 ? like.Payload[0] : like.Payload) : sample_of(properties);
  const made = bytes ? file_form(bytes) : properties && !Array.isArray(start) && start !== null && typeof start === "object" ? form_of(properties, start) : text_form(start ?? {});
  view.root.append(form(made.nodes, "Raise it", async () => {
    const [raised] = await raise_event(name, { bytes, file: made.file?.(), value: made.value?.() });
    toast(`Raised: ${counted(raised.Webhooks, "webhook gets it", "webhooks get it")}`);
    location.hash = can(events) ? `#/event/${raised.Id}` : "#/events";
  }));
}
