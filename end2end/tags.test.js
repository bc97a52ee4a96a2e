// Tags, tracking, notes, and other actions on a job's page. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, flash, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();
const open = (page, job) => page.goto(`/ui/jobs/${encodeURIComponent(job)}`);

for (const { test, id } of dashboard.modes) {
  const title = (page) => page.getByRole("heading", { level: 1 }).textContent();

  test("a job can be tagged, found by its tag, and untagged", async (page, api) => {
    const tag = id("a/b <i>");
    const job = await api.add(id("post"), {}, id("letter"), { klass: "Letter" });
    await api.add(id("desk"), {}, id("form"), { tags: [tag, id("other")] });
    await open(page, job);
    await page.getByRole("button", { name: "Add tag…" }).click();
    await page.getByLabel("Tag", { exact: true }).fill(` ${tag} `);
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await flash(page, `Tag “${tag}” added to job “${job}”.`);
    assert.deepEqual((await api.job(job)).tags, [tag]);

    await page.getByRole("main").getByRole("link", { name: tag, exact: true }).click();
    assert.equal(await title(page), tag);
    await page.getByText("2 jobs have this tag").waitFor();
    await page.getByRole("row", { name: id("form") }).getByText("waiting").waitFor();
    await page.goto("/ui/tags");
    const rows = await page.getByRole("rowheader").allTextContents();
    assert.ok(rows.indexOf(tag) < rows.indexOf(id("other")), "most used first");

    await open(page, job);
    await page.getByRole("button", { name: `Remove tag ${tag}` }).click();
    await flash(page, `Tag “${tag}” removed from job “${job}”.`);
    assert.deepEqual((await api.job(job)).tags, []);
  });

  test("an invalid tag is rejected with a sentence", async (page, api) => {
    const job = await api.add(id("post"), {}, id("plain"));
    await open(page, job);
    await page.getByRole("button", { name: "Add tag…" }).click();
    await page.getByLabel("Tag", { exact: true }).fill("   ");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await flash(page, "The tag must have 1 to 255 bytes and no control characters.");
  });

  test("a job can be tracked, also after its removal, and untracked", async (page, api) => {
    const queue = id("parcels");
    const job = await api.add(queue, {}, id("parcel"));
    await open(page, job);
    await page.getByRole("button", { name: `Track job ${job}` }).click();
    await flash(page, `Tracking job “${job}”.`);
    await api.take(queue, "ada");
    await page.goto("/ui/tracked");
    const row = page.getByRole("table", { name: "Tracked jobs", exact: true }).getByRole("row", { name: job });
    await row.getByText("running").waitFor();
    await row.getByText("claimed by ada").waitFor();
    const event = page.getByRole("table", { name: "Latest events of tracked jobs" }).getByRole("row", { name: job });
    await event.first().getByText("claimed by a worker").waitFor();

    await api.post("/cancel", job);
    await page.goto("/ui/tracked");
    await event.first().getByText("canceled").waitFor();
    const gone = page.getByRole("table", { name: "Tracked jobs that no longer exist" }).getByRole("row", { name: job });
    await gone.getByRole("button", { name: `Untrack job ${job}` }).click();
    await flash(page, `Stopped tracking job “${job}”.`);
    assert.equal(await gone.count(), 0);
    assert.ok(!(await api.get("/tracked")).expired.includes(job));
  });

  test("a running job can be taken from its worker, and is claimed next", async (page, api) => {
    const queue = id("bench");
    const job = await api.add(queue, {}, id("chair"));
    await api.take(queue, "ada");
    await api.add(queue, {}, id("table"), { priority: -10 });
    await open(page, job);
    await page.getByRole("button", { name: "Time out…" }).click();
    await page.getByText("ada loses its lease").waitFor();
    await page.getByRole("button", { name: "Time out job" }).click();
    await flash(page, `Job “${job}” timed out. It goes before all waiting jobs of its queue.`);
    // All pages agree on the state.
    const facts = page.getByRole("region", { name: "Details" });
    await facts.getByText("timed out, before other waiting jobs").waitFor();
    assert.equal(await facts.getByText("Worker", { exact: true }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Time out…" }).count(), 0);
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    const tabs = page.getByRole("navigation", { name: "This queue" });
    await tabs.getByRole("link", { name: "waiting 2" }).waitFor();
    await tabs.getByRole("link", { name: "stalled 0" }).waitFor();
    const rows = await page.getByRole("rowheader").allTextContents();
    assert.match(rows[0], /^chair.*timed out, before other waiting jobs/);
    assert.equal((await api.take(queue, "bob")).id, job);
  });

  test("the dependencies of a job can be removed", async (page, api) => {
    const queue = id("chain");
    const others = [id("one"), id("two"), id("three")];
    for (const other of others) await api.add(queue, {}, other);
    const job = await api.add(queue, {}, id("last"), { depends: others });
    await open(page, job);
    await page.getByRole("button", { name: `Remove dependency on ${others[0]}` }).click();
    await flash(page, `Job “${job}” no longer depends on “${others[0]}”.`);
    assert.deepEqual((await api.job(job)).dependencies.sort(), [others[1], others[2]].sort());
    await page.getByRole("button", { name: "Remove all…" }).click();
    await page.getByRole("button", { name: "Remove dependencies", exact: true }).click();
    await flash(page, `Job “${job}” no longer depends on other jobs.`);
    assert.equal((await api.job(job)).state, "waiting");
    assert.equal(await page.getByRole("heading", { name: "Depends on" }).count(), 0);
  });

  test("a note is in the history as it was written", async (page, api) => {
    const job = await api.add(id("post"), {}, id("noted"));
    const words = "the customer <b>called</b> “twice”";
    await open(page, job);
    await page.getByLabel("Note in the job’s history").fill(words);
    await page.getByRole("button", { name: "Add note" }).click();
    await flash(page, "Note added.");
    await page.getByRole("list", { name: "History" }).getByText(words).waitFor();
    await api.post("/log", { id: job, message: "by the API", data: { ticket: 7 } });
    await open(page, job);
    const note = page.getByRole("list", { name: "History" }).getByRole("listitem").filter({ hasText: "by the API" });
    await note.getByText('{"ticket":7}').waitFor();
  });
}

dashboard.test("tags and tracking update live", async ({ page, url }) => {
  const api = client(url);
  const job = await api.add("moving", {}, "mover");
  await open(page, job);
  await live(page);
  await api.post("/tag", { id: job, tags: ["fresh"] });
  await page.getByRole("link", { name: "fresh", exact: true }).waitFor();
  await api.post("/track", job);
  await page.getByRole("button", { name: `Untrack job ${job}` }).waitFor();
  await api.post("/log", { id: job, message: "hello" });
  await page.getByRole("list", { name: "History" }).getByText("hello").waitFor();
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`the questions of a job are accessible and fit, ${colorScheme}, ${width} px`, options, async ({ page, url }) => {
      const api = client(url);
      const job = await api.add(`asked ${colorScheme} ${width}`, {}, `asked ${colorScheme} ${width}`);
      await api.take(`asked ${colorScheme} ${width}`, "a-worker-with-a-name.that-is-rather-long-and-has-no-place-to-break");
      await open(page, job);
      for (const name of ["Time out…", "Add tag…", "Move…"]) {
        await page.getByRole("button", { name }).click();
        await page.getByRole("dialog").waitFor();
        await assertAccessible(page);
        const box = await page.getByRole("dialog").boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= width, `${name} ${JSON.stringify(box)}`);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "hidden" });
      }
    });
  }
}

dashboard.test("screenshot of a tagged and tracked job", async ({ page, url }) => {
  const api = client(url);
  await api.add("look", { to: "Ada" }, "to look at", { klass: "Letter", tags: ["vip", "eu"] });
  await api.post("/track", "to look at");
  await api.post("/log", { id: "to look at", message: "The customer called.", data: { ticket: 7 } });
  await open(page, "to look at");
  await screenshot(page, "job");
});
