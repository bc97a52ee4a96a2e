// Retrying a failed job with another payload or a delay, and completing a job by hand. With and without JavaScript.

import assert from "node:assert/strict";
import { assertPresentable, flash, inEachLook, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });

for (const { javaScriptEnabled, id, test } of dashboard.modes) {
  const name = (text) => id(text).replace(" ", "-");

  test("a failed job is edited and retried, and the retry undone", async (page, api) => {
    const job = name("edited");
    await api.failed("mail", "Boom", "<b>boom", job);
    await page.goto(`/ui/jobs/${job}`);
    await page.getByRole("link", { name: "Edit and retry…" }).click();
    const payload = page.getByLabel("Payload (JSON)");
    assert.deepEqual(JSON.parse(await payload.inputValue()), { reason: "<b>boom" });
    await payload.fill('{"reason": </textarea>');
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    const rejection = page.getByRole("alert").getByText("The payload is not valid JSON");
    await rejection.waitFor();
    if (javaScriptEnabled) {
      // A live update keeps the rejected form.
      await live(page);
      const before = await page.locator("#main").getAttribute("data-seq");
      await api.add("mail", {});
      await page.waitForFunction((seq) => document.getElementById("main").dataset.seq !== seq, before);
      assert.ok(await rejection.isVisible());
    }
    assert.equal(await payload.inputValue(), '{"reason": </textarea>');
    await payload.fill('{"reason": "none"}');
    await page.getByLabel("Delay (s)").fill("90");
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await flash(page, `Job “${job}” was requeued with a new payload, to run in 90 s.`);
    const edited = await api.job(job);
    assert.equal(edited.state, "scheduled");
    assert.deepEqual(edited.meta ?? edited.data, { reason: "none" });
    await page.getByText("payload replaced by").first().waitFor();
    await page.locator("#flash").getByRole("button", { name: "Undo" }).click();
    for (;;) {
      if ((await api.job(job)).state === "failed") break;
      await page.reload();
    }
    const back = await api.job(job);
    assert.deepEqual(back.meta ?? back.data, { reason: "<b>boom" });
  });

  test("a job that has changed meanwhile is not retried, and the text is kept", async (page, api) => {
    const job = name("stale");
    await api.failed("mail", "Boom", "boom", job);
    await page.goto(`/ui/edit?job=${job}`);
    if (javaScriptEnabled) await live(page);
    await page.getByLabel("Payload (JSON)").fill('{"mine": 1}');
    // A put moves the job to another queue.
    await api.add("other", {}, job);
    if (javaScriptEnabled) {
      // The live page shows it, and the user types on.
      await page.locator("main .chip").getByText("waiting").waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.id), "edit-data");
    }
    await page.getByRole("button", { name: "Retry", exact: true }).click();
    await page.getByRole("alert").getByText("has changed since the page was loaded, and is now in state waiting").waitFor();
    assert.equal(await page.getByLabel("Payload (JSON)").inputValue(), '{"mine": 1}');
    await page.goto(`/ui/edit?job=${job}`);
    await page.getByText("Only failed jobs can be edited.").waitFor();
  });

  test("a job is completed by hand, and the completion undone", async (page, api) => {
    const job = name("done");
    await api.add("mail", {}, job);
    await page.goto(`/ui/jobs/${job}`);
    await page.getByRole("button", { name: "Complete…", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Complete this job?" });
    await dialog.getByRole("button", { name: "Complete job" }).click();
    await flash(page, `Job “${job}” completed.`);
    assert.equal((await api.job(job)).state, "complete");
    assert.equal(await page.getByRole("button", { name: "Complete…", exact: true }).count(), 0);
    await page.locator("#flash").getByRole("button", { name: "Undo" }).click();
    for (;;) {
      if ((await api.job(job)).state === "waiting") break;
      await page.reload();
    }
    await page.goto("/ui/operations");
    await page.getByRole("link", { name: "Complete 1 job" }).first().click();
    await page.waitForLoadState();
    assert.equal(await page.getByRole("link", { name: "Run again…" }).count(), 0);
  });
}

dashboard.test("the pages are accessible and fit in each look", async ({ page, url }) => {
  const api = client(url);
  await api.failed("looks", "Boom", "boom ".repeat(40), "looks");
  for (const [number, path] of ["/ui/edit?job=looks", "/ui/jobs/looks"].entries()) {
    await page.goto(path);
    await live(page);
    await inEachLook(page, [1440, 390, 320], async ({ look, width }) => {
      await assertPresentable(page, `${path} ${look}`);
      if (width !== 320) await screenshot(page, `by-hand-${number}-${look}`);
    });
  }
});
