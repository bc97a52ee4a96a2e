// Operations on many jobs: selecting, confirming, running, stopping, undoing. With and without JavaScript.

import assert from "node:assert/strict";
import { assertEachPresentable, screenshot, startDashboard } from "./dashboard.js";
import { client, lmstfy, relay } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });

const HOSTILE = `<img src=x onerror=alert(1)> "'&`;

const at = (q) => `/ui/jobs?q=${encodeURIComponent(q)}`;
const confirm = (action, q, more = "") => `/ui/confirm?do=${action}&of=all&q=${encodeURIComponent(q)}${more}`;
const ids = (page) => page.locator("#hits tbody th .id").allTextContents();

/** Adds `count` jobs to a new queue. */
const add = (url, queue, count) =>
  client(url).post(`/add/${queue}`, Array.from({ length: count }, (_, i) => ({ id: `${queue}-${String(i).padStart(4, "0")}`, meta: { i } })));

/** Reloads the page, as a user without JavaScript does, until it contains the text. */
async function until(page, text) {
  for (let left = 600; left > 0; left -= 1) {
    if ((await page.getByText(text, { exact: true }).count()) > 0) return;
    await page.reload();
  }
  assert.fail(`the page never says ${text}: ${await page.locator("main").innerText()}`);
}

const fact = (page, name) =>
  page.locator("main dl > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").innerText();

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const name = (what) => `${what}-${javaScriptEnabled ? "a" : "b"}`;
  const test = (title, body) =>
    dashboard.test(`${title}, ${how}`, { javaScriptEnabled }, async ({ page, url }) => body(page, url));

  /** Waits until the page shows the text: live with JavaScript, otherwise by reloading. */
  const says = (page, text) =>
    javaScriptEnabled ? page.getByText(text, { exact: true }).first().waitFor() : until(page, text);

  test("selected jobs can be tagged", async (page, url) => {
    const queue = name("few");
    await add(url, queue, 4);
    await page.goto(at(`queue:${queue}`));
    await page.getByRole("checkbox", { name: `Select job ${queue}-0001` }).check();
    await page.getByRole("checkbox", { name: `Select job ${queue}-0003` }).check();
    await page.getByRole("button", { name: "Tag…", exact: true }).click();
    await page.getByRole("heading", { name: "Tag 2 jobs?" }).waitFor();
    assert.deepEqual(await page.locator("#confirm li .id").allTextContents(), [`${queue}-0003`, `${queue}-0001`]);
    await page.getByLabel("Tag", { exact: true }).fill("chosen");
    await page.getByRole("button", { name: "Tag 2 jobs" }).click();
    await page.getByText("Operation started.").waitFor();
    await says(page, "done");
    assert.match(page.url(), /\/ui\/operations\/\d+$/);
    assert.equal(await fact(page, "Applied"), "2");
    assert.equal(await fact(page, "Started by"), "anybody");
    await page.goto(at(`tag:chosen queue:${queue}`));
    assert.deepEqual(await ids(page), [`${queue}-0003`, `${queue}-0001`]);
    await page.getByRole("button", { name: "Untag…" }).click();
    await page.getByText("No jobs are selected. Select jobs in the list, or choose all matching jobs.").waitFor();
    await page.getByRole("link", { name: "Back to jobs" }).click();
    assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), `tag:chosen queue:${queue}`);
  });

  test("thousands of jobs can be canceled after typing their number, and restored", async (page, url) => {
    const queue = name("many");
    await add(url, queue, 1_200);
    await page.goto(at(`queue:${queue}`));
    await page.getByRole("radio", { name: "all matching jobs" }).check();
    await page.getByRole("button", { name: "Cancel or delete…" }).click();
    await page.getByText("You can undo this for 30 s after it ends.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "BODY");
    await page.getByLabel("Type 1,200 to confirm").fill("12");
    await page.getByRole("button", { name: "Cancel or delete 1,200 jobs" }).click();
    await page.getByText("The number you typed does not match the number of jobs on the page; nothing was changed.").waitFor();
    assert.equal(await page.getByLabel("Type 1,200 to confirm").inputValue(), "12");
    await page.getByLabel("Type 1,200 to confirm").fill("1,200");
    await page.getByRole("button", { name: "Cancel or delete 1,200 jobs" }).click();
    await page.getByText("Operation started. You can undo it for 30 s after it ends.").waitFor();
    await says(page, "done");
    await says(page, "1,200 jobs processed.");
    await screenshot(page, `operation-${queue}`);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Undo started.").waitFor();
    await says(page, "undone");
    assert.equal(await fact(page, "Restored"), "1,200");
    assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
    await page.getByRole("link", { name: `queue:${queue}` }).click();
    assert.deepEqual((await ids(page)).slice(0, 2), [`${queue}-1199`, `${queue}-1198`]);
    await page.goto("/ui/operations");
    await page.getByRole("link", { name: "Cancel or delete 1,200 jobs" }).first().click();
    await page.getByRole("link", { name: "Run again…" }).click();
    await page.getByRole("heading", { name: "Cancel or delete 1,200 jobs?" }).waitFor();
  });

  test("skipped jobs are shown, and a whole group can be moved", async (page, url) => {
    const group = `${HOSTILE} ${name("group")}`;
    const job = name("torn");
    await client(url).failed(name("broken"), group, "boom", job);
    await relay(url, name("orders")).enqueue(job, "1");
    await page.goto(`/ui/failures/${encodeURIComponent(group)}`);
    await page.getByRole("radio", { name: "the only match" }).check();
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByRole("heading", { name: "Move 1 job?" }).waitFor();
    assert.equal(await page.locator("img").count(), 0);
    await page.getByLabel("Target queue").fill(`to ${HOSTILE}`);
    await page.getByRole("button", { name: "Move 1 job" }).click();
    await says(page, "done");
    assert.equal((await client(url).job(job)).queue, `to ${HOSTILE}`);
    await page.goto(confirm("priority", job));
    await page.getByText("1 of them will be skipped: the action does not apply to its protocol or state.").waitFor();
    await page.getByLabel("Priority").fill("7");
    await page.getByRole("button", { name: "Set the priority of 2 jobs" }).click();
    await says(page, "done");
    const skipped = page.getByRole("row", { name: job });
    await skipped.getByText("Relay jobs have no priority").waitFor();
    await skipped.getByRole("link", { name: job }).click();
    assert.match(page.url(), /\/ui\/relay\//);
  });
}

dashboard.test("progress updates live, and an operation can be stopped", async ({ page, url }) => {
  // So many that it takes longer than finding the button, even on a busy machine.
  for (let from = 0; from < 60; from += 1) await add(url, `crowd${from}`, 1_000);
  // The page asks for the number of jobs that it has counted: fewer, if the machine is busy.
  const move = async () => {
    const button = page.getByRole("button", { name: /^Move .* jobs$/ });
    const [number] = (await button.innerText()).match(/[\d,]+/);
    await page.getByLabel(/^Type .* to confirm$/).fill(number);
    await button.click();
  };
  const done = async () => Number((await fact(page, "Applied")).replaceAll(",", ""));
  await page.goto(confirm("move", "queue:crowd*", "&arg=moved"));
  await move();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Operation stopped. Changes already made are kept.").waitFor();
  await page.getByText("stopped", { exact: true }).waitFor();
  const moved = await done();
  assert.ok(moved < 60_000);
  await page.getByRole("link", { name: "Run again…" }).click();
  await move();
  await page.locator("[data-state=Live]").waitFor();
  await page.getByText("done", { exact: true }).waitFor();
  assert.equal(await done(), 60_000 - moved);
  assert.equal(await page.locator("progress").evaluate((bar) => bar.position), 1);
});

let filled;
function fill(url) {
  filled ??= (async () => {
    await add(url, "shown", 60);
    await client(url).add(HOSTILE, {}, `id ${HOSTILE}`, { tags: ["a tag that is rather long and-has-no-place-to-break-anywhere-at-all"] });
    await lmstfy(url, "shop", "shown").publish("x", { tries: 3 });
  })();
  return filled;
}

dashboard.test("every page is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  await page.goto(confirm("track", `queue:shown`));
  await page.getByRole("button", { name: "Track 61 jobs" }).click();
  await page.getByText("done", { exact: true }).waitFor();
  const operation = new URL(page.url()).pathname;
  const pages = [
    operation, "/ui/operations", confirm("cancel", "queue:shown"), confirm("move", "queue:shown", "&arg=x"), at("queue:shown"),
    confirm("tag", ""), confirm("cancel", `"${HOSTILE.replaceAll('"', '\\"')}"`), "/ui/confirm?do=tag", "/ui/operations?offset=1000",
  ];
  await assertEachPresentable({ page, part }, pages, { picture: "operations" });
});

dashboard.test("an unknown operation is 404 in the frame", { expected: /404/ }, async ({ page }) => {
  const answer = await page.goto("/ui/operations/7");
  assert.equal(answer.status(), 404);
  await page.getByText("Operation “7” not found").waitFor();
});
