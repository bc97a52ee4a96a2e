// Selecting jobs in every list, and acting on them or exporting them. With and without JavaScript.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { assertEachPresentable, live, startDashboard } from "./dashboard.js";
import { client, jobq, lmstfy, relay } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });

const HOSTILE = `<img src=x onerror=alert(1)> "'&`;
const name = encodeURIComponent;

/** Creates a job in each list, once per server. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    for (const id of ["w-1", "w-2", "w-3"]) await api.add("waits", {}, id, { tags: [HOSTILE], priority: 4 });
    await api.add("later", {}, "l-1", { delay: 3_600 });
    await relay(url, "later").enqueue("l-2", "{}", { runAt: "2100-01-01T00:00:00Z" });
    await relay(url, "orders").enqueue("r-1");
    await lmstfy(url, "shop", "orders").publish("x");
    await lmstfy(url, "shop", "lost").dead("y");
    await api.add("runs", {}, "held");
    await api.take("runs", "host-1");
    await api.post("/track", "w-1");
    await api.failed("broken", "Boom", "boom", "f-1");
    const hosts = jobq(url, "hosts");
    await hosts.make();
    for (const n of [1, 2]) await hosts.create(`{"n": ${n}}`, '["CREATED"]');
  })();
  return filled;
}

/** The lists of jobs: the address, and a job in it that can be canceled or deleted. */
const LISTS = [
  ["/ui/queues/waits/waiting", "w-2"],
  ["/ui/queues/later/scheduled", "l-1"],
  ["/ui/queues/runs/running", "held"],
  ["/ui/queues/broken/failed", "f-1"],
  ["/ui/failures/Boom", "f-1"],
  ["/ui/failures/Boom?range=24h", "f-1"],
  ["/ui/jobq/hosts", "2"],
  [`/ui/jobq/hosts?state=${name('["CREATED"')}`, "1"],
  [`/ui/jobq/hosts?q=${name('[["=", "id", 2]]')}`, "2"],
  ["/ui/relay/orders/waiting", "r-1"],
  ["/ui/scheduled", "l-2"],
  ["/ui/workers/host-1", "held"],
  ["/ui/tracked", "w-1"],
  [`/ui/tags/${name(HOSTILE)}`, "w-3"],
  ["/ui/jobs?q=waits", undefined],
  ["/ui/jobs?q=queue%3Awaits", "w-1"],
];

const selected = (page) => page.locator("main tbody .check-cell input:checked").count();
const bar = (page) => page.locator("#bulk");

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const test = (title, body) =>
    dashboard.test(`${title}, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
      await fill(url);
      await body(page, url);
    });

  test("in every list, a job can be selected, and the confirmation leads back", async (page, url) => {
    for (const [path, job] of LISTS) {
      await page.goto(path);
      if (job === undefined) {
        assert.equal(await bar(page).count(), 0, `${path} is empty`);
        continue;
      }
      await page.getByRole("checkbox", { name: `Select job ${job}`, exact: true }).check();
      await page.getByRole("button", { name: "Cancel or delete…", exact: true }).click();
      await page.getByRole("heading", { name: "Cancel or delete 1 job?" }).waitFor();
      assert.deepEqual(await page.locator("#confirm li .id").allTextContents(), [job], path);
      await page.getByRole("link", { name: "Back", exact: true }).click();
      assert.equal(page.url(), url + path);
    }
  });

  test("in the list of one state, all records cannot be chosen, because no search finds them", async (page) => {
    await page.goto(`/ui/jobq/hosts?state=${name('["CREATED"')}`);
    assert.equal(await page.getByRole("radio", { name: /^all/ }).count(), 0);
    await page.goto("/ui/jobq/hosts");
    await page.getByRole("radio", { name: "all 2 matching" }).check();
    await page.getByRole("button", { name: "Cancel or delete…", exact: true }).click();
    await page.getByRole("heading", { name: "Cancel or delete 2 jobs?" }).waitFor();
  });

  test("all jobs of a list are counted, and changed by an operation", async (page, url) => {
    const tag = `all ${javaScriptEnabled}`;
    await page.goto("/ui/queues/waits/waiting");
    await page.getByRole("radio", { name: "all 3 matching" }).check();
    await page.getByRole("button", { name: "Tag…", exact: true }).click();
    await page.getByRole("heading", { name: "Tag 3 jobs?" }).waitFor();
    await page.getByLabel("Tag", { exact: true }).fill(tag);
    await page.getByRole("button", { name: "Tag 3 jobs" }).click();
    await page.getByText("Operation started.").waitFor();
    for (;;) {
      const { tags } = await client(url).job("w-1");
      if (tags.includes(tag)) break;
      await page.reload();
    }
    await page.goto(`/ui/tags/${name(tag)}`);
    await page.getByText("all 3 matching").waitFor();
    await page.goto("/ui/jobs?q=tracked%3Ayes");
    assert.deepEqual(await page.locator("#hits tbody th .id").allTextContents(), ["w-1"]);
    await page.goto("/ui/tracked");
    await page.getByText("the only match").waitFor();
  });

  test("the whole page can be selected", async (page) => {
    await page.goto("/ui/queues/waits/waiting?offset=0");
    if (javaScriptEnabled) {
      await live(page);
      assert.equal(await page.getByRole("link", { name: "Select the 3 on this page" }).isVisible(), false);
      await page.getByRole("checkbox", { name: "Select all on this page" }).check();
    } else {
      await page.getByRole("link", { name: "Select the 3 on this page" }).click();
    }
    assert.equal(await selected(page), 3);
    await page.getByRole("button", { name: "Track…", exact: true }).click();
    await page.getByRole("heading", { name: "Track 3 jobs?" }).waitFor();
    await page.getByRole("link", { name: "Back", exact: true }).click();
    assert.match(page.url(), /waiting\?offset=0$/);
  });

  test("the selected jobs, or all, can be exported", async (page) => {
    const exported = async (label) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: `${label}: export these jobs` }).click(),
      ]);
      return (await readFile(await download.path(), "utf8")).trimEnd().split(/\r?\n/);
    };
    await page.goto("/ui/queues/waits/waiting");
    await page.getByRole("checkbox", { name: "Select job w-2", exact: true }).check();
    const lines = await exported("CSV");
    assert.equal(lines.length, 2);
    assert.match(lines[1], /,qless,,waits,w-2,/);
    await page.getByRole("radio", { name: "all 3 matching" }).check();
    const jobs = (await exported("JSON lines")).map((line) => JSON.parse(line).id);
    assert.deepEqual(jobs, ["w-3", "w-2", "w-1"]);
  });

  test("the search shows priority, retries and worker", async (page) => {
    await page.setViewportSize({ width: 1440, height: 900 });
    const cells = async (q, job) => {
      await page.goto(`/ui/jobs?q=${name(q)}`);
      const titles = await page.locator("#hits thead th").allInnerTexts();
      const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: job, exact: true }) });
      const texts = await row.locator("th, td").allInnerTexts();
      return (title) => texts[titles.findIndex((it) => it.trim() === title)].trim();
    };
    const waiting = await cells("queue:waits", "w-2");
    assert.deepEqual(["Priority", "Retries left", "Worker"].map(waiting), ["4", "5 of 5", ""]);
    assert.equal((await cells("worker:host-1", "held"))("Worker"), "host-1");
    const other = await cells("api:relay queue:orders", "r-1");
    assert.deepEqual(["Priority", "Retries left"].map(other), ["–", "3 of 3"]);
  });
}

dashboard.test("keys select jobs, all matching jobs and an action, and the selection is counted", async ({ page, url }) => {
  await fill(url);
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await page.goto("/ui/queues/waits/waiting");
  await live(page);
  await press("j", "x");
  await page.getByText("selected jobs (1)").waitFor();
  const all = page.getByRole("checkbox", { name: "Select all on this page" });
  assert.equal(await all.evaluate((box) => box.indeterminate), true);
  await press("*", "a");
  await page.getByText("selected jobs (3)").waitFor();
  assert.equal(await all.isChecked(), true);
  await press("*", "m");
  assert.equal(await page.getByRole("radio", { name: "all 3 matching" }).isChecked(), true);
  // Selecting a row chooses "selected jobs" again, instead of all that match.
  await press("j", "x", "x");
  assert.equal(await page.getByRole("radio", { name: /^selected jobs/ }).isChecked(), true);
  await press("*", "m", "m");
  await page.getByRole("heading", { name: "Move 3 jobs?" }).waitFor();
  await page.getByText("All jobs matching").waitFor();
});

dashboard.test("a selection stays when the list changes", async ({ page, url }) => {
  await client(url).add("moving", {}, "m-1");
  await page.goto("/ui/queues/moving/waiting");
  await live(page);
  await page.getByRole("checkbox", { name: "Select job m-1" }).check();
  await client(url).add("moving", {}, "m-2");
  await page.getByRole("radio", { name: "all 2 matching" }).waitFor();
  await page.getByText("selected jobs (1)").waitFor();
  assert.equal(await page.getByRole("checkbox", { name: "Select job m-1" }).isChecked(), true);
  assert.equal(await page.getByRole("checkbox", { name: "Select job m-2" }).count(), 0);
});

dashboard.test("every list is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  const lists = [...LISTS.map(([path]) => path), "/ui/lmstfy/shop/orders/waiting", "/ui/lmstfy/shop/lost/dead", "/ui/dead"];
  await assertEachPresentable({ page, part }, lists, { picture: "bulk" });
});
