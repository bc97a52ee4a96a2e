// Namespaces and their tokens: the secret is shown once, and works. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, live, otherPageHasChanged, screenshot, startDashboard } from "./dashboard.js";
import { client, lmstfy } from "./client.js";

const dashboard = startDashboard();

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const ns = javaScriptEnabled ? "shop-with" : "shop-without";

  dashboard.test(`a token can be created, used and revoked, ${how}`, { javaScriptEnabled }, async ({ page, context, url }) => {
    await page.goto("/ui/namespaces");
    await page.getByLabel("Existing or new namespace").fill(ns);
    await page.getByLabel("Description: who uses it and for what").fill("the <b>mailer</b>");
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === "POST"),
      page.getByRole("button", { name: "Create token" }).click(),
    ]);
    await page.getByText(`Token created for ${ns}: the <b>mailer</b>`).waitFor();
    const secret = await page.locator("#secret-text").textContent();
    assert.match(secret, /^[\w-]{43}$/);
    assert.equal(answer.status(), 200);
    assert.equal(answer.headers()["cache-control"], "no-store");
    assert.ok(!page.url().includes(secret));
    assert.ok(!JSON.stringify(await context.cookies()).includes(secret));
    if (javaScriptEnabled) {
      // The page continues to update live; the shown secret must stay.
      await live(page);
      await otherPageHasChanged(page, url);
      assert.equal(await page.locator("#secret-text").textContent(), secret);
      await assertAccessible(page);
      await screenshot(page, "token");
    }
    const api = lmstfy(url, ns, "mail", secret);
    await api.publish("hello");
    await assert.rejects(lmstfy(url, ns, "mail").size(), /401/);
    await assert.rejects(lmstfy(url, "elsewhere", "mail", secret).size(), /401/);

    await page.getByRole("link", { name: ns, exact: true }).click();
    await page.waitForLoadState();
    assert.equal(await page.getByText(secret).count(), 0, "it is shown once");
    await page.getByText("1 queue · 1 token").waitFor();
    await page.getByRole("row", { name: "the <b>mailer</b>" }).getByText(/^sha256:[0-9a-f]{16}$/).waitFor();
    await page.getByRole("row", { name: `${ns}/mail` }).waitFor();
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Keep token" }).click();
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke token" }).click();
    await page.locator("#flash").getByText(`of ${ns} revoked.`).waitFor();
    await assert.rejects(api.size(), /401/);
    await page.getByText("No tokens. Create one to use this namespace through the API.").waitFor();
  });

  dashboard.test(`a namespace page creates tokens of its namespace, and an error says why, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    await page.goto(`/ui/namespaces/${ns}-2`);
    await page.getByText("No tokens. Create one to use this namespace").waitFor();
    await page.getByLabel("Description: who uses it and for what").fill(" ");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("Token not created: the description is missing").waitFor();
    await page.getByLabel("Description: who uses it and for what").fill("the cook");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText(`Token created for ${ns}-2: the cook`).waitFor();
    assert.equal(new URL(page.url()).pathname, `/ui/namespaces/${ns}-2`);
    await page.getByRole("row", { name: "the cook" }).waitFor();

    await page.goto("/ui/namespaces");
    await page.getByLabel("Existing or new namespace").fill("v0");
    await page.getByLabel("Description: who uses it and for what").fill("kept");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.getByText("Token not created: the namespace name v0 is reserved").waitFor();
    // The user's input is kept, also when the page is refreshed.
    if (javaScriptEnabled) {
      await live(page);
      const shown = await page.locator("#main").getAttribute("data-seq");
      await client(url).add("moving", {}, "postcard");
      await page.locator(`#main:not([data-seq="${shown}"])`).waitFor();
    }
    assert.equal(await page.getByLabel("Description: who uses it and for what").inputValue(), "kept");
  });
}

for (const colorScheme of ["light", "dark"]) {
  dashboard.test(`axe finds no violations, ${colorScheme}`, { colorScheme, viewport: { width: 390, height: 844 } }, async ({ page }) => {
    await page.goto(`/ui/namespaces/axe-${colorScheme}`);
    await page.getByLabel("Description: who uses it and for what").fill("axe");
    await page.getByRole("button", { name: "Create token" }).click();
    await page.locator("#secret-text").waitFor();
    await assertAccessible(page);
    await screenshot(page, `token-${colorScheme}-390`);
    await page.getByRole("button", { name: "Revoke…" }).click();
    await assertAccessible(page);
  });
}

dashboard.test("other sites cannot create tokens", async ({ url }) => {
  for (const headers of [{}, { "sec-fetch-site": "cross-site" }, { origin: "http://other.example" }]) {
    const answer = await fetch(`${url}/ui/namespaces/theirs`, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: "description=mine",
    });
    assert.equal(answer.status, 403);
  }
  const half = await fetch(`${url}/ui/namespaces/theirs`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" },
    body: "",
  });
  assert.equal(half.status, 400);
  assert.match(await half.text(), /Invalid request/);
  assert.doesNotMatch(await (await fetch(`${url}/ui/namespaces`)).text(), /theirs/);
});
