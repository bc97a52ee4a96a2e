// Notifications of the browser about problems: one for each, from one tab, as long as they are on.

import assert from "node:assert/strict";
import { startDashboard } from "./dashboard.js";
import { client, until } from "./client.js";

const dashboard = startDashboard();

/** Replaces the browser's notifications by a list, in all tabs. Resolves to that list. */
async function recorded(context, permission) {
  const shown = [];
  await context.exposeFunction("record", (title, body, tag) => shown.push({ title, body, tag }));
  await context.addInitScript((answer) => {
    window.Notification = class extends EventTarget {
      static permission = localStorage.getItem("allowed") ?? "default";
      static async requestPermission() {
        Notification.permission = answer;
        localStorage.setItem("allowed", answer);
        return answer;
      }
      constructor(title, { body, tag }) {
        super();
        window.latest = this;
        window.record(title, body, tag);
      }
    };
  }, permission);
  return shown;
}

/**
 * Pauses a queue with a job, and loads a page, which checks for problems, when the overview has this one. Until then the
 * tab has no page of the dashboard: one that checks meanwhile could show the problem, and end with its notification.
 */
async function pause(page, url, queue) {
  await page.goto("/health/live");
  const server = client(url);
  // Paused first: a job that no worker can claim is another problem.
  await server.post(`/pause/${queue}`);
  await server.add(queue, {}, `${queue}-job`);
  const problem = `${queue} is paused`;
  const headers = { "x-switchyard-refresh": "1" };
  const overview = async () => (await fetch(new URL("/ui", url), { headers })).text();
  await until(problem, async () => (await overview()).includes(problem));
  await page.goto("/ui/queues");
}

async function press(page, name) {
  await page.getByRole("button", { name: "Display", exact: true }).click();
  await page.getByRole("button", { name }).click();
}

dashboard.test("a new problem is shown once, and opens its page", async ({ page, context, url }) => {
  const shown = await recorded(context, "granted");
  await pause(page, url, "old");
  await press(page, "Notify me of new problems");
  await page.getByRole("button", { name: "Stop notifications" }).waitFor();
  await until("a first notification", () => shown.length === 1);
  await pause(page, url, "mail");
  await until("the problem", () => shown.length === 2);
  assert.equal(shown[1].title, `Switchyard on ${new URL(url).host}`);
  assert.match(shown[1].body, /^mail is paused with 1 job waiting/);
  // Another tab, and another check, show nothing again.
  const other = await context.newPage();
  await other.goto("/ui");
  await page.close();
  await pause(other, url, "post");
  await until("the other problem", () => shown.length === 3);
  assert.match(shown[2].body, /^post is paused/);
  await other.evaluate(() => window.latest.dispatchEvent(new Event("click")));
  await other.waitForURL((address) => address.pathname === "/ui/queues/post/waiting");
  // Off.
  await press(other, "Stop notifications");
  await other.getByRole("button", { name: "Notify me of new problems" }).waitFor();
  assert.equal(await other.evaluate(() => localStorage.getItem("switchyard-problems")), null);
  assert.equal(shown.length, 3);
});

dashboard.test("without permission, notifications stay off", async ({ page, context }) => {
  const shown = await recorded(context, "denied");
  await page.goto("/ui/queues");
  await press(page, "Notify me of new problems");
  await page.getByText("Your browser does not allow notifications").waitFor();
  await page.getByRole("button", { name: "Notify me of new problems" }).waitFor();
  assert.equal(await page.evaluate(() => localStorage.getItem("switchyard-problems")), null);
  assert.deepEqual(shown, []);
});
