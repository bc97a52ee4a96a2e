// Pausing queues, and removing queues from the lists. With and without JavaScript.

import assert from "node:assert/strict";
import { flash, live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

for (const { test, id } of dashboard.modes) {
  const path = (queue) => `/ui/queues/${encodeURIComponent(queue)}`;

  test("a queue can be paused, is shown as paused on all pages, and can be resumed", async (page, api) => {
    const queue = id("über/mail");
    await api.add(queue, {}, id("letter"));
    await page.goto(path(queue));
    await page.getByRole("button", { name: `Pause queue ${queue}` }).click();
    await flash(page, `Queue “${queue}” paused. Workers get no jobs from it.`);
    await page.getByText("This queue is paused: workers get no jobs from it. 1 job is waiting.").waitFor();
    assert.equal(await api.take(queue, "ada"), null);

    await page.goto("/ui/queues");
    await page.getByRole("row", { name: queue }).getByText("paused").waitFor();
    await page.goto("/ui");
    await page.getByRole("row", { name: queue }).getByText("paused").waitFor();
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: queue });
    await problem.getByText(`${queue} is paused with 1 job waiting`).waitFor();
    assert.equal(await problem.count(), 1);
    await problem.getByRole("button", { name: `Resume queue ${queue}` }).click();
    await flash(page, `Queue “${queue}” resumed.`);
    assert.match(page.url(), /\/ui$/);
    assert.equal((await api.take(queue, "ada")).id, id("letter"));
    await page.goto(path(queue));
    await page.getByRole("button", { name: `Pause queue ${queue}` }).waitFor();
    assert.equal(await page.getByText("This queue is paused").count(), 0);
  });

  test("an idle queue can be removed from the lists, and is listed again with a new job", async (page, api) => {
    const queue = id("attic");
    const job = await api.add(queue, {}, id("box"));
    await page.goto(path(queue));
    assert.equal(await page.getByRole("button", { name: "Forget…" }).count(), 0, "it has a job");
    await api.post("/cancel", job);
    await page.goto(path(queue));
    await page.getByRole("button", { name: "Forget…" }).click();
    await page.getByRole("button", { name: "Forget queue" }).click();
    await flash(page, `Queue “${queue}” forgotten.`);
    assert.match(page.url(), /\/ui\/queues$/);
    assert.equal(await page.getByRole("row", { name: queue }).count(), 0);

    await page.goto(path(queue));
    await page.getByText("This queue is hidden").waitFor();
    await api.add(queue, {}, id("box again"));
    await page.goto("/ui/queues");
    await page.getByRole("row", { name: queue }).waitFor();
  });

  test("a queue that is no longer idle is not removed from the lists", async (page, api) => {
    const queue = id("cellar");
    await api.post("/cancel", await api.add(queue, {}, id("crate")));
    await page.goto(path(queue));
    await page.getByRole("button", { name: "Forget…" }).click();
    const form = page.getByRole("dialog").locator("form");
    await form.waitFor();
    // A live page will show the new job, too; the test submits the form anyway.
    const send = await form.evaluateHandle((form) => form);
    await api.add(queue, {}, id("crate again"));
    await send.evaluate((form) => {
      document.body.append(form);
      form.submit();
    });
    await flash(page, "has unfinished or recurring jobs.");
  });
}

dashboard.test("a paused page of a queue shows when somebody else pauses it", async ({ page, url }) => {
  const api = client(url);
  await api.add("shared", {}, "one");
  await page.goto("/ui/queues/shared");
  await live(page);
  await api.post("/pause/shared");
  await page.getByText("This queue is paused").waitFor();
  await api.post("/unpause/shared");
  await page.getByRole("button", { name: "Pause queue shared" }).waitFor();
});
