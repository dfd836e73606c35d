/* What the application declares, and declaring more. */
import { ask, can, change, get, load_rights, one, remove, uri } from "./api.js";
import { attempt, button, confirmed, empty, field, form, h, head, json, link, table, td, toast } from "./dom.js";

const declared = "Svc.Admin.Resource";
const own = ["Description", "Methods", "Properties", "Indexes", "Events", "Payload", "ContentType"];
const kinds = { EntityResource: "entities", EventResource: "events", BinaryResource: "bytes" };

export async function show(view) {
  const found = await get(declared, [], { limit: 200, order_asc: "Name" }, view.signal);
  view.root.append(head("Resources", h("span", { class: "spring" }), can(declared, "POST") ? link("Declare one", "#/resource/new", "button main") : ""),
    found.length ? table("Resources", ["Name", "Kind", "Description", "#Properties", "Declared in"], found.map((r) => h("tr", {},
      td("long", link(r.Name, `#/resource/${r.Id}`)), td("tight", kinds[r.Kind] || r.Kind), td("long", r.Description || "–"),
      td("n", r.Properties ? r.Properties.length : "any"), td("tight", r.IsReadOnly ? "configuration" : "interface")))) :
      empty("Nothing is declared.", "A resource says what entities or events there are. ", can(declared, "POST") ? link("Declare the first one", "#/resource/new") : ""));
  if (found.next) view.root.append(h("p", { class: "quiet" }, "The first 200 are shown."));
}

const example = {
  Name: "Shop.OrderPlaced", Kind: "EventResource", Description: "An order was placed", Payload: { Resource: "Shop.Order" },
};

function declaring(view) {
  const text = h("textarea", { rows: 16, value: json(example) });
  view.root.append(head("Declare a resource"), h("p", { class: "quiet" }, "One declaration, or several in an array that may refer to each other. An entity resource has Properties: Name, Type, Required, Description; its Events name what its changes raise."),
    form([field("Declaration, as JSON", text)], "Declare", async () => {
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
    toast("Saved");
  }));
}
