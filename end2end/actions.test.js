// Actions on jobs: retry, retry all, move, cancel. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, flash, live, startDashboard } from "./dashboard.js";
import { client, until } from "./client.js";

const dashboard = startDashboard();

for (const { test, id } of dashboard.modes) {
  test("a failed job can be retried and claimed again", async (page, api) => {
    const job = await api.failed("letters", "Unreadable", "no address", id("letter"));
    await page.goto("/ui");
    await page.getByRole("link", { name: "Unreadable" }).click();
    await page.getByRole("button", { name: `Retry job ${job}` }).click();
    await flash(page, `Job “${job}” was requeued.`);
    assert.equal((await api.job(job)).state, "waiting");
    assert.equal((await api.take("letters", "ada")).id, job);
    await page.goto("/ui");
    assert.equal((await page.locator("#flash").textContent()).trim(), "", "a flash is shown once");
  });

  test("retrying a group retries the number of jobs on the button", async (page, api) => {
    const jobs = [];
    for (let i = 0; i < 60; i++) jobs.push(await api.failed(id("bulk"), id("Busy"), `try ${i}`, id(`bulk ${i}`)));
    await page.goto("/ui/failures");
    await page.getByRole("row", { name: id("Busy") }).getByRole("button", { name: "Retry all 60…" }).click();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("row", { name: id("Busy") }).getByRole("button", { name: "Retry all 60…" }).click();
    await page.getByRole("button", { name: "Retry 60 jobs" }).click();
    await flash(page, "Operation started.");
    await page.getByRole("heading", { level: 1, name: "Retry 60 jobs" }).waitFor();
    for (const job of jobs) {
      await until(`${job} is waiting`, async () => (await api.job(job)).state === "waiting");
    }
    await page.goto("/ui/operations");
    await page.getByRole("link", { name: "Retry 60 jobs" }).first().waitFor();
  });

  test("a job can be moved, and canceled after a confirmation", async (page, api) => {
    const job = await api.add("here", {}, id("wanderer"));
    await page.goto(`/ui/jobs/${encodeURIComponent(job)}`);
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByLabel("Queue").fill("über/there");
    await page.getByRole("button", { name: "Move", exact: true }).click();
    await flash(page, `Job “${job}” moved to queue “über/there”.`);
    assert.equal((await api.job(job)).queue, "über/there");

    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel job" }).click();
    await flash(page, `Job “${job}” canceled.`);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "über/there");
    assert.equal(await api.job(job), null);
  });

  test("a job with a better priority is claimed first", async (page, api) => {
    const queue = id("line");
    await api.add(queue, {}, id("first"));
    const late = await api.add(queue, {}, id("late"));
    await page.goto(`/ui/jobs/${encodeURIComponent(late)}`);
    await page.getByRole("button", { name: "Priority…" }).click();
    await page.getByText("Lower numbers run first.").waitFor();
    await page.getByLabel("Priority", { exact: true }).fill("-2.5");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await flash(page, `Priority of job “${late}” set to -2.5.`);
    await page.getByText("-2.5 · lower numbers run first").waitFor();
    assert.equal((await api.take(queue, "ada")).id, late);
  });

  test("a job links to its dependencies and dependents with their states", async (page, api) => {
    const queue = id("kin");
    const [first, second, third] = [id("one"), id("two"), id("three")];
    await api.add(queue, {}, first, { klass: "First" });
    await api.add(queue, {}, second, { depends: [first] });
    await api.add(queue, {}, third, { depends: [second] });
    await page.goto(`/ui/jobs/${encodeURIComponent(second)}`);
    const row = (section, job) => page.getByRole("region", { name: section, exact: true }).first().getByRole("row", { name: job });
    await row("Depends on", first).getByText("waiting").waitFor();
    await row("Dependents", third).getByText("depends").waitFor();
    await page.getByRole("link", { name: first, exact: true }).click();
    await row("Dependents", second).getByText("depends").waitFor();
    assert.equal(await page.getByRole("heading", { name: "Depends on", exact: true }).count(), 0);
  });

  test("an error message gives the reason", async (page, api) => {
    const needed = await api.add("chain", {}, id("needed"));
    const needing = await api.add("chain", {}, id("needing"), { depends: [needed] });
    await page.goto(`/ui/jobs/${encodeURIComponent(needed)}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Cancel job" }).click();
    await flash(page, `depend on it: ${needing}`);
    assert.equal((await api.job(needed)).state, "waiting");
  });

  test("the color scheme can be selected", async (page) => {
    const choose = async (colors) => {
      await page.getByRole("button", { name: "Display", exact: true }).click();
      await page.getByRole("button", { name: `Theme: ${colors}` }).click();
      await page.waitForURL("**/ui/workers");
    };
    await page.goto("/ui/workers");
    for (const [colors, theme] of [["Dark", "dark"], ["Light", "light"], ["Auto", null], ["Light", "light"]]) {
      await choose(colors);
      assert.equal(await page.locator("html").getAttribute("data-theme"), theme);
    }
  });
}

dashboard.test("requests of other sites are rejected", async ({ url }) => {
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

for (const accept of ["text/html", "*/*"]) {
  dashboard.test(`the response to an incomplete form is a page, with Accept: ${accept}`, async ({ url }) => {
    const forms = [
      ["retry", ""], ["retry_group", "group=g&back=/ui"], ["retry_group", "group=g&count=many&back=/ui"],
      ["retry_group", "group=g&count=-1&back=/ui"], ["move_job", "id=x&back=/ui"], ["theme", "back=/ui"],
      ["pause_queue", "back=/ui"], ["forget_worker", "worker=w&back=/ui"], ["add_tag", "id=x&back=/ui"], ["recur", ""],
      ["change_recurring", "form[id]=x"], ["mend", ""], ["undepend", "id=x&back=/ui"], ["note", "id=x&back=/ui"],
      ["set_option", "option=heartbeat&back=/ui"], ["prioritize", "id=x"], ["retry", "x".repeat(100_000)],
    ];
    for (const [form, body] of forms) {
      const answer = await fetch(`${url}/ui/fn/${form}`, {
        method: "POST",
        redirect: "manual",
        headers: {
          accept,
          "content-type": "application/x-www-form-urlencoded",
          "sec-fetch-site": "same-origin",
          referer: `${url}/ui/failures`,
        },
        // A stream has no Content-Length.
        body: new Blob([body]).stream(),
        duplex: "half",
      });
      const text = await answer.text();
      assert.equal(answer.status, 400, `${form} ${body.slice(0, 50)}`);
      assert.match(answer.headers.get("content-type"), /text\/html/);
      assert.match(answer.headers.get("content-security-policy"), /nonce-/);
      assert.ok(text.includes("<h1>Invalid request"), text.slice(0, 200));
      assert.equal(answer.headers.get("set-cookie"), null);
    }
  });
}

const malformed = { expected: /status of 400/ };
dashboard.test("a page older than the server explains itself, and leads back", malformed, async ({ page, url }) => {
  const api = client(url);
  const job = await api.failed("old", "Old", "as ever", "old job");
  await page.goto("/ui/failures/Old");
  // Otherwise the page would refresh and show the change.
  await page.getByRole("button", { name: "Pause live updates" }).click();
  const retry = page.getByRole("button", { name: `Retry job ${job}` });
  await retry.evaluate((button) => button.removeAttribute("name"));
  await retry.click();
  await page.getByRole("heading", { name: "Invalid request" }).waitFor();
  await page.getByText("missing field").waitFor();
  await assertAccessible(page);
  await live(page);
  await api.add("old", {}, "news");
  await page.getByRole("button", { name: "Display", exact: true }).click();
  await page.getByRole("button", { name: "Theme: Dark" }).click();
  await page.waitForURL("**/ui/failures/Old");
  assert.equal((await api.job(job)).state, "failed");
});

dashboard.test("the open page of a removed object says so, without an error", async ({ page, url }) => {
  const api = client(url);
  const job = await api.add("gone", {}, "mayfly");
  await page.goto(`/ui/jobs/${job}`);
  await live(page);
  await api.post("/cancel", job);
  await page.getByRole("heading", { name: "Not found" }).waitFor();
});
