// The dependency graph on a job's page. With and without JavaScript.

import assert from "node:assert/strict";
import { assertPresentable, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    await api.add("build", {}, "fetch", { klass: "Fetch" });
    await api.add("build", {}, "compile", { klass: "Compile", depends: ["fetch"] });
    await api.add("build", {}, "docs", { klass: "Docs with a rather long name of its class", depends: ["fetch"] });
    await api.add("build", {}, "ship <b>", { klass: "Ship", depends: ["compile", "docs"] });
    await api.add("build", {}, "alone");
    await api.add("build", {}, "hub");
    for (let n = 0; n < 70; n++) await api.add("build", {}, `spoke-${n}`, { depends: ["hub"] });
  })();
  return filled;
}

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`a job links to the jobs of its dependency graph, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    await fill(url);
    await page.goto("/ui/jobs/compile");
    const drawing = page.getByRole("group", { name: "Each job is to the right of its dependencies" });
    const jobs = drawing.getByRole("link");
    assert.deepEqual(
      (await Promise.all((await jobs.all()).map((job) => job.getAttribute("aria-label")))).sort(),
      ["Compile depends, compile, this job", "Fetch waiting, fetch", "Ship depends, ship <b>"],
    );
    assert.equal(await drawing.locator("path.edge").count(), 2);
    const left = async (name) => (await drawing.getByRole("link", { name }).locator("rect").boundingBox()).x;
    assert.ok((await left(/fetch/)) < (await left(/compile/)));
    assert.ok((await left(/compile/)) < (await left(/ship/)));
    await drawing.getByRole("link", { name: /ship/ }).click();
    await page.getByRole("heading", { level: 1 }).getByText("Ship").waitFor();
    assert.equal(await drawing.getByRole("link").count(), 4);
    await page.getByText("Show data table").click();
    const row = page.getByRole("table", { name: "Dependencies" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name: "ship <b>" }) });
    assert.match(await row.textContent(), /compile\s*docs/);
  });
}

dashboard.test("a graph shows at most 60 jobs, and a job without dependencies has none", async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui/jobs/hub");
  await page.getByText("Showing 60 jobs. There are more.").waitFor();
  assert.equal(await page.locator("svg.graph a").count(), 60);
  await page.goto("/ui/jobs/alone");
  assert.equal(await page.locator("svg.graph").count(), 0);
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`the graph is accessible and fits, ${colorScheme}, ${width} px`, options, async ({ page, url }) => {
      await fill(url);
      await page.goto("/ui/jobs/ship%20%3Cb%3E");
      await live(page);
      await assertPresentable(page, "a job that waits");
      await screenshot(page, `graph-${colorScheme}-${width}`);
    });
  }
}
