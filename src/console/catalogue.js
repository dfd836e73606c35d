/* What events there are, and what they carry. */
import { ask, can, carried_by, get, is_raised, of_kind } from "./api.js";
import { code, empty, facts, h, head, json, link, table, td } from "./dom.js";
import { sample_of } from "./sample.js";

const declared = "Svc.Admin.Resource";

async function declarations(signal) {
  const known = new Map();
  if (!can(declared)) return known;
  let page = await get(declared, [], { limit: 500 }, signal);
  for (;;) {
    for (const d of page) known.set(d.Name, d);
    if (!page.next) return known;
    page = await ask("GET", page.next, { signal });
  }
}

const carried = (d, known) => ({ properties: known.get(d.Payload?.Resource)?.Properties || d.Properties, bytes: d.Payload?.ContentType });

function payload_of({ properties, bytes }) {
  if (bytes) return h("p", {}, `Bytes: ${bytes}`);
  if (!properties) return h("p", { class: "quiet" }, "Entities with any members.");
  return h("div", { class: "split" },
    table("Properties", ["Property", "Type", "Description"], properties.map((p) => h("tr", {},
      td("", h("code", {}, p.Name)), td("tight", p.Type, p.Required && " (required)"), td("long", p.Description || "–")))),
    code(json(sample_of(properties)), "Example"));
}

export async function show(view) {
  const all = of_kind("EventResource");
  const known = await declarations(view.signal);
  view.root.append(head("Catalogue"));
  if (!all.length) {
    view.root.append(empty("There is no event that your key may read.", can(declared, "POST") ? link("Declare an event resource", "#/resource/new") : "Events are declared in the configuration, or by whoever may write Svc.Admin.Resource."));
    return;
  }
  for (const event of all) {
    const d = known.get(event.Name);
    const makers = [...known.values()].filter((e) => e.Events && Object.values(e.Events).includes(event.Name)).map((e) => e.Name);
    view.root.append(h("section", {}, h("h2", {}, event.Name), event.Description && h("p", {}, event.Description),
      makers.length ? facts([["Raised by changes of", makers.join(", ")]]) : "", payload_of(d ? carried(d, known) : await carried_by(event.Name, view.signal)),
      h("div", { class: "bar" }, can("Svc.Admin.Webhook", "POST") && link("Subscribe", `#/new?selector=${encodeURIComponent(`/${event.Name}`)}`, "button"),
        is_raised(event.Name) && link("Raise one", `#/raise/${event.Name}`, "button"), can("Svc.Event") && link("Look at them", `#/events?resource=${event.Name}`, "button"))));
  }
}
