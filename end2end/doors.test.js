// The dashboard behind its door: a person gives name and password once, and then everything works.

import assert from "node:assert/strict";
import { live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--admin-user", "ada", "--admin-password", "lovelace"] });

/** Opens the overview, and gives name and password on the way. */
async function enter(page) {
  await page.goto("/ui");
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Key or password").fill("lovelace");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/ui");
}

dashboard.test("a page moves by itself and acts by click", async ({ page, url }) => {
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
  "without JavaScript as well",
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

dashboard.test("a link of another site leads in", { expected: /another site.*\/page$/ }, async ({ page, url }) => {
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

dashboard.test("without the password there is nothing to see", async ({ page, url }) => {
  const answer = await fetch(`${url}/ui`);
  assert.equal(answer.status, 401);
  assert.match(answer.headers.get("www-authenticate"), /^Basic /);
  // A person is led to where one signs in, and sees nothing else.
  await page.goto("/ui/queues");
  assert.equal(new URL(page.url()).pathname, "/ui/login");
  assert.equal(await page.getByRole("navigation").count(), 0);
});
