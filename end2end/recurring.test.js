// Recurring jobs: creating, changing and ending them, and their children. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, flash, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

for (const { test, id } of dashboard.modes) {
  const get = (api, recurring) => api.get(`/recurring/${encodeURIComponent(recurring)}`);

  test("a recurring job can be created, changed and ended", async (page, api) => {
    const [queue, recurring] = [id("über/mail"), id("digest/1")];
    await api.add(queue, {}, id("letter"));
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("link", { name: "recurring 0" }).click();
    await page.getByText("No recurring jobs.").waitFor();
    await page.getByText("Create recurring job").click();
    assert.equal(await page.getByLabel("Queue", { exact: true }).inputValue(), queue);
    await page.getByLabel("ID (optional)").fill(recurring);
    await page.getByLabel("Class (optional)").fill("Digest");
    await page.getByLabel("Interval", { exact: true }).fill("1.5");
    await page.getByLabel("Interval unit").selectOption("hours");
    await page.getByLabel("First run after (s)").fill("7200");
    await page.getByLabel("Payload of each job (JSON)").fill('{"big": 12345678901234567890, "one": 1.0}');
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, `Recurring job “${recurring}” created.`);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Digest");
    await page.getByText("every 1 h 30 m").first().waitFor();
    await page.getByText("in 1 h").first().waitFor();
    assert.equal(await page.locator("#payload").textContent(), '{\n  "big": 12345678901234567890,\n  "one": 1.0\n}');
    const made = await get(api, recurring);
    assert.equal(made.interval, 5400);
    assert.equal(made.queue, queue);

    const form = page.getByRole("region", { name: "Change recurring job" });
    assert.equal(await form.getByLabel("Interval", { exact: true }).inputValue(), "90");
    await form.getByLabel("Interval", { exact: true }).fill("1");
    await form.getByLabel("Interval unit").selectOption("days");
    await form.getByLabel("Priority").fill("-3");
    await form.getByLabel("Retries").fill("4");
    await form.getByLabel("Catch-up limit for missed runs (0 = all)").fill("2");
    await form.getByLabel("Queue").fill(id("elsewhere"));
    await form.getByRole("button", { name: "Change", exact: true }).click();
    await flash(page, `Recurring job “${recurring}” changed.`);
    await page.getByText("every day").first().waitFor();
    const { interval, priority, retries, backlog, queue: now } = await get(api, recurring);
    assert.deepEqual([interval, priority, retries, backlog, now], [86400, -3, 4, 2, id("elsewhere")]);

    await page.getByRole("button", { name: "End…" }).click();
    await page.getByRole("button", { name: "End recurring job" }).click();
    await flash(page, `Recurring job “${recurring}” ended. Its existing jobs are kept.`);
    assert.equal(await page.getByRole("row", { name: recurring }).count(), 0);
    assert.equal(await get(api, recurring), null);
  });

  test("a recurring job follows a cron expression, is paused, resumes and runs by hand", async (page, api) => {
    const [queue, recurring] = [id("bells"), id("noon")];
    await page.goto("/ui/recurring");
    await page.getByText("Create recurring job").click();
    await page.getByLabel("Queue", { exact: true }).fill(queue);
    await page.getByLabel("ID (optional)").fill(recurring);
    await page.getByLabel("Or cron expression").fill("0 12 * *");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, "invalid cron expression");
    assert.equal(await page.getByLabel("Time zone").inputValue(), "Europe/Berlin");
    await page.getByLabel("Or cron expression").fill("0 12 * * *");
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, `Recurring job “${recurring}” created.`);
    await page.getByText("0 12 * * * · Europe/Berlin").first().waitFor();
    const runs = page.getByRole("region", { name: "Details" }).locator("ol > li");
    assert.equal(await runs.count(), 5);

    await page.getByRole("button", { name: `Run now: recurring job ${recurring}` }).click();
    await flash(page, `Job “${recurring}-1” created. The schedule is unchanged.`);
    await page.getByRole("row", { name: `${recurring}-1` }).waitFor();
    assert.equal((await api.take(queue, "ada")).id, `${recurring}-1`);
    await page.getByRole("button", { name: `Pause: recurring job ${recurring}` }).click();
    await flash(page, `Recurring job “${recurring}” paused.`);
    await page.getByText("none while paused").waitFor();
    await page.goto(`/ui/recurring?queue=${encodeURIComponent(queue)}`);
    await page.getByRole("row", { name: recurring }).getByText("until resumed").waitFor();
    await page.getByRole("link", { name: recurring }).click();
    await page.getByRole("button", { name: `Resume: recurring job ${recurring}` }).click();
    await flash(page, `Recurring job “${recurring}” resumed.`);
    assert.equal(await runs.count(), 5);

    const form = page.getByRole("region", { name: "Change recurring job" });
    await form.getByLabel("Class (optional)").fill("Bell");
    await form.getByLabel("Tags (comma-separated)").fill("loud, tower");
    await form.getByLabel("Payload of each job (JSON)").fill('{"strokes": 12}');
    await form.getByLabel("Or cron expression").fill("");
    await form.getByLabel("Interval", { exact: true }).fill("3");
    await form.getByLabel("Interval unit").selectOption("hours");
    await form.getByRole("button", { name: "Change", exact: true }).click();
    await flash(page, `Recurring job “${recurring}” changed.`);
    await page.getByText("every 3 h").first().waitFor();
    const { interval, klass, meta, tags } = await get(api, recurring);
    assert.deepEqual([interval, klass, meta, tags], [10_800, "Bell", { strokes: 12 }, ["loud", "tower"]]);
  });

  test("a scheduled job is postponed, and runs now", async (page, api) => {
    const [queue, job] = [id("later"), id("parcel")];
    await api.add(queue, {}, job, { delay: 3600 });
    await page.goto(`/ui/jobs/${encodeURIComponent(job)}`);
    await page.getByRole("button", { name: "Change due time…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Due in (from now)").fill("2");
    await dialog.getByLabel("Unit").selectOption("days");
    await dialog.getByRole("button", { name: "Set due time" }).click();
    await flash(page, `Job “${job}” is due in `);
    assert.equal(await api.take(queue, "ada"), null);
    await page.goto("/ui/scheduled");
    const row = page.getByRole("row", { name: job });
    const due = row.locator("time").first();
    await row.getByRole("button", { name: `Set due in 1 h: job ${job}` }).click();
    await flash(page, `Job “${job}” is due in `);
    assert.match(page.url(), /\/ui\/scheduled$/);
    const after = Date.parse(await due.getAttribute("datetime")) - Date.now();
    assert.ok(after > 3_000_000 && after <= 3_600_000, `${after} ms`);
    await page.getByRole("button", { name: `Run now: job ${job}` }).click();
    await flash(page, `Job “${job}” is available now.`);
    assert.equal((await api.take(queue, "ada")).id, job);
  });

  test("invalid input is rejected with a sentence, and kept", async (page, api) => {
    await page.goto("/ui/recurring");
    await page.getByText("Create recurring job").click();
    await page.getByLabel("Queue", { exact: true }).fill(id("post"));
    await page.getByLabel("ID (optional)").fill(id("slip"));
    await page.getByLabel("Interval", { exact: true }).fill("7");
    await page.getByLabel("Interval unit").selectOption("days");
    await page.getByLabel("Payload of each job (JSON)").fill('{"to": <Ada> & co}');
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, "The payload is not valid JSON");
    assert.equal(await get(api, id("slip")), null);
    assert.equal(await page.getByLabel("Queue", { exact: true }).inputValue(), id("post"));
    assert.equal(await page.getByLabel("Interval unit").inputValue(), "86400");
    assert.equal(await page.getByLabel("Payload of each job (JSON)").inputValue(), '{"to": <Ada> & co}');

    await page.getByLabel("Payload of each job (JSON)").fill('{"to": "Ada"}');
    await page.getByLabel("Interval", { exact: true }).fill("0");
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, "The interval must be greater than 0 s.");
    await page.getByLabel("Interval", { exact: true }).fill("7");
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, `Recurring job “${id("slip")}” created.`);
    assert.deepEqual((await get(api, id("slip"))).meta, { to: "Ada" });

    await page.goto("/ui/recurring");
    await page.getByText("Create recurring job").click();
    await page.getByLabel("Queue", { exact: true }).fill(id("post"));
    await page.getByLabel("ID (optional)").fill(id("slip"));
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, `Recurring job “${id("slip")}” already exists.`);
  });

  test("a due job shows that it waits for a worker, and a child links to its recurring job", async (page, api) => {
    const [queue, recurring] = [id("clockwork"), id("tick")];
    await api.post(`/recur/${encodeURIComponent(queue)}`, { id: recurring, meta: {}, interval: 86_400 });
    await page.goto("/ui/recurring");
    const row = page.getByRole("row", { name: recurring });
    await row.getByText("every day").waitFor();
    await row.getByText("waiting for a worker").waitFor();
    await api.post(`/pause/${encodeURIComponent(queue)}`);
    await page.goto("/ui/recurring");
    await row.getByText("queue is paused").waitFor();
    await api.post(`/unpause/${encodeURIComponent(queue)}`);

    assert.equal((await api.get(`/peek/${encodeURIComponent(queue)}`)).id, `${recurring}-1`);
    await page.goto(`/ui/jobs/${encodeURIComponent(`${recurring}-1`)}`);
    await page.getByRole("region", { name: "Details" }).getByRole("link", { name: recurring }).click();
    await page.getByText("1 created in total").waitFor();
    await page.getByText("in 23 h").first().waitFor();
    await page.getByRole("link", { name: `${recurring}-1` }).waitFor();
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("link", { name: "recurring 1" }).waitFor();

    await api.post(`/recur/${encodeURIComponent(queue)}`, { id: recurring, meta: {}, interval: 60 });
    await page.goto(`/ui/recurring/${encodeURIComponent(recurring)}`);
    await page.getByRole("button", { name: "End…" }).click();
    await page.getByRole("button", { name: "End recurring job" }).click();
    await page.goto(`/ui/jobs/${encodeURIComponent(`${recurring}-1`)}`);
    await page.getByText("ended").waitFor();
  });
}

dashboard.test("a long list of recurring jobs has pages, of one queue too", async ({ page, url }) => {
  const api = client(url);
  const jobs = Array.from({ length: 30 }, (_, i) => ({ id: `many-${i}`, meta: i, interval: 3600 + i, offset: 60 + i }));
  await api.post("/recur/many", jobs);
  await page.goto("/ui/recurring?queue=many");
  await page.getByText("1–20 of 30").waitFor();
  await page.getByRole("link", { name: "Next" }).click();
  await page.getByText("21–30 of 30").waitFor();
  await page.getByRole("link", { name: "many-29" }).waitFor();
});

dashboard.test("values from the address are shown in their fields, escaped", async ({ page }) => {
  const data = '{"a": "</textarea><img src=x onerror=alert(1)>&lt;"}';
  await page.goto(`/ui/recurring?data=${encodeURIComponent(data)}&to=${encodeURIComponent(data)}`);
  assert.equal(await page.getByLabel("Payload of each job (JSON)").inputValue(), data);
  assert.equal(await page.getByLabel("Queue", { exact: true }).inputValue(), data);
  assert.equal(await page.locator("main img").count(), 0);
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`the form for a recurring job is accessible and fits, ${colorScheme}, ${width} px`, options, async ({ page }) => {
      await page.goto("/ui/recurring");
      await page.getByText("Create recurring job").click();
      await page.getByLabel("Payload of each job (JSON)").waitFor();
      await assertAccessible(page);
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(beyond, 0);
    });
  }
}

dashboard.test("screenshot of the recurring jobs", async ({ page, url }) => {
  await client(url).post("/recur/reports", { id: "nightly", klass: "Report::Nightly", meta: { full: true }, interval: 86_400 });
  await page.goto("/ui/recurring/nightly");
  await screenshot(page, "recurring");
});
