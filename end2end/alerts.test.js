// Alerts: rules, tests and reports, with a receiver that checks them. With and without JavaScript.

import assert from "node:assert/strict";
import { after, before } from "node:test";
import { startReceiver } from "./alert-receiver.js";
import { startDashboard } from "./dashboard.js";
import { until } from "./client.js";

const secret = "the-secret-of-the-browser-tests";
const dashboard = startDashboard({ args: ["--alert-secret", secret] });
const received = [];
let receiver;

before(async () => {
  receiver = await startReceiver({ secret, receive: (alert) => received.push(alert) });
});
after(() => receiver.stop());

/** The alert of this event and rule, once it has been received. */
async function alertOf(page, event, rule) {
  // On a page that stays open without JavaScript, Chromium warns that it does not use the preloaded program.
  await page.goto("about:blank");
  const found = () => received.find((alert) => alert.event === event && alert.rule === rule);
  await until(`an alert of ${rule}`, found);
  return found();
}

for (const { test, id } of dashboard.modes) {
  test("an alert is created, tested and deleted", async (page) => {
    const name = id("Night shift");
    await page.goto("/ui/config");
    await page.getByRole("link", { name: "Alerts" }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Address of the webhook").fill(receiver.url);
    await page.getByLabel("Delay: seconds that a problem must last").fill("0");
    await page.getByLabel("Queue paused with jobs waiting").check();
    await page.getByRole("button", { name: "Create rule" }).click();
    await page.getByText(`Alert rule “${name}” created.`).waitFor();
    await page.getByRole("button", { name: `Send a test to ${name}` }).click();
    await page.getByText(`Test of “${name}” queued.`).waitFor();
    const alert = await alertOf(page, "test", name);
    assert.equal(alert.problem, null);
    await page.goto("/ui/alerts");
    const delivery = page.getByRole("table", { name: "Last deliveries" }).getByRole("row", { name });
    await delivery.first().getByText("test", { exact: true }).waitFor();
    assert.ok(!(await page.content()).includes(secret));
    const row = page.getByRole("table", { name: "Alert rules" }).getByRole("row", { name });
    await row.getByRole("button", { name: "Delete…" }).click();
    await row.getByRole("button", { name: "Delete rule" }).click();
    await page.getByText(`Alert rule “${name}” deleted.`).waitFor();
    assert.equal(await row.count(), 0);
  });

  test("a paused queue is reported, and its end", async (page, qless) => {
    const [name, queue] = [id("Paused"), id("mail")];
    await page.goto("/ui/alerts");
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Address of the webhook").fill(receiver.url);
    await page.getByLabel("Delay: seconds that a problem must last").fill("0");
    await page.getByLabel("Queue paused with jobs waiting").check();
    await page.getByRole("button", { name: "Create rule" }).click();
    await qless.add(queue, {}, id("job"));
    await qless.post(`/pause/${encodeURIComponent(queue)}`);
    const raised = await alertOf(page, "raised", name);
    assert.equal(raised.problem.queue.name, queue);
    await page.goto("/ui/alerts");
    const reported = page.getByRole("table", { name: "Reported problems" });
    await reported.getByRole("link", { name: `${queue} is paused` }).first().waitFor();
    await qless.post(`/unpause/${encodeURIComponent(queue)}`);
    const ended = await alertOf(page, "ended", name);
    assert.equal(ended.problem_id, raised.problem_id);
    assert.equal(received.filter((alert) => alert.rule === name).length, 2);
  });
}

for (const { test, id } of dashboard.modes) {
  test("a failure group is muted and unmuted, and new failures are counted", async (page, qless) => {
    const [group, queue] = [id("Lost"), id("post")];
    await qless.failed(queue, group, "no trace", id("letter-1"));
    await page.goto("/ui/failures");
    await page.getByRole("link", { name: group, exact: true }).waitFor();
    await qless.failed(queue, group, "no trace", id("letter-2"));
    await page.reload();
    await page.getByText("(your first visit, or when you last marked failures as seen)").waitFor();
    await page.getByRole("row", { name: group }).getByText("1 new", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Mark these failures as seen" }).click();
    await page.getByText("(your first visit, or when you last marked failures as seen)").waitFor({ state: "detached" });
    await page.getByRole("link", { name: group, exact: true }).click();
    await page.getByRole("button", { name: "Mute…" }).click();
    await page.getByLabel("Reason").fill("a known bug");
    await page.getByLabel("For", { exact: true }).selectOption("4 hours");
    await page.getByRole("button", { name: "Mute group" }).click();
    await page.getByText("a known bug").first().waitFor();
    await page.goto("/ui/failures");
    await page.getByRole("row", { name: group }).getByText("muted").waitFor();
    await page.getByRole("link", { name: group, exact: true }).click();
    await page.getByRole("button", { name: "Unmute this group" }).click();
    await page.getByRole("button", { name: "Mute…" }).waitFor();
  });
}
