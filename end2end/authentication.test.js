// The dashboard with an administrator's name and password: users sign in on the sign-in page; programs get a challenge.

import assert from "node:assert/strict";
import { live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--admin-user", "ada", "--admin-password", "lovelace"] });

/** Signs in with name and password, and opens the overview. */
async function enter(page) {
  await page.goto("/ui");
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Key or password").fill("lovelace");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/ui");
}

dashboard.test("a page updates live, and its actions work", async ({ page, url }) => {
  const api = client(url);
  await enter(page);
  await live(page);
  await api.failed("letters", "Unreadable", "no address", "letter");
  await page.getByRole("link", { name: "Unreadable" }).click();
  await page.getByRole("button", { name: "Retry job letter" }).click();
  await page.locator("#flash").getByText("Job “letter” was requeued.").waitFor();
  assert.equal((await api.job("letter")).state, "waiting");
});

dashboard.test(
  "a failed job can be retried after a sign-in, without JavaScript",
  { javaScriptEnabled: false },
  async ({ page, url }) => {
    const api = client(url);
    await enter(page);
    await api.failed("parcels", "Lost", "no stamp", "parcel");
    await page.goto("/ui/failures");
    await page.getByRole("link", { name: "Lost" }).click();
    await page.getByRole("button", { name: "Retry job parcel" }).click();
    await page.locator("#flash").getByText("Job “parcel” was requeued.").waitFor();
    assert.equal((await api.job("parcel")).state, "waiting");
  },
);

dashboard.test("a link from another site opens a page", { expected: /another site.*\/page$/ }, async ({ page, url }) => {
  await enter(page);
  const elsewhere = url.replace("127.0.0.1", "localhost");
  await page.route(`${elsewhere}/page`, (route) =>
    route.fulfill({ contentType: "text/html", body: `<a href="${url}/ui/queues">queues</a>` }),
  );
  await page.goto(`${elsewhere}/page`);
  const led = page.waitForResponse(`${url}/ui/queues`);
  await page.getByRole("link", { name: "queues" }).click();
  assert.equal((await led).status(), 200);
});

dashboard.test("without the password, no data is visible", async ({ page, url }) => {
  const answer = await fetch(`${url}/ui`);
  assert.equal(answer.status, 401);
  assert.match(answer.headers.get("www-authenticate"), /^Basic /);
  // The browser is redirected to the sign-in page, which shows no data.
  await page.goto("/ui/queues");
  assert.equal(new URL(page.url()).pathname, "/ui/login");
  assert.equal(await page.getByRole("navigation").count(), 0);
});
