// The payload of a job: a text is found in it, and folds that the user has closed stay closed. Run times of a worker.

import assert from "node:assert/strict";
import { assertPresentable, inEachLook, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

/** A payload with one long array for each of these names. */
const long = (names) => {
  const item = (name, n) => ({ [name]: `<${name}> ${n}`, filler: "-".repeat(20) });
  return Object.fromEntries(names.map((name) => [name, Array.from({ length: 12 }, (_, n) => item(name, n))]));
};

for (const { how, test, id } of dashboard.modes) {
  test("a text is found in a payload, and only folds with matches are open", async (page, api) => {
    const job = await api.add("long", long(["apple", "pear", "plum"]), id("fruit"));
    await page.goto(`/ui/jobs/${encodeURIComponent(job)}?auto=3600`);
    const payload = page.locator("#payload");
    const folds = payload.locator("details");
    const open = () => folds.evaluateAll((all) => all.map((it) => it.open));
    assert.deepEqual(await open(), [true, true, true]);
    assert.equal(await payload.locator("mark").count(), 0);
    const whole = await payload.textContent();

    const form = page.getByRole("search");
    await form.getByLabel("Find in the payload").fill("<PEAR> 1");
    await form.getByRole("button", { name: "Find" }).click();
    await form.getByText("3 matches").waitFor();
    assert.deepEqual(await payload.locator("mark").allTextContents(), ["<pear> 1", "<pear> 1", "<pear> 1"]);
    assert.deepEqual(await open(), [false, true, false]);
    assert.equal(await payload.textContent(), whole, "the text is the same");
    assert.equal(await form.getByLabel("Find in the payload").inputValue(), "<PEAR> 1");
    const { searchParams, hash } = new URL(page.url());
    assert.deepEqual([searchParams.get("auto"), hash], ["3600", "#data"]);

    await form.getByLabel("Find in the payload").fill("melon");
    await form.getByRole("button", { name: "Find" }).click();
    await form.getByText("No matches").waitFor();
    assert.deepEqual(await open(), [false, false, false]);
    await page.goto(`/ui/jobs/${await api.add("long", { short: "apple" }, id("small"))}`);
    assert.equal(await page.getByRole("search").count(), 0, "a short payload has no form");
  });

  test("the page of a worker has a histogram of its run times", async (page, api) => {
    const worker = id("runner");
    for (let n = 0; n < 3; n++) {
      const job = await api.add(id("track"), {}, id(`lap ${n}`));
      await api.take(id("track"), worker);
      await api.post(`/complete/${encodeURIComponent(id("track"))}`, { id: job, meta: {} }, worker);
    }
    await page.goto(`/ui/workers/${encodeURIComponent(worker)}`);
    const section = page.getByRole("region", { name: "Run times", exact: true });
    await section.getByRole("img", { name: "Jobs by run time" }).waitFor();
    await section.getByText("Show data table").click();
    const cells = await section.getByRole("table", { name: "Jobs by run time" }).locator("tbody tr td:nth-child(2)").allTextContents();
    assert.equal(cells.reduce((sum, cell) => sum + Number(cell), 0), 3);
    if (how === "with JavaScript") {
      await live(page);
      await inEachLook(page, [1440, 390], async ({ look }) => {
        await screenshot(page, `run-times-${look}`);
        await assertPresentable(page, look);
      });
    }
  });
}

dashboard.test("a fold that the user has closed stays closed when the page updates", async ({ page, url }) => {
  const api = client(url);
  const job = await api.add("live", long(["apple", "pear"]), "folded");
  await page.goto(`/ui/jobs/${job}`);
  await live(page);
  const folds = page.locator("#payload details");
  await folds.nth(1).locator("summary").click();
  const open = () => folds.evaluateAll((all) => all.map((it) => it.open));
  assert.deepEqual(await open(), [true, false]);
  await api.post("/priority", { id: job, priority: 7 });
  await page.getByRole("region", { name: "Details" }).getByText("7 · lower numbers run first").waitFor();
  assert.deepEqual(await open(), [true, false]);
  await folds.nth(1).locator("summary").click();
  await folds.nth(0).locator("summary").click();
  await api.post("/priority", { id: job, priority: 8 });
  await page.getByRole("region", { name: "Details" }).getByText("8 · lower numbers run first").waitFor();
  assert.deepEqual(await open(), [false, true]);
});

dashboard.test("the form for a payload is presentable", async ({ page, url }) => {
  await client(url).add("long", long(["apple", "pear", "plum"]), "looks");
  await page.goto("/ui/jobs/looks?find=pear");
  await live(page);
  await inEachLook(page, [1440, 390], async ({ look }) => {
    await screenshot(page, `find-${look}`);
    await assertPresentable(page, look);
  });
});
