/* The list of webhooks, page by page, and making one. */
import { ask, can, described, get, quoted, uri } from "./api.js";
import { badge, empty, fill, h, head, link, number, state_words, td, time } from "./dom.js";
import { webhook_form } from "./hook_form.js";
import { paged } from "./list.js";
import { success } from "./overview.js";
import { selectors_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";
const page_length = 50;
const states = ["Active", "Failing", "HeldBack", "Throttled", "Paused"];

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
  const meta = { add: "Status", limit: page_length, search: search && quoted(search) };
  const [first, says] = await Promise.all([get(hook, [state && `Status.State=${state}`], meta, view.signal), described(hook, view.signal)]);
  const known = says?.Status?.properties?.State?.enum?.filter(Boolean) || states;
  const select = h("select", { name: "state" }, ["", ...known].map((s) => h("option", { value: s, selected: s === state }, s ? state_words(s) : "any state")));
  const input = h("input", { type: "search", placeholder: "label, destination, selector", value: search });
  const go = () => {
    location.hash = `#/webhooks?${new URLSearchParams({ state: select.value, search: input.value.trim() })}`;
  };
  select.addEventListener("change", go);
  fill(view.root, head("Webhooks", h("span", { class: "spring" }), can(hook, "POST") && link("Add a webhook", "#/new", "button main")),
    h("form", { class: "bar", role: "search", onsubmit: (e) => {
      e.preventDefault();
      go();
    } }, h("label", {}, "State ", select), h("label", {}, "Search ", input), h("button", { type: "submit" }, "Find")),
    first.length ? paged(view, "Webhooks", columns, first, row, "hooks") : state || search ? empty("No webhook is like that.", link("Show all", "#/webhooks")) :
      empty("There is no webhook yet.", can(hook, "POST") ? link("Make the first one", "#/first") : "Your key may not make one."));
}

export async function show_new(view) {
  const start = view.query.get("selector");
  fill(view.root, head("New webhook"), await webhook_form(null, "Make it", async (body) => {
    const [made] = await ask("POST", uri(hook), { body });
    location.hash = `#/webhook/${made.Id}`;
  }, start ? { EventSelector: start } : {}, view.signal));
}
