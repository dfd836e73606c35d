/* What the console shows of a cluster: three nodes over one member of a real etcd. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { end_with_us, free_port, heading, keys, service, until } from "../harness.mjs";

const names = ["a", "b", "c"], watcher = "watcher-key-of-the-test";

async function member() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "svc-etcd-")), log = fs.openSync(path.join(dir, "log"), "w");
  const [clients, peers] = [await free_port(), await free_port()].map((port) => `http://127.0.0.1:${port}`);
  const child = spawn("etcd", ["--name", "m", "--data-dir", path.join(dir, "data"), "--listen-client-urls", clients, "--advertise-client-urls", clients,
    "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", `m=${peers}`], { stdio: ["ignore", log, log] });
  const ended = new Promise((done) => child.on("exit", done));
  end_with_us(child);
  await until("that etcd answers", () => fetch(`${clients}/v3/maintenance/status`, { method: "POST", body: "{}" }).then((r) => r.ok, () => false));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    fs.rmSync(dir, { recursive: true, force: true });
  };
  return { url: clients, stop };
}

const settings = (name, etcd) => (port) => ({
  ...keys([watcher, [{ Resources: ["Svc.Admin.Node"], Methods: ["GET"] }]]),
  Cluster: { Name: "prod", Node: name, Url: `http://127.0.0.1:${port}`, Etcd: [etcd], LeaseSeconds: 20 },
});

/* The one that is looked at is `a`, which leads before the others begin. */
export async function start() {
  const etcd = await member(), nodes = [];
  for (const name of names) {
    const node = await service(settings(name, etcd.url));
    await until("that one leads", () => node.api("GET", "/Svc.Admin.Node/Role=Leader").then((found) => found.length === 1, () => false));
    nodes.push(node);
  }
  const stop = async () => {
    for (const node of nodes.reverse()) await node.stop();
    await etcd.stop();
  };
  return { ...nodes[0], stop };
}

export const cases = {
  async system_lists_the_nodes(t) {
    await until("that all nodes follow a", async () => (await t.api("GET", "/Svc.Admin.Node")).map((n) => n.Role).join() === "Leader,Follower,Follower");
    const page = await t.open("system");
    const rows = page.getByRole("region", { name: "Nodes" }).getByRole("row");
    await rows.nth(3).waitFor();
    const [leader, ...others] = await t.api("GET", "/Svc.Admin.Node");
    assert.match(await rows.nth(1).textContent(), new RegExp(`^aLeader${leader.Url}\\d[\\d,.\u202f ]*0.*${leader.Version}$`));
    for (const [i, node] of others.entries()) assert.match(await rows.nth(2 + i).textContent(), new RegExp(`^${node.Name}Follower${node.Url}\\d.*${node.Version}$`));
    await page.locator(".badge.well", { hasText: "Leader" }).waitFor();
    await page.getByRole("heading", { name: "Journal" }).waitFor();
    if (process.env.PICTURE) await page.screenshot({ path: process.env.PICTURE, fullPage: true });
  },
  async nodes_are_for_who_may_see_them_and_enough_for_a_page(t) {
    const page = await t.open("system", watcher);
    await heading(page, "System");
    await page.getByRole("region", { name: "Nodes" }).getByRole("row").nth(3).waitFor();
    assert.equal(await page.getByRole("heading", { name: "Journal" }).count(), 0);
  },
  async another_leads(t) {
    const page = await t.open("system");
    await page.getByRole("region", { name: "Nodes" }).getByRole("row", { name: /^a Leader/ }).waitFor();
    await t.api("PATCH", "/Svc.Admin.Node/Name=a", { Role: "Follower" });
    await until("that another leads", () => t.api("GET", "/Svc.Admin.Node/Role=Leader").then((found) => found.length === 1 && found[0].Name !== "a", () => false));
    await page.getByRole("button", { name: "Look again" }).click();
    await page.getByRole("region", { name: "Nodes" }).getByRole("row", { name: /^[bc] Leader/ }).waitFor();
    await page.getByRole("region", { name: "Nodes" }).getByRole("row", { name: /^a Follower/ }).waitFor();
  },
};
