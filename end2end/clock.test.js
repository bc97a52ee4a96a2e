// Pages that depend on the time: a worker that has become inactive.

import assert from "node:assert/strict";
import { startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--trust-client-clock"] });

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`an inactive worker can be removed from the lists, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const api = client(url);
    const worker = `eve ${javaScriptEnabled}`;
    api.now = Date.now() / 1000 - 1_000;
    await api.take("nothing", worker);
    api.now = Date.now() / 1000;
    await api.take("nothing", "ada");
    await page.goto("/ui/workers/ada");
    assert.equal(await page.getByRole("button", { name: "Forget…" }).count(), 0, "it tries to claim jobs");
    await page.goto(`/ui/workers/${encodeURIComponent(worker)}`);
    await page.getByText("silent").waitFor();
    await page.getByRole("button", { name: "Forget…" }).click();
    await page.getByText("Hides the worker from the lists until it tries to claim a job or sends a heartbeat.").waitFor();
    await page.getByRole("button", { name: "Forget worker" }).click();
    await page.locator("#flash").getByText(`Worker “${worker}” forgotten.`).waitFor();
    assert.match(page.url(), /\/ui\/workers$/);
    assert.equal(await page.getByRole("row", { name: worker }).count(), 0);
    await page.getByRole("row", { name: "ada" }).waitFor();
  });
}
