// Several tabs of one browser: they share one stream of events, because a browser opens six connections to a server.

import assert from "node:assert/strict";
import { startDashboard } from "./dashboard.js";
import { client, until } from "./client.js";

const dashboard = startDashboard();

/** Opens tabs with the list of queues. Resolves when all are live. */
async function open(context, page, count) {
  const tabs = [page];
  while (tabs.length < count) tabs.push(await context.newPage());
  for (const tab of tabs) await tab.goto("/ui/queues");
  for (const tab of tabs) await tab.locator("[data-state=Live]").waitFor();
  return tabs;
}

/** Waits until the server has this many open streams. It notices a moment later that one has ended. */
async function assertStreams(url, count) {
  await until(`${count} open streams`, async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(/^switchyard_event_streams\{kind="dashboard"\} (\d+)$/m.exec(metrics)[1]) === count;
  });
}

/** Adds a job to a new queue. Resolves when all tabs show the queue. */
async function assertLive(tabs, url, queue) {
  await client(url).add(queue, {}, queue);
  for (const tab of tabs) await tab.getByRole("main").getByRole("link", { name: queue, exact: true }).waitFor();
}

dashboard.test("eight tabs share one stream, and other requests are answered", async ({ page, context, url }) => {
  const tabs = await open(context, page, 8);
  await assertStreams(url, 1);
  await assertLive(tabs, url, "first");
  for (const tab of tabs) {
    assert.equal(await tab.evaluate(async () => (await fetch("/ui/about")).status), 200, "status");
  }
  // Another tab opens the stream when the one that has it is closed, paused, or shows another page.
  await tabs.shift().close();
  await assertLive(tabs, url, "second");
  await assertStreams(url, 1);
  const paused = tabs.shift();
  await paused.getByRole("button", { name: "Pause live updates" }).click();
  await paused.locator("[data-state=Paused]").waitFor();
  await assertLive(tabs, url, "third");
  await assertStreams(url, 1);
  await tabs[0].goto("/openapi/qless.json");
  await assertLive(tabs.slice(1), url, "fourth");
  await assertStreams(url, 1);
  await paused.getByRole("button", { name: "Resume live updates" }).click();
  await assertLive([paused, ...tabs.slice(1)], url, "fifth");
  await assertStreams(url, 1);
});

dashboard.test("without locks, each tab has a stream of its own", async ({ page, context, url }) => {
  await context.addInitScript(() => Object.defineProperty(Navigator.prototype, "locks", { get: () => undefined }));
  const tabs = await open(context, page, 2);
  await assertStreams(url, 2);
  await assertLive(tabs, url, "alone");
});
