/* Drives the console in a real Chromium: `SVCD=build/dev/svcd node tests/browser/run.mjs [part of a name]…`. Each file of
 * pages/ has a server and a receiver of its own (`start` makes another kind of one), and its cases run one after the
 * other. Needs the program chromium-headless-shell (or CHROMIUM names another Chromium) and what
 * `npm install --prefix ~/.cache/svcd-tests/browser playwright-core axe-core` brings. The last line counts; exit status 1 when a case fails. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { launch, pages, receiver, service } from "./harness.mjs";

const folder = new URL("pages/", import.meta.url);
const wanted = process.argv.slice(2);
const browser = await launch();
let passed = 0, failed = 0;

async function run(name, test, tools) {
  const began = performance.now();
  try {
    await test(tools);
    assert.deepEqual(tools.complaints, []);
    passed++;
    console.log(`ok ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed++;
    console.log(`FAILED ${name}: ${error.stack}`);
  }
  tools.complaints.length = 0;
  for (const context of browser.contexts()) await context.close();
}

for (const file of fs.readdirSync(folder).sort()) {
  const { cases, settings, start } = await import(new URL(file, folder));
  const named = Object.entries(cases).map(([name, test]) => [`${file.replace(".mjs", "")}.${name}`, test])
    .filter(([name]) => !wanted.length || wanted.some((part) => name.includes(part)));
  if (!named.length) continue;
  const s = await (start ? start() : service(settings)), sink = await receiver();
  for (const [name, test] of named) await run(name, test, { ...s, sink, ...pages(browser, s.base) });
  sink.stop();
  await s.stop();
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
