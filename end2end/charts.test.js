// Charts, statistics over ranges, and failures by kind of message.

import assert from "node:assert/strict";
import { assertPresentable, inEachLook, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--trust-client-clock"] });

const MINUTE = 60;
const plain = (text) => text.trim().replace(/\s+/g, " ");

/** Fills the last 50 minutes with jobs, some of which fail with two kinds of messages. Resolves to the counts. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    const done = { completed: 0, failed: 0 };
    const start = Math.floor(Date.now() / 60_000) * MINUTE - 50 * MINUTE;
    for (let minute = 0; minute < 50; minute++) {
      const count = 2 + Math.round(2 * Math.sin(minute / 6)) + (minute % 2);
      for (let n = 0; n < count; n++) {
        const id = `letter-${minute}-${n}`;
        const queue = n % 3 === 2 ? "a/b <i>" : "mail";
        api.now = start + minute * MINUTE + n * 5;
        await api.add(queue, {}, id);
        api.now += 0.05 * (1 + minute);
        await api.take(queue, "ada");
        api.now += 0.2;
        if (minute % 10 === 7 && n < 2) {
          const message = n === 0 ? `no answer from '10.0.0.${minute}' after ${minute}00 ms` : "no stamp\n  on <letter>";
          await api.post("/fail", { id, group: "Net::Lost", message }, "ada");
          done.failed += 1;
        } else {
          await api.post(`/complete/${encodeURIComponent(queue)}`, { id, meta: {} }, "ada");
          done.completed += 1;
        }
      }
    }
    api.now = undefined;
    return done;
  })();
  return filled;
}

dashboard.test("an empty server has empty charts and no failures", async ({ page }) => {
  for (const path of ["/ui/stats", "/ui/stats?range=30d&compare=1", "/ui/stats?from=nonsense", "/ui/failures/None", "/ui/failures", "/ui/queues?state=problem"]) {
    await page.goto(path);
    await live(page);
    await assertPresentable(page, path);
  }
  await page.goto("/ui/failures");
  await page.getByText("none recorded").waitFor();
});

const column = (page, table, index) =>
  page.getByRole("table", { name: table }).locator(`tbody tr td:nth-child(${index + 1})`).allTextContents();
const sum = (cells) => cells.map((cell) => Number(plain(cell).replace("–", "0"))).reduce((a, b) => a + b, 0);

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`the overview shows the last hour as a chart and as numbers, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const done = await fill(url);
    await page.goto("/ui");
    const title = "Completed and failed jobs/min, last hour";
    await page.getByRole("img", { name: title }).waitFor();
    await page.getByText("Show data table", { exact: true }).click();
    const table = "Completed and failed jobs per minute";
    assert.equal(sum(await column(page, table, 1)), done.completed);
    assert.equal(sum(await column(page, table, 2)), done.failed);
    await page.getByRole("link", { name: /Completed\/min/ }).click();
    await page.getByRole("heading", { level: 1, name: "Statistics" }).waitFor();
  });

  dashboard.test(`statistics support any range, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const done = await fill(url);
    await page.goto("/ui/stats");
    const many = `${done.completed} jobs completed`;
    await page.getByText(many, { exact: true }).waitFor();
    await page.getByRole("link", { name: "7 days" }).click();
    assert.match(page.url(), /range=7d/);
    assert.equal(await page.getByRole("link", { name: "7 days" }).getAttribute("aria-current"), "true");
    await page.getByRole("link", { name: "Compare with previous period" }).click();
    await page.getByText(`${many}; none in the previous period`).waitFor();
    await page.getByLabel("Queue", { exact: true }).selectOption({ label: "a/b <i> (qless)" });
    await page.getByRole("button", { name: "Show queue" }).click();
    await page.getByText("Daily statistics and histograms").waitFor();
    assert.match(page.url(), /range=7d.*compare=1|compare=1.*range=7d/);

    const download = await fetch(await page.getByRole("link", { name: "Download as CSV" }).evaluate((link) => link.href));
    const [head, ...rows] = (await download.text()).trim().split("\r\n").map((line) => line.split(","));
    const at = head.indexOf("completed");
    const completed = rows.map((row) => Number(row[at])).reduce((a, b) => a + b, 0);
    await page.getByText(`${completed} jobs completed`).waitFor();

    await page.goto("/ui/stats?from=2026-11-02&to=2026-11-01");
    await page.getByRole("alert").getByText("From must be before To. Showing the last hour.").waitFor();
  });

  dashboard.test(`failures link from a kind of message to its jobs, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const done = await fill(url);
    await page.goto("/ui/failures");
    await page.getByRole("img", { name: `${done.failed} jobs failed in the last 24 hours` }).waitFor();
    await page.getByLabel("Group or message contains").fill("net::");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("main").getByRole("link", { name: "Net::Lost" }).click();
    const failed = page.getByRole("table", { name: "Failed jobs, newest first" }).locator("tbody tr");
    await failed.nth(done.failed - 1).waitFor();
    assert.equal(await failed.count(), done.failed);
    const chip = page.getByRole("link", { name: /no answer from · after · ms/ });
    const count = Number(plain(await chip.locator("span").first().textContent()));
    await chip.click();
    assert.match(page.url(), /fp=[0-9a-f]{8}/);
    assert.equal(await chip.getAttribute("aria-current"), "true");
    await failed.nth(count - 1).waitFor();
    assert.equal(await failed.count(), count);
    await page.getByRole("link", { name: "Search these jobs" }).click();
    const matching = page.getByRole("table", { name: "Matching jobs" }).locator("tbody tr");
    await matching.nth(count - 1).waitFor();
    assert.equal(await matching.count(), count);
  });
}

dashboard.test("a chart shows its values at the pointer", async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui/stats");
  await live(page);
  await page.getByText("Show data table", { exact: true }).click();
  const rows = page.getByRole("table", { name: "Statistics" }).locator("tbody tr");
  const count = await rows.count();
  const charts = page.locator("[data-chart] > svg:first-child");
  for (const [chart, row] of [[0, 0], [0, count - 1], [1, 20]]) {
    const drawing = charts.nth(chart);
    const { width } = await drawing.boundingBox();
    await drawing.hover({ position: { x: ((row + 0.5) / count) * width, y: 50 } });
    const shown = (await page.locator("#values").textContent()).split("\n");
    assert.equal(shown[0], `${plain(await rows.nth(row).locator("th").textContent())} UTC`);
    const values = (await rows.nth(row).locator("td").allTextContents()).map(plain);
    for (const line of shown.slice(1)) assert.ok(values.includes(line.split(": ")[1]), `${line} of ${values}`);
    const names = await page.locator("[data-chart]").nth(chart).locator(".names text").allTextContents();
    assert.deepEqual(shown.slice(1).map((line) => line.split(": ")[0]), names);
  }
  await screenshot(page, "chart-values");
  await page.getByRole("heading", { level: 1 }).hover();
  assert.equal(await page.locator("#values").count(), 0);
});

for (const { test } of dashboard.modes) {
  test("links lead to other periods, and each queue has a small chart", async (page, api, url) => {
    await fill(url);
    await page.goto("/ui/stats?range=6h&compare=week");
    const zoom = page.getByRole("navigation", { name: "Zoom" });
    assert.deepEqual(await zoom.getByRole("link").allTextContents(), ["Earlier", "Zoom in", "Zoom out"]);
    const length = async () => {
      const times = await page.locator("h2 time").evaluateAll((times) => times.map((time) => Date.parse(time.dateTime)));
      return (times[1] - times[0]) / 60_000;
    };
    const before = await length();
    await zoom.getByRole("link", { name: "Zoom in" }).click();
    await page.waitForURL(/from=/);
    assert.match(page.url(), /compare=week/);
    assert.ok((await length()) < before);
    await zoom.getByRole("link", { name: "Earlier" }).click();
    await zoom.getByRole("link", { name: "Later" }).click();
    await page.goto("/ui/stats");
    const chart = page.getByRole("img", { name: /^mail: \d+ jobs completed, \d+ failed$/ });
    await chart.waitFor();
    await page.getByLabel("By queue").getByRole("link", { name: "mail" }).click();
    await page.waitForURL(/queue=queues%2Fmail/);
    await page.getByText("Daily statistics and histograms").waitFor();
  });

  test("charts mark pauses", async (page, api, url) => {
    await fill(url);
    await page.goto("/ui/queues/mail");
    await page.getByRole("button", { name: /^Pause queue/ }).first().click();
    await page.getByText("Workers get no jobs from it.").first().waitFor();
    await page.goto("/ui/stats?queue=queues/mail");
    await page.getByLabel("Marked events").getByText("Pause: queue mail").first().waitFor();
    assert.notEqual(await page.locator("[data-chart=throughput] svg title", { hasText: "Pause: queue mail" }).count(), 0);
    await page.goto("/ui/queues/mail");
    await page.getByRole("button", { name: /^Resume queue/ }).first().click();
    await page.getByText("Queue “mail” resumed.").waitFor();
  });
}

dashboard.test("dragging across a chart zooms in", async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui/stats?queue=queues/mail&compare=1");
  await live(page);
  const chart = page.locator("[data-chart] > svg:first-child").first();
  const box = await chart.boundingBox();
  const [from, to] = await page.locator("#range").evaluate((form) => [form.dataset.from, form.dataset.to].map(Number));
  const y = box.y + 60;
  // A click, or a movement of a few pixels, does nothing.
  await page.mouse.move(box.x + 50, y);
  await page.mouse.down();
  await page.mouse.move(box.x + 53, y);
  await page.mouse.up();
  assert.doesNotMatch(page.url(), /from=/);
  await page.mouse.move(box.x + box.width * 0.75, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, y, { steps: 5 });
  await page.locator("#selected-range").waitFor();
  await screenshot(page, "chart-drag");
  await page.mouse.move(box.x + box.width * 0.25, y, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=/);
  const query = new URL(page.url()).searchParams;
  assert.equal(query.get("queue"), "queues/mail");
  assert.equal(query.get("compare"), "1");
  const minute = (share) => Math.floor((from + share * (to - from)) / 60_000_000);
  const asked = ["from", "to"].map((name) => Date.parse(`${query.get(name)}Z`) / 60_000);
  assert.ok(Math.abs(asked[0] - minute(0.25)) <= 1 && Math.abs(asked[1] - minute(0.75)) <= 1, page.url());
  await live(page);
  assert.equal(await page.locator("#selected-range").count(), 0);
});

dashboard.test("one job can be retried as a canary, and its page opens", async ({ page, url }) => {
  const api = client(url);
  for (const id of ["bird-1", "bird-2"]) await api.failed("mine", "Gas", "no air", id);
  await page.goto("/ui/failures/Gas");
  await page.getByText("Incident report (Markdown)").click();
  const text = await page.getByLabel("Markdown", { exact: true }).inputValue();
  assert.match(text, /^## Gas: 2 failed jobs\n/);
  assert.match(text, /2 × `no air`/);
  await page.getByRole("button", { name: "Retry 1 as a canary: job bird-2" }).click();
  await page.getByText("Job “bird-2” was requeued.").waitFor();
  assert.match(page.url(), /\/ui\/jobs\/bird-2$/);
  assert.equal((await api.job("bird-1")).state, "failed");
});

dashboard.test("queues show their throughput, and can be filtered by problems", async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui/queues");
  await page.getByRole("img", { name: /jobs completed in the last 30 minutes, at most \d+ per minute/ }).first().waitFor();
  const all = await page.getByRole("table", { name: "Queues" }).locator("tbody tr").count();
  await client(url).add("quiet", {}, `quiet-${Date.now()}`, { delay: 9_999_999 });
  await page.getByLabel("Problems only").check();
  await page.getByRole("button", { name: "Filter" }).click();
  assert.match(page.url(), /state=problem/);
  assert.ok((await page.getByRole("table", { name: "Queues" }).locator("tbody tr").count()) <= all);
  assert.equal(await page.getByRole("link", { name: "quiet" }).count(), 0);
});

dashboard.test("the last minute updates live, and open elements stay open", async ({ page, url }) => {
  await fill(url);
  const api = client(url);
  api.now = Date.now() / 1000;
  await page.goto("/ui");
  await page.locator("[data-state=Live]").waitFor();
  await page.getByText("Show data table", { exact: true }).click();
  const table = "Completed and failed jobs per minute";
  const before = sum(await column(page, table, 1));
  const id = `now-${before}`;
  await api.add("now", {}, id);
  await api.take("now", "ada");
  await api.post("/complete/now", { id, meta: {} }, "ada");
  await page.waitForFunction(
    ([name, before]) => {
      const cells = [...document.querySelectorAll("table")].find((table) => table.caption.textContent === name).querySelectorAll("tbody tr td:nth-child(2)");
      return [...cells].reduce((sum, cell) => sum + Number(cell.textContent), 0) > before;
    },
    [table, before],
  );
  assert.ok(await page.getByLabel("Last hour").locator("details").evaluate((details) => details.open));
});

dashboard.test("charts are accessible and fit in each look", async ({ page, url }) => {
  await fill(url);
  const pages = {
    overview: "/ui", queues: "/ui/queues?state=problem", stats: "/ui/stats?range=6h&compare=1", week: "/ui/stats?range=24h&compare=week",
    failures: "/ui/failures?range=24h", failure: "/ui/failures/Net%3A%3ALost?range=1h",
  };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(path);
    await live(page);
    await inEachLook(page, [1440, 320], ({ look }) => screenshot(page, `charts-${name}-${look}`));
    for (const summary of await page.locator("summary").all()) await summary.click();
    await inEachLook(page, [1440, 320], async ({ look }) => {
      await assertPresentable(page, `${path} ${look}`);
      const cut = await page.evaluate(() => {
        const texts = [...document.querySelectorAll(".plot text")].filter((text) => {
          const [inner, outer] = [text, text.closest("section")].map((element) => element.getBoundingClientRect());
          return inner.width > 0 && (inner.left < outer.left || inner.right > outer.right);
        });
        return texts.map((text) => text.textContent);
      });
      assert.deepEqual(cut, [], `${path} ${look}`);
    });
  }
});
