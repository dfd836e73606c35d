/* How the service itself does: health, journal, memory, limits that were reached. */
import { can, text_of } from "./api.js";
import { button, empty, facts, h, head, number, table, td } from "./dom.js";

function parse(text) {
  const found = [];
  for (const line of text.split("\n")) {
    const parts = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (parts) found.push({ name: parts[1], label: /"(.*)"/.exec(parts[2] || "")?.[1], value: Number(parts[3]) });
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
    return error.status === 503 ? "failing" : error.message;
  }
}

function counted(title, all, name) {
  const rows = all.filter((m) => m.name === name && m.value > 0);
  return [h("h2", {}, title), rows.length ? table(title, ["Name", "#Number"], rows.map((m) => h("tr", {}, td("", m.label), td("n", number(m.value))))) : empty("None.")];
}

export async function show(view) {
  const said = can("Svc.Health") ? await health(view.signal) : null;
  const all = can("Svc.Metrics") ? parse(await text_of("/Svc.Metrics", view.signal)) : [];
  const value = (name) => all.find((m) => m.name === name)?.value;
  const shown = (name) => (value(name) === undefined ? null : number(value(name)));
  view.root.append(head("System", said ? h("span", { class: `badge ${said === "ok" ? "well" : "ill"}` }, said) : "", h("span", { class: "spring" }), button("Look again", view.again)));
  if (!all.length) return;
  view.root.append(h("h2", {}, "Journal and memory"), facts([["Journal", bytes(value("svc_journal_bytes"))], ["still needed", bytes(value("svc_journal_live_bytes"))],
    ["Segment files", shown("svc_journal_segments")], ["Disk", value("svc_journal_full") ? "full" : "has room"], ["Commits", shown("svc_journal_commits_total")],
    ["Memory", bytes(value("svc_resident_bytes"))], ["Connections", shown("svc_connections_open")], ["Streams", shown("svc_streams_open")],
    ["Events kept", shown("svc_events_kept")], ["Deliveries that have not ended", shown("svc_deliveries_pending")]]),
  ...[counted("Limits that were reached, and how often", all, "svc_limit_hits_total"), counted("Errors since the start", all, "svc_errors_total"),
    counted("Entities stored", all, "svc_store_entities")].flat());
}
