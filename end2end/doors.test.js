// The dashboard behind its door: a browser asks for name and password once, and then everything works.

import assert from "node:assert/strict";
import { live, startDashboard } from "./dashboard.js";
import { client } from "./client.js";

const dashboard = startDashboard({ args: ["--admin-user", "ada", "--admin-password", "lovelace"] });
const httpCredentials = { username: "ada", password: "lovelace" };

dashboard.test("a page moves by itself and acts by click", { httpCredentials }, async ({ page, url }) => {
  const api = client(url);
  await page.goto("/ui");
  await live(page);
  await api.failed("letters", "Unreadable", "no address", "letter");
  await page.getByRole("link", { name: "Unreadable" }).click();
  await page.getByRole("button", { name: "Retry job letter" }).click();
  await page.locator("#flash").getByText("Job “letter” waits in its queue again.").waitFor();
  assert.equal((await api.job("letter")).state, "waiting");
});

dashboard.test(
  "without JavaScript as well",
  { httpCredentials, javaScriptEnabled: false },
  async ({ page, url }) => {
    const api = client(url);
    await api.failed("parcels", "Lost", "no stamp", "parcel");
    await page.goto("/ui/failures");
    await page.getByRole("link", { name: "Lost" }).click();
    await page.getByRole("button", { name: "Retry job parcel" }).click();
    await page.locator("#flash").getByText("Job “parcel” waits in its queue again.").waitFor();
    assert.equal((await api.job("parcel")).state, "waiting");
  },
);

dashboard.test("a link of another site leads in", { httpCredentials, expected: /another site.*\/page$/ }, async ({ page, url }) => {
  await page.goto("/ui");
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
  // A browser that nobody answers for shows no page.
  await assert.rejects(page.goto("/ui"), /ERR_INVALID_AUTH_CREDENTIALS/);
});
