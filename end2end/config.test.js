// Options: their values, and changing them. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, flash, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard();

for (const { javaScriptEnabled, test } of dashboard.modes) {
  const option = (page, name) =>
    page.getByRole("listitem").filter({ has: page.getByRole("heading", { name, exact: true }) });

  test("an option can be set and reset to its default", async (page, api) => {
    await page.goto("/ui");
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Config" }).click();
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Configuration");
    await page.getByText("All server options have their default values.").waitFor();
    await option(page, "jobs-history").getByText("604,800 s = 7 d").waitFor();

    await page.getByRole("button", { name: "Change heartbeat", exact: true }).click();
    await page.getByText("The default is 60 s.").waitFor();
    await page.getByRole("dialog").getByLabel("Value (seconds)").fill("90");
    await page.getByRole("dialog").getByRole("button", { name: "Set", exact: true }).click();
    await flash(page, "Option “heartbeat” set to 90 (was 60).");
    assert.equal(await api.get("/config/heartbeat"), 90);
    await page.getByText("1 server option differs from its default.").waitFor();
    await page.getByText("default: 60 s").waitFor();
    assert.match(page.url(), /\/ui\/config$/);

    await page.getByRole("button", { name: "Reset heartbeat to its default" }).click();
    await flash(page, "Option “heartbeat” reset to its default, 60 (was 90).");
    assert.equal(await api.get("/config/heartbeat"), 60);
    assert.equal(await page.getByRole("button", { name: "Reset heartbeat to its default" }).count(), 0);
  });

  test("a queue can have its own options", async (page, api) => {
    const queue = `über/mail ${javaScriptEnabled}`;
    await api.add(queue, {}, `letter ${javaScriptEnabled}`);
    await page.goto(`/ui/queues/${encodeURIComponent(queue)}`);
    await page.getByRole("link", { name: "Options…" }).click();
    await page.getByRole("heading", { name: `Queue “${queue}”` }).waitFor();
    await page.getByText(`No options are set for queue “${queue}”`).waitFor();
    assert.equal(await page.getByLabel("Queue", { exact: true }).inputValue(), queue);

    const form = page.locator("form").filter({ has: page.getByRole("button", { name: "Set queue option" }) });
    await form.getByLabel("Option").selectOption({ label: "cutoff (seconds)" });
    await form.getByLabel("Value").fill("3600");
    await form.getByRole("button").click();
    await flash(page, `Option “${queue}-cutoff” set to 3600.`);
    assert.equal(await api.get(`/config/${encodeURIComponent(`${queue}-cutoff`)}`), 3600);
    await option(page, `${queue}-cutoff`).getByText("3,600 s = 1 h").waitFor();

    await page.goto("/ui/config");
    await page.getByRole("button", { name: `Remove ${queue}-cutoff` }).click();
    await flash(page, `Option “${queue}-cutoff” removed (was 3600).`);
    assert.equal(await page.getByRole("heading", { name: `${queue}-cutoff` }).count(), 0);
  });

  test("unknown options are kept unchanged", async (page, api) => {
    const name = `client.colour ${javaScriptEnabled}`;
    await page.goto("/ui/config");
    await page.getByText("Set another option").click();
    const form = page.locator("form").filter({ has: page.getByRole("button", { name: "Set option" }) });
    await form.getByLabel("Name").fill(name);
    await form.getByLabel("Value").fill("deep <b>red</b>");
    await form.getByRole("button").click();
    await flash(page, `Option “${name}” set to "deep <b>red</b>".`);
    assert.equal(await api.get(`/config/${encodeURIComponent(name)}`), "deep <b>red</b>");
    await api.set(name, { r: 255, precise: [1, null] });
    await page.goto("/ui/config");
    await option(page, name).getByText('{"r":255,"precise":[1,null]}').waitFor();
  });

  test("an invalid value is rejected with a sentence", async (page, api) => {
    await page.goto("/ui/config");
    await page.getByRole("button", { name: "Change stats-history" }).click();
    await page.getByRole("dialog").getByLabel("Value (days)").fill("");
    // Submits without the browser's validation.
    await page.getByRole("dialog").locator("form").evaluate((form) => form.submit());
    await flash(page, "The option stats-history must be a number.");
    assert.equal(await api.get("/config/stats-history"), 30);
  });
}

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`the form for a new value is accessible and fits, ${colorScheme}, ${width} px`, options, async ({ page }) => {
      await page.goto("/ui/config");
      await page.getByRole("button", { name: "Change jobs-history", exact: true }).click();
      await page.getByRole("dialog").waitFor();
      await assertAccessible(page);
      const box = await page.getByRole("dialog").boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= width, JSON.stringify(box));
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
    });
  }
}

dashboard.test("screenshot of the configuration", async ({ page, url }) => {
  await client(url).set("mail-heartbeat", 20);
  await client(url).set("jobs-history", 86400);
  await page.goto("/ui/config");
  await screenshot(page, "config");
});
