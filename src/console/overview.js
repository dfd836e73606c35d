/* What fails, and since when. Told by the stream of attempts; asks only about webhooks that something happened to. */
import { all, can, follow_quietly, get, uri } from "./api.js";
import { badge, empty, fill, h, head, link, live_mark, number, spark_length, sparkline, table, td, time } from "./dom.js";
import { first_webhook } from "./first.js";

const hook = "Svc.Admin.Webhook", log = "Svc.Admin.WebhookLog", delivery = "Svc.Admin.Delivery";
const members = "Id,Label,Destination,EventSelector,ErrorMessage,Status";
const page_length = 10;
const columns = ["Webhook", "State", "Since", "Last 64 attempts", "#Success", "#Pending", "Next attempt", "Last error"];

const read_attempts = (id) =>
  `GET ${uri(log, [`WebhookId=${id}`], { offset: -spark_length, select: "IsSuccess,DurationMs,Error,ObjectNo" })}`;

/* The server counts from its start on, the log goes further back. */
export function success(status, attempts = []) {
  if (attempts.length) return `${Math.floor(100 * attempts.filter((a) => a.IsSuccess).length / attempts.length)} %`;
  return status.RecentAttempts ? `${Math.floor(status.SuccessRate * 100)} %` : "–";
}

export const last_error = (attempts) => attempts.findLast((a) => !a.IsSuccess)?.Error;

export function row_cells(webhook, attempts) {
  const s = webhook.Status;
  return [
    td("long", link(webhook.Label || webhook.Destination, `#/webhook/${webhook.Id}`), webhook.Label && h("span", { class: "two" }, webhook.Destination)),
    td("tight", badge(s.State, s.Reason)),
    td("tight", s.FailingSince ? time(s.FailingSince) : "–"),
    td("", sparkline(attempts)),
    td("n", success(s, attempts)),
    td("n", number(s.Pending + s.InFlight + s.Waiting)),
    td("tight", time(s.NextAttemptTime)),
    td("long small", webhook.ErrorMessage || s.LastError || last_error(attempts) || "–"),
  ];
}

async function list(conditions, signal) {
  const found = await get(hook, conditions, { add: "Status", select: members, limit: page_length }, signal);
  const attempts = can(log) ? await all(found.map((webhook) => read_attempts(webhook.Id)), signal) : [];
  const lines = found.map((webhook, i) => ({ webhook, attempts: attempts[i] ?? [] }));
  lines.next = found.next;
  return lines;
}

const tile = (label, value, href, is_bad) =>
  h(href ? "a" : "div", { class: `tile ${is_bad && value ? "bad" : ""}`, href }, h("b", {}, number(value)), label);

const states = ["Failing", "HeldBack", "Throttled", "Paused"];

async function tiles(signal) {
  const names = ["failing", "held back", "throttled", "paused"];
  const counts = await all([`REPORT ${uri(hook)}`, ...states.map((s) => `REPORT ${uri(hook, [`Status.State=${s}`])}`),
    ...(can(delivery) ? ["Pending", "Waiting", "Dead"].map((s) => `REPORT ${uri(delivery, [`State=${s}`])}`) : [])], signal);
  const nodes = [tile("webhooks", counts[0], "#/webhooks"),
    states.map((s, i) => tile(names[i], counts[i + 1], `#/webhooks?state=${s}`, s === "Failing")),
    can(delivery) && [tile("pending", counts[5]), tile("to be retried", counts[6]), tile("dead", counts[7], null, true)]];
  return { nodes, all: counts[0], failing: counts[1], held: counts[2] };
}

export async function show(view) {
  const mark = live_mark();
  const numbers = h("div", { class: "tiles" });
  const place = h("div", {});
  const known = new Map();
  const draw = (line) => {
    const row = h("tr", {}, row_cells(line.webhook, line.attempts));
    known.set(line.webhook.Id, { ...line, row });
    return row;
  };
  const read = async () => {
    const counts = await tiles(view.signal);
    const of = (count, ...conditions) => (count ? list(conditions, view.signal) : []);
    const [failing, held, others] = await Promise.all([of(counts.failing, "Status.State=Failing"), of(counts.held, "Status.State=HeldBack"),
      of(counts.all - counts.failing - counts.held, "Status.State!=Failing", "Status.State!=HeldBack")]);
    const ill = [...failing, ...held];
    const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    known.clear();
    fill(numbers, counts.nodes);
    if (!ill.length && !others.length) {
      if (!place.querySelector(".guide, .empty")) fill(place, first_webhook());
      return;
    }
    fill(place, h("h2", {}, "Needs attention"),
      ill.length ? table("Webhooks that need attention", columns, ill.map(draw), "wide") : empty("Nothing fails.", "Every receiver has taken what was sent to it last."),
      failing.next && h("p", {}, link("All that fail", "#/webhooks?state=Failing")),
      others.length > 0 && [h("h2", {}, "Others"), table("Other webhooks", columns, others.map(draw), "wide")],
      others.next && h("p", {}, link("All webhooks", "#/webhooks")));
    if (focused) [...place.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus({ preventScroll: true });
  };
  await read();
  fill(view.root, head("Overview", h("span", { class: "spring" }), mark), numbers, place);
  if (can(log)) await watch(view, mark, known, read);
  else mark.hidden = true;
}

/* Rows are looked at a second after something has come. The whole page, with webhooks that are not on it and the numbers
 * above, follows at a pace that leaves the server a twentieth of its time to it at most. */
const whole_least_ms = 4000, whole_most_ms = 60000, share = 20;
const is_ill = (webhook) => ["Failing", "HeldBack"].includes(webhook.Status.State);

async function watch(view, mark, known, read) {
  let touched = new Set(), due = null, whole = null, pause = whole_least_ms;
  const read_soon = () => {
    whole ??= setTimeout(async () => {
      const began = performance.now();
      await read().catch(() => mark.show("lost"));
      pause = Math.min(whole_most_ms, Math.max(whole_least_ms, share * (performance.now() - began)));
      whole = null;
    }, pause);
  };
  const look = async () => {
    const ids = [...touched];
    touched = new Set();
    due = null;
    read_soon();
    for (const id of ids.filter((one) => known.has(one))) {
      const [webhook] = await get(hook, [`Id=${id}`], { add: "Status", select: members }, view.signal);
      const line = known.get(id);
      if (!webhook || !line || is_ill(webhook) !== is_ill(line.webhook)) {
        await read();
        return;
      }
      line.webhook = webhook;
      fill(line.row, row_cells(webhook, line.attempts));
    }
  };
  const [last] = await get(log, [], { offset: -1, select: "ObjectNo" }, view.signal);
  follow_quietly(log, [], last?.ObjectNo, {
    state: (s) => mark.show(s),
    refused: () => mark.show("lost"),
    entity: (entry) => {
      const line = known.get(entry.WebhookId);
      if (line && !line.attempts.some((a) => a.ObjectNo === entry.ObjectNo)) {
        line.attempts.push(entry);
        if (line.attempts.length > spark_length) line.attempts.shift();
      }
      touched.add(entry.WebhookId);
      due ??= setTimeout(() => look().catch(() => mark.show("lost")), 1000);
    },
  }, view.signal);
  view.signal.addEventListener("abort", () => {
    clearTimeout(due);
    clearTimeout(whole);
  });
}
