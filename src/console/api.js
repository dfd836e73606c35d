/* Requests to the server that this file came from: nothing but the public interface. */

const root = new URL("..", import.meta.url).href.replace(/\/$/, "");
export const base = root;
let key = sessionStorage.getItem("key");
let resources = new Map();
let description = null; /* what the server says of itself, once asked for */

export class Problem extends Error {
  constructor(status, text, code) {
    super(text);
    this.status = status;
    this.code = code;
  }
}

export const has_key = () => key !== null;

export function use_key(text) {
  key = text || null;
  description = null;
  if (key) sessionStorage.setItem("key", key);
  else sessionStorage.removeItem("key");
}

function headers_of(more) {
  return { Accept: "application/json", ...(key ? { Authorization: `apikey ${key}` } : {}), ...more };
}

async function sent(method, path, { body, headers, signal } = {}) {
  const options = { method, headers: headers_of(headers), signal, cache: "no-store", credentials: "omit", redirect: "error" };
  if (body !== undefined) {
    options.body = typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
    options.headers["Content-Type"] ??= "application/json";
  }
  let response;
  try {
    response = await fetch(root + path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer. It may be restarting, or the network is gone.");
  }
  if (response.ok) return response;
  const text = await response.text();
  try {
    const said = JSON.parse(text);
    throw new Problem(response.status, said.detail || said.title, said.ErrorCode);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(response.status, `${response.status} ${response.statusText}`);
  }
}

/* Numbers of payloads as they were written, 12.50 and those beyond 2^53 too, where the browser can. */
export function parse_exactly(text) {
  if (!JSON.rawJSON) return JSON.parse(text);
  return JSON.parse(text, (_, value, { source }) => (typeof value === "number" && String(value) !== source ? JSON.rawJSON(source) : value));
}

const has_payloads = /^\/Svc\.(Event|Explain)\b/;

/* The entities of the answer. `next` is where the following page is, or null. */
export async function ask(method, path, options) {
  const response = await sent(method, path, options);
  const text = await response.text();
  const entities = !text ? [] : has_payloads.test(path) ? parse_exactly(text) : JSON.parse(text);
  entities.next = response.headers.get("Svc-pager");
  return entities;
}

export async function text_of(path, signal) {
  return (await sent("GET", path, { headers: { Accept: "*/*" }, signal })).text();
}

/* A value in a condition or an Id in a path: nothing in it separates anything. */
export const enc = (text) => encodeURIComponent(text).replaceAll("'", "%27");
/* As a string, whatever it looks like. */
export const quoted = (text) => (text.includes("'") ? `"${text.replaceAll('"', "")}"` : `'${text}'`);

/* `where`: conditions as they read, `meta`: limit, order_desc, ... */
export function uri(resource, where = [], meta = {}) {
  const query = new URLSearchParams();
  for (const condition of where) if (condition) query.append("where", condition);
  for (const [name, value] of Object.entries(meta)) if (value !== undefined && value !== "") query.append(name, value);
  const text = query.toString();
  return `/${resource}${text ? "?" + text : ""}`;
}

export const get = (resource, where, meta, signal) => ask("GET", uri(resource, where, meta), { signal });

export async function one(resource, id, meta, signal) {
  const found = await get(resource, [`Id=${quoted(id)}`], meta, signal);
  if (!found.length) throw new Problem(404, `There is no ${resource} with the Id ${id}. It was deleted, or kept for its time and not longer.`);
  return found[0];
}

export async function count(resource, where, signal) {
  return (await ask("REPORT", uri(resource, where), { signal }))[0].Count;
}

async function alone(read, signal) {
  const [method, path] = read.split(" ");
  const found = await ask(method, path, { signal });
  return method === "REPORT" ? found[0].Count : found;
}

/* What several reads give, each "GET /..." entities or "REPORT /..." a number: in one request, of one moment, where the
 * key may ask so and the server takes so many. */
export async function all(reads, signal) {
  if (reads.length > 1 && can("Svc.Aggregator", "POST")) {
    try {
      const [found] = await ask("POST", "/Svc.Aggregator", { body: Object.fromEntries(reads.map((read, i) => [`Read${i}`, read])), signal });
      return reads.map((_, i) => found[`Read${i}`]);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }
  return Promise.all(reads.map((read) => alone(read, signal)));
}

export const change = (resource, id, body) => ask("PATCH", `/${resource}/Id=${enc(id)}`, { body });
export const remove = (resource, id) => ask("DELETE", `/${resource}/Id=${enc(id)}`);

/* ---- what the key may do ---- */

export async function load_rights() {
  const found = await ask("GET", "/Svc.AvailableResource");
  resources = new Map(found.map((r) => [r.Name, r]));
  description = null;
}

export const can = (resource, method = "GET") => resources.get(resource)?.Methods.includes(method) === true;
/* The server's own events are raised by nobody else. */
export const is_own = (event) => event.startsWith("Svc.");
export const is_raised = (event) => can("Svc.Event", "POST") && !is_own(event);
export const of_kind = (kind) => [...resources.values()].filter((r) => r.Kind === kind);

/* ---- what is declared ---- */

async function document_of_all(signal) {
  if (!can("Svc.OpenApi")) return null;
  description ??= ask("GET", "/Svc.OpenApi").catch(() => null);
  signal?.throwIfAborted();
  const found = await description;
  if (!found) description = null;
  return found;
}

/* The properties of a built-in resource as Svc.OpenApi has them, hidden ones too; null where the key may not read it. */
export async function described(resource, signal) {
  return (await document_of_all(signal))?.components?.schemas?.[resource]?.properties || null;
}

/* A datetime is a string there: the example tells. */
function type_of(schema, example) {
  const [type] = [schema?.type ?? "any"].flat().filter((one) => one !== "null");
  return type === "string" && /^\d{4}-\d\d-\d\dT/.test(example) ? "datetime" : type;
}

/* What an event carries, as Svc.OpenApi has it for who may not read declarations, and of the server's own events. */
async function described_payload(event, signal) {
  const found = await document_of_all(signal);
  const content = found?.webhooks?.[event]?.post?.requestBody?.content || {};
  const media = content["application/json"];
  if (!media) return { properties: null, bytes: Object.keys(content)[0] || null };
  const name = media.schema.oneOf[0].items.$ref.split("/").at(-1), { properties = {}, required = [] } = found.components.schemas[name];
  const made = Object.entries(media.example[0]).map(([Name, value]) =>
    ({ Name, Type: type_of(properties[Name], value), Required: required.includes(Name), Description: properties[Name]?.description }));
  return { properties: made.length ? made : null, bytes: null };
}

/* What an event carries: `properties`, or null where nobody says; `bytes`, their media type, where it is no JSON. */
export async function carried_by(event, signal) {
  const [declared] = can("Svc.Admin.Resource") && !is_own(event) ? await get("Svc.Admin.Resource", [`Name=${quoted(event)}`], {}, signal) : [];
  if (!declared) return described_payload(event, signal);
  const of = declared.Payload?.Resource;
  const [entity] = of ? await get("Svc.Admin.Resource", [`Name=${quoted(of)}`], {}, signal) : [declared];
  return { properties: entity?.Properties || null, bytes: declared.Payload?.ContentType || null };
}

/* Raises an event; `bytes` say what the file is. */
export function raise_event(event, { value, file, bytes, webhook }) {
  if (!bytes) return ask("POST", uri("Svc.Event"), { body: { Resource: event, Payload: value, WebhookId: webhook } });
  const to = webhook ? `&WebhookId=${enc(webhook)}` : "";
  return ask("POST", `/Svc.Event/Resource=${enc(event)}${to}`, { body: file, headers: { "Content-Type": bytes } });
}

/* ---- streams ---- */

const wait = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    resolve();
  }, { once: true });
});

function read_block(block) {
  const fields = { data: "" };
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon < 1) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("data:")) fields.data += (fields.data ? "\n" : "") + value;
    else fields[line.slice(0, colon)] = value;
  }
  return fields;
}

async function read_stream(response, on_block) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) on_block(read_block(block));
  }
}

/* Browsers have few connections to a server: a page that nobody sees holds none, and catches up when it is seen. */
const in_sight = (signal) => new Promise((resolve) => {
  if (!document.hidden || signal.aborted) {
    resolve();
    return;
  }
  document.addEventListener("visibilitychange", resolve, { once: true, signal });
  signal.addEventListener("abort", resolve, { once: true });
});

/* Calls `use` with a signal that ends with `signal`, or when the page goes out of sight. */
async function while_in_sight(signal, use) {
  const connection = new AbortController(), listening = new AbortController();
  const leave = () => (document.hidden || signal.aborted) && connection.abort();
  document.addEventListener("visibilitychange", leave, { signal: listening.signal });
  signal.addEventListener("abort", leave, { signal: listening.signal });
  try {
    await use(connection.signal);
  } finally {
    listening.abort();
  }
}

/* Each new entity that meets the conditions, from the one after the ObjectNo `after` on, without a seam over
 * connections. `on.state`: live, lost; `on.gap`: something is not kept any more. Ends with the signal, or throws a
 * Problem when the server refuses. */
export async function follow(resource, where, after, on, signal) {
  let last = after;
  let pause = 1000;
  const read = async (connection) => {
    const headers = { Accept: "text/event-stream", ...(last === undefined ? {} : { "Last-Event-ID": String(last) }) };
    const response = await sent("GET", uri(resource, where), { headers, signal: connection });
    on.state("live");
    pause = 1000;
    last ??= 0; /* there was nothing before */
    await read_stream(response, (block) => {
      if (block.id) last = block.id;
      if (block.event === "gap") on.gap?.();
      else if (block.data) on.entity(parse_exactly(block.data));
    });
  };
  while (!signal.aborted) {
    await in_sight(signal);
    try {
      await while_in_sight(signal, read);
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 429 && !signal.aborted) throw error;
    }
    if (signal.aborted) return;
    on.state("lost");
    if (document.hidden) continue;
    await wait(pause, signal);
    pause = Math.min(pause * 2, 30000);
  }
}

/* The same for a page: what is refused is shown as lost, with the reason. */
export function follow_quietly(resource, where, after, on, signal) {
  follow(resource, where, after, on, signal).catch((error) => {
    if (!signal.aborted) on.refused?.(error);
  });
}
