/* One attempt: what was sent, what was answered, and what took how long. */
import { base, can, get, one } from "./api.js";
import { code, copy_button, duration, facts, h, head, json, link, outcome, svg, time } from "./dom.js";

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
    svg("svg", { class: "phases", viewBox: "0 0 640 26", preserveAspectRatio: "none", role: "img", "aria-label": label },
      svg("rect", { class: "p4", x: 0, y: 24, width: 640, height: 2 }),
      phases.map((p, i) => svg("rect", { class: `p${i}`, x: 640 * p.from / total, y: 2, width: 640 * p.ms / total, height: 20 }))),
    h("div", { class: "legend" }, phases.map((p, i) =>
      h("span", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("rect", { class: `p${i}`, width: 10, height: 10 })), `${p.name} ${duration(p.ms)}`)),
    h("b", {}, `whole ${duration(a.DurationMs)}`)));
}

const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function curl(a, headers, body) {
  const url = a.Destination.startsWith("/") ? base + a.Destination : a.Destination;
  const lines = [`curl -i -X ${a.Method} ${shell(url)}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${shell(`${name}: ${value}`)}`);
  if (body !== null && a.Method !== "HEAD") lines.push(`--data-binary ${shell(body)}`);
  return lines.join(" \\\n  ");
}

function pretty(text) {
  try {
    return json(JSON.parse(text));
  } catch {
    return text;
  }
}

export async function show(view) {
  const a = await one("Svc.Admin.WebhookLog", view.ids[0], {}, view.signal);
  const [webhook] = can("Svc.Admin.Webhook") ? await get("Svc.Admin.Webhook", [`Id=${a.WebhookId}`], {}, view.signal) : [];
  const [event] = can("Svc.Event") ? await get("Svc.Event", [`Id=${a.EventId}`], {}, view.signal) : [];
  const custom = webhook?.CustomPayloadRequest;
  const body = event && !custom && typeof event.Payload !== "string" ? JSON.stringify(event.Payload) : null;
  const headers = { "Content-Type": event?.ContentType || "application/json", ...webhook?.Headers, "webhook-id": a.EventId };
  const command = curl(a, headers, body);
  view.root.append(
    head(`Attempt ${a.Attempt}`, outcome(a), h("span", { class: "spring" }), copy_button(command, "Copy as curl")),
    facts([["Webhook", link(webhook?.Label || a.WebhookId, `#/webhook/${a.WebhookId}`)],
      ["Event", link(event?.Resource || a.EventId, `#/event/${a.EventId}`)], ["When", time(a.Time)],
      ["Why it failed", a.Error && h("span", { class: "ill-text" }, a.Error)]]),
    h("h2", {}, "Time"), bar(a),
    h("div", { class: "split" },
      h("section", {}, h("h2", {}, "Request"), h("p", {}, h("code", {}, `${a.Method} ${a.Destination}`)),
        h("p", { class: "quiet" }, `${a.BodyByteCount} bytes were sent. Header fields are those the webhook has now; secrets and signatures are left out.`),
        code(Object.entries(headers).map(([n, v]) => `${n}: ${v}`).join("\n"), "Header fields"),
        body !== null ? code(pretty(body), "Body") : h("p", { class: "quiet" }, custom ? "The body was made by the custom payload request." : "The event is not kept any more, or is bytes.")),
      h("section", {}, h("h2", {}, "Answer"),
        h("p", {}, outcome(a), " ", a.ResponseStatus || "there was none"),
        a.ResponseBody ? code(pretty(a.ResponseBody), "Answer") : h("p", { class: "quiet" }, "The answer has no body."))));
}
