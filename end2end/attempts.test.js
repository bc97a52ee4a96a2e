// The errors of a job's attempts, the timeline of a stalled job, and undo of a canceled job.

import assert from "node:assert/strict";
import { live, startDashboard } from "./dashboard.js";
import { client, until } from "./client.js";

const dashboard = startDashboard();

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const test = (name, body) =>
    dashboard.test(`${name}, ${how}`, { javaScriptEnabled }, ({ page, url }) => body(page, client(url), `${javaScriptEnabled}`));

  test("a completed job still shows the errors of its attempts, newest first", async (page, api, id) => {
    await api.add("tries", {}, id);
    for (const [worker, message] of [["ada", "no answer from db-1 after 5 s"], ["bob", "no answer from db-2 after 5 s"]]) {
      assert.equal((await api.take("tries", worker)).id, id);
      await api.post("/retry/tries", { id, group: "Timeout", message }, worker);
    }
    assert.equal((await api.take("tries", "cleo")).id, id);
    await api.post("/complete/tries", { id, meta: {} }, "cleo");
    await page.goto(`/ui/jobs/${id}`);
    const errors = page.getByRole("region", { name: "Failures, newest first" }).getByRole("listitem");
    const texts = (await errors.allTextContents()).map((text) => text.replace(/\s+/g, " "));
    assert.match(texts[0], /Attempt 2 · Timeout.* on bob.*no answer from db-2 after 5 s/);
    assert.match(texts[1], /Attempt 1 · Timeout.* on ada.*no answer from db-1 after 5 s/);
    assert.equal((await errors.first().locator("mark").textContent()).trim(), "db-2");
  });

  test("canceling a job can be undone", async (page, api, id) => {
    const job = await api.add("undo", { card: 7 }, `undo-${id}`);
    await page.goto(`/ui/jobs/${job}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel job" }).click();
    await page.locator("#flash").getByText(`Job “${job}” canceled.`).waitFor();
    assert.equal(await api.job(job), null);
    await page.locator("#flash").getByRole("button", { name: "Undo" }).click();
    await page.locator("#flash").getByText("Undo started.").waitFor();
    await until("the job is restored", async () => (await api.job(job)) !== null);
    assert.deepEqual((await api.job(job)).meta, { card: 7 });
  });
}

dashboard.test("the keyboard stays in an open confirmation", async ({ page, url }) => {
  const job = await client(url).add("trap", {}, "trapped");
  await page.goto(`/ui/jobs/${job}`);
  await live(page);
  await page.getByRole("button", { name: "Cancel…" }).click();
  const seen = [];
  for (let n = 0; n < 4; n++) {
    await page.keyboard.press("Tab");
    seen.push(await page.evaluate(() => document.activeElement.textContent.trim()));
  }
  assert.deepEqual(seen, ["Cancel job", "Keep job", "Cancel job", "Keep job"]);
});

dashboard.test("/ opens the search with the focus in its field, and suggests every term", async ({ page, url }) => {
  await client(url).add("suggested", {}, "one");
  await page.goto("/ui/about");
  await live(page);
  await page.keyboard.press("/");
  await page.waitForURL(/\/ui\/jobs/);
  await live(page);
  await page.keyboard.type("state:failed q");
  assert.equal(await page.locator("#q").inputValue(), "state:failed q");
  const values = await page.locator("#suggested option").evaluateAll((all) => all.map((it) => it.value));
  assert.ok(values.includes('state:failed queue:"suggested"'), values.join("\n"));
});

dashboard.test("the axis of a chart shows the chosen time zone", { timezoneId: "Asia/Kolkata" }, async ({ page, context, url }) => {
  await client(url).add("zones", {}, "zoned");
  await context.addCookies([{ name: "switchyard_clock", value: "local", url }]);
  await page.goto("/ui/stats");
  await live(page);
  const label = page.locator('text[data-as="axis"]').first();
  const at = Number(await label.getAttribute("data-t")) / 1_000;
  const local = (time) => new Date(time + 330 * 60_000).toISOString();
  assert.equal(await label.textContent(), local(at).slice(11, 16));
});
