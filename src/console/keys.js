/* API keys, and making one for a customer. */
import { ask, base, can, get, has_key, is_own, of_kind, remove, uri } from "./api.js";
import { attempt, button, confirmed, copy_button, dialog, empty, field, fill, form, h, head, json, td, time } from "./dom.js";
import { paged } from "./list.js";

const keys = "Svc.Admin.ApiKey";
const day_ms = 86400000, portal_days = 90;
const namespaces = () => [...new Set(of_kind("EventResource").filter((r) => !is_own(r.Name)).map((r) => r.Name.replace(/[^.]*$/, "*")))];

/* What all pages need that a customer can use. `events`: resources whose events the key may read and raise tests of. */
function portal(events) {
  return [
    { Resources: ["Svc.Admin.Webhook"], Methods: ["GET", "POST", "PATCH", "DELETE"] },
    { Resources: ["Svc.Admin.Delivery"], Methods: ["GET", "PATCH"] },
    { Resources: ["Svc.Admin.WebhookLog", "Svc.Admin.Error", "Svc.OpenApi"], Methods: ["GET"] },
    { Resources: ["Svc.Event", "Svc.Explain"], Methods: ["GET", "POST"] },
    ...(events.length ? [{ Resources: events, Methods: ["GET"] }] : []),
  ];
}

/* Where nobody needs a key, keys have no maker: as those of the configuration. */
const made_by = (k) => k.CreatedBy || (has_key() ? "configuration" : "–");
/* Who raises events needs a right on them too. */
const raiser = (events) => [{ Resources: ["Svc.Event"], Methods: ["POST"] }, ...(events.length ? [{ Resources: events, Methods: ["GET"] }] : [])];

const rights = (k) => (k.AllowAccess || []).map((r) => `${r.Resources.join(", ")}: ${r.Methods.join(", ")}`);

async function shown_once(made) {
  const address = `${base}/Svc.Console#key=${made.Key}`;
  await dialog("The new key", (close) => [h("p", {}, "Copy it now: it is not shown again."), h("pre", { tabindex: 0 }, made.Key),
    h("div", { class: "bar" }, copy_button(made.Key, "Copy the key"), copy_button(address, "Copy a link to the portal"), h("span", { class: "spring" }), button("Done", () => close(), "main")),
    h("p", { class: "quiet" }, "Whoever has the link has the key. It is taken out of the address when the page opens.")]);
}

function making(view, is_portal) {
  const name = h("input", { required: true, maxlength: 64, autocomplete: "off" });
  const tenant = h("input", { maxlength: 64, autocomplete: "off", required: is_portal });
  const expires = h("input", { type: "date", value: is_portal ? new Date(Date.now() + portal_days * day_ms).toISOString().slice(0, 10) : "" });
  const events = h("input", { value: namespaces().join(", "), autocomplete: "off" });
  const allow = h("textarea", { rows: 10, spellcheck: "false" });
  const listed = () => events.value.split(",").map((one) => one.trim()).filter(Boolean);
  const fill_rights = () => { allow.value = json(is_portal ? portal(listed()) : raiser(namespaces())); };
  events.addEventListener("input", fill_rights);
  fill_rights();
  return dialog(is_portal ? "Make a key for a customer" : "Make a key", (close) => form([field("Name", name),
    field("Tenant", tenant, is_portal ? "The key sees, and makes, that tenant's things only." : "Empty: your own. With one, the key sees that tenant's things only."),
    field("Expires on", expires, "Empty: never, or with the key that makes it."),
    is_portal && field("Events the customer may select and see", events, "Names, or a namespace with a star, with commas between."),
    h("details", { open: !is_portal }, h("summary", {}, "Rights"), field("Rights, as JSON", allow))], "Make it", async () => {
    const body = { Name: name.value, AllowAccess: JSON.parse(allow.value) };
    if (tenant.value) body.Tenant = tenant.value;
    if (expires.value) body.ExpiresAt = expires.value;
    const [made] = await ask("POST", uri(keys), { body });
    close();
    await shown_once(made);
    view.again();
  }, button("Cancel", () => close())));
}

export async function show(view) {
  const found = await get(keys, [], { limit: 100 }, view.signal);
  const withdraw = (k) => button("Delete", async () => {
    if (!await confirmed(`Delete the key ${k.Name}?`, "Whoever uses it is refused from the next request on. It cannot be made again.", "Delete")) return;
    await attempt(async () => {
      await remove(keys, k.Id);
      view.again();
    });
  }, "lose");
  const row = (k) => h("tr", {}, td("", k.Name), td("tight", k.Tenant || "–"), td("long small", rights(k).map((r) => h("span", { class: "two" }, r))),
    td("tight", k.ExpiresAt ? time(k.ExpiresAt) : "never"), td("tight", time(k.LastUsedTime)), td("tight", made_by(k)), td("tight", can(keys, "DELETE") && (k.CreatedBy || !has_key()) && withdraw(k)));
  fill(view.root, head("Keys", h("span", { class: "spring" }), can(keys, "POST") && [button("Make a key", () => making(view, false)), button("Make one for a customer", () => making(view, true), "main")]),
    found.length ? paged(view, "Keys", ["Name", "Tenant", "Rights", "Expires", "Last used", "Made by", "Do"], found, row) :
      empty("There is no key.", "Without RequireApiKey in the configuration, requests need none."));
}
