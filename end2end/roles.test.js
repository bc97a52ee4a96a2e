// Roles in the browser: sign-in and sign-out, what a viewer sees, and the audit log. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, assertPresentable, live, screenshot, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({
  args: [
    "--ui-key", "viewer:vera:the-key-of-vera",
    "--ui-key", "operator:olga:the-key-of-olga",
    "--ui-key", "admin:anna:the-key-of-anna",
    "--environment", "production",
  ],
});

/** Opens a page, and signs in on the sign-in page. */
async function signIn(page, name, path = "/ui") {
  await page.goto(path);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Key or password").fill(`the-key-of-${name}`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL((url) => url.pathname + url.search === path);
}

/** Signs out with the button of the frame, which is under "More" on a phone. */
async function signOut(page) {
  // A page that refreshes while the user signs out would get an error.
  const pause = page.getByRole("button", { name: "Pause live updates" });
  if (await pause.isVisible()) await pause.click();
  const button = page.getByRole("button", { name: "Sign out" });
  if (!(await button.isVisible())) await page.getByRole("button", { name: "More" }).click();
  await button.click();
  await page.waitForURL("**/ui/login");
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? "" : ", without JavaScript";

  dashboard.test(`an operator signs in, acts and signs out${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const api = client(url);
    const id = `letter-${javaScriptEnabled}`;
    await api.failed(`letters-${javaScriptEnabled}`, "Unreadable", "no address", id);
    await signIn(page, "olga", "/ui/failures/Unreadable");
    if (javaScriptEnabled) await live(page);
    await page.getByRole("navigation", { name: "Main" }).getByText("olga", { exact: true }).waitFor();
    await page.getByRole("button", { name: `Retry job ${id}` }).click();
    await page.locator("#flash").getByText(`Job “${id}” was requeued.`).waitFor();
    assert.equal((await api.job(id)).state, "waiting");
    await signOut(page);
    await page.goto("/ui/queues");
    assert.equal(new URL(page.url()).pathname, "/ui/login");
  });

  dashboard.test(`a viewer sees no buttons of actions${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const api = client(url);
    await api.failed(`parcels-${javaScriptEnabled}`, "Lost", "no stamp", `parcel-${javaScriptEnabled}`);
    await signIn(page, "vera", `/ui/jobs/parcel-${javaScriptEnabled}`);
    await page.getByText("no stamp").first().waitFor();
    for (const path of ["/ui", `/ui/jobs/parcel-${javaScriptEnabled}`, "/ui/failures", `/ui/queues/parcels-${javaScriptEnabled}`, "/ui/config"]) {
      await page.goto(path);
      const actions = await page.locator("form[method=post]").evaluateAll((forms) =>
        forms.map((form) => new URL(form.action).pathname),
      );
      const everybodys = ["/ui/fn/set_clock", "/ui/fn/set_density", "/ui/fn/set_keys", "/ui/fn/theme", "/ui/logout"];
      assert.deepEqual([...new Set(actions)].sort(), everybodys, path);
    }
    for (const closed of ["Audit", "Check", "Namespaces"]) {
      assert.equal(await page.getByRole("link", { name: closed, exact: true }).count(), 0, closed);
    }
  });

  dashboard.test(`an admin can read the audit log${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    const api = client(url);
    const id = `card-${javaScriptEnabled}`;
    await api.failed(`cards-${javaScriptEnabled}`, "Torn", "in two", id);
    await signIn(page, "anna", `/ui/jobs/${id}`);
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator("#flash").getByText("was requeued").waitFor();
    await page.getByRole("link", { name: "Audit" }).click();
    const row = page.getByRole("row").filter({ hasText: id }).first();
    await row.getByText("state: failed → waiting").waitFor();
    await row.getByText("anna").waitFor();
    await row.getByText("done").waitFor();
    await page.getByLabel("Target contains").fill(id);
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForLoadState();
    assert.equal(await page.locator("tbody tr").count(), 1);
    await page.getByLabel("Target contains").fill("of nothing");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByText("No matching entries.").waitFor();
    await page.getByRole("link", { name: "Show all" }).click();
    await page.getByRole("link", { name: `job ${id}` }).first().click();
    await page.waitForURL(`**/ui/jobs/${id}`);
  });
}

dashboard.test(
  "a wrong key is rejected without details",
  { expected: /status of 403/ },
  async ({ page }) => {
    await page.goto("/ui/login?next=%2Fui%2Fqueues");
    await page.getByLabel("Name").fill("vera");
    await page.getByLabel("Key or password").fill("a guess");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("Wrong name or key.").waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "vera");
    assert.equal(await page.getByLabel("Key or password").inputValue(), "");
    await assertAccessible(page);
    await page.getByLabel("Key or password").fill("the-key-of-vera");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL("**/ui/queues");
  },
);

dashboard.test(
  "a page that requires another role says so",
  { expected: /status of 403/ },
  async ({ page }) => {
    await signIn(page, "vera");
    await page.goto("/ui/audit");
    await page.getByRole("heading", { name: "Not allowed" }).waitFor();
    await page.getByText("You need the admin role; you have the viewer role.").waitFor();
    await assertPresentable(page, "not allowed");
  },
);

dashboard.test(
  "a page whose session has ended asks for a new sign-in",
  { expected: /status of 401/ },
  async ({ page, context, url }) => {
    await signIn(page, "olga", "/ui/queues");
    await live(page);
    const other = await context.newPage();
    await other.goto("/ui");
    await signOut(other);
    await other.close();
    // Causes a refresh of the page.
    await client(url).failed("ended", "Ended", "over", "ended");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  },
);

for (const colorScheme of ["light", "dark"]) {
  for (const [width, height] of [[1440, 900], [390, 844], [320, 640]]) {
    const viewport = { width, height };
    dashboard.test(`all pages are accessible and fit, ${colorScheme}, ${width}`, { colorScheme, viewport }, async ({ page, url }) => {
      const api = client(url);
      const id = `shown-${colorScheme}-${width}`;
      await api.failed(id, "Shown", "again", id);
      const name = (shot) => `roles-${shot}-${colorScheme}-${width}`;
      await page.goto("/ui/login");
      await assertPresentable(page, "login");
      await screenshot(page, name("login"));
      await signIn(page, "anna", `/ui/jobs/${id}`);
      await page.getByRole("button", { name: "Retry" }).click();
      await page.locator("#flash").getByText("was requeued").waitFor();
      await assertPresentable(page, "job");
      await screenshot(page, name("job"));
      await page.goto("/ui/audit");
      await live(page);
      await assertPresentable(page, "audit");
      await screenshot(page, name("audit"));
      const more = page.getByRole("button", { name: "More" });
      if (await more.isVisible()) {
        await more.click();
        await assertAccessible(page);
        await screenshot(page, name("more"));
        await page.keyboard.press("Escape");
      }
      await signOut(page);
      await signIn(page, "vera", `/ui/jobs/${id}`);
      await assertPresentable(page, "job of a viewer");
      await screenshot(page, name("viewer"));
    });
  }
}
