/* One webhook: what one does with it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { clipboard, counted, heading, hook, live, raise, root, until } from "../harness.mjs";

async function dead(t, w, number) {
  for (let i = 0; i < number; i++) await raise(t, { Customer: "a", Total: 500 + i });
  await until("that they are dead", async () => (await counted(t, `/Svc.Admin.Delivery/WebhookId=${w.Id}&State=Dead`)) === number);
}
const dies = (t, label) => hook(t, "/bad", label, { Delivery: { RetrySchedule: [] } });

export const cases = {
  async sends_a_test_made_from_the_selector(t) {
    const w = await hook(t, "/test", "Tested", { EventSelector: "/Shop.OrderPlaced/Total>=100&Customer='Ann Lee'&Lines.Length>2" });
    const page = await t.open(`webhook/${w.Id}`, null);
    await page.getByText("No attempt yet.").waitFor();
    await live(page);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Attempts" }).getByRole("link").first().waitFor();
    const [sent] = JSON.parse(t.sink.taken.find((one) => one.url === "/test").body);
    assert.deepEqual([sent.Customer, sent.Total, sent.Lines.length], ["Ann Lee", 100, 3]);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByLabel("Payload").fill('{"Total": 1}');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".problem", { hasText: "does not match" }).waitFor();
  },
  async tests_each_of_several_selectors(t) {
    const w = await hook(t, "/several", "Several", { EventSelector: undefined, EventSelectors: ["/Shop.OrderPlaced/Total>=900", "/Shop.*/Express=true"] });
    const page = await t.open(`webhook/${w.Id}`, null);
    await live(page);
    await page.getByRole("button", { name: "Send a test" }).click();
    const before = await page.getByLabel("Payload").inputValue();
    await page.getByLabel("Selector").selectOption({ index: 1 });
    await page.waitForFunction((text) => document.querySelector("dialog textarea").value !== text, before);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Attempts" }).getByRole("link").first().waitFor();
    assert.equal(JSON.parse(t.sink.taken.find((one) => one.url === "/several").body)[0].Express, true);
  },
  async pauses_and_undoes(t) {
    const w = await hook(t, "/pause", "Paused one");
    const page = await t.open(`webhook/${w.Id}`, null);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    assert.equal((await t.api("GET", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].IsPaused, false);
  },
  async rotates_a_secret_and_shows_it_once(t) {
    const w = await hook(t, "/signed", "Signed");
    const page = await t.open(`webhook/${w.Id}`, null);
    const secrets = [];
    for (const [name, answer] of [["Sign requests", "Make a secret"], ["Rotate the secret", "Rotate"]]) {
      await page.getByRole("button", { name }).click();
      await page.getByRole("button", { name: answer, exact: true }).click();
      const dialog = page.getByRole("dialog", { name: "The new secret" });
      const secret = await dialog.locator("pre").textContent();
      assert.match(secret, /^whsec_/);
      await dialog.getByRole("button", { name: "Copy" }).click();
      await page.getByText("Copied").first().waitFor();
      assert.equal(await clipboard(page), secret);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Rotate the secret" }).waitFor();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.ok(!(await page.content()).includes(secret));
      secrets.push(secret);
    }
    await raise(t, { Total: 100 });
    const { headers, body } = await until("a signed request", () => t.sink.taken.find((one) => one.url === "/signed"));
    const signatures = secrets.map((one) => `v1,${createHmac("sha256", Buffer.from(one.slice(6), "base64")).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`).digest("base64")}`);
    for (const one of signatures) assert.ok(headers["webhook-signature"].includes(one), "both secrets sign");
  },
  async gives_code_that_verifies(t) {
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const w = await hook(t, "/verified", "Verified", { Signing: { Secrets: [secret] } });
    await raise(t, { Total: 100, Customer: "Zoë" });
    const { headers, body } = await until("a signed request", () => t.sink.taken.find((one) => one.url === "/verified"));
    const page = await t.open(`webhook/${w.Id}`, null);
    const code_in = async (name) => {
      await page.getByRole("button", { name, exact: true }).click();
      const pre = page.getByLabel(`${name} code`);
      await pre.waitFor();
      await pre.locator("..").getByRole("button", { name: "Copy" }).click();
      await page.getByText("Copied").first().waitFor();
      assert.equal(await clipboard(page), await pre.textContent());
      return pre.textContent();
    };
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), "svc-verify-"));
    const asked = JSON.stringify({ headers, body, secret });
    fs.writeFileSync(path.join(dir, "hook.mjs"), await code_in("Node"));
    fs.writeFileSync(path.join(dir, "try.mjs"), `import { isGenuine } from "./hook.mjs"; const a = ${asked};
      console.log(isGenuine(a.headers, Buffer.from(a.body), a.secret), isGenuine(a.headers, Buffer.from(a.body + " "), a.secret));`);
    assert.equal(execFileSync(process.execPath, [path.join(dir, "try.mjs")], { encoding: "utf8" }), "true false\n");
    fs.writeFileSync(path.join(dir, "hook.py"), await code_in("Python"));
    fs.writeFileSync(path.join(dir, "try.py"), `import json\nfrom hook import is_genuine\na = json.loads(${JSON.stringify(asked)})\nb = a["body"].encode()
print(is_genuine(a["headers"], b, a["secret"]), is_genuine(a["headers"], b + b" ", a["secret"]))\n`);
    assert.equal(execFileSync("python3", [path.join(dir, "try.py")], { encoding: "utf8" }), "True False\n");
    const go = await code_in("Go");
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) assert.ok(go.includes(`"${name}"`));
    if (spawnSync("go", ["version"]).status === 0) {
      fs.writeFileSync(path.join(dir, "go.mod"), "module hook\n");
      fs.writeFileSync(path.join(dir, "hook.go"), go.replace("package hook", "package main"));
      fs.writeFileSync(path.join(dir, "main.go"), `package main\nimport ("fmt"; "net/http")\nfunc main() { h := http.Header{}
${["webhook-id", "webhook-timestamp", "webhook-signature"].map((n) => `h.Set("${n}", ${JSON.stringify(headers[n])})`).join("\n")}
b := ${JSON.stringify(body)}\nfmt.Println(IsGenuine(h, []byte(b), "${secret}"), IsGenuine(h, []byte(b+" "), "${secret}")) }\n`);
      /* Beside no other, and as the other tests build theirs: Go's own packages are built once. */
      const lock = path.join(root, "docs/examples");
      const env = { ...process.env, CGO_ENABLED: "0" };
      assert.equal(execFileSync("flock", [lock, "go", "run", "."], { cwd: dir, encoding: "utf8", env }), "true false\n");
    }
    fs.rmSync(dir, { recursive: true });
  },
  async asks_before_it_deletes(t) {
    const w = await hook(t, "/gone-soon", "To be deleted");
    const page = await t.open(`webhook/${w.Id}`, null);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await counted(t, `/Svc.Admin.Webhook/Id=${w.Id}`), 1);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await heading(page, "Webhooks");
    assert.equal(await counted(t, `/Svc.Admin.Webhook/Id=${w.Id}`), 0);
  },
  async sends_dead_ones_again_after_counting(t) {
    const w = await dies(t, "Dies at once");
    await dead(t, w, 3);
    const page = await t.open(`webhook/${w.Id}`, null);
    await live(page);
    await page.getByRole("button", { name: "Send dead ones again" }).click();
    await page.getByRole("button", { name: "Count them" }).click();
    assert.equal(await counted(t, `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`), 3, "counting sends nothing");
    await page.getByRole("button", { name: "Send 3 again" }).click();
    await page.getByText("3 deliveries are queued again").waitFor();
    await until("second attempts", async () => (await counted(t, `/Svc.Admin.WebhookLog/WebhookId=${w.Id}`)) === 6);
  },
  async sends_one_again(t) {
    const w = await dies(t, "One again");
    await dead(t, w, 2);
    await t.api("PATCH", `/Svc.Admin.Webhook/Id=${w.Id}`, { Destination: `${t.sink.url}/mended` });
    const page = await t.open(`webhook/${w.Id}`, null);
    await live(page);
    const list = page.getByRole("region", { name: "Deliveries" });
    await list.getByRole("button", { name: "Send again" }).first().click();
    await page.getByRole("region", { name: "Attempts" }).getByText("200").waitFor();
    await until("one delivered", async () => (await counted(t, `/Svc.Admin.Delivery/WebhookId=${w.Id}&State=Delivered`)) === 1);
    assert.equal(await counted(t, `/Svc.Admin.Delivery/WebhookId=${w.Id}&State=Dead`), 1);
  },
  async shows_attempts_and_state_as_they_are_made(t) {
    const w = await hook(t, "/bad", "Watched", { EventSelector: "/Shop.OrderShipped" });
    const page = await t.open(`webhook/${w.Id}`, null);
    await live(page);
    await raise(t, { Total: 1 }, "Shop.OrderShipped");
    await page.getByRole("region", { name: "Attempts" }).getByText("answered 500").waitFor();
    await page.locator(".head .badge", { hasText: "Failing" }).waitFor();
    await page.getByText("1 waiting").waitFor();
  },
  async says_why_it_was_paused(t) {
    const w = await hook(t, "/gone", "Gone", { EventSelector: "/Shop.OrderShipped" });
    await raise(t, { Total: 1 }, "Shop.OrderShipped");
    await until("that it is paused", async () => (await t.api("GET", `/Svc.Admin.Webhook/Id=${w.Id}`))[0].IsPaused);
    const page = await t.open(`webhook/${w.Id}`, null);
    await page.locator(".note", { hasText: "410" }).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
  },
};
