/* API keys, and making one for a customer. */
import { ask, base, can, get, remove, uri } from "./api.js";
import { attempt, button, confirmed, copy_button, dialog, empty, field, form, h, head, json, table, td, time } from "./dom.js";

const keys = "Svc.Admin.ApiKey";
const portal = [
  { Resources: ["Svc.Admin.Webhook"], Methods: ["GET", "POST", "PATCH", "DELETE"] },
  { Resources: ["Svc.Admin.WebhookLog", "Svc.Admin.Delivery", "Svc.Admin.Error"], Methods: ["GET"] },
  { Resources: ["Svc.Event", "Svc.Explain"], Methods: ["GET", "POST"] },
];
const rights = (k) => (k.AllowAccess || []).map((r) => `${r.Resources.join(", ")}: ${r.Methods.join(", ")}`);

async function shown_once(made) {
  const address = `${base}/Svc.Console#key=${made.Key}`;
  await dialog("The new key", (close) => [h("p", {}, "Copy it now: it is not shown again."), h("pre", { tabindex: 0 }, made.Key),
    h("div", { class: "bar" }, copy_button(made.Key, "Copy the key"), copy_button(address, "Copy a link to the portal"), h("span", { class: "spring" }), button("Done", () => close(), "main")),
    h("p", { class: "quiet" }, "Whoever has the link has the key. It is taken out of the address when the page opens.")]);
}

function making(view) {
  const name = h("input", { required: true, maxlength: 64, autocomplete: "off" });
  const tenant = h("input", { maxlength: 64, autocomplete: "off" });
  const expires = h("input", { type: "date" });
  const allow = h("textarea", { value: json(portal), rows: 10 });
  return dialog("Make a key", (close) => form([field("Name", name), field("Tenant", tenant, "Empty: your own. With one, the key sees that tenant's things only."),
    field("Expires on", expires, "Empty: never, or with the key that makes it."), field("Rights, as JSON", allow, "To see events, it needs GET on their resources too, such as Shop.*.")], "Make it", async () => {
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
  const found = await get(keys, [], { limit: 200 }, view.signal);
  const withdraw = (k) => button("Delete", async () => {
    if (!await confirmed(`Delete the key ${k.Name}?`, "Whoever uses it is refused from the next request on. It cannot be made again.", "Delete")) return;
    await attempt(async () => {
      await remove(keys, k.Id);
      view.again();
    });
  }, "lose");
  view.root.append(head("Keys", h("span", { class: "spring" }), can(keys, "POST") ? button("Make a key", () => making(view), "main") : ""),
    found.length ? table("Keys", ["Name", "Tenant", "Rights", "Expires", "Last used", "Made by", "Do"], found.map((k) => h("tr", {},
      td("tight", k.Name), td("tight", k.Tenant || "–"), td("long small", rights(k).map((r) => h("span", { class: "two" }, r))), td("tight", time(k.ExpiresAt)),
      td("tight", time(k.LastUsedTime)), td("tight", k.CreatedBy || "configuration"), td("tight", can(keys, "DELETE") && k.CreatedBy && withdraw(k))))) :
      empty("There is no key.", "Without RequireApiKey in the configuration, requests need none."));
  if (found.next) view.root.append(h("p", { class: "quiet" }, "The first 200 are shown."));
}
