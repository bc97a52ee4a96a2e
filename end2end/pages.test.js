// Every page: reachable, readable, accessible, safe with any name, and live.

import assert from "node:assert/strict";
import { assertAccessible, assertEachPresentable, live, otherPageHasChanged, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

const NAMES = [
  "mail", "a/b", "../x", "日本", "<img src=x onerror=alert(1)>", "?", "%", "%2F", "%2e%2e", "a b", "~x", "#", "\\", "'\"&",
];

/** Creates jobs of every kind, once per server. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    await api.failed("post", "Unreadable", "no address\n  at desk 4", "letter-1");
    await api.failed("post", "Unreadable", "no stamp", "letter-2");
    await api.add("post", { total: 1 }, "letter-3", { klass: "Letter", tags: ["vip"] });
    await api.add("post", {}, "letter-4", { depends: ["letter-3"] });
    await api.add("post", {}, "letter-5", { delay: 3600 });
    await api.add("desk", {}, "form-1");
    await api.take("desk", "ada");
    await api.add("done", {}, "form-2");
    await api.take("done", "bob");
    await api.post("/complete/done", { id: "form-2", meta: {} }, "bob");
    await api.set("post-heartbeat", 20);
    await api.set("a/b with-a-name.that-is-rather-long-and-has-no-place-to-break-cutoff", 3600);
    await api.set("colours", { of: "a client" });
    await api.add("pit", {}, "form-3");
    await api.post("/pause/pit");
    await api.add("attic", {}, "form-4");
    await api.post("/cancel", "form-4");
    await api.add("post", {}, "letter-6", { tags: ["vip", "a tag that is rather long and-has-no-place-to-break-anywhere-at-all-so-that-it-has-to-be-broken", "<b>"] });
    await api.post("/track", "letter-6");
    await api.post("/log", { id: "letter-6", message: "seen by <Ada>\n  twice", data: { ticket: "x".repeat(120) } });
    await api.add("post", {}, "letter-8");
    await api.post("/track", "letter-8");
    await api.post("/cancel", "letter-8");
    await api.add("booth", {}, "letter-7", { priority: -5 });
    await api.take("booth", "eve");
    await api.post("/timeout", "letter-7");
    await api.post("/recur/pit", { id: "daily", meta: {}, interval: 86400 });
    await api.post("/recur/post", { id: "minutely", meta: { big: 12345678901234567890n.toString() }, klass: "Minute", interval: 60, tags: ["vip"] });
    await api.get("/peek/post?count=9");
  })();
  return filled;
}

const PAGES = [
  "/ui", "/ui/queues", "/ui/queues?q=zzz", "/ui/queues?sort=name", "/ui/queues/post", "/ui/queues/post/scheduled",
  "/ui/queues/post/depends", "/ui/queues/post/failed", "/ui/queues/post/stalled", "/ui/queues/desk/running",
  "/ui/queues/done/complete", "/ui/jobs/letter-1", "/ui/jobs/letter-3", "/ui/jobs/letter-4", "/ui/jobs/form-1",
  "/ui/jobs/form-2", "/ui/failures", "/ui/failures/Unreadable", "/ui/failures/Nothing", "/ui/workers", "/ui/workers/ada",
  "/ui/queues/done/stats", "/ui/queues/post/stats", "/ui/queues/desk/stats?day=2020-02-29", "/ui/queues/desk/stats?day=2999-12-31",
  "/ui/config", "/ui/config?queue=post", "/ui/queues/pit", "/ui/queues/attic", "/ui/jobs/letter-6", "/ui/jobs/letter-7",
  "/ui/tags", "/ui/tags/vip", "/ui/tags/none", "/ui/tracked", "/ui/recurring", "/ui/recurring?queue=post",
  "/ui/recurring?to=post&unit=60&data=%7B", "/ui/recurring/daily", "/ui/recurring/minutely", "/ui/jobs/minutely-1",
  "/ui/alerts", "/ui/check", "/ui/about", "/ui/api", "/ui/api/relay", "/ui/api/qless",
];

dashboard.test("an empty server shows how to add a first job", async ({ page }) => {
  await page.goto("/ui");
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "No queues yet");
  await page.getByText("/add/mail -d").waitFor();
  await live(page);
  await assertAccessible(page);
  for (const path of ["/ui/queues", "/ui/failures", "/ui/workers", "/ui/config", "/ui/tags", "/ui/tracked", "/ui/scheduled", "/ui/recurring", "/ui/redis", "/ui/check"]) {
    await page.goto(path);
    await assertAccessible(page);
  }
});

dashboard.test("every page is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  await assertEachPresentable({ page, part }, PAGES, { picture: "pages" });
});

const missing = { expected: /404/ };
dashboard.test("unknown objects are 404 with a page in the frame", missing, async ({ page, url }) => {
  await fill(url);
  for (const path of [
    "/ui/jobs/none", "/ui/queues/none", "/ui/queues/post/nonsense", "/ui/queues/none/stats",
    "/ui/queues/post/stats?day=2026-02-30", "/ui/queues/post/stats?day=today", "/ui/workers/none", "/ui/nonsense",
    "/ui/recurring/none",
  ]) {
    const answer = await page.goto(path);
    assert.equal(answer.status(), 404, path);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Not found");
  }
  await assertAccessible(page);
});

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`links to pages work for any name, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const api = client(url);
    const title = () => page.getByRole("heading", { level: 1 }).textContent();
    const follow = (name) => page.getByRole("main").getByRole("link", { name, exact: true }).first().click();
    for (const name of NAMES) {
      const job = await api.failed(name, `G ${name}`, `message of ${name}`, `${name} ${javaScriptEnabled}`, `W ${name}`);
      await page.goto("/ui/queues");
      await follow(name);
      assert.equal(await title(), name);
      await page.getByRole("link", { name: /^failed/ }).click();
      await follow(`G ${name}`);
      assert.equal(await title(), `G ${name}`);
      await follow(job);
      await page.getByText(`message of ${name}`).first().waitFor();
      assert.equal(await page.locator("#jid").textContent(), job);
      await follow(`W ${name}`);
      assert.equal(await title(), `W ${name}`);
      assert.equal(await page.locator("img").count(), 0);
    }
  });
}

dashboard.test("queues named by dots can be reached", async ({ page, url }) => {
  const api = client(url);
  for (const name of [".", ".."]) {
    const job = await api.add("dots", {}, `to ${name}`);
    await page.goto(`/ui/jobs/${encodeURIComponent(job)}`);
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByLabel("Queue").fill(name);
    await page.getByRole("button", { name: "Move", exact: true }).click();
    await page.getByRole("main").getByRole("link", { name, exact: true }).first().click();
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), name);
    await page.getByRole("link", { name: job }).waitFor();
  }
});

dashboard.test("a payload is shown as it was written", async ({ page, url }) => {
  const body = '{"data": {"id": "exact", "meta": {"big": 12345678901234567890, "one": 1.0, "tiny": 1e-400, "b": "<b>&amp;", "a": []}}}';
  await fetch(`${url}/add/exact`, { method: "POST", body });
  await page.goto("/ui/jobs/exact");
  const shown = await page.locator("#payload").textContent();
  assert.equal(
    shown,
    '{\n  "big": 12345678901234567890,\n  "one": 1.0,\n  "tiny": 1e-400,\n  "b": "<b>&amp;",\n  "a": []\n}',
  );
});

dashboard.test("on a phone, a button opens the rarely used links", { viewport: { width: 320, height: 700 } }, async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui");
  const rail = page.getByRole("navigation", { name: "Main" });
  assert.equal(await rail.getByRole("link").count(), 4);
  for (const [name, title] of [
    ["Recurring", "Recurring jobs"], ["Tracked", "Tracked jobs"], ["Tags", "Tags"], ["Config", "Configuration"], ["Check", "Consistency check"],
  ]) {
    await rail.getByRole("button", { name: "More" }).click();
    await assertAccessible(page);
    await rail.getByRole("link", { name }).click();
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    assert.equal(await rail.getByRole("button", { name: "More" }).getAttribute("aria-current"), "true");
    assert.equal(await rail.getByRole("link", { name }).isVisible(), false);
  }
});

dashboard.test("a long list has pages", async ({ page, url }) => {
  const api = client(url);
  const jobs = Array.from({ length: 60 }, (_, i) => ({ id: `long-${i}`, meta: i }));
  await api.post("/add/long", jobs);
  await page.goto("/ui/queues/long");
  await page.getByText("1–20 of 60").waitFor();
  await page.getByRole("link", { name: "Next" }).click();
  await page.getByText("20 of 60").waitFor();
  await page.getByRole("link", { name: "Next" }).click();
  await page.getByText("41–60 of 60").waitFor();
  await page.getByRole("link", { name: "long-59" }).waitFor();
  await page.getByRole("link", { name: "Previous" }).click();
  await page.getByRole("link", { name: "long-20" }).waitFor();
  await page.getByRole("link", { name: "long-39" }).waitFor();
  await page.getByRole("link", { name: "First", exact: true }).click();
  await page.getByText("1–20 of 60").waitFor();
  // A link of an earlier version leads to the first page.
  await page.goto("/ui/queues/long?offset=50");
  await page.getByText("1–20 of 60").waitFor();
});

dashboard.test("jobs that are claimed between two pages move no others", async ({ page, url }) => {
  const api = client(url);
  await api.post("/add/claimed", Array.from({ length: 60 }, (_, i) => ({ id: `claimed-${i}`, meta: i })));
  await page.goto("/ui/queues/claimed");
  const next = await page.getByRole("link", { name: "Next" }).getAttribute("href");
  const rows = async () => (await page.locator("main tbody th .id").allTextContents()).map((id) => Number(id.split("-")[1]));
  assert.deepEqual(await rows(), Array.from({ length: 20 }, (_, i) => i));
  await fetch(`${url}/get/claimed?host=w&count=30`).then((response) => response.json());
  await page.goto(next);
  // The first ten of them are running now.
  assert.deepEqual(await rows(), Array.from({ length: 20 }, (_, i) => 30 + i));
  await page.getByRole("link", { name: "Previous" }).click();
  await page.getByText("1–20 of 30").waitFor();
  assert.deepEqual(await rows(), Array.from({ length: 20 }, (_, i) => 30 + i));
});

dashboard.test("lists update live, and open elements stay open", async ({ page, url }) => {
  const api = client(url);
  await api.add("moving", {}, "first");
  await page.goto("/ui/queues/moving");
  await page.locator("[data-state=Live]").waitFor();
  // The focus and the pointer are outside of the list; a list that has one of them stays as it is.
  await page.getByText("API call (curl)").click();
  await page.mouse.move(0, 0);
  for (let i = 0; i < 5; i++) {
    await api.add("moving", {}, `next ${i}`);
    await page.getByRole("link", { name: `next ${i}` }).waitFor();
  }
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "API call (curl)");
  assert.ok(await page.locator("details").evaluate((details) => details.open));
  await page.getByRole("navigation", { name: "This queue" }).getByRole("link", { name: "waiting 6" }).waitFor();
});

dashboard.test("the focus stays when a notice comes and goes before it", async ({ page, url }) => {
  const api = client(url);
  await api.add("noticed", {}, "first");
  await page.goto("/ui/queues/noticed");
  await page.locator("[data-state=Live]").waitFor();
  await page.getByText("API call (curl)").click();
  await page.mouse.move(0, 0);
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  const notice = page.getByText("This queue is paused");
  for (const [verb, state] of [["pause", "visible"], ["unpause", "detached"]]) {
    await fetch(`${url}/${verb}/noticed`, { method: "POST" });
    await notice.waitFor({ state });
    assert.equal(await focused(), "API call (curl)", verb);
  }
});

dashboard.test("a paused page does not change", async ({ page, url }) => {
  const api = client(url);
  await api.add("still", {}, "before");
  await page.goto("/ui/queues/still");
  await page.locator("[data-state=Live]").waitFor();
  await page.getByRole("button", { name: "Pause live updates" }).click();
  await api.add("still", {}, "after");
  await otherPageHasChanged(page, url);
  assert.equal(await page.getByRole("link", { name: "after" }).count(), 0);
  await page.getByRole("button", { name: "Resume live updates" }).click();
  await page.getByRole("link", { name: "after" }).waitFor();
});

dashboard.test("the overview for screenshots", async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui");
  await page.locator("[data-state=Live]").waitFor();
  await screenshot(page, "overview");
});
