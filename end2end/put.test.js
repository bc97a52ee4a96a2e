// Adding jobs, scheduled jobs, and facts about the server. With and without JavaScript.

import assert from "node:assert/strict";
import { assertPresentable, flash, inEachLook, live, screenshot, startDashboard } from "./dashboard.js";
import { client, relay } from "./client.js";

const dashboard = startDashboard();

for (const { javaScriptEnabled, test, id } of dashboard.modes) {
  test("a job can be added, and copied", async (page, api) => {
    const queue = id("über/mail");
    await api.add(queue, {}, id("first"));
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("link", { name: "Add job…" }).click();
    assert.equal(await page.getByLabel("Queue", { exact: true }).inputValue(), queue);
    await page.getByLabel("ID (optional)").fill(id("by hand"));
    await page.getByLabel("Class (optional)").fill("Mail::Send");
    await page.getByLabel("Priority (lower runs first)").fill("-2.5");
    await page.getByLabel("Retries").fill("7");
    await page.getByLabel("Delay (s)").fill("3600");
    await page.getByLabel("Tags (comma-separated)").fill("vip, eu");
    await page.getByLabel("Payload (JSON)").fill('{"big": 12345678901234567890, "html": "</textarea><b>"}');
    await page.getByRole("button", { name: "Add job" }).click();
    await flash(page, `Job “${id("by hand")}” added.`);
    const put = await api.job(id("by hand"));
    assert.deepEqual(
      [put.queue, put.klass, put.priority, put.retries, put.tags, put.state],
      [queue, "Mail::Send", -2.5, 7, ["vip", "eu"], "scheduled"],
    );
    assert.match(await page.locator("#payload").textContent(), /"big": 12345678901234567890,/);

    await page.getByRole("link", { name: "Clone…" }).click();
    assert.equal(await page.getByLabel("Payload (JSON)").inputValue(), '{"big":12345678901234567890,"html":"</textarea><b>"}');
    assert.equal(await page.getByLabel("ID (optional)").inputValue(), "");
    assert.equal(await page.getByLabel("Retries").inputValue(), "7");
    await page.getByLabel("Depends on job IDs (optional, separated by spaces)").fill("  ");
    await page.getByRole("button", { name: "Add job" }).click();
    await page.locator("#flash").getByText(/^Job “.+” added\.$/).waitFor();
    const clone = await api.job(await page.locator("#jid").textContent());
    assert.notEqual(clone.id, put.id);
    assert.deepEqual([clone.queue, clone.klass, clone.priority, clone.tags, clone.state], [queue, "Mail::Send", -2.5, ["vip", "eu"], "waiting"]);
  });

  test("a rejected form keeps the user's input", async (page, api) => {
    await api.add(id("refusals"), {}, id("taken"));
    await page.goto("/ui/put");
    await page.getByLabel("Queue", { exact: true }).fill(id("refusals"));
    await page.getByLabel("Payload (JSON)").fill('{"a": </textarea><script>');
    await page.getByLabel("Tags (comma-separated)").fill("kept");
    await page.getByRole("button", { name: "Add job" }).click();
    await page.getByRole("alert").getByText("The payload is not valid JSON").waitFor();
    assert.equal(await page.getByLabel("Payload (JSON)").inputValue(), '{"a": </textarea><script>');
    assert.equal(await page.getByLabel("Tags (comma-separated)").inputValue(), "kept");
    if (javaScriptEnabled) await assertPresentable(page, "a refusal");
    // The user's input is kept, also when the page is refreshed.
    if (javaScriptEnabled) {
      await live(page);
      const refreshed = page.waitForResponse((answer) => answer.request().headers()["x-switchyard-refresh"] === "1");
      await api.add(id("elsewhere"), {}, id("another"));
      await refreshed;
    }
    await page.getByLabel("Payload (JSON)").fill("[1]");
    await page.getByLabel("ID (optional)").fill(id("taken"));
    await page.getByRole("button", { name: "Add job" }).click();
    await page.getByRole("alert").getByText(`Job “${id("taken")}” already exists.`).waitFor();
    assert.equal((await api.job(id("taken"))).data ?? "{}", "{}");
    await page.getByLabel("ID (optional)").fill(id("free"));
    await page.getByRole("button", { name: "Add job" }).click();
    await flash(page, `Job “${id("free")}” added.`);
  });

  test("scheduled jobs of all queues are listed", async (page, api, url) => {
    await api.add(id("post"), { reason: "soon" }, id("soon"), { delay: 5_000 });
    await api.add(id("desk"), {}, id("tomorrow"), { delay: 100_000 });
    const runAt = new Date(Date.now() + 7_000_000).toISOString();
    await relay(url, id("imports")).enqueue(id("import"), "1", { runAt });
    await page.goto("/ui/scheduled");
    assert.match(await page.locator("h1 + p").textContent(), /scheduled jobs, \d+ due within 24 hours\./);
    const names = await page.getByRole("row").getByRole("rowheader").getByRole("link").allTextContents();
    const ours = names.filter((name) => name.endsWith(` ${javaScriptEnabled}`));
    assert.deepEqual(ours.filter((name) => name !== id("by hand")), [id("soon"), id("import"), id("tomorrow")]);
    await page.getByText("Show data table", { exact: true }).click();
    const hours = await page.getByRole("table", { name: "Jobs due per hour" }).getByRole("cell").allTextContents();
    assert.equal(hours.length, 24);
    const within = Number((await page.locator("h1 + p").textContent()).match(/(\d+) due/)[1]);
    assert.equal(hours.reduce((sum, n) => sum + Number(n), 0), within);
  });
}

dashboard.test("the pages are accessible and fit in each look", async ({ page, url }) => {
  for (const id of ["later 1", "later 2", "later 3", "later 4"]) await client(url).add("later", {}, id, { delay: 9_000 });
  for (const [name, path] of [["put", "/ui/put?queue=later"], ["scheduled", "/ui/scheduled"], ["about", "/ui/about"]]) {
    assert.equal((await page.goto(path)).status(), 200, path);
    await live(page);
    await inEachLook(page, [1440, 320], async ({ look }) => {
      await assertPresentable(page, `${path} ${look}`);
      await screenshot(page, `${name}-${look}`);
    });
  }
});

dashboard.test("the page About describes the server", async ({ page, url }) => {
  await page.goto("/ui/about");
  await page.getByText(/^Switchyard \d+\.\d+\.\d+, up for/).waitFor();
  await page.getByText("SQLite 3.").waitFor();
  await page.getByText(`${url}/api/v0`).waitFor();
  await page.getByText(/^The database responded in /).waitFor();
});
