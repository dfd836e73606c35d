/* The list of webhooks, page by page, and the form that makes or changes one. */
import { ask, can, get, quoted, uri } from "./api.js";
import { badge, button, empty, field, fill, form, h, head, json, link, number, table, td, time } from "./dom.js";
import { success } from "./overview.js";
import { selectors_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";
const page_length = 50;
const states = ["", "Active", "Failing", "HeldBack", "Throttled", "Paused"];

function row(w) {
  const s = w.Status;
  return h("tr", {},
    td("long", link(w.Label || w.Destination, `#/webhook/${w.Id}`), h("span", { class: "two" }, w.Method, " ", w.Destination)),
    td("long", selectors_of(w).map((one) => h("code", { class: "two" }, one))),
    td("tight", badge(s.State, s.Reason), s.FailingSince && h("span", { class: "two" }, "since ", time(s.FailingSince))),
    td("n", success(s)), td("n", number(s.Pending + s.InFlight + s.Waiting)),
    td("long small", w.ErrorMessage || s.LastError || "–"));
}

const columns = ["Webhook", "Selector", "State", "#Success", "#Pending", "Last error"];

export async function show(view) {
  const state = view.query.get("state") || "", search = view.query.get("search") || "";
  const meta = { add: "Status", limit: page_length, search: search && `${quoted(search)}` };
  const first = await get(hook, [state && `Status.State=${state}`], meta, view.signal);
  const rows = h("tbody", {}, first.map(row));
  const more = h("div", { class: "bar" });
  const select = h("select", { name: "state" }, states.map((s) => h("option", { value: s, selected: s === state }, s || "any state")));
  const input = h("input", { type: "search", placeholder: "label, destination, selector", value: search });
  const go = () => {
    location.hash = `#/webhooks?${new URLSearchParams({ state: select.value, search: input.value.trim() })}`;
  };
  const offer = (next) => fill(more, next && button("More", async () => {
    const page = await ask("GET", next, { signal: view.signal });
    rows.append(...page.map(row));
    offer(page.next);
  }));
  select.addEventListener("change", go);
  const list = table("Webhooks", columns, []);
  list.querySelector("tbody").replaceWith(rows);
  offer(first.next);
  fill(view.root, head("Webhooks", h("span", { class: "spring" }), can(hook, "POST") && link("Add a webhook", "#/new", "button main")),
    h("form", { class: "bar", role: "search", onsubmit: (e) => {
      e.preventDefault();
      go();
    } }, h("label", {}, "State ", select), h("label", {}, "Search ", input), h("button", { type: "submit" }, "Find")),
    first.length ? list : state || search ? empty("No webhook is like that.", link("Show all", "#/webhooks")) :
      empty("There is no webhook yet.", can(hook, "POST") ? link("Make the first one", "#/new") : "Your key may not make one."), more);
}

/* ---- the form ---- */

function parsed(text, name, otherwise) {
  if (!text.trim()) return otherwise;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

function selector_members(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.length > 1 ? { EventSelectors: lines } : { EventSelector: lines[0] ?? null };
}

/* Only what was changed is sent: so a secret that is shown as stars stays what it is. */
export function webhook_form(webhook, action, submit) {
  const w = webhook || {};
  const inputs = {
    Label: h("input", { value: w.Label || "", autocomplete: "off" }),
    Destination: h("input", { value: w.Destination || "", required: true, placeholder: "https://example.com/hook", autocomplete: "off" }),
    EventSelector: h("textarea", { value: selectors_of(w).join("\n"), required: true, placeholder: "/Shop.OrderPlaced/Total>=100", spellcheck: "false", class: "low" }),
    Method: h("select", {}, ["POST", "PUT", "PATCH", "GET", "DELETE", "HEAD", "REPORT"].map((m) => h("option", { selected: m === (w.Method || "POST") }, m))),
    Headers: h("textarea", { rows: 4, value: json(w.Headers || {}) }),
    Delivery: h("textarea", { rows: 4, value: w.Delivery ? json(w.Delivery) : "" }),
  };
  const hints = {
    EventSelector: "The event, then conditions on its payload, joined by &. Several, one a line: any of them may match.",
    Headers: "JSON. Secret values are shown as *******, and stay as they are.",
    Delivery: "JSON, empty for the defaults: TimeoutSeconds, RetrySchedule, MaxInFlight, RatePerSecond, Ordered, DisableAfterDays.",
  };
  const before = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, webhook ? input.value : ""]));
  return form(Object.entries(inputs).map(([name, input]) => field(name === "EventSelector" ? "Event selector" : name, input, hints[name])),
    action, async () => {
      const body = {};
      for (const [name, input] of Object.entries(inputs)) {
        if (input.value === before[name]) continue;
        if (name === "EventSelector") Object.assign(body, selector_members(input.value));
        else if (name === "Headers" || name === "Delivery") body[name] = parsed(input.value, name, name === "Headers" ? {} : null);
        else body[name] = input.value === "" ? null : input.value;
      }
      for (const name of Object.keys(webhook?.Headers || {}))
        if (body.Headers && !(name in body.Headers)) body.Headers[name] = null;
      await submit(body);
    });
}

export async function show_new(view) {
  const start = view.query.get("selector");
  fill(view.root, head("New webhook"), webhook_form(null, "Make it", async (body) => {
    const [made] = await ask("POST", uri(hook), { body });
    location.hash = `#/webhook/${made.Id}`;
  }));
  if (start) view.root.querySelector("textarea.low").value = start;
}
