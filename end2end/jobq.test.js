// Jobq in the dashboard: creating queues, records by state and by query, compare-and-set. With and without JavaScript.

import assert from "node:assert/strict";
import {
  assertAccessible, assertEachPresentable, assertPresentable, flash, inEachLook, otherPageHasChanged, screenshot,
  startDashboard,
} from "./dashboard.js";
import { client, jobq, relay } from "./client.js";

const dashboard = startDashboard();
const segment = encodeURIComponent;

const HOSTILE = '<img src=x onerror="alert(1)"></textarea></code><b>&amp;';
const hostile = JSON.stringify(HOSTILE);
const CREATED = `[["IS", "json_extract(state, '$[0]')", "CREATED"]]`;
const REFUSED = `[["IS", "j.state", null], ["=", "json_extract(state, '$[0]') = (SELECT 1)", "1"]]`;

/** Creates jobs of every kind, once per server. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const hosts = jobq(url, "hosts");
    await hosts.make();
    for (const host of ["db", "web", "mail"]) await hosts.create(`{"host": "${host}", "serial": 12345678901234567890}`, '["CREATED"]');
    const first = await hosts.create('{"host": "<b>&amp;", "one": 1.0}');
    await hosts.advance(first, "null", '["ASSIGNED", {"node": 1}]');
    await hosts.append(first, `{"progress": 0.5, "log": "${"a long line of a log ".repeat(20)}"}`);
    await hosts.advance(first, '["ASSIGNED", {"node": 1}]', `["FAILED", {"why": ${hostile}, "more": "${"x".repeat(300)}"}]`);
    for (const state of ['"done"', "5", '{"tag": "odd"}', "[1, 2]", `["a-state-that-is-rather-long-and-has-no-place-to-break-anywhere-at-all-wherever-one-looks"]`]) {
      await hosts.create("{}", state);
    }
    await jobq(url, "empty").make();
    await jobq(url, "a-queue-with-a-name_that_is-rather-long-and-has-no-place-to-break-anywhere-at-all").make();
    const odd = jobq(url, HOSTILE);
    await odd.make();
    await odd.create(hostile, `[${hostile}]`);
    const many = jobq(url, "many");
    await many.make();
    for (let n = 0; n < 50; n += 1) await many.create(`{"n": ${n}}`, `["STATE ${n % 20}"]`);
    await client(url).add("mail", {}, "letter");
    await relay(url, "mail").enqueue("letter");
  })();
  return filled;
}

const pages = [
  "/ui", "/ui/queues", "/ui/queues?q=hosts", "/ui/queues?new=12#new", "/ui/jobq/hosts", `/ui/jobq/hosts?state=${segment('["CREATED"')}`,
  "/ui/jobq/hosts?state=null", "/ui/jobq/hosts?others=1", `/ui/jobq/hosts?q=${segment(CREATED)}`, `/ui/jobq/hosts?q=${segment(REFUSED)}`,
  `/ui/jobq/hosts?q=${segment("[[nonsense")}`, `/ui/jobq/hosts?q=${segment('[["=", "id", 99]]')}`, "/ui/jobq/empty", "/ui/jobq/many",
  "/ui/jobq/many?offset=50", `/ui/jobq/${segment(HOSTILE)}`, `/ui/jobq/${segment(HOSTILE)}/job/1`,
  "/ui/jobq/a-queue-with-a-name_that_is-rather-long-and-has-no-place-to-break-anywhere-at-all", "/ui/jobq/hosts/job/1",
  "/ui/jobq/hosts/job/4",
];

dashboard.test("the overview of an empty server shows how to create a Jobq queue", async ({ page, url }) => {
  await page.goto("/ui");
  const lines = await page.getByRole("region", { name: "With Jobq" }).locator("code").allInnerTexts();
  assert.equal(lines.length, 3);
  assert.ok(lines[0].includes(`${url}/api/v0/queue' -d '{"name": "hosts"}'`), lines[0]);
  await page.getByRole("link", { name: "on the Queues page" }).click();
  await page.getByLabel("Name (up to 255 characters, not a number)").waitFor();
  await page.getByText("No queues yet.").waitFor();
  await assertAccessible(page);
});

dashboard.test("every page is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  await assertEachPresentable({ page, part }, pages, { picture: "jobq" });
});

dashboard.test("forms, conflicts and questions are accessible and fit in each look", async ({ page, url }) => {
  await fill(url);
  const presentable = (name) => inEachLook(page, [1440, 390, 320], async ({ look, width }) => {
    await assertPresentable(page, `${name} ${look}`);
    if (width !== 320) await screenshot(page, `jobq-${name}-${look}`);
  });
  const api = jobq(url, "hosts");
  await page.goto(`/ui/jobq/hosts?q=${segment(CREATED)}`);
  await page.getByText("Examples and API call (curl)").click();
  await presentable("help");
  await page.getByRole("heading", { name: "Create job" }).click();
  await page.getByLabel("Payload (JSON)").fill('{"a": }');
  await page.getByLabel("State (JSON, optional)").fill("[");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Not valid JSON: see line 1, column 7.").waitFor();
  await presentable("wrong");
  const id = await api.create('{"host": "twin"}', '["CREATED"]');
  await page.goto(`/ui/jobq/hosts/job/${id}`);
  await page.getByLabel("New state (JSON)").fill('["ASSIGNED", {"node": 1}]');
  await api.advance(id, '["CREATED"]', '["ASSIGNED", {"node": 2}]');
  await page.getByRole("button", { name: "Set state" }).click();
  await page.getByRole("heading", { name: "State not set" }).waitFor();
  await presentable("conflict");
  await page.getByRole("button", { name: "Delete…" }).click();
  await presentable("question");
});

dashboard.test("unknown queues and records are 404 in the frame", { expected: /404/ }, async ({ page, url }) => {
  await fill(url);
  for (const path of [
    "/ui/jobq/none", "/ui/jobq/hosts/stats", "/ui/jobq/hosts/record", "/ui/jobq/hosts/job/99", "/ui/jobq/hosts/job/none", "/ui/jobq/hosts/job/01",
    "/ui/jobq/none/job/1", "/ui/queues/hosts", "/ui/relay/hosts", "/ui/jobs/1",
  ]) {
    assert.equal((await page.goto(path)).status(), 404, path);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), "Not found");
  }
});

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const own = javaScriptEnabled ? "with" : "without";
  const test = (name, body) => dashboard.test(`${name}, ${how}`, { javaScriptEnabled }, ({ page, url }) => body(page, url));
  const queue = async (url, name) => {
    const api = jobq(url, `${own}/${name}`);
    await api.make();
    return api;
  };
  const at = (name) => `/ui/jobq/${segment(`${own}/${name}`)}`;
  const fact = (page, name) => page.locator("main dl > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd");
  const tabs = async (page) => {
    const links = page.getByRole("navigation", { name: "This queue" }).getByRole("link");
    return (await links.allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());
  };
  const ids = (page) => page.locator("tbody th").allInnerTexts();

  test("a queue can be created, is listed with its records, and can be deleted with them", async (page, url) => {
    const name = `${own}/${HOSTILE}`;
    await page.goto("/ui/queues");
    await page.getByText("Create a Jobq queue").click();
    await page.getByLabel("Name (up to 255 characters, not a number)").fill("12");
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, "The name must not be a number; it could be mistaken for an ID.");
    assert.equal(await page.getByLabel("Name (up to 255 characters, not a number)").inputValue(), "12");
    await page.getByLabel("Name (up to 255 characters, not a number)").fill(name);
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, `Queue “${name}” created.`);
    assert.equal(await page.getByRole("heading", { level: 1 }).textContent(), name);
    await page.getByText("No jobs.").waitFor();
    assert.equal(await page.getByRole("button", { name: /Pause queue/ }).count(), 0);
    assert.equal(await page.getByRole("link", { name: "statistics", exact: true }).count(), 0);
    await page.goto("/ui/queues?new=#new");
    await page.getByLabel("Name (up to 255 characters, not a number)").fill(name);
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, "already exists");
    const api = jobq(url, name);
    await api.create();
    await api.create();

    await page.goto(`/ui/queues?q=${segment(own)}/%3Cimg`);
    const row = page.getByRole("row").filter({ hasText: "<img" });
    await row.getByText("jobq", { exact: true }).waitFor();
    assert.equal(await row.locator("td").nth(-4).innerText(), "2");
    await page.getByRole("columnheader", { name: "Jobq jobs" }).getByRole("link").click();
    assert.match(page.url(), /sort=record/);
    await page.goto("/ui");
    await page.getByRole("row", { name: /^jobq/ }).waitFor();
    await page.goto(`/ui/jobq/${segment(name)}`);
    await page.getByRole("button", { name: "Delete…", exact: true }).click();
    await page.getByText("Deletes 2 jobs with payload, state and log.").waitFor();
    await page.getByRole("button", { name: "Delete queue and 2 jobs" }).click();
    await flash(page, `Queue “${name}” and its jobs deleted.`);
    assert.equal(new URL(page.url()).pathname, "/ui/queues");
    assert.ok(!(await api.names()).includes(name));
    assert.equal(await page.getByRole("row").filter({ hasText: "<img" }).filter({ hasText: own }).count(), 0);
  });

  test("records are grouped by state, most frequent first", async (page, url) => {
    const api = await queue(url, "states");
    const created = [];
    for (let n = 0; n < 3; n += 1) created.push(await api.create(`{"n": ${n}}`, '["CREATED"]'));
    const bare = [await api.create(), await api.create()];
    const odd = await api.create("{}", '{"tag": "odd"}');
    await api.append(created[0], '"touched"');
    await page.goto(at("states"));
    assert.deepEqual(await tabs(page), ["all 6", "CREATED 3", "no state 2", "states without a label 1"]);
    assert.deepEqual((await ids(page)).map(Number), [created[1], created[2], ...bare, odd, created[0]]);
    const first = page.locator("tbody tr").first();
    await first.getByText('["CREATED"]').waitFor();
    await page.locator("tbody tr").last().getByRole("cell", { name: "2", exact: true }).waitFor();
    await page.getByRole("link", { name: "CREATED 3" }).click();
    assert.deepEqual((await ids(page)).map(Number), [created[1], created[2], created[0]]);
    await page.getByRole("link", { name: "no state 2" }).click();
    assert.deepEqual((await ids(page)).map(Number), bare);
    await page.getByRole("link", { name: "states without a label 1" }).click();
    assert.deepEqual((await ids(page)).map(Number), [odd]);
    assert.equal(await page.locator(".tab[aria-current]").innerText().then((text) => text.replace(/\s+/g, " ")), "states without a label 1");
    await page.getByRole("link", { name: "all 6" }).click();
    assert.equal((await ids(page)).length, 6);
  });

  test("rare states are collapsed, and lists have pages", async (page, url) => {
    await fill(url);
    await page.goto("/ui/jobq/many");
    assert.equal((await tabs(page)).length, 13);
    assert.equal((await ids(page)).length, 20);
    await page.getByRole("link", { name: "Next" }).click();
    assert.equal((await ids(page)).length, 20);
    await page.getByRole("link", { name: "Next" }).click();
    assert.equal((await ids(page)).length, 10);
    await page.getByText("8 more states").click();
    await page.getByRole("link", { name: "STATE 15 2" }).click();
    assert.equal((await ids(page)).length, 2);
    assert.equal((await tabs(page)).at(-1), "STATE 15 2");
  });

  test("a record can be created; invalid JSON is reported at its field and kept", async (page, url) => {
    const api = await queue(url, "create");
    await page.goto(at("create"));
    const payload = `{"big": 12345678901234567890, "one": 1.0,\n "x": ${hostile}}`;
    await page.getByLabel("Payload (JSON)").fill(payload);
    await page.getByLabel("State (JSON, optional)").fill(`[${hostile}`);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("Not valid JSON: it ends too early.").waitFor();
    assert.equal(await page.getByLabel("State (JSON, optional)").getAttribute("aria-invalid"), "true");
    assert.equal(await page.getByLabel("Payload (JSON)").getAttribute("aria-invalid"), null);
    assert.equal(await page.getByLabel("Payload (JSON)").inputValue(), payload);
    assert.equal(await page.getByLabel("State (JSON, optional)").inputValue(), `[${hostile}`);
    assert.deepEqual(await api.jobs(), []);
    // Causes a refresh of live pages. The user's input must be kept.
    await jobq(url, "elsewhere").make().catch(() => {});
    if (javaScriptEnabled) await otherPageHasChanged(page, url);
    assert.equal(await page.getByLabel("Payload (JSON)").inputValue(), payload);
    await page.getByLabel("State (JSON, optional)").fill(`[${hostile}]`);
    await page.getByRole("button", { name: "Create" }).click();
    await flash(page, /Job \d+ created\./);
    assert.match(new URL(page.url()).pathname, /\/job\/\d+$/);
    const [job] = await api.jobs();
    assert.deepEqual(job.state, [HOSTILE]);
    const shown = await page.locator("#payload").textContent();
    assert.ok(shown.includes("12345678901234567890") && shown.includes('"one": 1.0') && shown.includes("<img"), shown);
    assert.equal(await page.locator("main img").count(), 0);
    await page.goto(at("create"));
    assert.deepEqual(await tabs(page), ["all 1", `${HOSTILE} 1`]);
    assert.equal(await page.locator("main img").count(), 0);
    await page.goto(`${at("create")}?q=${segment(HOSTILE)}`);
    assert.equal(await page.getByLabel("Query: a list of").inputValue(), HOSTILE);
    assert.equal(await page.locator("main img").count(), 0);
  });

  test("a query finds records, and is part of the address", async (page, url) => {
    const api = await queue(url, "query");
    const db = await api.create('{"host": "db"}', '["CREATED"]');
    await api.create('{"host": "web"}');
    const again = await api.create('{"host": "db"}', '["CREATED"]');
    await page.goto(at("query"));
    const box = page.getByLabel("Query: a list of");
    await box.fill(CREATED);
    await page.getByRole("button", { name: "Find jobs" }).click();
    await page.getByRole("heading", { name: "2 matching jobs" }).waitFor();
    assert.deepEqual((await ids(page)).map(Number), [db, again]);
    assert.equal(await box.inputValue(), CREATED);
    assert.equal(new URL(page.url()).searchParams.get("q"), CREATED);
    await page.getByText("Examples and API call (curl)").click();
    const line = await page.locator("#curl-query-0").innerText();
    assert.ok(line.includes(`/api/v0/queue/${segment(`${own}/query`)}/query_jobs`) && line.includes("CREATED"), line);
    const examples = await page.locator("#examples a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
    assert.equal(examples.length, 8);
    for (const example of examples) {
      await page.goto(example);
      await page.getByRole("heading", { name: /matching jobs?$/ }).waitFor();
    }
    await page.getByText("Examples and API call (curl)").click();
    await page.getByRole("listitem").filter({ hasText: "no state" }).getByRole("link").click();
    await page.getByRole("heading", { name: "1 matching job" }).waitFor();
    assert.equal(await box.inputValue(), '[["IS", "j.state", null]]');
    await box.fill('[["=", "id", 99]]');
    await page.getByRole("button", { name: "Find jobs" }).click();
    await page.getByRole("heading", { name: "No matching jobs" }).waitFor();
    await page.getByRole("link", { name: "Show all jobs" }).click();
    assert.equal((await ids(page)).length, 3);
  });

  test("a rejected query shows the place of its error", async (page, url) => {
    const api = await queue(url, "refused");
    await api.create();
    await page.goto(at("refused"));
    const box = page.getByLabel("Query: a list of");
    const ask = async (query) => {
      await box.fill(query);
      await page.getByRole("button", { name: "Find jobs" }).click();
      await page.getByRole("heading", { name: "Invalid query" }).waitFor();
      assert.equal(await box.inputValue(), query);
      return page.locator("#found-jobs").innerText();
    };
    assert.match(await ask(REFUSED), /Triple 2, the first expression, column \d+:/);
    assert.equal(await page.locator("#found-jobs pre").textContent(), "json_extract(state, '$[0]') = (SELECT 1)");
    assert.equal(await page.locator("#found-jobs mark").count(), 1);
    assert.match(await ask('[["MATCH", "id", 1]]'), /Triple 1, the operator:\s*"?MATCH/);
    assert.match(await ask('[["=", "id"]]'), /Triple 1:\s*\["=", "id"\]/);
    assert.match(await ask('[["=", "id" 1]]'), /Not valid JSON\.\s*Line 1, column 13:/);
    assert.equal(await page.locator("#found-jobs mark").textContent(), "1");
    assert.match(await ask("{}"), /list/);
    assert.match(await ask(`[["=", "nonsense(${HOSTILE.replaceAll('"', "")})", 1]]`), /Triple 1, the first expression/);
    assert.equal(await page.locator("main img").count(), 0);
  });

  test("a record shows its log; its state can be set, an event appended, and it can be deleted", async (page, url) => {
    const api = await queue(url, "job");
    const id = await api.create('{"big": 12345678901234567890, "one": 1.0}', '["CREATED"]');
    await page.goto(at("job"));
    await page.getByRole("link", { name: `${id}`, exact: true }).click();
    assert.equal(await page.locator("#payload").textContent(), '{\n  "big": 12345678901234567890,\n  "one": 1.0\n}');
    assert.equal(await page.locator("#state").textContent(), '[\n  "CREATED"\n]');
    assert.match(await fact(page, "State").first().innerText(), /CREATED/);
    assert.equal(await fact(page, "Events").innerText(), "1");
    const field = page.getByLabel("New state (JSON)");
    assert.equal(await field.inputValue(), '["CREATED"]');
    await field.fill("[nonsense");
    await page.getByRole("button", { name: "Set state" }).click();
    await page.getByText("Not valid JSON: see line 1, column 2.").waitFor();
    assert.equal(await field.inputValue(), "[nonsense");
    await field.fill('["ASSIGNED", {"node": 1}]');
    await page.getByRole("button", { name: "Set state" }).click();
    await flash(page, `State of job ${id} set to ["ASSIGNED",{"node":1}].`);
    assert.deepEqual((await api.job(id)).state, ["ASSIGNED", { node: 1 }]);
    const history = page.getByRole("list", { name: "History" });
    assert.match(await history.innerText(), /created[\s\S]*state: \["CREATED"\] → \["ASSIGNED",\{"node":1\}\]/);

    await page.getByLabel("Event (JSON)").fill("{");
    await page.getByRole("button", { name: "Append" }).click();
    await page.getByText("Not valid JSON: it ends too early.").waitFor();
    assert.equal(await page.getByLabel("Event (JSON)").inputValue(), "{");
    const event = JSON.stringify({ said: HOSTILE, long: "y".repeat(200) });
    await page.getByLabel("Event (JSON)").fill(event);
    await page.getByRole("button", { name: "Append" }).click();
    await flash(page, "Event added to the log.");
    assert.deepEqual((await api.job(id)).events.at(-1)[1].event, JSON.parse(event));
    const folded = history.locator("details");
    assert.equal(await folded.locator("pre").isVisible(), false);
    await folded.locator("summary").click();
    assert.deepEqual(JSON.parse(await folded.locator("pre").innerText()), JSON.parse(event));
    assert.equal(await page.locator("main img").count(), 0);

    await page.getByText("API call (curl)").click();
    const lines = await page.locator("#curl-1").innerText();
    assert.ok(lines.includes(`/job/${id}/state`) && lines.includes('{"old": ["ASSIGNED",{"node":1}]'), lines);
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete job" }).click();
    await flash(page, `Job “${id}” deleted.`);
    assert.equal(new URL(page.url()).pathname, at("job"));
    assert.equal(await api.job(id), null);
  });

  test("a state that another client has changed is a conflict, and is not overwritten", async (page, url) => {
    const api = await queue(url, "conflict");
    const id = await api.create("{}", '["CREATED"]');
    await page.goto(`${at("conflict")}/job/${id}`);
    await page.getByLabel("New state (JSON)").fill('["ASSIGNED", {"node": 1}]');
    await api.advance(id, '["CREATED"]', `["ASSIGNED", ${hostile}]`);
    // A live page shows the change, but the form still compares with the state that it showed first.
    if (javaScriptEnabled) await page.locator("#state").getByText("ASSIGNED").waitFor();
    await page.getByRole("button", { name: "Set state" }).click();
    await page.getByRole("heading", { name: "State not set: it has changed since you loaded the page" }).waitFor();
    const conflict = page.locator("#conflict");
    const said = async (name) => conflict.locator("dl > div").filter({ hasText: name }).locator("dd").innerText();
    assert.equal(await said("You saw"), '["CREATED"]');
    assert.deepEqual(JSON.parse(await said("Now")), ["ASSIGNED", HOSTILE]);
    assert.equal(await said("Your value"), '["ASSIGNED", {"node": 1}]');
    assert.deepEqual((await api.job(id)).state, ["ASSIGNED", HOSTILE]);
    assert.equal((await api.job(id)).events.length, 2);
    assert.equal(await page.locator("main img").count(), 0);

    // Another client changes the state again.
    await api.advance(id, `["ASSIGNED", ${hostile}]`, '["FAILED"]');
    await page.getByRole("button", { name: "Set anyway" }).click();
    await conflict.getByText('["FAILED"]').waitFor();
    assert.deepEqual((await api.job(id)).state, ["FAILED"]);
    await page.getByRole("button", { name: "Set anyway" }).click();
    await flash(page, `State of job ${id} set to ["ASSIGNED",{"node":1}].`);
    assert.deepEqual((await api.job(id)).state, ["ASSIGNED", { node: 1 }]);
    await page.goto(`${at("conflict")}/job/${id}`);
    assert.equal(await conflict.locator("section").count(), 0);
  });
}

dashboard.test("a record's page updates live, and so does a form without user input", async ({ page, url }) => {
  const api = jobq(url, "moving");
  await api.make();
  const id = await api.create("{}", '["CREATED"]');
  await page.goto(`/ui/jobq/moving/job/${id}`);
  await page.locator("[data-state=Live]").waitFor();
  await api.advance(id, '["CREATED"]', '["ASSIGNED"]');
  await page.locator("#state").getByText("ASSIGNED").waitFor();
  assert.equal(await page.getByLabel("New state (JSON)").inputValue(), '["ASSIGNED"]');
  await page.getByLabel("New state (JSON)").fill('["FINISHED"]');
  await page.getByRole("button", { name: "Set state" }).click();
  await page.locator("#flash").getByText('set to ["FINISHED"]').waitFor();
});

dashboard.test("a list updates live; results of a query stay until it is run again", async ({ page, url, context }) => {
  const api = jobq(url, "lists");
  await api.make();
  await api.create("{}", '["CREATED"]');
  const found = await context.newPage();
  await found.goto(`/ui/jobq/lists?q=${segment(CREATED)}`);
  await found.locator("[data-state=Live]").waitFor();
  await page.goto("/ui/jobq/lists");
  await page.locator("[data-state=Live]").waitFor();
  await api.create("{}", '["CREATED"]');
  await page.getByRole("link", { name: "CREATED 2" }).waitFor();
  await page.locator("tbody tr").nth(1).waitFor();
  await found.getByRole("link", { name: "CREATED 2" }).waitFor();
  await found.getByRole("heading", { name: "1 matching job" }).waitFor();
  await found.getByRole("link", { name: "Run again" }).click();
  await found.getByRole("heading", { name: "2 matching jobs" }).waitFor();
});

dashboard.test("actions of other protocols do not affect Jobq queues, and other sites cannot post", async ({ url }) => {
  const api = jobq(url, "walls");
  await api.make();
  const id = await api.create("{}", '["CREATED"]');
  const post = (path, fields, site = "same-origin") =>
    fetch(url + path, {
      method: "POST",
      redirect: "manual",
      headers: { "sec-fetch-site": site, accept: "text/html", "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(fields),
    });
  const place = { protocol: "jobq", queue: "walls", back: "/ui", after: "/ui" };
  for (const form of ["pause_queue", "forget_queue", "destroy_queue"]) {
    const answer = await post(`/ui/fn/${form}`, place);
    assert.match(decodeURIComponent(answer.headers.get("set-cookie")), /refused\./, form);
  }
  assert.match(decodeURIComponent((await post("/ui/fn/delete_queue", { ...place, protocol: "relay" })).headers.get("set-cookie")), /refused\./);
  const advance = { do: "state", old: '["CREATED"]', new: "1" };
  assert.equal((await post(`/ui/jobq/walls/job/${id}`, advance, "cross-site")).status, 403);
  assert.equal((await post("/ui/jobq/walls", { payload: "1" }, "cross-site")).status, 403);
  assert.equal((await post("/ui/fn/delete_queue", place, "cross-site")).status, 403);
  assert.equal((await post(`/ui/jobq/walls/job/${id}`, { do: "nonsense" })).status, 400);
  assert.deepEqual((await api.job(id)).state, ["CREATED"]);
  // The form also accepts a long state.
  const long = JSON.stringify(["x".repeat(150_000)]);
  assert.equal((await post(`/ui/jobq/walls/job/${id}`, { ...advance, new: long })).status, 303);
  assert.equal((await post(`/ui/jobq/walls/job/${id}`, { ...advance, old: long, new: '"<>"' })).status, 303);
  assert.equal((await api.job(id)).state, "<>");
});
