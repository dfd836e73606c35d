/* The frame: who is signed in, which pages there are for that key, and which one the address names. */
import { can, has_key, load_rights, use_key } from "./api.js";
import { button, field, fill, form, h, problem } from "./dom.js";
import * as attempt from "./attempt.js";
import * as catalogue from "./catalogue.js";
import * as errors from "./errors.js";
import * as events from "./events.js";
import * as explain from "./explain.js";
import * as first from "./first.js";
import * as keys from "./keys.js";
import * as overview from "./overview.js";
import * as resources from "./resources.js";
import * as system from "./system.js";
import * as webhook from "./webhook.js";
import * as webhooks from "./webhooks.js";

const webhook_resource = "Svc.Admin.Webhook";
const pages = {
  overview: { title: "Overview", show: overview.show, needs: () => can(webhook_resource) },
  webhooks: { title: "Webhooks", show: webhooks.show, needs: () => can(webhook_resource) },
  events: { title: "Events", show: events.show, needs: () => can("Svc.Event") },
  explain: { title: "Explain", show: explain.show, needs: () => can("Svc.Explain", "POST") },
  catalogue: { title: "Catalogue", show: catalogue.show, needs: () => true },
  errors: { title: "Errors", show: errors.show, needs: () => can("Svc.Admin.Error") },
  resources: { title: "Resources", show: resources.show, needs: () => can("Svc.Admin.Resource") },
  keys: { title: "Keys", show: keys.show, needs: () => can("Svc.Admin.ApiKey") },
  system: { title: "System", show: system.show, needs: () => can("Svc.Metrics") || can("Svc.Health") || can("Svc.Admin.Limit") || can("Svc.Admin.Node") },
  webhook: { title: "Webhook", show: webhook.show, below: "webhooks" },
  first: { title: "First webhook", show: first.show, below: "webhooks" },
  new: { title: "New webhook", show: webhooks.show_new, below: "webhooks" },
  event: { title: "Event", show: events.show_one, below: "events" },
  raise: { title: "Raise an event", show: events.show_raise, below: "events" },
  attempt: { title: "Attempt", show: attempt.show, below: "webhooks" },
  error: { title: "Error", show: errors.show_one, below: "errors" },
  resource: { title: "Resource", show: resources.show_one, below: "resources" },
};

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const session = document.getElementById("session");
let shown = null; /* ends what the page before has under way */

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...ids] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name, ids, query: new URLSearchParams(query) };
}

function take_key_from_address() {
  const found = /^#key=(.*)$/.exec(location.hash);
  if (!found) return;
  use_key(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + location.search);
}

function first_page() {
  return Object.keys(pages).find((name) => pages[name].needs?.());
}

function show_navigation(current) {
  fill(nav, Object.entries(pages).filter(([, page]) => page.needs?.()).map(([name, page]) =>
    h("a", { href: `#/${name}`, "aria-current": name === current && "page" }, page.title)));
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  fill(session, has_key() && button("Sign out", sign_out));
}

function sign_out() {
  use_key(null);
  start();
}

function sign_in(error) {
  shown?.abort();
  fill(nav);
  fill(session);
  document.title = "Sign in – Svc";
  const input = h("input", { type: "password", autocomplete: "current-password", spellcheck: "false", required: true });
  fill(main, h("div", { class: "sign" }, h("h1", {}, "Sign in"),
    h("p", { class: "quiet" }, "The key stays in this tab, and is gone when the tab is closed."),
    error && has_key() && problem(error),
    form([field("API key", input)], "Sign in", async () => {
      use_key(input.value.trim());
      await start(true);
    })));
  input.focus();
}

async function show_page() {
  if (/^#key=/.test(location.hash)) {
    take_key_from_address();
    await start();
    return;
  }
  const { name, ids, query } = place();
  const page = Object.hasOwn(pages, name) ? pages[name] : null;
  if (!page) {
    location.replace(`#/${first_page()}`);
    return;
  }
  shown?.abort();
  const ending = new AbortController();
  shown = ending;
  document.title = `${page.title} – Svc`;
  show_navigation(page.below || name);
  const root = h("div", {});
  const view = {
    root, ids, query, signal: ending.signal,
    title: (text) => {
      document.title = `${text} – Svc`;
    },
    again: () => show_page(),
  };
  try {
    await page.show(view);
    if (!ending.signal.aborted) {
      fill(main, root);
      window.scrollTo(0, 0);
    }
  } catch (error) {
    if (!ending.signal.aborted) show_failure(error);
  }
}

function show_failure(error) {
  if (error.status === 401) {
    sign_in(error);
    return;
  }
  fill(main, h("h1", {}, document.title.split(" – ")[0]), problem(error),
    h("div", { class: "bar" }, button("Try again", show_page),
      error.status === 403 && button("Sign in with another key", () => sign_in(error))));
  if (!error.status) console.error(error);
}

/* Who signs in anew with a key that has no right to the page before sees the first that there is. */
function leave_if_refused() {
  const { name } = place();
  if (Object.hasOwn(pages, name) && !pages[pages[name].below || name].needs()) history.replaceState(null, "", `#/${first_page()}`);
}

async function start(is_other = false) {
  try {
    await load_rights();
  } catch (error) {
    if (error.status === 401 || error.status === 403) sign_in(error);
    else show_failure(error);
    return;
  }
  if (is_other) leave_if_refused();
  await show_page();
}

take_key_from_address();
window.addEventListener("hashchange", async () => {
  await show_page();
  main.focus({ preventScroll: true });
});
start();
