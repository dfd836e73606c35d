/* One attempt: what was sent, what was answered, and what took how long. */
import { base, can, change, described, get, one } from "./api.js";
import { attempt, button, code, copy_button, duration, facts, h, head, json, link, outcome, svg, time, toast } from "./dom.js";

/* The server tells when each phase had ended, from the beginning on; 0: there was none, or it took nothing. */
function phases_of(a) {
  const ends = [["DNS", a.DnsMs], ["connect", a.ConnectMs], ["TLS", a.TlsMs], ["first byte", a.FirstByteMs], ["rest", a.DurationMs]];
  let before = 0;
  return ends.map(([name, end]) => {
    const from = before;
    before = Math.max(before, end || 0);
    return { name, from, ms: before - from };
  });
}

function bar(a) {
  const phases = phases_of(a);
  const total = Math.max(1, a.DurationMs);
  const label = phases.map((p) => `${p.name} ${duration(p.ms)}`).join(", ");
  return h("div", {},
    svg("svg", { class: "phases", viewBox: "0 0 640 18", preserveAspectRatio: "none", role: "img", "aria-label": label },
      svg("rect", { class: "p4", x: 0, y: 0, width: 640, height: 18 }),
      phases.map((p, i) => svg("rect", { class: `p${i}`, x: 640 * p.from / total, y: 0, width: 640 * p.ms / total, height: 18 }))),
    h("div", { class: "legend" }, phases.map((p, i) =>
      h("span", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: `p${i}`, width: 10, height: 10 })), `${p.name} ${duration(p.ms)}`)),
    h("b", {}, `whole ${duration(a.DurationMs)}`)));
}

const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function curl(a, headers, body) {
  const url = a.Destination.startsWith("/") ? base + a.Destination : a.Destination;
  const lines = [`curl -i -X ${a.Method} ${shell(url)}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${shell(`${name}: ${value}`)}`);
  if (body !== null && a.Method !== "HEAD") lines.push(`--data-raw ${shell(body)}`);
  return lines.join(" \\\n  ");
}

function pretty(text) {
  try {
    return json(JSON.parse(text));
  } catch {
    return text;
  }
}

const log = "Svc.Admin.WebhookLog", delivery = "Svc.Admin.Delivery";
const hidden = ["RequestHeaders", "RequestBody"];

/* What was sent, where the log has kept it; else what the webhook and the event are now. */
async function request_of(a, webhook, event) {
  if (a.RequestHeaders) {
    const is_whole = a.RequestBody === null || new TextEncoder().encode(a.RequestBody).length >= a.BodyByteCount;
    return { headers: a.RequestHeaders, body: a.RequestBody, note: `${a.BodyByteCount} bytes were sent${is_whole ? "" : "; the first of them are kept"}. Secrets are not shown.` };
  }
  const is_own = !webhook?.CustomPayloadRequest && !webhook?.Format;
  return {
    headers: { "Content-Type": event?.ContentType || "application/json", ...webhook?.Headers, "webhook-id": a.EventId },
    body: event && is_own && typeof event.Payload !== "string" ? JSON.stringify(event.Payload) : null,
    note: `${a.BodyByteCount} bytes were sent. Header fields are those the webhook has now; secrets and signatures are left out.`,
    why_no_body: is_own ? "The event is not kept any more, or is bytes." : "The body was made by the webhook's format or custom payload request.",
  };
}

const again = (a) => can(delivery, "PATCH") && button("Send again", async (event) => {
  event.target.disabled = true;
  if (await attempt(() => change(delivery, a.DeliveryId, { State: "Pending" }))) toast("Queued again: the next attempt appears on the webhook's page.");
  event.target.disabled = false;
});

export async function show(view) {
  const known = await described(log, view.signal);
  const add = hidden.filter((name) => known?.[name]).join(",") || undefined;
  const a = await one(log, view.ids[0], { add }, view.signal);
  const [[webhook], [event]] = await Promise.all([
    can("Svc.Admin.Webhook") ? get("Svc.Admin.Webhook", [`Id=${a.WebhookId}`], {}, view.signal) : [],
    can("Svc.Event") ? get("Svc.Event", [`Id=${a.EventId}`], {}, view.signal) : []]);
  const sent = await request_of(a, webhook, event);
  view.root.append(
    head(`Attempt ${a.Attempt}`, outcome(a), h("span", { class: "spring" }), again(a) || "", copy_button(curl(a, sent.headers, sent.body), "Copy as curl")),
    facts([["Webhook", link(webhook?.Label || a.WebhookId, `#/webhook/${a.WebhookId}`)],
      ["Event", link(event?.Resource || a.EventId, `#/event/${a.EventId}`)], ["When", time(a.Time)],
      ["Why it failed", a.Error && h("span", { class: "ill-text" }, a.Error)]]),
    h("h2", {}, "Time"), bar(a),
    h("div", { class: "split" },
      h("section", {}, h("h2", {}, "Request"), h("p", {}, h("code", {}, `${a.Method} ${a.Destination}`)), h("p", { class: "quiet" }, sent.note),
        code(Object.entries(sent.headers).map(([n, v]) => `${n}: ${v}`).join("\n"), "Header fields"),
        sent.body ? code(pretty(sent.body), "Body") : h("p", { class: "quiet" }, sent.why_no_body || "It had no body, or you may not read it.")),
      h("section", {}, h("h2", {}, "Answer"),
        h("p", {}, outcome(a), " ", a.ResponseStatus || "there was none"),
        a.ResponseBody ? code(pretty(a.ResponseBody), "Answer") : h("p", { class: "quiet" }, "The answer has no body."))));
}
