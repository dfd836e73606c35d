/* An example of a payload: what the declared properties are, changed so that a selector's conditions hold. It is a
 * suggestion that people see before it is sent. */

import { is_own, of_kind } from "./api.js";

const of_type = {
  string: "text", integer: 1, number: 1.5, boolean: true, datetime: "2026-01-31T12:00:00Z", object: {}, array: [], any: null,
};

export function sample_of(properties) {
  const made = {};
  for (const p of properties || []) made[p.Name] = structuredClone(of_type[p.Type] ?? null);
  return made;
}

export const selectors_of = (webhook) => (webhook.EventSelector ? [webhook.EventSelector] : webhook.EventSelectors || []);

/* `/Shop.OrderPlaced/Total>=100&Name.Length>10`. */
export function parse_selector(text) {
  const [event, conditions = ""] = text.replace(/^\//, "").split("/");
  return {
    event,
    conditions: conditions.split("&").map((c) => /^([^=!<>]+)(!=|<=|>=|=|<|>)(.*)$/.exec(c)).filter(Boolean)
      .map(([, path, operator, value]) => ({ path: decoded(path).split("."), operator, value: decoded(value) })),
  };
}

/* Of `/Shop.*` and the like the first event that there is. */
export function event_of(selector) {
  const { event } = parse_selector(selector);
  const [before, after] = event.split("*");
  if (after === undefined) return event;
  const meant = of_kind("EventResource").filter((r) => r.Name.startsWith(before) && (before === "" || !r.Name.slice(before.length).includes(".")));
  return (meant.find((r) => !is_own(r.Name)) || meant[0])?.Name || event;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function literal(text, type) {
  const quotes = /^(['"])(.*)\1$/.exec(text);
  if (quotes) return quotes[2];
  if (type === "string" && text !== "null") return text;
  if (text === "null" || text === "true" || text === "false") return JSON.parse(text);
  return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function beyond(value, by) {
  if (typeof value === "number") return value + by;
  const at = Date.parse(value);
  return Number.isNaN(at) ? value : new Date(at + by * 1000).toISOString();
}

function wanted({ operator, value }, now, type) {
  const v = literal(value, type);
  if (operator === ">") return beyond(v, 1);
  if (operator === "<") return beyond(v, -1);
  if (operator !== "!=") return v;
  if (now !== undefined && now !== v) return now ?? "text";
  return typeof v === "number" ? v + 1 : typeof v === "boolean" ? !v : v === null ? "text" : `${v}-other`;
}

function apply(payload, condition, properties) {
  const path = [...condition.path];
  const type = properties?.find((p) => p.Name === path[0])?.Type;
  const counts = path.length > 1 && path.at(-1) === "Length";
  if (counts) path.pop();
  let at = payload;
  for (const [i, raw] of path.slice(0, -1).entries()) {
    const step = raw === "*" ? 0 : raw;
    const next = path[i + 1];
    if (typeof at[step] !== "object" || at[step] === null) at[step] = next === "*" || /^\d+$/.test(next) ? [] : {};
    at = at[step];
  }
  const last = path.at(-1) === "*" ? 0 : path.at(-1);
  if (counts) {
    const length = Math.max(0, Math.min(1000, Number(wanted(condition, 4)) || 0));
    at[last] = type === "array" ? Array(length).fill(null) : "x".repeat(length);
  } else at[last] = wanted(condition, at[last], path.length === 1 ? type : undefined);
}

export function sample_for(selector, properties) {
  const payload = sample_of(properties);
  for (const condition of parse_selector(selector).conditions) {
    if (condition.path.some((step) => ["__proto__", "constructor", "prototype"].includes(step))) continue;
    apply(payload, condition, properties);
  }
  return payload;
}
