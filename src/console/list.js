/* Lists that are asked for page by page. */
import { ask } from "./api.js";
import { button, fill, h, table } from "./dom.js";

/* The table of a first page that `get` gave, and below it a button for the one that follows. */
export function paged(view, label, columns, first, row, kind, region) {
  const list = table(label, columns, first.map(row), kind);
  if (region) list.classList.add(region);
  const more = h("div", { class: "bar" });
  const offer = (next) => fill(more, next && button("More", async () => {
    const page = await ask("GET", next, { signal: view.signal });
    const rows = page.map(row);
    list.querySelector("tbody").append(...rows);
    offer(page.next);
    rows[0]?.querySelector("a, button")?.focus();
  }));
  offer(first.next);
  return [list, more];
}
