// lmstfy in the dashboard: queues, jobs with binary bodies, dead letters. With and without JavaScript.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { assertAccessible, assertEachPresentable, assertPresentable, flash, inEachLook, live, startDashboard } from "./dashboard.js";
import { client, lmstfy } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });

/** Creates jobs of every kind, once per server. Resolves to IDs of jobs. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const orders = lmstfy(url, "shop", "orders");
    const ids = {};
    ids.json = await orders.publish('{"big": 12345678901234567890, "b": "<b>&amp;"}', { tries: 3, attributes: { Trace: "a<b>" } });
    await orders.publish("later", { delay: 3_600, ttl: 0 });
    [ids.dead] = await lmstfy(url, "shop", "mail").dead("Dear Ada,\nwe are sorry.");
    await lmstfy(url, "sensors", "a-queue-with-a-name_that_is-rather-long-and-has-no-place-to-break-anywhere-at-all").dead("x");
    const readings = lmstfy(url, "sensors", "readings");
    ids.bytes = await readings.publish(new Uint8Array([0, 255, 1, 254, ...new TextEncoder().encode("<script>alert(1)</script>")]));
    ids.empty = await readings.publish("");
    const running = await lmstfy(url, "sensors", "lines").publish("one\ttwo\u0000three");
    await lmstfy(url, "sensors", "lines").consume({ ttr: 3_600 });
    ids.running = running;
    await client(url).failed("orders", "Unreadable", "no address", "letter-1");
    await client(url).add("orders", { total: 1 }, "letter-2");
    return ids;
  })();
  return filled;
}

const pages = (ids) => [
  "/ui", "/ui/queues", "/ui/queues?q=shop", "/ui/queues/orders", "/ui/lmstfy/shop/orders", "/ui/lmstfy/shop/orders/scheduled",
  "/ui/lmstfy/shop/orders/running", "/ui/lmstfy/shop/orders/dead", "/ui/lmstfy/shop/orders/stats", "/ui/lmstfy/sensors/lines/running",
  "/ui/lmstfy/shop/mail/dead", "/ui/lmstfy/shop/mail/dead?select=all", "/ui/lmstfy/shop/mail/dead?do=respawn&of=all",
  `/ui/lmstfy/shop/mail/dead?do=delete&id=${ids.dead}`, "/ui/lmstfy/shop/mail/dead?do=delete&of=selected",
  "/ui/lmstfy/shop/mail/stats", "/ui/dead", "/ui/dead?ns=shop&queue=ma", "/ui/dead?ns=none",
  `/ui/lmstfy/shop/orders/job/${ids.json}`, `/ui/lmstfy/shop/orders/job/${ids.json}?as=hex`, `/ui/lmstfy/shop/mail/job/${ids.dead}`,
  `/ui/lmstfy/sensors/readings/job/${ids.bytes}`, `/ui/lmstfy/sensors/readings/job/${ids.bytes}?as=base64`,
  `/ui/lmstfy/sensors/readings/job/${ids.empty}`, `/ui/lmstfy/sensors/lines/job/${ids.running}?as=text`,
  "/ui/namespaces", "/ui/namespaces/shop", "/ui/namespaces/none",
];

dashboard.test("without dead jobs, their page says what a dead letter is", async ({ page }) => {
  await page.goto("/ui/dead");
  await page.getByText("When the last try’s time to run (TTR) ends without an acknowledgment").waitFor();
  await assertAccessible(page);
});

dashboard.test("every page is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  const ids = await fill(url);
  await assertEachPresentable({ page, part }, pages(ids), { picture: "lmstfy" });
  await part("the question", async () => {
    await page.goto("/ui/dead");
    await page.getByRole("button", { name: "Respawn 1…" }).first().click();
    await inEachLook(page, [1440, 390, 320], ({ look }) => assertPresentable(page, look));
  });
});

const missing = { expected: /404/ };
dashboard.test("unknown queues and jobs are 404 in the frame", missing, async ({ page, url }) => {
  const ids = await fill(url);
  for (const path of [
    "/ui/lmstfy/shop/none", "/ui/lmstfy/none/orders", "/ui/lmstfy/shop/orders/nonsense", "/ui/lmstfy/shop/orders/failed",
    "/ui/lmstfy/shop/orders/complete", "/ui/queues/orders/dead", "/ui/lmstfy/shop/none/stats", "/ui/lmstfy/shop",
    "/ui/lmstfy/shop/orders/job/none", `/ui/lmstfy/shop/mail/job/${ids.json}`, `/ui/lmstfy/sensors/orders/job/${ids.json}`,
    `/ui/jobs/${ids.json}`, "/ui/namespaces/a%2Fb", "/ui/workers/~",
  ]) {
    const answer = await page.goto(path);
    assert.equal(answer.status(), 404, path);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Not found");
  }
  const body = await fetch(`${url}/ui/lmstfy/shop/mail/job/${ids.json}/body`);
  assert.equal(body.status, 404);
});

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const ns = javaScriptEnabled ? "with" : "without";
  const test = (name, body, options = {}) =>
    dashboard.test(`${name}, ${how}`, { javaScriptEnabled, ...options }, ({ page, url }) => body(page, url));
  const queue = (url, name) => lmstfy(url, ns, name);
  const ticks = async (page) => page.locator("tbody input[type=checkbox]:checked").count();
  const rows = (page) => page.getByRole("main").getByRole("table").last().locator("tbody tr");

  test("queues of the same name are distinguished by protocol and namespace", async (page, url) => {
    await client(url).add(`${ns}-twin`, {}, `${ns}-twin`);
    await queue(url, `${ns}-twin`).publish("hello");
    await page.goto(`/ui/queues?q=${ns}-twin`);
    assert.equal(await rows(page).count(), 2);
    await page.getByRole("row", { name: `${ns}/${ns}-twin` }).getByText("lmstfy").waitFor();
    await page.getByRole("row", { name: new RegExp(`(^| )${ns}-twin `) }).getByText("qless").waitFor();
    await page.getByRole("link", { name: `${ns}/${ns}-twin`, exact: true }).click();
    assert.equal(new URL(page.url()).pathname, `/ui/lmstfy/${ns}/${ns}-twin`);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), `${ns}/${ns}-twin`);
    const tabs = page.getByRole("navigation", { name: "This queue" }).getByRole("link");
    assert.deepEqual(
      (await tabs.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()),
      ["waiting 1", "scheduled 0", "running 0", "dead 0", "statistics"],
    );
    await page.goto(`/ui/queues/${ns}-twin`);
    assert.equal(await page.getByRole("navigation", { name: "This queue" }).getByRole("link", { name: "dead" }).count(), 0);
    await page.goto("/ui");
    await page.getByRole("row", { name: /^lmstfy/ }).waitFor();
    // Suggestions for qless queues must not contain other queues.
    await page.goto("/ui/config");
    const names = await page.locator("#queue-names option").evaluateAll((options) => options.map(({ value }) => value));
    assert.ok(names.includes(`${ns}-twin`));
    assert.equal(new Set(names).size, names.length);
  });

  test("a queue can be paused and resumed", async (page, url) => {
    const api = queue(url, "paused");
    await api.publish("hello");
    await page.goto(`/ui/lmstfy/${ns}/paused`);
    await page.getByRole("button", { name: `Pause queue ${ns}/paused` }).click();
    await flash(page, `Queue “${ns}/paused” paused. Workers get no jobs from it.`);
    assert.equal(await api.consume(), null);
    await page.goto("/ui");
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: `${ns}/paused` });
    await problem.getByText("lmstfy").waitFor();
    await problem.getByRole("button", { name: `Resume queue ${ns}/paused` }).click();
    await flash(page, `Queue “${ns}/paused” resumed.`);
    assert.notEqual(await api.consume(), null);
  });

  test("destroying a queue says that it deletes only ready jobs, and does so", async (page, url) => {
    const api = queue(url, "doomed");
    const [dead] = await api.dead("dead");
    const running = await api.publish("running");
    await api.consume();
    const ready = [await api.publish("one"), await api.publish("two")];
    const later = await api.publish("later", { delay: 3_600 });
    await page.goto(`/ui/lmstfy/${ns}/doomed`);
    await page.getByRole("button", { name: "Destroy…" }).click();
    const question = page.getByRole("dialog");
    await question.getByRole("heading", { name: `Destroy ${ns}/doomed? This deletes 2 ready jobs.` }).waitFor();
    await question.getByText("Scheduled (1), running (1) and dead (1) jobs are not affected.").waitFor();
    await question.getByRole("button", { name: "Delete 2 ready jobs" }).click();
    await flash(page, `Deleted 2 ready jobs in ${ns}/doomed. Kept 3 scheduled, running or dead.`);
    for (const id of ready) assert.equal(await api.job(id), null);
    for (const id of [dead, running, later]) assert.equal((await api.job(id)).job_id, id);
    assert.equal(await page.getByRole("button", { name: "Destroy…" }).count(), 0, "nothing is ready");
  });

  test("a job shows its body in a suitable format, escaped, and as a download", async (page, url) => {
    const ids = await fill(url);
    const shown = () => page.locator("#payload").textContent();
    const choices = page.getByRole("navigation", { name: "Show the payload as" }).getByRole("link");
    await page.goto(`/ui/lmstfy/shop/orders/job/${ids.json}`);
    assert.deepEqual(await choices.allInnerTexts(), ["JSON", "Text", "Hex", "Base64"]);
    assert.equal(await shown(), '{\n  "big": 12345678901234567890,\n  "b": "<b>&amp;"\n}');
    await page.getByText("3 of 3").waitFor();
    await page.getByText("trace: a<b>").waitFor();
    await page.getByRole("link", { name: "Text" }).click();
    assert.equal(await shown(), '{"big": 12345678901234567890, "b": "<b>&amp;"}');
    await page.getByRole("link", { name: "Hex" }).click();
    assert.match(await shown(), /^00000000  7b 22 62 69 67 22 3a 20  31 32 33 34 35 36 37 38  {"big": 12345678\n00000010  /);

    await page.goto(`/ui/lmstfy/sensors/readings/job/${ids.bytes}`);
    assert.deepEqual(await choices.allInnerTexts(), ["Hex", "Base64"]);
    assert.match(await shown(), /^00000000  00 ff 01 fe 3c 73 63 72  69 70 74 3e 61 6c 65 72  ····<script>aler\n/);
    await page.getByRole("link", { name: "Base64" }).click();
    assert.equal(await shown(), "AP8B/jxzY3JpcHQ+YWxlcnQoMSk8L3NjcmlwdD4=");
    await page.goto(`/ui/lmstfy/sensors/lines/job/${ids.running}`);
    assert.match(await shown(), /^00000000  6f 6e 65 09/, "text by chance");
    await page.getByRole("link", { name: "Text" }).click();
    assert.equal(await shown(), "one\ttwo␀three");
    await page.getByText("lmstfy consumers have no names").waitFor();
    await page.getByText("0 of 1").waitFor();

    await page.goto(`/ui/lmstfy/sensors/readings/job/${ids.bytes}`);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
    assert.equal(download.suggestedFilename(), `${ids.bytes}.bin`);
    const saved = await readFile(await download.path());
    assert.deepEqual([...saved.subarray(0, 4)], [0, 255, 1, 254]);
    const { headers } = await fetch(`${url}/ui/lmstfy/sensors/readings/job/${ids.bytes}/body`);
    assert.equal(headers.get("content-type"), "application/octet-stream");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.match(headers.get("content-disposition"), /^attachment/);
    assert.match(headers.get("content-security-policy"), /sandbox/);
  });

  test("a job in any state can be deleted, which acknowledges it", async (page, url) => {
    const api = queue(url, "deleted");
    const id = await api.publish("hello", { tries: 2 });
    await api.consume();
    await page.goto(`/ui/lmstfy/${ns}/deleted/job/${id}`);
    await page.getByText("1 of 2").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByText("Acknowledges the job").waitFor();
    await page.getByRole("button", { name: "Delete job" }).click();
    await flash(page, `Job “${id}” deleted.`);
    assert.equal(new URL(page.url()).pathname, `/ui/lmstfy/${ns}/deleted/running`);
    assert.equal(await api.job(id), null);
  });

  test("a dead job can be viewed and respawned with a new time to live", async (page, url) => {
    const api = queue(url, "one");
    const [id, other] = await api.dead("what it was", "another");
    await page.goto("/ui/dead");
    await page.getByRole("row", { name: `${ns}/one` }).getByRole("link", { name: `Open the dead jobs of ${ns}/one` }).click();
    await page.getByRole("link", { name: id, exact: true }).click();
    await page.locator("#payload").getByText("what it was").waitFor();
    await page.getByText("never · dead jobs are kept until deleted").waitFor();
    await page.getByRole("button", { name: "Respawn…" }).click();
    const life = page.getByLabel("New time to live (s)");
    assert.equal(await life.inputValue(), "86400");
    await life.fill("600");
    const before = Date.now();
    await page.getByRole("button", { name: "Respawn job" }).click();
    await flash(page, `Respawned 1 dead job in ${ns}/one.`);
    const { ttl } = await api.job(id);
    const passed = (Date.now() - before) / 1_000;
    assert.ok(ttl >= 599 - passed && ttl <= 600, `${ttl} after ${passed} s`);
    await page.getByText("respawned", { exact: true }).waitFor();
    assert.equal((await api.consume()).job_id, id);

    await page.goto(`/ui/lmstfy/${ns}/one/dead`);
    await page.getByRole("link", { name: `Respawn job ${other}…` }).click();
    await page.getByRole("heading", { name: "Respawn 1 selected job?" }).waitFor();
    await page.getByLabel("New time to live (s)").fill("0");
    await page.getByRole("button", { name: "Respawn 1 job" }).click();
    await flash(page, `Respawned 1 dead job in ${ns}/one.`);
    assert.equal((await api.job(other)).ttl, 0, "for ever");
  });

  test("selected dead jobs are respawned or deleted after a confirmation", async (page, url) => {
    const api = queue(url, "several");
    const ids = await api.dead("0", "1", "2", "3", "4", "5");
    const list = `/ui/lmstfy/${ns}/several/dead`;
    await page.goto(list);
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByText("No jobs selected.").waitFor();
    for (const id of [ids[1], ids[2]]) await page.getByLabel(`Select job ${id}`).check();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("heading", { name: "Delete 2 selected jobs?" }).waitFor();
    assert.equal(await ticks(page), 2, "they stay ticked");
    await page.getByRole("link", { name: "Close" }).click();
    assert.equal(await ticks(page), 0);
    assert.equal((await api.deadLetter()).deadletter_size, 6);
    for (const id of [ids[1], ids[2]]) await page.getByLabel(`Select job ${id}`).check();
    await page.getByRole("button", { name: "Delete…" }).click();
    // By now another client has respawned one of them.
    await fetch(`${url}/api/${ns}/several/deadletter?limit=2`, { method: "PUT" });
    await page.getByRole("button", { name: "Delete 2 jobs" }).click();
    await flash(page, `Deleted 1 of 2 dead jobs in ${ns}/several. The others were no longer dead.`);
    assert.equal((await api.job(ids[1])).job_id, ids[1], "it is not dead, so it is not deleted");
    assert.equal(await api.job(ids[2]), null);

    await page.getByRole("link", { name: "Select the 3 on this page" }).click();
    assert.equal(await ticks(page), 3);
    await page.getByLabel(`Select job ${ids[5]}`).uncheck();
    await page.getByRole("button", { name: "Respawn…" }).click();
    await page.getByRole("heading", { name: "Respawn 2 selected jobs?" }).waitFor();
    await page.getByRole("button", { name: "Respawn 2 jobs" }).click();
    await flash(page, `Respawned 2 dead jobs in ${ns}/several.`);
    assert.equal((await api.deadLetter()).deadletter_head, ids[5]);
  });

  test("the oldest or all are respawned or deleted, in the confirmed number", async (page, url) => {
    const api = queue(url, "many");
    const ids = await api.dead(..."abcdefgh");
    await page.goto(`/ui/lmstfy/${ns}/many/dead`);
    await page.getByRole("radio", { name: "the oldest" }).check();
    await page.getByLabel("How many of the oldest").fill("3");
    await page.getByRole("button", { name: "Respawn…" }).click();
    await page.getByRole("heading", { name: "Respawn the 3 oldest dead jobs?" }).waitFor();
    await page.getByLabel("New time to live (s)").fill("5000");
    await page.getByRole("button", { name: "Respawn 3 jobs" }).click();
    await flash(page, `Respawned 3 dead jobs in ${ns}/many.`);
    for (const id of ids.slice(0, 3)) assert.ok((await api.job(id)).ttl <= 5_000);
    assert.equal((await api.deadLetter()).deadletter_head, ids[3]);

    await page.getByRole("radio", { name: "the oldest" }).check();
    await page.getByLabel("How many of the oldest").fill("2");
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("heading", { name: "Delete the 2 oldest dead jobs?" }).waitFor();
    await page.getByRole("button", { name: "Delete 2 jobs" }).click();
    await flash(page, `Deleted 2 dead jobs in ${ns}/many.`);
    assert.equal((await api.deadLetter()).deadletter_head, ids[5]);

    await page.goto(`/ui/dead?ns=${ns}&queue=man`);
    assert.equal(await rows(page).count(), 1);
    await page.getByRole("button", { name: "Respawn all 3…" }).click();
    const question = page.getByRole("dialog");
    await question.getByRole("heading", { name: "Respawn 3 jobs?" }).waitFor();
    await question.getByRole("button", { name: "Respawn 3 jobs" }).click();
    await flash(page, `Respawned 3 dead jobs in ${ns}/many.`);
    await page.getByText("No matching dead letters.").waitFor();
    assert.equal(await api.size(), 6);

  });

  test("the overview shows dead letters with their age and a button to respawn them", async (page, url) => {
    const api = queue(url, "loud");
    await api.dead(...Array.from({ length: 12 }, (_, i) => `${i}`));
    await page.goto("/ui");
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: `${ns}/loud` });
    await problem.getByText(/12 dead jobs in \w+\/loud, the oldest dead for \d/).waitFor();
    await problem.getByRole("button", { name: "Respawn all 12…" }).click();
    await problem.getByRole("button", { name: "Respawn 12 jobs" }).click();
    await flash(page, `Respawned 12 dead jobs in ${ns}/loud.`);
    assert.equal(await api.size(), 12);
    await page.goto(`/ui/lmstfy/${ns}/loud/dead`);
    await page.getByText("No dead jobs. A job is published with a number of tries").waitFor();
  });

  test("an invalid time to live is rejected", async (page, url) => {
    const api = queue(url, "refused");
    const [id] = await api.dead("stays");
    const answer = await fetch(`${url}/ui/fn/respawn_jobs`, {
      method: "POST",
      redirect: "manual",
      headers: { "sec-fetch-site": "same-origin", accept: "text/html", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ protocol: "lmstfy", namespace: ns, queue: "refused", "ids[]": id, ttl: "a day", back: "/ui" }),
    });
    assert.equal(answer.status, 303);
    assert.match(decodeURIComponent(answer.headers.get("set-cookie")), /refused\.The time to live must be a whole number of seconds/);
    assert.equal((await api.deadLetter()).deadletter_size, 1);
    await page.goto(`/ui/lmstfy/${ns}/refused/dead`);
    await page.getByRole("link", { name: id, exact: true }).waitFor();
  });
}

dashboard.test("the response to an incomplete form is a page", async ({ url }) => {
  const place = "protocol=lmstfy&namespace=shop&queue=orders";
  for (const [form, body] of [
    ["respawn", `${place}&ttl=0&back=/ui`], ["respawn", `${place}&count=-1&ttl=0&back=/ui`], ["respawn_jobs", `${place}&back=/ui`],
    ["respawn", "protocol=none&queue=q&count=1&ttl=0&back=/ui"], ["delete_dead", `${place}&back=/ui`], ["delete_dead_jobs", place],
    ["delete_job", `${place}&back=/ui`], ["destroy_queue", "protocol=lmstfy&back=/ui"], ["revoke_token", "namespace=shop&back=/ui"],
  ]) {
    const answer = await fetch(`${url}/ui/fn/${form}`, {
      method: "POST",
      headers: { "sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded", referer: `${url}/ui/dead` },
      body,
    });
    assert.equal(answer.status, 400, `${form} ${body}`);
    assert.match(await answer.text(), /Invalid request/);
  }
});

dashboard.test("a list of dead jobs says how many are new, and keeps selected rows and typed text", async ({ page, url }) => {
  const api = lmstfy(url, "moving", "queue");
  const [first] = await api.dead("first");
  await page.goto("/ui/lmstfy/moving/queue/dead");
  await page.locator("[data-state=Live]").waitFor();
  await page.getByLabel(`Select job ${first}`).check();
  await page.getByLabel("How many of the oldest").fill("7");
  const [second] = await api.dead("second");
  await page.getByRole("button", { name: "1 new", exact: true }).click();
  await page.getByLabel(`Select job ${second}`).waitFor();
  assert.ok(await page.getByLabel(`Select job ${first}`).isChecked());
  assert.ok(!(await page.getByLabel(`Select job ${second}`).isChecked()));
  assert.equal(await page.getByLabel("How many of the oldest").inputValue(), "7");
});

dashboard.test("a question keeps its number while more jobs die", async ({ page, url }) => {
  const api = lmstfy(url, "asked", "queue");
  await api.dead("first");
  await page.goto("/ui/lmstfy/asked/queue/dead");
  await page.getByRole("radio", { name: /^all/ }).check();
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("heading", { name: "Delete the only dead job?" }).waitFor();
  await live(page);
  const [second] = await api.dead("second");
  await page.getByLabel(`Select job ${second}`).waitFor();
  await page.getByRole("button", { name: "Delete 1 job", exact: true }).click();
  await flash(page, "Deleted 1 dead job in asked/queue.");
  assert.equal((await api.deadLetter()).deadletter_head, second);
});
