// Daily statistics of a queue, with a clock that the test sets.

import assert from "node:assert/strict";
import { assertAccessible, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--trust-client-clock"] });

const DAY = 86_400;
const TODAY = Math.floor(Date.now() / 1000 / DAY) * DAY;
const date = (moment) => new Date(moment * 1000).toISOString().slice(0, 10);

/** Yesterday: 100 jobs that wait 0 to 99 s and run 1 s each, two failures, one of them retried, one expired lease. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    const start = TODAY - DAY + 60;
    for (let i = 0; i < 100; i++) {
      api.now = start + 700 * i;
      await api.add("mail", {}, `letter-${i}`);
      api.now += i;
      await api.take("mail", "ada");
      api.now += 1;
      await api.post("/complete/mail", { id: `letter-${i}`, meta: {} }, "ada");
    }
    api.now = TODAY - 3600;
    for (const id of ["bad-1", "bad-2"]) await api.failed("mail", "Unreadable", "no address", id);
    await api.post("/unfail/mail", { group: "Unreadable", count: 1 });
    await api.take("mail", "ada");
    api.now = TODAY - 60;
    await api.take("mail", "bob");
    api.now = TODAY + 1;
    await api.add("mail", {}, "today");
  })();
  return filled;
}

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`a queue links to its daily statistics, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    await fill(url);
    await page.goto("/ui/queues/mail");
    await page.getByRole("main").getByRole("link", { name: "statistics" }).click();
    assert.match(page.url(), /\/ui\/queues\/mail\/stats$/);
    await page.getByRole("heading", { name: `${date(TODAY)} UTC, so far` }).waitFor();
    await page.getByText("No activity in this queue today.").waitFor();
    assert.equal(await page.getByRole("link", { name: "Next day" }).count(), 0);

    await page.getByRole("link", { name: "Previous day" }).click();
    assert.match(page.url(), new RegExp(`day=${date(TODAY - DAY)}$`));
    const numbers = await page.getByRole("list", { name: "Totals of the day" }).getByRole("listitem").allTextContents();
    assert.deepEqual(numbers.map((text) => text.trim().replace(/\s+/g, " ")), [
      "claimed104", "completed100", "failures2", "still failed1", "leases expired1",
    ]);
    const run = page.getByRole("region", { name: "Run time", exact: true });
    const fact = async (section, name) =>
      (await section.locator("dl > div").filter({ hasText: name }).locator("dd").textContent()).trim();
    assert.equal(await fact(run, "Jobs"), "100");
    assert.equal(await fact(run, "Mean"), "1.0 s");
    assert.equal(await fact(run, "Standard deviation"), "0 ms");
    assert.equal(await fact(run, "p99"), "≤ 2 s");

    await page.getByRole("link", { name: "Next day" }).click();
    await page.getByRole("heading", { name: `${date(TODAY)} UTC, so far` }).waitFor();
    await page.getByLabel("Day", { exact: true }).fill(date(TODAY - 2 * DAY));
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("No activity in this queue on this day").waitFor();
    await page.getByRole("link", { name: "Today" }).click();
    assert.match(page.url(), /\/ui\/queues\/mail\/stats$/);
  });
}

dashboard.test("a histogram has a description and a data table", async ({ page, url }) => {
  await fill(url);
  await page.goto(`/ui/queues/mail/stats?day=${date(TODAY - DAY)}`);
  await live(page);
  const picture = page.getByRole("img", { name: "Jobs by wait time" });
  const about = await picture.getAttribute("aria-describedby");
  assert.match(await page.locator(`#${about}`).textContent(), /Histogram with 18 bars\. Highest: 1–2 m, with 40 jobs/);
  const waits = page.getByRole("region", { name: "Wait time", exact: true });
  await waits.getByText("Show data table", { exact: true }).click();
  const rows = await waits.getByRole("row").allTextContents();
  const plain = rows.map((row) => row.replace(/\s+/g, " ").trim());
  assert.equal(plain.find((row) => row.startsWith("30–60 s")), "30–60 s3028.8%60.6%");
  // Every bar has a title.
  const titles = await picture.locator("g > title").allTextContents();
  assert.ok(titles.includes("30–60 s: 30 jobs, 28.8%"), titles.join("; "));
  assert.equal(titles.length, await picture.locator("rect").count());
  await screenshot(page, "stats");
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`the statistics are accessible and fit, ${colorScheme}, ${width} px`, options, async ({ page, url }) => {
      await fill(url);
      await page.goto(`/ui/queues/mail/stats?day=${date(TODAY - DAY)}`);
      await live(page);
      for (const summary of await page.locator("summary").all()) await summary.click();
      await assertAccessible(page);
      const beyond = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        // Drawings may extend beyond their frames, but not beyond the cards.
        const cut = [...document.querySelectorAll(".histogram text")].filter((text) => {
          const [inner, outer] = [text, text.closest("section")].map((element) => element.getBoundingClientRect());
          return inner.width > 0 && (inner.left < outer.left || inner.right > outer.right);
        });
        return scrollWidth - clientWidth + cut.length;
      });
      assert.equal(beyond, 0);
    });
  }
}

dashboard.test("today’s numbers update live, and open elements stay open", async ({ page, url }) => {
  await fill(url);
  const api = client(url);
  api.now = TODAY + 2;
  await api.add("busy", {}, "b-1");
  await api.take("busy", "ada");
  await page.goto("/ui/queues/busy/stats");
  await page.locator("[data-state=Live]").waitFor();
  await page.getByText("Show data table", { exact: true }).click();
  await api.add("busy", {}, "b-2");
  api.now = TODAY + 5;
  await api.take("busy", "ada");
  await page.getByRole("row", { name: "2–5 s" }).getByText("50.0%").first().waitFor();
  assert.ok(await page.locator("details").first().evaluate((details) => details.open));
  await page.getByRole("img", { name: "Jobs by wait time" }).locator("rect").nth(1).waitFor();
});
