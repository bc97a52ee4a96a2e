// The consistency check: runs on request only, and repairs after a confirmation. With and without JavaScript.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { assertAccessible, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const folder = mkdtempSync(join(tmpdir(), "switchyard-check-"));
const file = join(folder, "jobs.db");
const dashboard = startDashboard({ database: `sqlite://${file}` });
after(() => rmSync(folder, { recursive: true, force: true }));

/** Changes a queue's count of waiting jobs directly in the database, because no verb can do that. */
function miscount(by = 5) {
  const script = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=10)
database.execute("UPDATE tallies SET n = n + ? WHERE kind = 0 AND slot = 1 AND server = 0", (int(sys.argv[2]),))
database.commit()`;
  const { status, stderr } = spawnSync("python3", ["-c", script, file, String(by)], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
}
const canBreak = spawnSync("python3", ["-c", "import sqlite3"]).status === 0;

async function runCheck(page) {
  await page.goto("/ui/check");
  await page.getByRole("button", { name: "Run check" }).click();
  await page.getByText(/· checked/).waitFor();
}

for (const { javaScriptEnabled, test } of dashboard.modes) {
  test("the check of a consistent database finds no problems", async (page, api) => {
    await api.add("mail", {}, `letter ${javaScriptEnabled}`);
    await page.goto("/ui/check");
    assert.equal(await page.getByText("No inconsistencies found.").count(), 0, "the check runs only on request");
    await page.getByRole("button", { name: "Run check" }).click();
    await page.getByText("No inconsistencies found.").waitFor();
    await page.getByText(/checked \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/).waitFor();
    assert.equal(await page.getByRole("button", { name: "Repair…" }).count(), 0);
  });

  // tests/http/check.rs tests what the check finds; here it needs an inconsistency to show.
  if (!canBreak) continue;
  test("an inconsistency is shown and repaired", async (page, api) => {
    await api.add("mail", {}, `another letter ${javaScriptEnabled}`);
    const waiting = (await api.get("/queue/mail")).waiting;
    miscount();
    await runCheck(page);
    await page.getByText("1 inconsistency found.").waitFor();
    const kind = page.getByRole("region", { name: "Job counts by state" });
    await kind.getByText(`queue "mail" has a stored count of ${waiting + 5} jobs in state waiting; actual: ${waiting}`).waitFor();
    if (javaScriptEnabled) await assertAccessible(page);
    await page.getByRole("button", { name: "Repair…" }).click();
    await page.getByRole("button", { name: "Close" }).click();
    assert.equal((await api.get("/queue/mail")).waiting, waiting + 5);
    await page.getByRole("button", { name: "Repair…" }).click();
    await page.getByRole("button", { name: "Repair", exact: true }).click();
    await page.locator("#flash").getByText("Fixed 1 inconsistency. The database is now consistent.").waitFor();
    assert.equal((await api.get("/queue/mail")).waiting, waiting);
    assert.match(page.url(), /\/ui\/check$/);
  });
}

dashboard.test("a refresh keeps the findings, and does not repeat the check", async ({ page, url }) => {
  const api = client(url);
  await runCheck(page);
  await live(page);
  const found = page.locator("#found");
  const before = await found.textContent();
  assert.match(before, /No inconsistencies found/);
  const refreshed = page.waitForResponse((answer) => answer.request().headers()["x-switchyard-refresh"] === "1");
  await api.add("mail", {}, "news");
  const answer = await refreshed;
  assert.doesNotMatch(await answer.text(), / · checked /);
  // The main part of the page is replaced right after the response.
  await page.waitForFunction((seq) => document.querySelector("main").dataset.seq !== seq, "0");
  assert.equal(await found.textContent(), before);
});

dashboard.test("screenshot of the check", async ({ page }) => {
  if (canBreak) miscount(3);
  await runCheck(page);
  await screenshot(page, "check");
  if (canBreak) miscount(-3);
});
