// The search over all jobs: results, invalid searches, pages. With and without JavaScript.

import assert from "node:assert/strict";
import { assertEachPresentable, live, otherPageHasChanged, startDashboard } from "./dashboard.js";
import { client, lmstfy, relay } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });

const HOSTILE = `<img src=x onerror=alert(1)> "'&`;

/** Creates jobs of each protocol, once per server. Resolves to the ID of an lmstfy job. */
let filled;
function fill(url) {
  filled ??= (async () => {
    const api = client(url);
    await api.failed("mail", "TimeoutError", "connection reset by peer", "letter-1");
    await api.add("mail", { user: { id: 42 }, total: 99.5 }, "letter-2", { klass: "Mail::Send", tags: ["vip", "a tag that is rather long and-has-no-place-to-break-anywhere-at-all"] });
    await api.add(HOSTILE, { text: HOSTILE }, `id ${HOSTILE}`, { klass: `K ${HOSTILE}`, tags: [`T ${HOSTILE}`] });
    await relay(url, "orders").enqueue("a/b c", '{"user": {"id": 42}}');
    await relay(url, "lost").dead("gone");
    const many = Array.from({ length: 50 }, (_, i) => ({ id: `long-${String(i).padStart(3, "0")}`, meta: { i } }));
    await api.post("/add/long", many);
    return lmstfy(url, "shop", "orders").publish('{"user": {"id": 42}}', { tries: 3 });
  })();
  return filled;
}

const ids = (page) => page.locator("#hits tbody th .id").allTextContents();
const at = (q) => `/ui/jobs?q=${encodeURIComponent(q)}`;

for (const { javaScriptEnabled, how } of dashboard.modes) {
  const test = (name, body) =>
    dashboard.test(`${name}, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
      const published = await fill(url);
      await body(page, url, published);
    });

  test("a search can be saved for all users, and deleted", async (page, url) => {
    const name = `Lost <b> ${javaScriptEnabled}`;
    await page.goto(at('state:dead queue:"lost"'));
    await page.getByText("Save this search for everyone").click();
    await page.getByLabel("Name", { exact: true }).fill(name);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.locator("#flash").getByText(`Search saved as “${name}”.`).waitFor();
    await page.goto("/ui/jobs");
    const saved = page.getByRole("navigation", { name: "Saved searches" });
    await saved.getByRole("link", { name }).click();
    assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), 'state:dead queue:"lost"');
    assert.deepEqual(await ids(page), ["gone"]);
    const suggested = await page.locator("#suggested option").evaluateAll((options) => options.map(({ value }) => value)).catch(() => undefined);
    if (javaScriptEnabled) assert.ok(suggested.includes('queue:"mail"') && suggested.includes('group:"TimeoutError"'), String(suggested));
    await saved.getByRole("button", { name: `Delete saved search ${name}` }).click();
    await page.locator("#flash").getByText(`Saved search “${name}” deleted.`).waitFor();
    assert.equal(await saved.getByRole("link", { name }).count(), 0);
  });

  test("jobs of all protocols are found, and a term can be removed", async (page, url, published) => {
    await page.goto("/ui");
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Jobs", exact: true }).click();
    await page.getByRole("combobox", { name: "Search all jobs" }).fill("data.user.id:42 -queue:mail");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByText("2 jobs", { exact: true }).waitFor();
    assert.deepEqual(await ids(page), [published, "a/b c"]);
    assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), "data.user.id:42 -queue:mail");
    await page.getByRole("row", { name: "a/b c" }).getByText("relay", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Remove not queue: mail" }).click();
    await page.getByText("3 jobs", { exact: true }).waitFor();
    assert.deepEqual(await ids(page), [published, "a/b c", "letter-2"]);
    await page.getByRole("link", { name: "a/b c" }).click();
    assert.match(page.url(), /\/ui\/relay\/orders\/job\/a%2Fb%20c$/);
    await page.goto(at("api:relay state:dead"));
    await page.getByRole("link", { name: "gone" }).click();
    assert.match(page.url(), /\/ui\/relay\/lost\/dead\/\d+$/);
    await page.goto(at("class:Mail::* tag:vip"));
    assert.deepEqual(await ids(page), ["letter-2"]);
    await page.getByRole("link", { name: "vip", exact: true }).click();
    assert.match(page.url(), /\/ui\/tags\/vip$/);
  });

  test("alternatives and texts of payloads are found, and results can be sorted", async (page, url) => {
    await page.goto(at("(queue:mail OR api:relay) -state:dead"));
    assert.deepEqual(await ids(page), ["a/b c", "letter-2", "letter-1"]);
    await page.getByRole("link", { name: "Remove (queue: mail or protocol: relay)" }).click();
    assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), "-state:dead");
    await page.goto(at("payload:\"99.5\""));
    assert.deepEqual(await ids(page), ["letter-2"]);
    await page.goto(at("queue:mail OR"));
    await page.getByText("OR needs a term before and after it.").waitFor();
    await page.goto(at("queue:mail OR queue:long"));
    await page.getByLabel("Order").selectOption("by priority");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByText("20 jobs on this page").waitFor();
    assert.equal((await ids(page))[0], "letter-1");
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByText("12 jobs on this page").waitFor();
    assert.equal(await page.getByRole("link", { name: "Next" }).count(), 0);
    assert.equal(await page.getByLabel("Order").inputValue(), "priority");
    await page.getByRole("link", { name: "First", exact: true }).click();
    await page.getByText("all 52 matching").waitFor();
  });

  test("an exact ID match is above the other results", async (page) => {
    await page.goto(at("long-007"));
    const exact = page.getByRole("region", { name: "Jobs with exactly this ID" });
    await exact.getByRole("link", { name: "long-007" }).click();
    assert.equal(await page.locator("#jid").textContent(), "long-007");
  });

  test("an invalid search is marked at its error, and not run", async (page) => {
    await page.goto(at("queue:mail stat:<b>failed"));
    await page.getByText("Invalid search at column 12").waitFor();
    assert.equal(await page.locator("#mistake mark").textContent(), "stat:");
    assert.equal(await page.locator("#mistake pre").textContent(), "queue:mail stat:<b>failed");
    await page.getByText("Unknown term “stat:”. Terms are state, queue").waitFor();
    assert.equal(await page.locator("table").count(), 0);
    assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), "queue:mail stat:<b>failed");
    await page.goto(at("日本 state:"));
    await page.getByText("Invalid search at column 10").waitFor();
    await page.goto(at("x".repeat(1_001)));
    await page.getByText("The search is too long; the limit is 1000 characters.").waitFor();
    await page.goto("/ui/jobs?q=%00%ff");
    await page.getByText("Invalid search at column 1").waitFor();
  });

  test("a long list has pages", async (page, url) => {
    await page.goto(at("queue:long long"));
    const seen = await ids(page);
    await client(url).add("other", {}, `long-new ${how}`);
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByText("20 jobs on this page").waitFor();
    seen.push(...(await ids(page)));
    await page.getByRole("link", { name: "Next" }).click();
    await page.getByText("10 jobs on this page").waitFor();
    seen.push(...(await ids(page)));
    assert.deepEqual(seen, Array.from({ length: 50 }, (_, i) => `long-${String(49 - i).padStart(3, "0")}`));
    assert.equal(await page.getByRole("link", { name: "Next" }).count(), 0);
    await page.getByRole("link", { name: "Newest" }).click();
    await page.getByRole("link", { name: "long-049" }).waitFor();
    await page.goto("/ui/jobs?q=long&after=nonsense");
    await page.getByText("20 jobs on this page").waitFor();
  });

  test("hostile texts are shown as text", async (page) => {
    const quoted = (text) => `"${text.replaceAll('"', '\\"')}"`;
    for (const q of [`queue:${quoted(HOSTILE)}`, `tag:${quoted(`T ${HOSTILE}`)}`, `data.text:${quoted(HOSTILE)}`, quoted(`id ${HOSTILE}`)]) {
      await page.goto(at(q));
      assert.ok((await ids(page)).includes(`id ${HOSTILE}`), q);
      assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), q);
      assert.equal(await page.locator("img").count(), 0);
    }
    await page.locator("#hits tbody th .id").first().click();
    assert.equal(await page.locator("#jid").textContent(), `id ${HOSTILE}`);
    await page.goto(at("nothing-like-this"));
    await page.getByText("No matching jobs.").waitFor();
    await page.getByText("Search syntax", { exact: true }).click();
    if (javaScriptEnabled) await page.getByRole("link", { name: "state:failed,stalled" }).click();
  });
}

dashboard.test("results do not change on a refresh, and the user's input is kept", async ({ page, url }) => {
  await fill(url);
  await page.goto(at("queue:mail"));
  await page.locator("[data-state=Live]").waitFor();
  await page.getByRole("combobox", { name: "Search all jobs" }).fill("half a ques");
  const before = await ids(page);
  assert.deepEqual(before, ["letter-2", "letter-1"]);
  await client(url).add("mail", {}, "letter-3");
  await otherPageHasChanged(page, url);
  assert.deepEqual(await ids(page), before);
  assert.equal(await page.getByRole("combobox", { name: "Search all jobs" }).inputValue(), "half a ques");
  await page.getByRole("link", { name: "Search again" }).click();
  await page.getByRole("link", { name: "letter-3" }).waitFor();
  await client(url).post("/cancel", "letter-3");
});

dashboard.test("results can be followed live", async ({ page, url }) => {
  const api = client(url);
  await api.add("followed", {}, "followed-1");
  await page.goto("/ui/jobs?q=queue%3Afollowed");
  await page.getByRole("link", { name: "Follow live" }).click();
  await page.waitForURL(/q=queue%3Afollowed&follow=1$/);
  await live(page);
  await api.add("followed", {}, "followed-2");
  await page.locator("#hits").getByRole("link", { name: "followed-2" }).waitFor();
  // A list that is in use keeps its rows.
  await page.getByRole("checkbox", { name: "Select job followed-1" }).check();
  await api.add("followed", {}, "followed-3");
  await page.getByRole("button", { name: "1 new" }).click();
  await page.locator("#hits").getByRole("link", { name: "followed-3" }).waitFor();
  await page.getByRole("link", { name: "Stop following" }).click();
  await page.waitForURL(/q=queue%3Afollowed$/);
});

dashboard.test("every search is accessible and fits in each look", { hasParts: true }, async ({ page, url, part }) => {
  await fill(url);
  const searches = [
    "/ui/jobs", at("letter state:failed,waiting -tag:x created:<2h"), at("letter-2"), at("stat:failed"), at(HOSTILE.repeat(9)),
    at("nothing"), at(`"${"x".repeat(300)}"`), "/ui/jobs?q=long&after=60",
  ];
  const prepare = async (number) => {
    if (number === 0) await page.getByText("Search syntax", { exact: true }).click();
  };
  await assertEachPresentable({ page, part }, searches, { picture: "search", prepare });
});

const phone = { viewport: { width: 320, height: 700 }, javaScriptEnabled: false };
dashboard.test("on a phone, the search is in the top bar", phone, async ({ page, url }) => {
  await fill(url);
  await page.goto("/ui");
  await page.getByRole("link", { name: "Find anything" }).click();
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
});
