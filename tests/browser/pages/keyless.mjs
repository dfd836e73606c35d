/* A server where nobody needs a key: what was made there has no maker, and can be taken back all the same. */
import assert from "node:assert/strict";
import { counted, heading } from "../harness.mjs";

export const cases = {
  async keys_that_nobody_made_can_be_deleted(t) {
    await t.api("POST", "/Svc.Admin.ApiKey", { Name: "portal", AllowAccess: [{ Resources: ["Svc.Event"], Methods: ["POST"] }] });
    const page = await t.open("keys", null);
    await heading(page, "Keys");
    const row = page.getByRole("row", { name: "portal" });
    assert.doesNotMatch(await row.textContent(), /configuration/);
    await row.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("There is no key.").waitFor();
    assert.equal(await counted(t, "/Svc.Admin.ApiKey"), 0);
  },
};
