/* One webhook: how it is doing, its attempts as they are made, what waits, and what one does with it. */
import { ask, can, carried_by, change, count, follow_quietly, get, is_raised, one, parse_exactly, raise_event, remove, uri } from "./api.js";
import {
  attempt, badge, button, confirmed, copy_button, counted, dialog, duration, empty, facts, field, fill, form, h, head, json, link,
  live_mark, number, outcome, problem, spark_length, sparkline, table, td, time, toast,
} from "./dom.js";
import { file_form } from "./events.js";
import { last_error, success } from "./overview.js";
import { event_of, sample_for, selectors_of } from "./sample.js";
import { verification } from "./verify.js";
import { paged } from "./list.js";
import { webhook_form } from "./hook_form.js";

const hook = "Svc.Admin.Webhook", log = "Svc.Admin.WebhookLog", delivery = "Svc.Admin.Delivery";
const rows_most = 100, queue_length = 25;

export function attempt_row(a) {
  return h("tr", {},
    td("tight", h("a", { href: `#/attempt/${a.Id}` }, time(a.Time))),
    td("tight", outcome(a)), td("n", a.Attempt), td("n", duration(a.DurationMs)),
    td("long small", a.Error || a.ResponseStatus || "–"));
}

const attempt_columns = ["When", "Answer", "#Attempt", "#Took", "In words"];

/* ---- what one does ---- */

async function pause(view, w, is_paused) {
  await attempt(async () => {
    await change(hook, w.Id, { IsPaused: is_paused });
    toast(is_paused ? "Paused: it skips events until it is resumed" : "Resumed",
      is_paused ? async () => {
        await change(hook, w.Id, { IsPaused: false });
        view.again();
      } : null);
    view.again();
  });
}

/* Nobody but the server raises its own events. */
const tested_selectors = (w) => selectors_of(w).filter((one) => is_raised(event_of(one)));

async function send_test(w) {
  const selectors = tested_selectors(w);
  const select = h("select", {}, selectors.map((one) => h("option", { value: one }, one)));
  const text = h("textarea", {}), place = h("div", {});
  let bytes = null, chosen = null;
  const propose = async () => {
    const carried = await carried_by(event_of(select.value));
    bytes = carried.bytes;
    chosen = bytes ? file_form(bytes) : null;
    text.value = json(sample_for(select.value, carried.properties));
    fill(place, chosen ? chosen.nodes : field("Payload", text));
  };
  select.addEventListener("change", () => attempt(propose));
  await propose();
  await dialog("Send a test", (close) => [
    h("p", {}, "An event for this webhook alone, through its selector, headers and signature. The example is made from the selector and the declared properties."),
    form([selectors.length > 1 ? field("Selector", select) : h("code", {}, selectors[0]), place], "Send", async () => {
      const [event] = await raise_event(event_of(select.value), { bytes, file: chosen?.file(), value: bytes ? null : parse_exactly(text.value), webhook: w.Id });
      if (!event.Webhooks) throw new Error("The selector does not match this payload, so nothing is sent.");
      close();
      toast("Sent. The attempt appears among those below.");
    }, button("Cancel", () => close())),
  ]);
}

async function rotate(view, w) {
  const sure = await confirmed(w.Signing ? "Rotate the signing secret?" : "Sign the requests?",
    w.Signing ? "A new secret is made and shown once. The old ones sign beside it for a day." : "A secret is made and shown once. Each request is signed with it.",
    w.Signing ? "Rotate" : "Make a secret");
  if (!sure) return;
  await attempt(async () => {
    const [changed] = await change(hook, w.Id, { Signing: w.Signing ? { Rotate: true } : {} });
    const secret = changed.Signing.Secrets.find((s) => !/^\*+$/.test(s));
    await dialog("The new secret", (close) => [
      h("p", {}, "Copy it now: it is not shown again."),
      h("pre", { tabindex: 0 }, secret || "The server showed none."),
      h("div", { class: "bar" }, secret && copy_button(secret), h("span", { class: "spring" }), button("Done", () => close(), "main")),
    ]);
    view.again();
  });
}

async function resend_dead(view, w) {
  const since = h("input", { type: "datetime-local", value: local_time(Date.now() - 86400000), required: true });
  await dialog("Send dead deliveries again", (close) => {
    const found = h("p", {}, "\u00a0");
    let conditions = null, dead = 0;
    const look = form([field("Of events since", since)], "Count them", async () => {
      conditions = [`WebhookId=${w.Id}`, "State=Dead", `Time>=${new Date(since.value).toISOString()}`];
      dead = await count(delivery, conditions);
      fill(found, dead ? `${counted(dead, "dead delivery", "dead deliveries")}. ` : "There is none. ",
        dead > 0 && button(`Send ${number(dead)} again`, () => attempt(async () => {
          const body = { State: "Pending" };
          await ask("PATCH", uri(delivery, conditions, { unsafe: true }), { body, headers: { Prefer: "return=minimal" } });
          close();
          toast(`${counted(dead, "delivery is", "deliveries are")} queued again`);
          view.again();
        }), "main"));
    }, button("Cancel", () => close()));
    return [look, found];
  });
}

const local_time = (ms) => new Date(ms - new Date(ms).getTimezoneOffset() * 60000).toISOString().slice(0, 16);

async function edit(view, w) {
  let close = null;
  const made = await webhook_form(w, "Save", async (body) => {
    if (Object.keys(body).length) await change(hook, w.Id, body);
    close();
    toast("Saved");
    view.again();
  });
  await dialog("Change the webhook", (end) => {
    close = end;
    return made;
  });
}

async function delete_it(w) {
  const pending = can(delivery) ? await count(delivery, [`WebhookId=${w.Id}`, "State=Pending"]) + await count(delivery, [`WebhookId=${w.Id}`, "State=Waiting"]) : 0;
  if (!await confirmed("Delete the webhook?", `${w.Label || w.Destination} is deleted for good${pending ? `, and ${counted(pending, "delivery that waits is", "deliveries that wait are")} cancelled` : ""}.`, "Delete")) return;
  await attempt(async () => {
    await remove(hook, w.Id);
    location.hash = "#/webhooks";
    toast("Deleted");
  });
}

function controls(view, w) {
  if (!can(hook, "PATCH") && !can("Svc.Event", "POST") && !can(hook, "DELETE")) return null;
  return h("div", { class: "bar" },
    tested_selectors(w).length > 0 && !w.IsPaused && button("Send a test", () => attempt(() => send_test(w)), "main"),
    can(hook, "PATCH") && [button(w.IsPaused ? "Resume" : "Pause", () => pause(view, w, !w.IsPaused)),
      button("Change", () => attempt(() => edit(view, w))), button(w.Signing ? "Rotate the secret" : "Sign requests", () => rotate(view, w))],
    can(delivery, "PATCH") && button("Send dead ones again", () => resend_dead(view, w)),
    can("Svc.Explain", "POST") && link("Explain", `#/explain?webhook=${w.Id}`, "button"),
    can(hook, "DELETE") && button("Delete", () => attempt(() => delete_it(w)), "lose"));
}

/* ---- what is shown ---- */

function status_of(w, attempts) {
  const s = w.Status;
  return h("div", {}, w.ErrorMessage && h("div", { class: "note" }, w.ErrorMessage),
    facts([["State", [badge(s.State), " ", s.State === "Failing" ? null : s.Reason]], ["Failing since", s.FailingSince && time(s.FailingSince)],
      ["Held back until", s.HeldBackUntil && time(s.HeldBackUntil)],
      ["Last 64 attempts", [sparkline(attempts), `${success(s, attempts)} succeeded`]],
      ["Queue", `${number(s.Pending)} pending, ${number(s.InFlight)} in flight, ${number(s.Waiting)} waiting`],
      ["Next attempt", time(s.NextAttemptTime)], ["Last success", time(s.LastSuccessTime)],
      ["Last error", s.LastError ? h("span", {}, s.LastError, " (", time(s.LastFailureTime), ")") : last_error(attempts)]]));
}

function details_of(w) {
  return facts([["Request", h("code", {}, `${w.Method} ${w.Destination}`)], ["Selector", selectors_of(w).map((one) => h("code", { class: "two" }, one))],
    ["Headers", Object.keys(w.Headers || {}).length ? h("code", {}, json(w.Headers)) : null],
    ["Delivery", w.Delivery && h("code", {}, json(w.Delivery))],
    ["Format", w.Format], ["Verify", w.Verify],
    ["Custom payload", w.CustomPayloadRequest && h("code", {}, json(w.CustomPayloadRequest))],
    ["Signing", w.Signing ? counted(w.Signing.Secrets?.length ?? 0, "secret signs", "secrets sign") : "unsigned"], ["Tags", w.Tags && w.Tags.join(", ")],
    ["Tenant", w.Tenant], ["Owner", w.Owner], ["Made", time(w.Time)], ["Id", h("code", {}, w.Id)]]);
}

function queue_row(d) {
  const again = can(delivery, "PATCH") && !["Pending", "InFlight"].includes(d.State) && button("Send again", async (event) => {
    event.target.disabled = true;
    if (await attempt(() => change(delivery, d.Id, { State: "Pending" }))) toast("Queued again");
    event.target.disabled = false;
  });
  return h("tr", {}, td("tight", link(d.Event, `#/event/${d.EventId}`), h("span", { class: "two" }, time(d.Time))), td("tight", badge(d.State)),
    td("n", d.Attempts), td("tight", time(d.NextAttemptTime)), td("long small", d.LastError || "–"), td("tight", again));
}

async function queue(view, w) {
  const place = h("div", {});
  const select = h("select", {}, ["", "Pending", "Waiting", "InFlight", "Dead", "Aborted", "Delivered"].map((s) => h("option", { value: s }, s || "any state")));
  const look = async () => {
    const found = await get(delivery, [`WebhookId=${w.Id}`, select.value && `State=${select.value}`], { limit: queue_length }, view.signal);
    fill(place, found.length ? paged(view, "Deliveries", ["Event", "State", "#Attempts", "Next attempt", "Last error", "Do"], found, queue_row, "", "tall") : empty("None.", "No delivery of this webhook is in that state."));
  };
  /* What somebody has paged through, or is about to press, stays where it is. */
  const look_anew = async () => {
    if (place.querySelectorAll("tbody tr").length <= queue_length && !place.contains(document.activeElement)) await look();
  };
  select.value = w.Status.Waiting ? "Waiting" : w.Status.Pending ? "Pending" : "Dead";
  select.addEventListener("change", () => look().catch((e) => fill(place, problem(e))));
  await look();
  return { look_anew, nodes: [h("h2", {}, "Deliveries"), h("div", { class: "bar" }, h("label", {}, "State ", select), button("Look again", () => attempt(look))), place] };
}

export async function show(view) {
  const w = await one(hook, view.ids[0], { add: "Status" }, view.signal);
  const recent = can(log) ? await get(log, [`WebhookId=${w.Id}`], { offset: -spark_length }, view.signal) : [];
  view.title(w.Label || w.Destination);
  const mark = live_mark();
  const status = h("div", {}, status_of(w, recent)), state = h("span", {}, badge(w.Status.State, w.Status.Reason));
  const rows = h("tbody", {}, [...recent].reverse().map(attempt_row));
  const list = table("Attempts", attempt_columns, []);
  list.querySelector("tbody").replaceWith(rows);
  list.classList.add("tall");
  const none = empty("No attempt yet.", "It is made when an event matches the selector. Send a test to see one now.");
  const tell = () => {
    list.hidden = !rows.children.length;
    none.hidden = !list.hidden;
  };
  tell();
  const waiting = can(delivery) ? await queue(view, w) : null;
  fill(view.root, head(w.Label || w.Destination, state, h("span", { class: "spring" }), can(log) ? mark : null), controls(view, w),
    h("div", { class: "split" }, h("section", {}, h("h2", {}, "How it is doing"), status), h("section", {}, h("h2", {}, "What it is"), details_of(w))),
    can(log) && [h("h2", {}, "Attempts"), list, none],
    waiting?.nodes,
    h("h2", {}, "Verify signatures"), h("p", { class: "quiet" }, "What the receiver does with the header fields webhook-id, webhook-timestamp and webhook-signature, before it reads the body."), verification());
  if (can(log)) watch(view, w, recent, { mark, rows, status, state, tell, waiting });
}

function watch(view, w, recent, { mark, rows, status, state, tell, waiting }) {
  let due = null;
  const look = async () => {
    due = null;
    const [now] = await get(hook, [`Id=${w.Id}`], { add: "Status" }, view.signal);
    if (!now) return;
    fill(status, status_of(now, recent));
    fill(state, badge(now.Status.State, now.Status.Reason));
    await waiting?.look_anew();
  };
  follow_quietly(log, [`WebhookId=${w.Id}`], recent.at(-1)?.ObjectNo ?? w.ObjectNo, {
    state: (s) => mark.show(s),
    refused: () => mark.show("lost"),
    entity: (entry) => {
      recent.push(entry);
      if (recent.length > spark_length) recent.shift();
      const row = attempt_row(entry);
      row.className = "fresh";
      rows.prepend(row);
      setTimeout(() => { row.className = ""; }, 3000);
      while (rows.children.length > rows_most) rows.lastChild.remove();
      tell();
      due ??= setTimeout(() => look().catch(() => mark.show("lost")), 1000);
    },
  }, view.signal);
  view.signal.addEventListener("abort", () => clearTimeout(due));
}
