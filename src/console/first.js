/* The first webhook, on one page: which event, where to, and a test that is seen to arrive. */
import { ask, can, carried_by, is_own, of_kind, raise_event, uri } from "./api.js";
import { attempt, button, empty, field, fill, form, h, head, link, toast } from "./dom.js";
import { sample_of } from "./sample.js";

const hook = "Svc.Admin.Webhook";
const trial = "http://127.0.0.1:8081/hook";

const step = (title, ...content) => h("li", {}, h("h3", {}, title), content);

function carried(place, name) {
  fill(place, name && "\u00a0");
  if (name) carried_by(name).then(({ properties, bytes }) => fill(place, bytes ? `It carries bytes: ${bytes}.` : properties ? `It carries ${properties.map((p) => p.Name).join(", ")}.` : "It carries what whoever raises it says."), () => fill(place));
}

/* A webhook without a test is a webhook as well: what was refused is said, and its page shows the rest. */
async function test_of(webhook, event) {
  const { properties, bytes } = await carried_by(event);
  await raise_event(event, { value: sample_of(properties), bytes, file: new Blob(["an example"]), webhook: webhook.Id });
  toast("Made. A test was sent: its attempt appears below.");
}

export function first_webhook() {
  const events = of_kind("EventResource").filter((r) => !is_own(r.Name));
  if (!can(hook, "POST")) return empty("There is no webhook yet.", h("p", {}, "Your key may not make one. Look at what events there are in the ", link("catalogue", "#/catalogue"), "."));
  if (!events.length)
    return empty("There is no event to subscribe to yet.", h("p", {}, "An event resource has to be declared first, in the configuration",
      can("Svc.Admin.Resource", "POST") && [" or ", link("here", "#/resource/new")], ". Webhooks select what is raised on it."));
  const event = h("select", {}, events.map((r) => h("option", { value: r.Name }, r.Name)));
  const about = h("p", { class: "quiet" });
  const destination = h("input", { required: true, placeholder: "https://example.com/hook", autocomplete: "off", type: "text" });
  event.addEventListener("change", () => carried(about, event.value));
  carried(about, event.value);
  const may_test = can("Svc.Event", "POST");
  return h("section", { class: "guide" }, h("h2", {}, "Make the first webhook"),
    h("p", {}, "A webhook sends a request for each event that its selector matches, and again until it is delivered."),
    form(h("ol", { class: "steps" },
      step("What happens", field("Event", event), about),
      step("Who is told", field("Destination", destination, "Where the request goes."),
        h("p", { class: "quiet" }, "No receiver yet? Run ", h("code", {}, "svc sink --port 8081"), " beside the server, which shows what arrives. ",
          button("Use its address", () => { destination.value = trial; }, "link"))),
      step("See it arrive", h("p", {}, may_test ? "The webhook is made, and an example of the event sent to it alone." : "The webhook is made, and waits for the next event."))),
    may_test ? "Make it and send a test" : "Make it", async () => {
      const [made] = await ask("POST", uri(hook), { body: { Label: `${event.value.split(".").at(-1)}, first webhook`, Destination: destination.value.trim(), EventSelector: `/${event.value}` } });
      if (may_test) await attempt(() => test_of(made, event.value));
      location.hash = `#/webhook/${made.Id}`;
    }, link("All that a webhook can be told", "#/new")));
}

export async function show(view) {
  view.root.append(head("First webhook"), first_webhook());
}
