// Pausing queues, and removing queues from the lists. With and without JavaScript.

import assert from "node:assert/strict";
import { flash, live, startDashboard } from "./dashboard.js";
import { client, until } from "./client.js";

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

  test("a pause with a reason and an end is shown with the queue, and can be changed", async (page, api) => {
    const queue = id("slow/mail");
    await api.add(queue, {}, id("parcel"));
    await page.goto(path(queue));
    await page.getByRole("button", { name: "Pause with a reason or end time…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason (optional)").fill("the printer <is> broken");
    await dialog.getByLabel("Resume after (optional)").fill("2");
    await dialog.getByLabel("Unit").selectOption("hours");
    await dialog.getByRole("button", { name: "Pause queue", exact: true }).click();
    await flash(page, `Queue “${queue}” paused until `);
    await page.getByText("Reason: the printer <is> broken").waitFor();
    await page.getByText("It resumes at ").waitFor();
    assert.equal(await api.take(queue, "ada"), null);
    for (const list of ["/ui/queues", "/ui"]) {
      await page.goto(list);
      await page.getByRole("row", { name: queue }).getByText("the printer <is> broken").waitFor();
    }

    await page.goto(path(queue));
    await page.getByRole("button", { name: "Change pause…" }).click();
    assert.equal(await dialog.getByLabel("Reason (optional)").inputValue(), "the printer <is> broken");
    await dialog.getByLabel("Reason (optional)").fill("the paper is out");
    await dialog.getByRole("button", { name: "Change pause", exact: true }).click();
    await flash(page, `Queue “${queue}” paused until `);
    await page.getByText("Reason: the paper is out").waitFor();
    await page.getByRole("button", { name: "Change pause…" }).click();
    await dialog.getByLabel("Or resume at (UTC, optional)").fill("2001-01-01T00:00");
    await dialog.getByRole("button", { name: "Change pause", exact: true }).click();
    await flash(page, "The end of the pause must be in the future.");
    await page.getByRole("button", { name: `Resume queue ${queue}` }).click();
    await flash(page, `Queue “${queue}” resumed.`);
    assert.equal((await api.take(queue, "ada")).id, id("parcel"));
  });

  test("queues are paused and resumed: one from its row, the selected ones, and all that match", async (page, api) => {
    const harbor = id("harbor");
    const names = ["east", "north", "west"].map((name) => `${harbor}/${name}`);
    for (const name of names) await api.add(name, {}, `ship of ${name}`);
    const list = `/ui/queues?q=${encodeURIComponent(harbor)}`;
    const paused = async () => {
      const queues = await Promise.all(names.map((name) => api.get(`/queue/${encodeURIComponent(name)}`)));
      return queues.map((queue) => queue.paused);
    };
    const several = async (queues, button) => {
      await page.getByRole("button", { name: "Pause or resume several…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Queues", { exact: true }).selectOption(queues);
      await dialog.getByRole("button", { name: button }).click();
    };
    await page.goto(list);
    await page.getByLabel(`Select queue ${names[0]}`).check();
    await page.getByLabel(`Select queue ${names[2]}`).check();
    await several("the selected queues", "Pause queues");
    await flash(page, "2 queues paused.");
    assert.match(page.url(), /q=harbor/);
    assert.deepEqual(await paused(), [true, false, true]);
    await page.getByRole("button", { name: `Resume ${names[0]}`, exact: true }).click();
    await flash(page, `Queue “${names[0]}” resumed.`);
    await page.getByRole("button", { name: `Pause ${names[1]}`, exact: true }).click();
    await flash(page, `Queue “${names[1]}” paused.`);
    assert.deepEqual(await paused(), [false, true, true]);
    await several("all 3 queues that match", "Pause queues");
    await flash(page, "1 queue paused; 2 unchanged.");
    assert.deepEqual(await paused(), [true, true, true]);
    await several("all 3 queues that match", "Resume queues");
    await flash(page, "3 queues resumed.");
    assert.deepEqual(await paused(), [false, false, false]);
    await several("the selected queues", "Pause queues");
    await flash(page, "No queues are selected.");
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

dashboard.test("an open page of a queue shows when another client pauses and resumes it", async ({ page, url }) => {
  const api = client(url);
  await api.add("shared", {}, "one");
  await page.goto("/ui/queues/shared");
  await live(page);
  await api.post("/pause/shared");
  await page.getByText("This queue is paused").waitFor();
  await api.post("/unpause/shared");
  await page.getByRole("button", { name: "Pause queue shared" }).waitFor();
});

dashboard.test("an open page shows when a pause ends at its time", async ({ page, url }) => {
  await client(url).add("nap", {}, "sleeper");
  await page.goto("/ui/queues/nap");
  await live(page);
  await page.getByRole("button", { name: "Pause with a reason or end time…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Resume after (optional)").fill("0.04");
  await dialog.getByRole("button", { name: "Pause queue", exact: true }).click();
  await flash(page, "Queue “nap” paused until ");
  await page.getByRole("button", { name: "Pause queue nap" }).waitFor();
  assert.equal(await page.getByText("This queue is paused").count(), 0);
});

for (const { test, id, javaScriptEnabled } of dashboard.modes) {
  test("a queue shows its workers, and a worker loses all its jobs at once", async (page, api) => {
    const queue = id("press");
    const jobs = [];
    for (const name of ["one", "two", "three"]) jobs.push(await api.add(queue, {}, id(name)));
    const worker = id("gutenberg");
    for (const _ of jobs) await api.take(queue, worker);
    await api.add(queue, {}, id("four"));
    await api.post(`/complete/${encodeURIComponent(queue)}`, { id: jobs[0], meta: {} }, worker);
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByText(/^Growing by .* per minute: /).waitFor();
    const workers = page.getByRole("region", { name: "Workers" }).first();
    const row = workers.getByRole("row", { name: worker });
    assert.match((await row.innerText()).replace(/\s+/g, " "), /2 0 1 /);
    await row.getByRole("link", { name: worker }).click();
    await page.getByText("In the last hour: 1 job completed, 0 failed").waitFor();
    await page.getByRole("table", { name: "Results by queue" }).getByRole("row", { name: queue }).waitFor();
    await page.getByRole("link", { name: "Time out all jobs…" }).click();
    await page.getByRole("heading", { name: "Time out 2 jobs?" }).waitFor();
    await page.getByRole("button", { name: "Time out 2 jobs" }).click();
    await flash(page, "Operation started.");
    for (const job of jobs.slice(1)) await until(`${job} is stalled`, async () => (await api.job(job)).state === "stalled");
    await page.goto(`/ui/workers/${encodeURIComponent(worker)}`);
    await page.getByText("This worker has no leases.").waitFor();
    await page.getByText("2 expired or timed out").waitFor();
    // The words, the count and the search agree.
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("navigation", { name: "This queue" }).getByRole("link", { name: "waiting 3" }).waitFor();
    await page.goto(`/ui/jobs?q=${encodeURIComponent(`state:waiting queue:"${queue}"`)}`);
    const found = page.getByRole("table", { name: "Matching jobs" });
    assert.equal(await found.getByRole("rowheader").count(), 3);
    assert.equal(await found.getByText("timed out, before other waiting jobs").count(), 2);
    assert.equal(await found.getByText("stalled").count(), 0);
  });

  test("queues are grouped by prefix", async (page, api) => {
    const area = id("area").replaceAll(" ", "-");
    for (const name of ["import", "export"]) await api.add(`${area}.${name}`, {}, id(name));
    await page.goto(`/ui/queues?q=${area}`);
    await page.getByRole("link", { name: "Group by prefix" }).click();
    const group = page.getByRole("listitem").filter({ hasText: `${area}.*` }).first();
    await group.getByText("2 queues").waitFor();
    const queue = group.getByRole("link", { name: `${area}.export` });
    assert.equal(await queue.isVisible(), false);
    await group.locator("summary").click();
    await queue.click();
    await page.getByRole("heading", { name: `${area}.export` }).waitFor();
  });

  test("a paused queue is a problem with its reason", async (page, api) => {
    const queue = id("plant");
    await api.add(queue, {}, id("seed"));
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("button", { name: "Pause with a reason or end time…" }).click();
    const dialog = page.getByRole("dialog");
    const unit = dialog.getByLabel("Unit");
    // The words of the choice are not cut off.
    const cut = await unit.evaluate((select) => select.scrollWidth > select.clientWidth || select.offsetWidth < 80);
    assert.equal(cut, false);
    await dialog.getByLabel("Reason (optional)").fill("frost");
    await dialog.getByRole("button", { name: "Pause queue", exact: true }).click();
    await flash(page, `Queue “${queue}” paused`);
    await page.goto("/ui");
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: queue });
    await problem.getByText("frost").waitFor();
    await problem.getByRole("button", { name: `Resume queue ${queue}` }).click();
    await flash(page, `Queue “${queue}” resumed.`);
  });

  if (!javaScriptEnabled) {
    test("a page is loaded again at the interval in its address", async (page, api) => {
      const queue = id("late");
      await page.goto(`/ui/queues?q=${encodeURIComponent(queue)}&auto=5`);
      await page.getByRole("link", { name: "Stop refreshing every 5 s" }).waitFor();
      await api.add(queue, {}, id("bird"));
      await page.getByRole("row", { name: queue }).waitFor();
      await page.getByRole("link", { name: "Stop refreshing every 5 s" }).click();
      await page.getByRole("link", { name: "Every 10 s" }).waitFor();
    });
  }
}
