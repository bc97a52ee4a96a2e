// The frame of every page: delivery, hydration, security headers.

import assert from "node:assert/strict";
import { assertAccessible, live, screenshot, startDashboard } from "./dashboard.js";

const dashboard = startDashboard();

dashboard.test("a page shows new jobs without a reload", async ({ page, url }) => {
  await page.goto("/ui");
  await live(page);
  const added = await fetch(`${url}/add/parcels`, { method: "POST", body: '{"data": {"meta": {"to": "Oslo"}}}' });
  assert.equal(added.status, 200);
  await page.getByRole("link", { name: "parcels" }).first().waitFor();
  await screenshot(page, "overview");
});

for (const colorScheme of ["light", "dark"]) {
  dashboard.test(`axe finds no violations, ${colorScheme}`, { colorScheme }, async ({ page }) => {
    await page.goto("/ui");
    await assertAccessible(page);
  });
}

dashboard.test("the page is complete without JavaScript", { javaScriptEnabled: false }, async ({ page }) => {
  await page.goto("/ui");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByRole("link", { name: "parcels" }).first().waitFor();
});

dashboard.test("a strict policy allows only the dashboard's scripts, with a new nonce for each response", async ({ url }) => {
  const policies = [];
  for (let i = 0; i < 2; i++) policies.push((await fetch(`${url}/ui`)).headers.get("content-security-policy"));
  assert.notEqual(policies[0], policies[1]);
  for (const policy of policies) {
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self' 'nonce-[\w-]{20,}' 'wasm-unsafe-eval';/);
    assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|\*/);
  }
});

const refused = { expected: /Content Security Policy/ };
dashboard.test("a foreign inline script does not run", refused, async ({ page }) => {
  await page.goto("/ui");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.broken = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.broken), undefined);
});

dashboard.test("static files are cacheable without limit and compressed", async ({ page }) => {
  const loaded = [];
  page.on("response", (response) => loaded.push(response));
  await page.goto("/ui");
  await live(page);
  const assets = loaded.filter((response) => response.url().includes("/ui/pkg/"));
  assert.deepEqual(
    [...new Set(assets.map((response) => response.url().split(".").pop()))].sort(),
    ["css", "js", "wasm"],
  );
  for (const response of assets) {
    assert.equal(response.status(), 200);
    assert.match(response.headers()["cache-control"], /immutable/);
    assert.equal(response.headers()["content-encoding"], "br");
  }
});

dashboard.test("the address with a trailing slash redirects to the one without", async ({ page, url }) => {
  await page.goto("/ui/");
  assert.equal(page.url(), `${url}/ui`);
});

// Chromium logs the status of a document as an error.
const notFound = { expected: /status of 404/ };
dashboard.test("an unknown address shows an error inside the frame", notFound, async ({ page }) => {
  const response = await page.goto("/ui/no/such/page");
  assert.equal(response.status(), 404);
  assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Not found");
  assert.equal(await page.title(), "Not found · Switchyard");
  assert.match(response.headers()["content-security-policy"], /nonce-/);
});
