/* The form that makes or changes a webhook. What there is to choose from is what the server says of itself. */
import { can, described } from "./api.js";
import { field, form, h, json } from "./dom.js";
import { selectors_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";
/* Where the key may not read the server's description. */
const usual = { Method: ["POST", "PUT", "PATCH", "GET", "DELETE", "HEAD", "REPORT"], Format: ["Array", "StandardWebhooks"] };

const none = "";
const choice = (value, names, otherwise) => h("select", {}, otherwise && h("option", { value: none }, otherwise),
  names.map((name) => h("option", { value: name, selected: name === value }, name)));
const line = (value, more) => h("input", { value: value ?? none, autocomplete: "off", ...more });
const lines = (text, more) => h("textarea", { value: text, spellcheck: "false", class: "low", ...more });

const header_text = (headers) => Object.entries(headers || {}).map(([name, value]) => `${name}: ${value}`).join("\n");

function headers_in(text, where) {
  const found = {};
  for (const one of text.split("\n").filter((l) => l.trim())) {
    const colon = one.indexOf(":");
    if (colon < 1) throw new Error(`${where}: '${one}' is no header field. Write a name, a colon, and the value.`);
    found[one.slice(0, colon).trim()] = one.slice(colon + 1).trim();
  }
  return found;
}

/* A PATCH merges: what is gone has to be said. */
function with_nulls(now, before) {
  return { ...Object.fromEntries(Object.keys(before || {}).map((name) => [name, null])), ...now };
}

function json_in(text, where) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${where}: ${error.message}`);
  }
}

/* Members of an object, each with an input of its type. */
function parts(properties, value, where) {
  const inputs = Object.entries(properties || {}).map(([name, p]) => {
    const type = [p.type].flat()[0], now = value?.[name];
    const input = type === "boolean" ? choice(now === undefined || now === null ? none : String(now), ["true", "false"], "default") :
      line(now === null || now === undefined ? none : typeof now === "object" ? JSON.stringify(now) : now, { inputmode: type === "array" ? null : "decimal", placeholder: p.default ?? null });
    return { name, input, hint: p.description };
  });
  return {
    nodes: inputs.map(({ name, input, hint }) => field(name, input, hint)),
    text: () => JSON.stringify(inputs.map(({ input }) => input.value)),
    value: () => {
      const said = inputs.filter(({ input }) => input.value.trim() !== none).map(({ name, input }) => [name, json_in(input.value, `${where}.${name}`)]);
      return said.length ? with_nulls(Object.fromEntries(said), value) : null;
    },
  };
}

function custom_payload(c) {
  const uri = line(c?.URI, { placeholder: "/Shop.Order/Id=…", class: "mono" });
  const headers = lines(header_text(c?.Headers), { rows: 2, placeholder: "Authorization: apikey …" });
  const body = lines(c?.Body === undefined || c?.Body === null ? none : json(c.Body), { rows: 3 });
  const breaks = ["BreakOnError", "BreakOnNoContent"].map((name) => [name, h("input", { type: "checkbox", checked: c?.[name] === true })]);
  return {
    nodes: [field("URI of the request", uri, "A local one, asked just before each attempt; what it answers is sent instead of the payload. Empty: the payload."),
      field("Header fields of the request", headers), field("Body of the request, as JSON", body),
      breaks.map(([name, input]) => h("label", { class: "check" }, input, name === "BreakOnError" ? "Abort the delivery when it fails" : "Abort the delivery when it answers nothing"))],
    text: () => JSON.stringify([uri.value, headers.value, body.value, breaks.map(([, b]) => b.checked)]),
    value: () => (uri.value.trim() === none ? null : {
      URI: uri.value.trim(), Headers: with_nulls(headers_in(headers.value, "Header fields of the request"), c?.Headers),
      Body: body.value.trim() === none ? null : json_in(body.value, "Body of the request"),
      ...Object.fromEntries(breaks.map(([name, input]) => [name, input.checked])),
    }),
  };
}

const simple = (input, value = () => input.value.trim() || null) => ({ input, text: () => input.value, value });

function members_of(w, says) {
  const enumerated = (name) => says?.[name]?.enum?.filter((v) => v !== null) || usual[name];
  const selectors = lines(selectors_of(w).join("\n"), { required: true, placeholder: "/Shop.OrderPlaced/Total>=100" });
  const headers = lines(header_text(w.Headers), { placeholder: "X-Shop: north" });
  const tags = line((w.Tags || []).join(", "));
  const formats = enumerated("Format"), verify = enumerated("Verify");
  return {
    Label: { ...simple(line(w.Label)), title: "Label" },
    Destination: { ...simple(line(w.Destination, { required: true, placeholder: "https://example.com/hook" })), title: "Destination" },
    EventSelector: { ...simple(selectors), title: "Event selector", hint: "The event, then conditions on its payload, joined by &. Several, one a line: any of them may match." },
    Method: { ...simple(choice(w.Method || "POST", enumerated("Method"))), title: "Method" },
    Headers: { ...simple(headers, () => with_nulls(headers_in(headers.value, "Headers"), w.Headers)), title: "Headers", hint: "A name, a colon and a value a line. Secret values are shown as *******, and stay as they are." },
    Format: { ...simple(choice(w.Format, formats, "Array (default)")), title: "Format", hint: says?.Format?.description?.replace(/; null: .*$/, "") },
    Verify: verify && { ...simple(choice(w.Verify, verify, "do not ask the receiver")), title: "Verify", hint: says.Verify.description },
    Tags: { ...simple(tags, () => (tags.value.trim() ? tags.value.split(",").map((t) => t.trim()).filter(Boolean) : null)), title: "Tags", hint: "Words of your own, with commas between." },
    Tenant: can("Svc.Admin.ApiKey") && { ...simple(line(w.Tenant)), title: "Tenant", hint: "With one, it gets that tenant's events only." },
    Delivery: { ...parts(says?.Delivery?.properties, w.Delivery, "Delivery"), title: "Time-outs, retries, limits" },
    CustomPayloadRequest: { ...custom_payload(w.CustomPayloadRequest), title: "Custom payload request" },
  };
}

function selector_members(text) {
  const all = text.split("\n").map((one) => one.trim()).filter(Boolean);
  return all.length > 1 ? { EventSelectors: all } : { EventSelector: all[0] ?? null };
}

/* Only what was changed is sent: so a secret that is shown as stars stays what it is. `start` is what a new one begins
 * with. */
export async function webhook_form(webhook, action, submit, start = {}, signal = undefined) {
  const says = await described(hook, signal);
  const members = Object.entries(members_of(webhook || start, says)).filter(([, m]) => m && (m.input || m.nodes.length));
  const untouched = webhook ? Object.fromEntries(members) : members_of({}, says);
  const before = Object.fromEntries(members.map(([name]) => [name, untouched[name].text()]));
  const node = ([, m]) => (m.input ? field(m.title, m.input, m.hint) : h("details", {}, h("summary", {}, m.title), h("div", { class: "grid" }, m.nodes)));
  return form(members.map(node), action, async () => {
    const body = {};
    for (const [name, m] of members) {
      if (m.text() === before[name]) continue;
      if (name === "EventSelector") Object.assign(body, selector_members(m.input.value));
      else body[name] = m.value();
    }
    await submit(body);
  });
}
