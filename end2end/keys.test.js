// The keyboard: shortcuts, the palette, working without a mouse; and the display settings.

import assert from "node:assert/strict";
import { assertAccessible, assertPresentable, flash, live, screenshot, startDashboard } from "./dashboard.js";
import { client, lmstfy } from "./client.js";

const dashboard = startDashboard({ args: ["--no-auth"] });
const open = async (page, path) => {
  await page.goto(path);
  await live(page);
};
const press = async (page, ...keys) => {
  for (const key of keys) await page.keyboard.press(key);
};
const title = (page, name) => page.getByRole("heading", { level: 1, name }).waitFor();
const focused = (page) => page.evaluate(() => document.activeElement.textContent);
const palette = (page) => page.getByRole("dialog", { name: "Find anything" });
const html = (page, attribute) => page.locator("html").getAttribute(attribute);

/** Opens the palette, types, and runs the entry with this name. */
async function take(page, typed, name) {
  await press(page, "Control+k");
  await palette(page).waitFor();
  await page.keyboard.type(typed);
  const option = palette(page).getByRole("option", { name });
  await option.first().waitFor();
  for (let turns = 0; (await option.first().getAttribute("aria-selected")) !== "true"; turns++) {
    assert.ok(turns < 60, `${name} is not reached`);
    await press(page, "ArrowDown");
  }
  await press(page, "Enter");
}

dashboard.test("a two-key shortcut opens a page", async ({ page, url }) => {
  await client(url).add("mail", {}, "first");
  await open(page, "/ui/check");
  for (const [key, path] of [
    ["q", "/ui/queues"], ["j", "/ui/jobs"], ["f", "/ui/failures"], ["d", "/ui/dead"], ["w", "/ui/workers"],
    ["t", "/ui/tracked"], ["c", "/ui/config"], ["o", "/ui"],
  ]) {
    await press(page, "g", key);
    await page.waitForURL(url + path);
    await live(page);
  }
  // A different key in between cancels the shortcut.
  await press(page, "g", "h", "q");
  await press(page, "?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  assert.equal(page.url(), `${url}/ui`);
});

dashboard.test("the list of shortcuts opens and closes", async ({ page }) => {
  await open(page, "/ui/queues");
  await press(page, "?");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.getByText("cancel or delete, with confirmation").waitFor();
  assert.equal(await focused(page), "Close");
  // Shortcuts have no effect while the list is open.
  await press(page, "g", "w");
  await press(page, "Escape");
  await help.waitFor({ state: "hidden" });
  await title(page, "Queues");
  await press(page, "g", "w");
  await title(page, "Workers");
});

dashboard.test("the shortcut focuses the search, or opens its page", async ({ page, url }) => {
  await open(page, "/ui/workers");
  // This page has no search field.
  await press(page, "/");
  await page.waitForURL("**/ui/jobs#q");
  for (const path of ["/ui/jobs", "/ui/queues"]) {
    await open(page, path);
    await press(page, "/");
    // In the field, keys are text.
    await page.keyboard.type("gq?j");
    assert.equal(await page.locator("main input#q").inputValue(), "gq?j");
    assert.equal(page.url(), url + path);
    assert.equal(await page.locator(":popover-open").count(), 0);
  }
});

dashboard.test("rows can be focused, and a failed job found, opened and retried", async ({ page, url }) => {
  const api = client(url);
  for (const n of [1, 2, 3]) await api.failed("rows", "Rows", "broken", `row-${n}`);
  await open(page, "/ui/failures/Rows");
  // No row is focused, so the shortcut presses the button of the page, which opens a confirmation.
  await press(page, "r");
  await page.getByRole("dialog", { name: "Retry 3 jobs?" }).waitFor();
  await press(page, "j", "Escape");
  await press(page, "j");
  assert.equal(await focused(page), "row-3");
  await press(page, "j", "j", "j");
  assert.equal(await focused(page), "row-1", "there is no further one");
  await press(page, "k");
  assert.equal(await focused(page), "row-2");
  await press(page, "Enter");
  await page.waitForURL("**/ui/jobs/row-2");
  await live(page);
  await press(page, "]");
  await page.waitForURL("**/ui/jobs/row-1");
  await live(page);
  await press(page, "]");
  await page.getByText("Last job of the list").waitFor();
  await press(page, "[");
  await page.waitForURL("**/ui/jobs/row-2");
  await live(page);
  await press(page, "[");
  await page.waitForURL("**/ui/jobs/row-3");
  await live(page);
  await press(page, "r");
  await flash(page, "Job “row-3” was requeued.");
  // In a list, the shortcut presses the button of the focused row.
  await open(page, "/ui/failures/Rows");
  await press(page, "j", "j", "r");
  await flash(page, "Job “row-1” was requeued.");
  assert.equal((await api.job("row-2")).state, "failed");
});

dashboard.test("a page that was not opened from a list has no previous or next job", async ({ page, url }) => {
  await client(url).add("mail", {}, "alone");
  await open(page, "/ui/jobs/alone");
  await press(page, "]");
  await page.getByText("You did not open this page from a list").waitFor();
});

dashboard.test("rows can be selected one by one, as a range, and all at once", async ({ page, url }) => {
  await lmstfy(url, "keys", "ticks").dead("0", "1", "2", "3", "4");
  await open(page, "/ui/lmstfy/keys/ticks/dead");
  const ticked = () =>
    page.locator("main tr[data-key] input").evaluateAll((all) => all.flatMap((box, number) => (box.checked ? [number] : [])).join(""));
  await press(page, "x");
  assert.equal(await ticked(), "", "no row has the focus");
  await press(page, "j", "x");
  assert.equal(await ticked(), "0");
  await press(page, "j", "j", "Shift+X");
  assert.equal(await ticked(), "012");
  await press(page, "x", "k", "Shift+X");
  assert.equal(await ticked(), "0", "what was done to the last one");
  await press(page, "*", "a");
  assert.equal(await ticked(), "01234");
  // Checkboxes are not text fields, so shortcuts work.
  await page.locator("main tr[data-key] input").nth(2).focus();
  await press(page, "j", "x");
  assert.equal(await ticked(), "0124");
});

dashboard.test("the actions of a job have shortcuts; those without undo need a confirmation", async ({ page, url, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const api = client(url);
  await api.add("deeds", {}, "deed");
  await open(page, "/ui/jobs/deed");
  await press(page, "y");
  await page.locator("#announcement").getByText("Copied").waitFor();
  assert.equal(await copied(), "deed");
  await press(page, ".");
  await page.getByText("curl", { exact: false }).first().waitFor();
  assert.equal(await copied(), `curl '${url}/job/deed'`);
  await press(page, "t");
  await flash(page, "Tracking job “deed”.");
  await live(page);
  await press(page, "t");
  await flash(page, "Stopped tracking job");
  await live(page);
  await press(page, "m");
  const move = page.getByRole("dialog", { name: "Move job" });
  await move.waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("elsewhere");
  await press(page, "Enter");
  await flash(page, "Job “deed” moved to queue “elsewhere”.");
  await live(page);
  await press(page, "c");
  const question = page.getByRole("dialog", { name: "Cancel this job?" });
  await question.waitFor();
  await assertAccessible(page);
  assert.equal((await api.job("deed")).state, "waiting", "nothing has been done");
  await press(page, "Escape");
  await question.waitFor({ state: "hidden" });
  await press(page, "c");
  await press(page, "Tab");
  assert.equal(await focused(page), "Cancel job");
  await press(page, "Enter");
  await flash(page, "Job “deed” canceled.");
});

dashboard.test("the undo shortcut presses the undo button of the page", async ({ page }) => {
  await open(page, "/ui/queues");
  await page.evaluate(() => {
    const button = document.createElement("button");
    button.dataset.undo = "";
    button.addEventListener("click", () => document.documentElement.setAttribute("data-undone", ""));
    document.querySelector("header").append(button);
  });
  await press(page, "u");
  assert.equal(await html(page, "data-undone"), "");
});

dashboard.test("the palette finds pages, names, ids and actions", async ({ page, url }) => {
  const api = client(url);
  await api.failed("orders", "OrderError", "no address", "order-1", "order-worker");
  await api.add("orders", {}, "order-2", { tags: ["order-tag"] });
  for (const [typed, name, path] of [
    ["reCURR", "Recurring", "/ui/recurring"],
    ["orders", /^orders/, "/ui/queues/orders"],
    ["order-w", /^order-worker/, "/ui/workers/order-worker"],
    ["OrderE", /^OrderError/, "/ui/failures/OrderError"],
    ["r-tag", /^order-tag/, "/ui/tags/order-tag"],
    ["order-2", /^order-2/, "/ui/jobs/order-2"],
    ["state:failed", /^Search all jobs/, "/ui/jobs?q=state%3Afailed"],
  ]) {
    await open(page, "/ui/check");
    await take(page, typed, name);
    await page.waitForURL(url + path);
  }
  await open(page, "/ui/queues/orders");
  await take(page, "pause queue", /^Pause queue orders/);
  await flash(page, "Queue “orders” paused");
  await live(page);
  await take(page, "resume queue", /^Resume queue orders/);
  await flash(page, "Queue “orders” resumed");
  await live(page);
  await take(page, "dark", /^Theme: Dark/);
  await page.locator("html[data-theme=dark]").waitFor();
});

dashboard.test("a job can be tagged and a worker opened without a mouse", async ({ page, url }) => {
  const api = client(url);
  await api.add("tasks", {}, "task-1");
  await api.take("tasks", "task-worker");
  await open(page, "/ui");
  await press(page, "g", "w");
  await title(page, "Workers");
  await live(page);
  while ((await focused(page)) !== "task-worker") await press(page, "j");
  await press(page, "Enter");
  await title(page, "task-worker");
  await live(page);
  await press(page, "j", "Enter");
  await page.waitForURL("**/ui/jobs/task-1");
  await live(page);
  await take(page, "tag", /^Add tag/);
  await page.getByRole("dialog", { name: "Add tag" }).waitFor();
  await page.keyboard.type("by hand");
  await press(page, "Enter");
  await flash(page, "Tag “by hand” added to job “task-1”.");
});

dashboard.test("the palette restores the focus, shows names as text, and has a button", async ({ page, url }) => {
  const name = "<img src=x onerror=alert(1)>";
  await client(url).add(name, {}, "odd-1");
  await open(page, "/ui/queues");
  await press(page, "j");
  const before = await focused(page);
  await press(page, "Control+k");
  await palette(page).getByRole("option", { name: "Overview" }).waitFor();
  const input = palette(page).getByRole("combobox");
  assert.equal(await input.getAttribute("aria-activedescendant"), "option-0");
  await press(page, "ArrowUp");
  const last = await palette(page).getByRole("option").count() - 1;
  assert.equal(await input.getAttribute("aria-activedescendant"), `option-${last}`);
  // Focus must not leave the dialog.
  for (let i = 0; i < 4; i++) {
    await press(page, "Tab");
    assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null));
  }
  await input.focus();
  await page.keyboard.type("<img");
  await palette(page).getByRole("option", { name }).first().waitFor();
  assert.equal(await page.locator("img").count(), 0);
  await press(page, "Escape");
  await palette(page).waitFor({ state: "hidden" });
  assert.equal(await focused(page), before);
  const button = page.getByRole("button", { name: "Find anything" });
  await button.click();
  await palette(page).waitFor();
  await page.mouse.click(5, 400);
  await palette(page).waitFor({ state: "hidden" });
  await button.focus();
  await press(page, "Space");
  await palette(page).getByRole("option", { name: "Config" }).click();
  await title(page, "Configuration");
});

dashboard.test("without JavaScript, the button of the palette links to the search", { javaScriptEnabled: false }, async ({ page }) => {
  await page.goto("/ui/queues");
  await page.getByRole("link", { name: "Find anything" }).click();
  await title(page, "Jobs");
});

for (const { javaScriptEnabled, how } of dashboard.modes) {
  dashboard.test(`single-key shortcuts can be turned off and on, ${how}`, { javaScriptEnabled }, async ({ page }) => {
    const choose = async (name) => {
      await page.getByRole("button", { name: "Display", exact: true }).click();
      await page.getByRole("button", { name: "Keyboard shortcuts…" }).click();
      await page.getByRole("button", { name: `Single-key shortcuts: ${name}` }).click();
      await page.locator(name === "Off" ? "html[data-keys=off]" : "html:not([data-keys])").waitFor();
    };
    await page.goto("/ui/queues");
    await choose("Off");
    if (javaScriptEnabled) {
      await live(page);
      await press(page, "?", "g", "w", "p");
      await press(page, "Control+k");
      await palette(page).waitFor();
      await press(page, "Escape");
      await title(page, "Queues");
      assert.equal(await page.locator(":popover-open").count(), 0);
      await page.getByRole("button", { name: "Pause live updates" }).waitFor();
    }
    await choose("On");
    if (javaScriptEnabled) {
      await live(page);
      await press(page, "g", "w");
      await title(page, "Workers");
    }
  });

  dashboard.test(`rows and times follow the display settings, ${how}`, { javaScriptEnabled }, async ({ page, url }) => {
    await client(url).add("shown", {}, `shown-${javaScriptEnabled}`);
    const choose = async (name) => {
      await page.getByRole("button", { name: "Display", exact: true }).click();
      await page.getByRole("button", { name, exact: true }).click();
    };
    const time = page.locator("main tbody time").first();
    await page.goto("/ui/queues/shown");
    const height = async () => (await page.locator("main tbody tr").first().boundingBox()).height;
    const comfortable = await height();
    assert.match(await time.textContent(), /ago|now/);
    await choose("Rows: Compact");
    await page.locator("html[data-density=compact]").waitFor();
    assert.ok((await height()) < comfortable);
    await choose("Times: UTC");
    await page.locator("html[data-clock=utc]").waitFor();
    assert.match(await time.textContent(), /^\s*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\s*$/);
    assert.match(await time.getAttribute("title"), /UTC$/);
    await choose("Times: Relative");
    await page.locator("html:not([data-clock])").waitFor();
    await choose("Rows: Comfortable");
    await page.locator("html:not([data-density])").waitFor();
    assert.equal(await height(), comfortable);
  });
}

const kolkata = { timezoneId: "Asia/Kolkata" };
dashboard.test("shortcuts change times and rows; local times use the browser's time zone, also after a refresh", kolkata, async ({ page, url }) => {
  const api = client(url);
  await api.add("zones", {}, "zone-1");
  await open(page, "/ui/queues/zones");
  await press(page, "d");
  await page.locator("html[data-density=compact]").waitFor();
  await live(page);
  for (const clock of ["utc", "local"]) {
    await press(page, "z");
    await page.locator(`html[data-clock=${clock}]`).waitFor();
    await live(page);
  }
  const times = page.locator("main tbody time");
  await times.first().getByText("+05:30").waitFor();
  const given = await times.first().getAttribute("datetime");
  const shown = (await times.first().textContent()).trim();
  assert.equal(Date.parse(shown.replace(" +", "+").replace(" ", "T")), Math.floor(Date.parse(given) / 1000) * 1000);
  await api.add("zones", {}, "zone-2");
  await page.getByRole("link", { name: "zone-2" }).waitFor();
  for (const text of await times.allTextContents()) assert.match(text, /\+05:30/);
  await open(page, "/ui/jobs/zone-1");
  await page.getByText(/\+05:30/).first().waitFor();
  for (const time of await page.locator("time").all()) assert.match(await time.getAttribute("title"), /UTC$/);
  await press(page, "z");
  await page.locator("html:not([data-clock])").waitFor();
});

for (const [minutes, words] of [[-3, "3 m behind"], [3, "3 m ahead of"]]) {
  dashboard.test(`a device whose clock is ${words} the server shows a warning`, { viewport: { width: 320, height: 700 } }, async ({ page }) => {
    // The difference is rounded down to minutes, so half a minute may pass until the page compares the clocks.
    await page.clock.install({ time: Date.now() + minutes * 60_000 + (minutes < 0 ? -30_000 : 30_000) });
    await open(page, "/ui");
    await page.getByText(`This device’s clock is ${words} the server`).waitFor();
    await assertPresentable(page, "a clock astray");
  });
}

const broken = { expected: /Failed to load resource/ };
dashboard.test("a page with a broken feed says so, polls, and reconnects", broken, async ({ page, url }) => {
  const api = client(url);
  await api.add("feeds", {}, "feed-1");
  let cut = true;
  await page.route("**/ui/events", (route) => (cut ? route.abort() : route.continue()));
  await open(page, "/ui/queues/feeds");
  await page.getByText("Stale", { exact: true }).waitFor();
  await api.add("feeds", {}, "feed-2");
  await page.getByRole("link", { name: "feed-2" }).waitFor();
  await page.getByText("Stale", { exact: true }).waitFor();
  cut = false;
  await page.getByText("Live", { exact: true }).waitFor();
});

dashboard.test("a page that was offline updates when it is online again", { expected: /Failed to load resource|ERR_INTERNET/ }, async ({ page, url, context }) => {
  const api = client(url);
  await api.add("offline", {}, "off-1");
  await open(page, "/ui/queues/offline");
  await page.getByText("Live", { exact: true }).waitFor();
  await context.setOffline(true);
  // An existing connection stays open; a new one fails.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await press(page, "p", "p");
  await page.getByText("Stale", { exact: true }).waitFor();
  await api.add("offline", {}, "off-2");
  await context.setOffline(false);
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("link", { name: "off-2" }).waitFor();
});

dashboard.test("a hidden page sends no requests, and a paused page does not change", async ({ page, url }) => {
  const api = client(url);
  await api.add("hidden", {}, "hid-1");
  await open(page, "/ui/queues/hidden");
  await page.getByText("Live", { exact: true }).waitFor();
  const hide = (hidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  // A refresh may begin until then.
  await hide(true);
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await api.add("hidden", {}, "hid-2");
  // Another page has received the event by now.
  const other = await page.context().newPage();
  await open(other, "/ui/queues/hidden");
  await api.add("hidden", {}, "hid-3");
  await other.getByRole("link", { name: "hid-3" }).waitFor();
  assert.deepEqual(asked, []);
  await hide(false);
  await page.getByRole("link", { name: "hid-3" }).waitFor();
  await press(page, "p");
  await page.getByText("Paused", { exact: true }).waitFor();
  await api.add("hidden", {}, "hid-4");
  await other.getByRole("link", { name: "hid-4" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "hid-4" }).count(), 0);
  await press(page, "p");
  await page.getByRole("link", { name: "hid-4" }).waitFor();
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1440, 390, 320]) {
    const options = { colorScheme, viewport: { width, height: 800 } };
    dashboard.test(`help, palette and panel are accessible and fit, ${colorScheme}, ${width} px`, options, async ({ page, url }) => {
      const name = "a-name-that-is-rather-long-and-has-no-place-to-break-".repeat(3);
      await client(url).add(name, {}, `long-${colorScheme}-${width}`);
      await open(page, "/ui/queues");
      const fits = async (what) => {
        await assertPresentable(page, what);
        for (const [part, box] of Object.entries(await page.evaluate(() => {
          const open = document.querySelector(":popover-open, dialog[open]");
          const { left, right, top, bottom } = open.getBoundingClientRect();
          return { left, right: innerWidth - right, top, bottom: innerHeight - bottom };
        }))) assert.ok(box >= 0, `${what} is cut off at its ${part}: ${box}`);
        if (width !== 320) await screenshot(page, `keys-${what}-${colorScheme}-${width}`);
      };
      await press(page, "?");
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
      await fits("help");
      await press(page, "Escape");
      await page.getByRole("button", { name: "Display", exact: true }).click();
      await page.getByRole("dialog", { name: "Display" }).waitFor();
      await fits("panel");
      await press(page, "Escape");
      await press(page, "Control+k");
      await page.keyboard.type("a-name");
      await palette(page).getByRole("option", { name }).first().waitFor();
      await fits("palette");
    });
  }
}

dashboard.test("forced colors, more contrast and reduced motion keep all content", { forcedColors: "active", contrast: "more", reducedMotion: "reduce" }, async ({ page }) => {
  await open(page, "/ui/queues");
  await assertAccessible(page);
  const outline = (selector) => page.locator(selector).first().evaluate((element) => getComputedStyle(element).outlineStyle);
  assert.equal(await outline("#rail [aria-current]"), "solid");
  await press(page, "Control+k");
  assert.equal(await outline("[aria-selected=true]"), "solid");
});
