// What an operator does with jobs, by click: retry, retry all, move, cancel. With and without JavaScript.

import assert from "node:assert/strict";
import { live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";
  const test = (name, body) =>
    dashboard.test(`${name}, ${how}`, { javaScriptEnabled }, ({ page, url }) => body(page, client(url)));
  const flash = (page, text) => page.locator("#flash").getByText(text).waitFor();
  const id = (name) => `${name} ${javaScriptEnabled}`;

  test("a failed job is retried and can be taken again", async (page, api) => {
    const job = await api.failed("letters", "Unreadable", "no address", id("letter"));
    await page.goto("/ui");
    await page.getByRole("link", { name: "Unreadable" }).click();
    await page.getByRole("button", { name: `Retry job ${job}` }).click();
    await flash(page, `Job “${job}” waits in its queue again.`);
    assert.equal((await api.job(job)).state, "waiting");
    assert.equal((await api.take("letters", "ada")).id, job);
    await page.goto("/ui");
    assert.equal((await page.locator("#flash").textContent()).trim(), "", "a flash is shown once");
  });

  test("a whole group is retried, as many as the button said", async (page, api) => {
    const jobs = [];
    for (let i = 0; i < 60; i++) jobs.push(await api.failed(id("bulk"), id("Busy"), `try ${i}`, id(`bulk ${i}`)));
    await page.goto("/ui/failures");
    await page.getByRole("row", { name: id("Busy") }).getByRole("button", { name: "Retry all 60…" }).click();
    await page.getByRole("button", { name: "Leave them" }).click();
    await page.getByRole("row", { name: id("Busy") }).getByRole("button", { name: "Retry all 60…" }).click();
    await page.getByRole("button", { name: "Retry 60 jobs" }).click();
    await flash(page, `Retried 60 jobs of “${id("Busy")}”.`);
    for (const job of jobs) assert.equal((await api.job(job)).state, "waiting");
  });

  test("a job is moved, then cancelled after a question", async (page, api) => {
    const job = await api.add("here", {}, id("wanderer"));
    await page.goto(`/ui/jobs/${encodeURIComponent(job)}`);
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByLabel("Queue").fill("über/there");
    await page.getByRole("button", { name: "Move", exact: true }).click();
    await flash(page, `Job “${job}” is in queue “über/there” now.`);
    assert.equal((await api.job(job)).queue, "über/there");

    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await flash(page, `Job “${job}” is cancelled and gone.`);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "über/there");
    assert.equal(await api.job(job), null);
  });

  test("a refusal says why", async (page, api) => {
    const needed = await api.add("chain", {}, id("needed"));
    const needing = await api.add("chain", {}, id("needing"), { depends: [needed] });
    await page.goto(`/ui/jobs/${encodeURIComponent(needed)}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await flash(page, `${needing} depend on it`);
    assert.equal((await api.job(needed)).state, "waiting");
  });

  test("the colours are chosen by hand", async (page) => {
    await page.goto("/ui/workers");
    await page.getByRole("button", { name: "Colours: Dark" }).click();
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    assert.match(page.url(), /\/ui\/workers$/);
    await page.getByRole("button", { name: "Colours: Light" }).click();
    assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
    await page.getByRole("button", { name: "Colours: Auto" }).click();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.getByRole("button", { name: "Colours: Light" }).click();
    assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
  });
}

dashboard.test("other sites can do nothing", async ({ url }) => {
  const post = (headers) =>
    fetch(`${url}/ui/fn/theme`, {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: "theme=dark&back=/ui",
    });
  for (const headers of [
    {},
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site", origin: url },
    { origin: "http://other.example" },
    { origin: "null" },
  ]) {
    const answer = await post(headers);
    assert.equal(answer.status, 403, JSON.stringify(headers));
    assert.equal(answer.headers.get("set-cookie"), null);
  }
  assert.equal((await post({ origin: url })).status, 303);
  assert.equal((await post({ "sec-fetch-site": "same-origin" })).status, 303);
});

dashboard.test("what has gone while its page was open says so, without an error", async ({ page, url }) => {
  const api = client(url);
  const job = await api.add("gone", {}, "mayfly");
  await page.goto(`/ui/jobs/${job}`);
  await live(page);
  await api.post("/cancel", job);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
});
