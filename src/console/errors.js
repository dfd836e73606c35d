/* Requests that were refused, with what was said. */
import { can, get, one, quoted, remove } from "./api.js";
import { attempt, button, code, confirmed, empty, facts, h, head, link, table, td, time } from "./dom.js";

const errors = "Svc.Admin.Error";
const page_length = 50;

export async function show(view) {
  const error_code = view.query.get("code") || "", before = view.query.get("before");
  const found = (await get(errors, [error_code && `ErrorCode=${quoted(error_code)}`, before && `ObjectNo<${Number(before)}`], { offset: -page_length, select: "Id,Time,Action,ResourceName,ErrorCode,Message,ObjectNo" }, view.signal)).reverse();
  view.root.append(head("Errors", error_code && [h("span", { class: "badge" }, error_code), link("all", "#/errors")]),
    found.length ? table("Errors", ["When", "Request", "Code", "What was wrong"], found.map((e) => h("tr", {},
      td("tight", h("a", { href: `#/error/${e.Id}` }, time(e.Time))), td("", e.Action, " ", e.ResourceName),
      td("tight", link(e.ErrorCode, `#/errors?code=${e.ErrorCode}`)), td("long", e.Message)))) : empty("No error is kept.", "Requests that are refused are listed here, for as long as the retention says."));
  if (found.length === page_length)
    view.root.append(h("div", { class: "bar" }, link("Older", `#/errors?${new URLSearchParams({ code: error_code, before: found.at(-1).ObjectNo })}`, "button")));
}

export async function show_one(view) {
  const e = await one(errors, view.ids[0], {}, view.signal);
  view.root.append(head(e.ErrorCode, h("span", { class: "spring" }), can(errors, "DELETE") ? button("Delete", async () => {
    if (!await confirmed("Delete the error?", "It is gone for good.", "Delete")) return;
    await attempt(async () => {
      await remove(errors, e.Id);
      location.hash = "#/errors";
    });
  }, "lose") : ""),
  h("p", {}, e.Message), facts([["When", time(e.Time)], ["Request", h("code", {}, `${e.Action} ${e.Uri}`)], ["Resource", e.ResourceName]]),
  h("div", { class: "split" }, h("section", {}, h("h2", {}, "Header fields"), code(e.Headers || "–")), h("section", {}, h("h2", {}, "Body"), code(e.Body || "–"))),
  h("h2", {}, "Places in the server"), code(e.StackTrace || "–"));
}
