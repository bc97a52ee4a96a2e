// Live pages: rows stay in their places while somebody uses them, and buttons stay what they are. Long and hostile names.

import assert from "node:assert/strict";
import { assertPresentable, live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

const ids = (page) => page.locator("tbody tr .id").allTextContents();
const row = (page, id) => page.locator(`tr:has(a.id[href="/ui/jobs/${id}"])`);
const fresh = (page, text) => page.getByRole("button", { name: text, exact: true });

dashboard.test("a list does not move under the pointer, and says how many jobs are new", async ({ page, url }) => {
  const api = client(url);
  for (const id of ["a", "b", "c"]) await api.failed("pointed", "Lost", "no answer", id);
  await page.goto("/ui/queues/pointed/failed");
  await live(page);
  assert.deepEqual(await ids(page), ["c", "b", "a"]);
  await row(page, "b").hover();
  await api.failed("pointed", "Lost", "no answer", "d");
  await api.failed("pointed", "Lost", "no answer", "e");
  await fresh(page, "2 new").waitFor();
  assert.deepEqual(await ids(page), ["c", "b", "a"]);
  // The counts around the list change.
  await page.getByRole("link", { name: "failed 5" }).waitFor();
  await fresh(page, "2 new").click();
  await row(page, "e").waitFor();
  assert.deepEqual(await ids(page), ["e", "d", "c", "b", "a"]);
  assert.equal(await fresh(page, "2 new").count(), 0);
});

dashboard.test("a list does not move while the focus is in it, and follows when it leaves", async ({ page, url }) => {
  const api = client(url);
  for (const id of ["k", "l"]) await api.failed("focused", "Away", "no answer", id);
  await page.goto("/ui/queues/focused/failed");
  await live(page);
  await page.getByRole("button", { name: "Retry job k" }).focus();
  await api.failed("focused", "Away", "no answer", "m");
  await fresh(page, "1 new").waitFor();
  assert.deepEqual(await ids(page), ["l", "k"]);
  // A job that is no longer in the list is marked.
  await api.post("/unfail/focused", { group: "Away", count: 1 });
  await page.locator("tr[data-gone]").waitFor();
  assert.deepEqual(await ids(page), ["l", "k"]);
  await page.getByRole("main").focus();
  await row(page, "m").waitFor();
  assert.deepEqual(await ids(page), ["m", "l"]);
});

dashboard.test("a button that has the focus does not become another one", async ({ page, url }) => {
  const api = client(url);
  await api.add("buttons", {}, "but-1");
  await api.take("buttons", "ada");
  await page.goto("/ui/jobs/but-1");
  await live(page);
  await page.getByRole("button", { name: "Track job but-1" }).focus();
  await api.post("/fail", { id: "but-1", group: "Lost", message: "no answer" }, "ada");
  await page.getByRole("button", { name: "Retry job but-1" }).waitFor();
  const focused = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  assert.ok([null, "Track job but-1"].includes(focused), focused);
});

dashboard.test("a button that pauses a queue does not become one that resumes it", async ({ page, url }) => {
  const api = client(url);
  await api.add("turns", {}, "turn-1");
  await page.goto("/ui/queues");
  await live(page);
  await page.getByRole("button", { name: "Pause turns" }).focus();
  await api.post("/pause/turns");
  await page.getByRole("button", { name: "Resume turns" }).waitFor();
  const focused = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  assert.equal(focused, null);
});

dashboard.test("a button beside a problem stays that of its queue", async ({ page, url }) => {
  const api = client(url);
  for (const queue of ["halt-a", "halt-b"]) {
    await api.post(`/pause/${queue}`);
    await api.add(queue, {}, `${queue}-1`);
  }
  await page.goto("/ui");
  await live(page);
  const resume = (queue) => page.locator("#problems").getByRole("button", { name: `Resume queue ${queue}` });
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await resume("halt-b").focus();
  const label = await focused();
  await api.post("/unpause/halt-a");
  await resume("halt-a").waitFor({ state: "detached" });
  assert.equal(await focused(), label);
  await api.post("/unpause/halt-b");
  await resume("halt-b").waitFor({ state: "detached" });
  assert.equal(await focused(), null);
});

dashboard.test("a button that retries one job of a group stays that of its job", async ({ page, url }) => {
  const api = client(url);
  await api.failed("canaries", "Choked", "no answer", "can-1");
  await page.goto("/ui/failures/Choked");
  await live(page);
  const canary = (id) => page.getByRole("button", { name: `Retry 1 as a canary: job ${id}` });
  await canary("can-1").focus();
  await api.failed("canaries", "Choked", "no answer", "can-2");
  await canary("can-2").waitFor();
  assert.ok(!(await canary("can-2").evaluate((button) => button === document.activeElement)));
});

dashboard.test("an open dialog does not change", async ({ page, url }) => {
  const api = client(url);
  await api.failed("dialogs", "Opened", "no answer", "dia-1");
  await page.goto("/ui/failures/Opened");
  await live(page);
  await page.getByRole("button", { name: "Retry 1…", exact: true }).click();
  const dialog = page.getByRole("dialog");
  const before = await dialog.innerHTML();
  assert.match(before, /Retry 1 job/);
  await api.failed("dialogs", "Opened", "no answer", "dia-2");
  await page.getByRole("button", { name: "Retry 1 as a canary: job dia-2" }).waitFor();
  assert.equal(await dialog.innerHTML(), before);
});

let filled = false;
for (const width of [1440, 390]) {
  dashboard.test(`names of 250 characters and numbers of six digits fit, ${width} px`, { viewport: { width, height: 900 } }, async ({ page, url }) => {
    const api = client(url);
    const [queue, group] = ["q".repeat(250), "G".repeat(250)];
    if (!filled) {
      filled = true;
      await api.failed(queue, group, "m".repeat(2_000), "long");
      await api.add(queue, {}, "other", { tags: ["t".repeat(250)] });
      for (let n = 0; n < 11; n++) {
        const jobs = Array.from({ length: 10_000 }, () => ({ meta: {} }));
        await fetch(`${url}/add/many`, { method: "POST", body: JSON.stringify({ data: jobs }) });
      }
    }
    for (const path of [
      "/ui", "/ui/queues", `/ui/queues/${queue}`, `/ui/queues/${queue}/failed`, "/ui/failures", `/ui/failures/${group}`,
      "/ui/jobs", "/ui/jobs/long", "/ui/jobs/other", "/ui/stats", `/ui/queues/${queue}/stats`, "/ui/tags",
      `/ui/confirm?do=retry&of=all&q=queue:${queue}`,
    ]) {
      await page.goto(path);
      await assertPresentable(page, path.slice(0, 40));
      const beyond = await page.evaluate(() =>
        [...document.querySelectorAll(".tile > *, tbody tr")].filter((it) =>
          it.matches("tr") ? it.offsetHeight > 120 : it.scrollWidth > it.clientWidth).map((it) => it.textContent.slice(0, 40)));
      assert.deepEqual(beyond, [], path.slice(0, 40));
    }
  });
}

dashboard.test("the direction of a name does not affect its neighbors", async ({ page, url }) => {
  const api = client(url);
  await api.add("left\u202Eright", {}, "id\u202Eid");
  await page.goto("/ui/queues");
  const isolated = await page.locator("tbody .name").first().evaluate((name) => getComputedStyle(name).unicodeBidi);
  assert.equal(isolated, "isolate");
});
