/* What the application declares, and declaring more. */
import { ask, can, change, get, load_rights, one, remove, uri } from "./api.js";
import { attempt, button, confirmed, counted, empty, field, fill, form, h, head, json, link, td, toast } from "./dom.js";
import { paged } from "./list.js";

const declared = "Svc.Admin.Resource";
const own = ["Description", "Methods", "Properties", "Indexes", "Events", "Payload", "CloudEventsType", "ContentType", "File"];
const kinds = { EntityResource: "entities", EventResource: "events", BinaryResource: "bytes" };

function carries(r) {
  if (r.Payload?.Resource) return ["as ", h("code", {}, r.Payload.Resource)];
  if (r.Payload?.ContentType || r.ContentType) return r.Payload?.ContentType || r.ContentType;
  if (r.Kind === "BinaryResource") return "bytes";
  return r.Properties ? counted(r.Properties.length, "property", "properties") : "any members";
}

export async function show(view) {
  const found = await get(declared, [], { limit: 100, order_asc: "Name" }, view.signal);
  const row = (r) => h("tr", {}, td("long", link(r.Name, `#/resource/${r.Id}`)), td("tight", kinds[r.Kind] || r.Kind), td("long", r.Description || "–"),
    td("", carries(r)), td("tight", r.IsReadOnly ? "configuration" : "interface"));
  fill(view.root, head("Resources", h("span", { class: "spring" }), can(declared, "POST") && link("Declare one", "#/resource/new", "button main")),
    found.length ? paged(view, "Resources", ["Name", "Kind", "Description", "Carries", "Declared in"], found, row) :
      empty("Nothing is declared.", "A resource says what entities or events there are. ", can(declared, "POST") ? link("Declare the first one", "#/resource/new") : ""));
}

const properties = [{ Name: "Customer", Type: "string", Required: true, Description: "Who pays" }, { Name: "Total", Type: "number" }, { Name: "At", Type: "datetime" }];
const examples = {
  "An event, and what it carries": { Name: "Shop.OrderPlaced", Kind: "EventResource", Description: "An order was placed", Properties: properties },
  "An event that carries anything": { Name: "Shop.SomethingHappened", Kind: "EventResource", Description: "Any object" },
  "Entities whose changes raise events": [{ Name: "Shop.Order", Kind: "EntityResource", Description: "Orders", Properties: properties, Events: { Inserted: "Shop.OrderInserted", Updated: null, Deleted: null } },
    { Name: "Shop.OrderInserted", Kind: "EventResource", Description: "An order was inserted", Payload: { Resource: "Shop.Order" } }],
};

function declaring(view) {
  const names = Object.keys(examples);
  const text = h("textarea", { rows: 18, value: json(examples[names[0]]), spellcheck: "false" });
  const select = h("select", {}, names.map((name) => h("option", { value: name }, name)));
  let proposed = text.value;
  select.addEventListener("change", () => {
    const before = text.value, is_lost = before !== proposed;
    text.value = proposed = json(examples[select.value]);
    if (is_lost) toast("The declaration was replaced", () => { text.value = before; });
  });
  view.root.append(head("Declare a resource"), h("p", { class: "quiet" }, "One declaration, or several in an array that may refer to each other. Types: string, integer, number, boolean, datetime, object, array, any."),
    form([field("Begin with", select), field("Declaration, as JSON", text)], "Declare", async () => {
      await ask("POST", uri(declared), { body: JSON.parse(text.value) });
      await load_rights();
      toast("Declared");
      location.hash = "#/resources";
    }));
}

export async function show_one(view) {
  if (view.ids[0] === "new") {
    declaring(view);
    return;
  }
  const r = await one(declared, view.ids[0], {}, view.signal);
  const body = Object.fromEntries(own.map((name) => [name, r[name]]).filter(([, v]) => v !== null && v !== undefined));
  const text = h("textarea", { rows: 18, value: json(body), readonly: r.IsReadOnly || !can(declared, "PATCH") });
  view.title(r.Name);
  const may_delete = can(declared, "DELETE") && !r.IsReadOnly;
  view.root.append(head(r.Name, h("span", { class: "badge" }, kinds[r.Kind] || r.Kind), h("span", { class: "spring" }), may_delete ? button("Remove", async () => {
    if (!await confirmed(`Remove ${r.Name}?`, "Webhooks that need it are paused. A resource that holds entities is refused here.", "Remove")) return;
    await attempt(async () => {
      await remove(declared, r.Id);
      await load_rights();
      location.hash = "#/resources";
    });
  }, "lose") : ""));
  if (text.readOnly) view.root.append(h("p", { class: "quiet" }, r.IsReadOnly ? "It is the configuration's, and changed there only." : "Your key may not change it."), field("Declaration", text));
  else view.root.append(form([field("Declaration, as JSON", text)], "Save", async () => {
    await change(declared, r.Id, JSON.parse(text.value));
    await load_rights();
    toast("Saved");
  }));
}
