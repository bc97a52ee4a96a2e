// Relay in the dashboard: queues, jobs with payload and state, requeuing dead jobs. With and without JavaScript.

import assert from "node:assert/strict";
import { assertAccessible, assertEachPresentable, assertPresentable, flash, inEachLook, screenshot, startDashboard } from "./dashboard.js";
import { client, lmstfy, relay } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });
/** A name as a path segment of the dashboard. */
const segment = (name) => (name === "" ? "~" : encodeURIComponent(name));

/** Addresses of the dead jobs of a queue, oldest first. */
async function dead(page, queue) {
  await page.goto(`/ui/relay/${segment(queue)}/dead`);
  return page.locator("tbody th a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
}

/** Creates jobs of every kind, once per server. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const orders = relay(url, "orders");
    await orders.enqueue("a/b c", '{"big": 12345678901234567890,  "b": "<b>&amp;", "one": 1.0}', { retries: 1, state: '[1.0,  "<i>"]' });
    await orders.enqueue("later", "null", { runAt: "2100-01-01T00:00:00Z", retries: null });
    await orders.enqueue("日本", '"text"');
    await orders.enqueue("", "1");
    await orders.enqueue("x".repeat(1_024), "{}");
    const imports = relay(url, "imports");
    await imports.enqueue("run", '{"file": "a.csv"}', { timeout: 3_600, retries: 3 });
    await imports.beat(await imports.next(), '{"row": 12}');
    await relay(url, "mail").dead("welcome", "welcome", "a-name-that-is-rather-long-and-has-no-place-to-break-anywhere-at-all-wherever-one-looks");
    await relay(url, "").dead("");
    await relay(url, "a/b ü").enqueue("..", "[]");
    await client(url).add("orders", {}, "letter");
    await lmstfy(url, "shop", "mail").dead("x");
  })();
  return filled;
}

const pages = [
  "/ui", "/ui/queues", "/ui/queues?q=orders", "/ui/relay/orders", "/ui/relay/orders/scheduled", "/ui/relay/orders/running",
  "/ui/relay/orders/dead", "/ui/relay/orders/stats", "/ui/relay/imports/running", "/ui/relay/mail/dead", "/ui/relay/mail/dead?select=all",
  "/ui/relay/mail/dead?do=enqueue&of=all", "/ui/relay/mail/dead?do=delete&of=oldest&n=2", "/ui/relay/mail/dead?do=delete&of=selected",
  "/ui/relay/mail/stats", "/ui/relay/~", "/ui/relay/~/dead", "/ui/relay/a%2Fb%20%C3%BC", "/ui/dead", "/ui/dead?queue=mail",
  "/ui/relay/orders/job/a%2Fb%20c", "/ui/relay/orders/job/later", "/ui/relay/orders/job/~", `/ui/relay/orders/job/${segment("日本")}`,
  `/ui/relay/orders/job/${"x".repeat(1_024)}`, "/ui/relay/imports/job/run", "/ui/relay/a%2Fb%20%C3%BC/job/~..",
];

dashboard.test("the overview of an empty server shows how to enqueue a Relay job", async ({ page, url }) => {
  await page.goto("/ui");
  const lines = await page.getByRole("region", { name: "With Relay" }).locator("code").allInnerTexts();
  assert.equal(lines.length, 2);
  assert.match(lines[0], /\/v2\/queues\/jobs/);
  await page.goto("/ui/dead");
  await page.getByText("A Relay job is enqueued with a number of").waitFor();
  await assertAccessible(page);
  assert.ok(lines[1].includes(`${url}/v2/queues/mail/jobs`));
});

dashboard.test("every page is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  const letters = [...(await dead(page, "mail")), ...(await dead(page, ""))];
  assert.equal(letters.length, 4);
  await assertEachPresentable({ page, part }, [...pages, ...letters], { picture: "relay" });
  await part("the question", async () => {
    await page.getByRole("button", { name: "Requeue…" }).click();
    await inEachLook(page, [1440, 390, 320], async ({ look, width }) => {
      await assertPresentable(page, look);
      if (width !== 320) await screenshot(page, `relay-question-${look}`);
    });
  });
});

dashboard.test("unknown queues and jobs are 404 in the frame", { expected: /404/ }, async ({ page, url }) => {
  await fill(url);
  const [letter] = (await dead(page, "mail")).map((address) => address.split("/").at(-1));
  for (const path of [
    "/ui/relay/none", "/ui/relay/orders/nonsense", "/ui/relay/orders/failed", "/ui/relay/orders/stalled", "/ui/relay/none/stats",
    "/ui/relay/orders/job/none", "/ui/relay/mail/job/welcome", `/ui/relay/orders/dead/${letter}`, "/ui/relay/mail/dead/0",
    "/ui/relay/mail/dead/nonsense", "/ui/relay/mail/dead/99999999999999999999", "/ui/jobs/welcome", `/ui/lmstfy/~/mail/job/welcome`,
  ]) {
    const answer = await page.goto(path);
    assert.equal(answer.status(), 404, path);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Not found");
  }
});

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const own = javaScriptEnabled ? "with" : "without";
  const test = (name, body, options = {}) =>
    dashboard.test(`${name}, ${how}`, { javaScriptEnabled, ...options }, ({ page, url }) => body(page, url));
  const queue = (url, name) => relay(url, `${own}/${name}`);
  const at = (name) => `/ui/relay/${segment(`${own}/${name}`)}`;
  const fact = (page, name) => page.locator("main dl > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd");

  test("a queue is distinguished from one of the same name, has its own tabs, and can be paused and resumed", async (page, url) => {
    const api = queue(url, "twin");
    await api.enqueue("1");
    await client(url).add(`${own}/twin`, {}, `${own}-relay-twin`);
    await page.goto(`/ui/queues?q=${segment(`${own}/twin`)}`);
    await page.getByRole("row", { name: `${own}/twin relay` }).getByRole("link").click();
    assert.equal(new URL(page.url()).pathname, at("twin"));
    const tabs = page.getByRole("navigation", { name: "This queue" }).getByRole("link");
    assert.deepEqual(
      (await tabs.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim()),
      ["waiting 1", "scheduled 0", "running 0", "dead 0", "statistics"],
    );
    assert.equal(await page.getByRole("link", { name: "Options…" }).count(), 0);
    assert.equal(await page.getByRole("button", { name: "Destroy…" }).count(), 0);
    await page.getByRole("button", { name: `Pause queue ${own}/twin` }).click();
    await flash(page, `Queue “${own}/twin” paused. Workers get no jobs from it.`);
    assert.equal(await api.next(), undefined);
    await page.goto("/ui");
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: `${own}/twin` });
    await problem.getByText("relay").waitFor();
    await problem.getByRole("button", { name: `Resume queue ${own}/twin` }).click();
    await flash(page, `Queue “${own}/twin” resumed.`);
    assert.equal((await api.next()).id, "1");
    await page.getByRole("row", { name: /^relay/ }).waitFor();
    await page.goto(`${at("twin")}/stats`);
    await page.getByText("claimed").first().waitFor();
  });

  test("a job shows payload, state and run unchanged, and can be deleted while it is running", async (page, url) => {
    const api = queue(url, "jobs");
    await api.enqueue("a/b c", '{"big": 12345678901234567890, "b": "<b>&amp;", "one": 1.0}', { timeout: 90, retries: 1 });
    await page.goto(at("jobs"));
    await page.getByRole("row", { name: "a/b c" }).getByText("1 of 1").waitFor();
    await page.getByRole("link", { name: "a/b c" }).click();
    assert.equal(await page.locator("#payload").textContent(), '{\n  "big": 12345678901234567890,\n  "b": "<b>&amp;",\n  "one": 1.0\n}');
    await page.getByText("No state. It is set when the job is enqueued").waitFor();
    await page.getByText(`enqueued in ${own}/jobs`).waitFor();
    const run = await api.next();
    assert.equal(await api.beat(run, '{"step": 2.0}'), 202);
    await page.reload();
    assert.equal(await page.locator("#state").textContent(), '{\n  "step": 2.0\n}');
    assert.equal(await fact(page, "Run").textContent(), run.run_id);
    assert.match(await fact(page, "Timeout").textContent(), /^90 s/);
    assert.match(await fact(page, "Retries left").textContent(), /^1 of 1/);
    for (const name of ["Timeout ends", "Run at", "Updated", "Enqueued"]) assert.match(await fact(page, name).textContent(), /UTC/, name);
    await page.getByText("run started").waitFor();
    await page.getByText("API call (curl)").click();
    const lines = await page.locator("dl code").allInnerTexts();
    assert.ok(lines.some((line) => line.includes(`/v2/queues/${segment(`${own}/jobs`)}/jobs/a%2Fb%20c/run-id/${run.run_id}`)), lines.join("\n"));
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByText("its next heartbeat gets a 404").waitFor();
    await page.getByRole("button", { name: "Delete job" }).click();
    await flash(page, "Job “a/b c” deleted.");
    assert.equal(new URL(page.url()).pathname, `${at("jobs")}/running`);
    assert.equal(await api.beat(run), 404);
  });

  test("unlimited retries are shown, and any ID has a page", async (page, url) => {
    const api = queue(url, "ids");
    const ids = ["", "..", "~", " ", "?#%2F", "日本", "é".repeat(1_024)];
    for (const id of ids) await api.enqueue(id, JSON.stringify({ id }), { retries: null });
    await page.goto(at("ids"));
    const links = await page.locator("tbody th a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    assert.equal(links.length, ids.length);
    for (const [index, link] of links.entries()) {
      await page.goto(link);
      assert.deepEqual(JSON.parse(await page.locator("#payload").textContent()), { id: ids[index] });
      assert.match(await fact(page, "Retries left").textContent(), /^unlimited/);
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByRole("button", { name: "Delete job" }).click();
      await flash(page, /deleted\.$/);
      assert.equal(await api.job(ids[index]).catch(() => null), null);
    }
    await page.goto(at("ids"));
    await page.getByText("No waiting jobs. Jobs appear here when they are enqueued").waitFor();
  });

  test("a dead job has its own page, and can be requeued unless its ID is in use", async (page, url) => {
    const api = queue(url, "one");
    await api.dead("twin", "twin");
    await page.goto(`/ui/dead?queue=${segment(`${own}/one`)}`);
    await page.getByRole("link", { name: `Open the dead jobs of ${own}/one` }).click();
    const twins = page.getByRole("link", { name: "twin", exact: true });
    await twins.nth(1).waitFor();
    assert.equal(await twins.count(), 2);
    await twins.first().click();
    assert.match(new URL(page.url()).pathname, /\/dead\/\d+$/);
    const first = page.url();
    assert.equal(await page.locator("#payload").textContent(), '{\n  "dead": "twin"\n}');
    assert.equal(await page.locator("#state").textContent(), '{\n  "step": 1\n}');
    assert.match(await fact(page, "Retries left").textContent(), /^0 of 0/);
    await page.getByText("dead-lettered: no retries left").waitFor();
    assert.equal(await page.getByLabel("New time to live (s)").count(), 0);
    await page.getByRole("button", { name: "Requeue…" }).click();
    await page.getByRole("button", { name: "Requeue job" }).click();
    await flash(page, "Job requeued with its payload and last state.");
    assert.equal(new URL(page.url()).pathname, `${at("one")}/job/twin`);
    await page.getByText("requeued", { exact: true }).waitFor();
    assert.deepEqual((await api.job("twin")).state, { step: 1 });

    await page.goto(`${at("one")}/dead`);
    await page.getByRole("link", { name: "twin", exact: true }).click();
    const second = page.url();
    assert.notEqual(second, first);
    await page.getByRole("button", { name: "Requeue…" }).click();
    await page.getByRole("button", { name: "Requeue job" }).click();
    await flash(page, `Job "twin" already exists in queue "${own}/one"; nothing was changed`);
    assert.equal(page.url(), second);
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete job" }).click();
    await flash(page, `Deleted 1 dead job in ${own}/one.`);
    assert.equal(new URL(page.url()).pathname, `${at("one")}/dead`);
    assert.equal((await api.job("twin")).id, "twin", "its twin lives");
  });

  test("selected dead jobs are requeued or deleted after a confirmation", async (page, url) => {
    const api = queue(url, "several");
    const ids = ["a", "b", "b", "c", "d"];
    await api.dead(...ids);
    await page.goto(`${at("several")}/dead`);
    await page.getByRole("button", { name: "Requeue…" }).click();
    await page.getByText("No jobs selected.").waitFor();
    const boxes = page.locator("tbody input[type=checkbox]");
    for (const index of [0, 1, 2]) await boxes.nth(index).check();
    await page.getByRole("button", { name: "Requeue…" }).click();
    await page.getByRole("heading", { name: "Requeue 3 selected jobs?" }).waitFor();
    assert.equal(await page.locator("tbody input[type=checkbox]:checked").count(), 3, "they stay ticked");
    assert.equal(await page.getByLabel("New time to live (s)").count(), 0);
    await page.getByRole("button", { name: "Requeue 3 jobs" }).click();
    await flash(page, `Requeued 2 of 3 dead jobs in ${own}/several. 1 stays dead because its ID is used by another job in the queue.`);
    assert.equal((await api.job("b")).id, "b");

    await boxes.nth(0).check();
    await boxes.nth(2).check();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("heading", { name: "Delete 2 selected jobs?" }).waitFor();
    await page.getByRole("button", { name: "Delete 2 jobs" }).click();
    await flash(page, `Deleted 2 dead jobs in ${own}/several.`);
    assert.equal((await api.job("b")).id, "b", "it lives");
    await page.getByRole("link", { name: "Requeue job c…" }).click();
    await page.getByRole("button", { name: "Requeue 1 job" }).click();
    await flash(page, `Requeued 1 dead job in ${own}/several.`);
    assert.equal((await api.job("c")).id, "c");
  });

  test("the oldest or all are requeued or deleted, in the confirmed number", async (page, url) => {
    const api = queue(url, "many");
    await api.dead(..."abcdefgh");
    const oldest = async (n, button) => {
      await page.goto(`${at("many")}/dead`);
      await page.getByRole("radio", { name: "the oldest" }).check();
      await page.getByLabel("How many of the oldest").fill(`${n}`);
      await page.getByRole("button", { name: button }).click();
    };
    await api.enqueue("b", '"another"');
    await oldest(3, "Requeue…");
    await page.getByRole("heading", { name: "Requeue the 3 oldest dead jobs?" }).waitFor();
    await page.getByRole("button", { name: "Requeue 3 jobs" }).click();
    await flash(page, `Requeued 2 of 3 dead jobs in ${own}/many. 1 stays dead`);
    assert.equal((await api.job("b")).payload, "another");
    await oldest(2, "Delete…");
    await page.getByRole("heading", { name: "Delete the 2 oldest dead jobs?" }).waitFor();
    await page.getByRole("button", { name: "Delete 2 jobs" }).click();
    await flash(page, `Deleted 2 dead jobs in ${own}/many.`);
    await page.goto("/ui");
    const problem = page.getByRole("list", { name: "Problems" }).getByRole("listitem").filter({ hasText: `${own}/many` });
    await problem.getByText(/4 dead jobs in \w+\/many, the oldest dead for \d/).waitFor();
    await problem.getByRole("button", { name: "Requeue all 4…" }).click();
    await problem.getByRole("button", { name: "Requeue 4 jobs" }).click();
    await flash(page, `Requeued 4 dead jobs in ${own}/many.`);
    for (const id of "efgh") assert.equal((await api.job(id)).id, id);
    await page.goto(`${at("many")}/dead`);
    await page.getByText("No dead jobs. A job can have a limited number of retries").waitFor();
  });

  test("actions of one protocol do not affect jobs of another", async (page, url) => {
    await queue(url, "walls").dead("stays");
    await lmstfy(url, own, "walls").dead("stays");
    const post = async (form, fields) => {
      const answer = await fetch(`${url}/ui/fn/${form}`, {
        method: "POST",
        redirect: "manual",
        headers: { "sec-fetch-site": "same-origin", accept: "text/html", "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ back: "/ui", ...fields }),
      });
      assert.equal(answer.status, 303, form);
      return decodeURIComponent(answer.headers.get("set-cookie"));
    };
    const ofRelay = { protocol: "relay", queue: `${own}/walls` };
    const ofLmstfy = { protocol: "lmstfy", namespace: own, queue: "walls" };
    assert.match(await post("respawn", { ...ofRelay, count: 1, ttl: 0 }), /refused\..*relay queues do not support this action/);
    assert.match(await post("destroy_queue", ofRelay), /refused\./);
    assert.match(await post("revive", { ...ofLmstfy, count: 1 }), /refused\..*lmstfy queues do not support this action/);
    await page.goto(`${at("walls")}/dead?do=respawn&of=all`);
    assert.equal(await page.locator("#question").count(), 0);
    await page.goto(`/ui/lmstfy/${own}/walls/dead?do=enqueue&of=all`);
    assert.equal(await page.locator("#question").count(), 0);
    await page.getByText("all 1").waitFor();
  });
}

dashboard.test("a job's page updates live", async ({ page, url }) => {
  const api = relay(url, "moving");
  await api.enqueue("job");
  await page.goto("/ui/relay/moving/job/job");
  await page.locator("[data-state=Live]").waitFor();
  const run = await api.next();
  await page.getByText("run started").waitFor();
  await api.beat(run, '{"row": 7}');
  await page.locator("#state").getByText("7").waitFor();
});
