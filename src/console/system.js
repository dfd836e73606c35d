/* How the service itself does: health, journal, memory, its limits and which were reached; in a cluster its nodes. */
import { can, get, text_of } from "./api.js";
import { button, empty, facts, h, head, number, table, td, time } from "./dom.js";

const node = "Svc.Admin.Node", limit = "Svc.Admin.Limit";

function parse(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!parts) continue;
    const labels = Object.fromEntries([...(parts[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c))]));
    found.push({ name: parts[1], labels, label: Object.values(labels)[0], value: Number(parts[3]) });
  }
  return found;
}

function bytes(n) {
  if (n === undefined) return null;
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${i ? n.toFixed(1) : n} ${units[i]}`;
}

async function health(signal) {
  try {
    return JSON.parse(await text_of("/Svc.Health", signal)).Status;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return error.status === 503 ? `failing: ${error.message}` : error.message;
  }
}

function counted(title, all, name, nothing) {
  const rows = all.filter((m) => m.name === name && m.value > 0).sort((a, b) => b.value - a.value);
  return h("section", {}, h("h2", {}, title), rows.length ? table(title, ["Name", "#Number"], rows.map((m) => h("tr", {}, td("", m.label), td("n", number(m.value))))) : empty("None.", nothing));
}

const amount = (n, unit) => (unit === "bytes" && n > 0 ? bytes(n) : `${number(n)} ${unit}`);

/* Those that somebody has set come first. */
async function limits(signal) {
  if (!can(limit)) return null;
  const found = await get(limit, [], { limit: 500 }, signal), is_set = (l) => l.Value !== l.Default;
  const rows = [...found.filter(is_set), ...found.filter((l) => !is_set(l))].map((l) => h("tr", {}, td("tight", h("code", {}, l.Name)),
    td("n", amount(l.Value, l.Unit), is_set(l) && h("span", { class: "two" }, `default ${amount(l.Default, l.Unit)}`)), td("long", l.Meaning)));
  return [h("h2", {}, "Limits"), table("Limits", ["Name", "#Value", "What it bounds"], rows)];
}

/* A server that is alone has no such resource, and nothing is said of it. */
async function nodes(signal) {
  if (!can(node)) return null;
  const found = await get(node, [], { limit: 100 }, signal);
  return [h("h2", {}, "Nodes"), table("Nodes", ["Name", "Role", "Address", "#Applied", "#Lag", "Since", "Version"], found.map((n) => h("tr", {},
    td("tight", n.Name), td("tight", h("span", { class: `badge ${n.Role === "Leader" ? "well" : ""}` }, n.Role)), td("long", n.Url || "–"),
    td("n", number(n.Applied)), td("n", number(n.Lag)), td("tight", time(n.Since)), td("tight", n.Version || "–"))))];
}

function parts_of(all) {
  const value = (name) => all.find((m) => m.name === name)?.value;
  const shown = (name) => (value(name) === undefined ? null : number(value(name)));
  const syncs = value("svc_journal_sync_seconds_count"), started = value("svc_start_time_seconds");
  return h("div", { class: "split" },
    h("section", {}, h("h2", {}, "Journal"), facts([["On disk", bytes(value("svc_journal_bytes"))], ["Still needed", bytes(value("svc_journal_live_bytes"))],
      ["Segment files", shown("svc_journal_segments")], ["Disk", value("svc_journal_full") === undefined ? null : value("svc_journal_full") ? h("span", { class: "ill-text" }, "full: changes are refused") : "has room"],
      ["Commits", shown("svc_journal_commits_total")], ["Sync, on average", syncs ? `${(1000 * value("svc_journal_sync_seconds_sum") / syncs).toFixed(1)} ms` : null]])),
    h("section", {}, h("h2", {}, "Memory and work"), facts([["Memory", bytes(value("svc_resident_bytes"))], ["Of requests under way", bytes(value("svc_incoming_bytes"))],
      ["Not yet read by clients", bytes(value("svc_unread_bytes"))], ["Connections", shown("svc_connections_open")], ["Streams", shown("svc_streams_open")],
      ["Events kept", shown("svc_events_kept")], ["Deliveries that have not ended", shown("svc_deliveries_pending")],
      ["Running since", started ? time(new Date(1000 * started).toISOString()) : null], ["Version", all.find((m) => m.name === "svc_build_info")?.labels.version]])));
}

export async function show(view) {
  const [said, text, bounds, which] = await Promise.all([can("Svc.Health") ? health(view.signal) : null, can("Svc.Metrics") ? text_of("/Svc.Metrics", view.signal) : "",
    limits(view.signal), nodes(view.signal)]);
  const all = parse(text);
  view.root.append(head("System", said ? h("span", { class: `badge ${said === "ok" ? "well" : "ill"}` }, said) : "", h("span", { class: "spring" }), button("Look again", view.again)));
  if (which) view.root.append(...which);
  if (all.length)
    view.root.append(parts_of(all), counted("Limits that were reached", all, "svc_limit_hits_total", "No request or delivery has met a limit since the start."));
  if (bounds) view.root.append(...bounds);
  if (all.length)
    view.root.append(h("div", { class: "split" }, counted("Entities stored", all, "svc_store_entities", "Nothing is stored yet."), counted("Errors since the start", all, "svc_errors_total", "No request has been refused since the start.")));
}
