/* Nodes. Whatever comes from outside becomes text: nothing here reads markup. */

function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
}

export function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  put(node, children);
  set(node, attributes);
  return node;
}

export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(node, attributes);
  return put(node, children);
}

export function fill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

/* ---- times ---- */

const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

function inWords(at) {
  const seconds = (at - Date.now()) / 1000;
  for (const [unit, size] of units)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  if (Math.abs(seconds) < 1) return "now";
  return relative.format(Math.trunc(seconds), "second");
}

export function time(text) {
  if (!text) return h("span", { class: "quiet" }, "–");
  return h("time", { datetime: text, title: `${new Date(text).toLocaleString()} (${text})` }, inWords(new Date(text)));
}

setInterval(() => {
  for (const node of document.querySelectorAll("time")) node.textContent = inWords(new Date(node.dateTime));
}, 5000);

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  return ms < 10000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export const number = (n) => Number(n).toLocaleString("en").replaceAll(",", "\u202f");
export const counted = (n, one, several) => `${number(n)} ${n === 1 ? one : several}`;
export const json = (value) => JSON.stringify(value, null, 2);

/* ---- small things that pages are made of ---- */

const tones = {
  Active: "well", Delivered: "well", Failing: "ill", Dead: "ill", Aborted: "ill", HeldBack: "warn", Paused: "warn",
  Throttled: "warn", Waiting: "warn", Unverified: "warn",
};
const words = { HeldBack: "Held back", InFlight: "In flight" };
export const state_words = (state) => words[state] || state;

export function badge(state, reason) {
  return h("span", { class: `badge ${tones[state] || ""}`, title: reason }, state_words(state));
}

export function outcome(attempt) {
  if (attempt.IsSuccess) return h("span", { class: "badge well" }, `${attempt.StatusCode ?? "ok"}`);
  return h("span", { class: "badge ill" }, attempt.StatusCode ?? "no answer");
}

export const spark_length = 64;

/* The newest on the right; how high a bar is says how long the attempt took. */
export function sparkline(attempts) {
  const shown = attempts.slice(-spark_length);
  const most = Math.max(1, ...shown.map((a) => Math.log1p(a.DurationMs || 0)));
  const good = shown.filter((a) => a.IsSuccess).length;
  const label = shown.length ? `${good} of the last ${shown.length} attempts succeeded` : "no attempts";
  const picture = svg("svg", { class: "spark", viewBox: "0 0 192 22", role: "img", "aria-label": label },
    svg("title", {}, label));
  for (let i = 0; i < spark_length; i++) {
    const a = shown[i - spark_length + shown.length];
    const height = a ? 6 + Math.round(15 * Math.log1p(a.DurationMs || 0) / most) : 2;
    picture.append(svg("rect", { x: i * 3, y: 22 - height, width: 2, height, class: a ? (a.IsSuccess ? "ok" : "no") : "none" }));
  }
  return picture;
}

export function table(label, columns, rows, kind) {
  return h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 },
    h("table", { class: kind },
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: c.startsWith("#") ? "n" : null }, c.replace("#", ""))))),
      h("tbody", {}, rows)));
}

export const td = (kind, ...children) => h("td", { class: kind || null }, ...children);
export const empty = (title, ...text) => h("div", { class: "empty" }, h("b", {}, title), ...text);

export function facts(pairs) {
  return h("dl", {}, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function head(title, ...controls) {
  return h("div", { class: "head" }, h("h1", {}, title), ...controls);
}

export const button = (text, action, kind) => h("button", { type: "button", class: kind, onclick: action }, text);
export const link = (text, href, kind) => h("a", { href, class: kind }, text);

export function field(label, control, hint) {
  return h("label", { class: "field" }, h("span", {}, label), control, hint && h("small", {}, hint));
}

export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, error.message, error.code && h("span", { class: "two" }, error.code));
}

export function copy_button(text, label = "Copy") {
  return button(label, async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      toast("Copied");
    } catch {
      toast("The browser does not let this page copy: select the text instead");
    }
  });
}

export function code(text, label) {
  return h("div", { class: "code" }, h("pre", { tabindex: 0, role: "region", "aria-label": label || "Text" }, text), copy_button(text));
}

/* ---- what comes up, and goes ---- */

export function toast(text, undo) {
  const node = h("div", { class: "toast" }, h("span", {}, text));
  if (undo)
    node.append(button("Undo", async () => {
      node.remove();
      await attempt(undo);
    }));
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), undo ? 12000 : 5000);
}

/* What fails is shown in the server's words. Returns whether it was done. */
export async function attempt(action) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error.name !== "AbortError") toast(error.message);
    return false;
  }
}

/* `body(close)` gives the content. The promise is what close was called with, undefined on Escape. */
export function dialog(title, body) {
  return new Promise((resolve) => {
    const node = h("dialog", { "aria-label": title });
    let result;
    const close = (value) => {
      result = value;
      node.close();
    };
    put(node, [h("h2", {}, title), body(close)]);
    node.addEventListener("close", () => {
      node.remove();
      resolve(result);
    });
    document.body.append(node);
    node.showModal();
  });
}

export function confirmed(title, text, action) {
  return dialog(title, (close) => [
    h("p", {}, text),
    h("div", { class: "bar" }, h("span", { class: "spring" }), button("Cancel", () => close(false)), button(action, () => close(true), "lose")),
  ]);
}

/* A form that shows what the server refuses, and keeps what was typed. */
export function form(children, action_text, submit, ...beside) {
  const errors = h("div", {});
  const send = h("button", { type: "submit", class: "main" }, action_text);
  return h("form", {
    class: "grid",
    onsubmit: async (event) => {
      event.preventDefault();
      send.disabled = true;
      fill(errors);
      try {
        await submit();
      } catch (error) {
        fill(errors, problem(error));
      }
      send.disabled = false;
    },
  }, children, errors, h("div", { class: "bar" }, send, beside));
}

export function live_mark() {
  const node = h("span", { class: "live" }, "connecting");
  node.show = (state) => {
    node.className = `live ${state === "live" ? "on" : state === "lost" ? "off" : ""}`;
    node.textContent = state;
  };
  return node;
}
