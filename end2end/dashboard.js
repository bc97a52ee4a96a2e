// Shared by the browser tests: a server on a free port, Chromium, and pages that report their errors.
//
//     const dashboard = startDashboard();
//     dashboard.test("a failed job can be retried", async ({ page, url }) => { … });
//
// A test fails if its page logs an error, throws, violates its Content-Security-Policy, or sends a request elsewhere.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { client } from "./client.js";

const here = dirname(fileURLToPath(import.meta.url));
const binary = process.env.SWITCHYARD ?? join(here, "../target/debug/switchyard");
const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** A guard against hanging: several times as long as the longest test takes beside the other phases of `make test`. */
const TEST_MAX_MS = 180_000;

/** One server and one browser for all tests of a file. `args` are additional arguments of `switchyard serve`. */
export function startDashboard({ args = [], database = "sqlite::memory:" } = {}) {
  const dashboard = { server: undefined, browser: undefined };
  before(async () => {
    dashboard.server = await startServer(["serve", "--database", database, ...args]);
    dashboard.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
      args: [
        "--no-sandbox", // CI runs as root
        "--disable-gpu",
        // Allows no requests except to the server under test.
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    });
  });
  after(async () => {
    await dashboard.browser?.close();
    await dashboard.server?.stop();
  });

  /**
   * With and without JavaScript: `how` is the end of a test's name, `id` makes the name of an object unique, and `test`
   * is a test whose body gets the page, a client of qless, and the server's address.
   */
  dashboard.modes = [true, false].map((javaScriptEnabled) => {
    const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";
    const test = (name, body) =>
      dashboard.test(`${name}, ${how}`, { javaScriptEnabled }, ({ page, url }) => body(page, client(url), url));
    return { javaScriptEnabled, how, test, id: (name) => `${name} ${javaScriptEnabled}` };
  });

  /**
   * `options` are those of a Playwright context (`javaScriptEnabled`, `colorScheme`, `viewport`, …), and `expected`:
   * a pattern of expected page errors. At least one must occur, and no others.
   *
   * A test that visits many pages gives each a part of its own, `await part(name, body)`, so that the time limit does
   * not depend on their number.
   */
  dashboard.test = (name, options, body) => {
    if (body === undefined) [options, body] = [{}, options];
    const { expected, hasParts, ...contextOptions } = options;
    test(name, hasParts ? {} : { timeout: TEST_MAX_MS }, async (t) => {
      const part = (name, body) => t.test(name, { timeout: TEST_MAX_MS }, body);
      const { url } = dashboard.server;
      const context = await dashboard.browser.newContext({ baseURL: url, ...contextOptions });
      // Otherwise each wait has its own limit of 30 s.
      context.setDefaultTimeout(TEST_MAX_MS);
      try {
        const page = await context.newPage();
        const problems = watch(page, url);
        await body({ page, context, url, part, server: dashboard.server, browser: dashboard.browser });
        // Without JavaScript, what the page preloads for its script stays unused.
        const unused = contextOptions.javaScriptEnabled === false ? /was preloaded using link preload but not used/ : /^$/;
        const surprises = problems.filter((problem) => !expected?.test(problem) && !unused.test(problem));
        assert.deepEqual(surprises, [], "the page must log no error and send no request to another site");
        if (expected) assert.notEqual(problems.length, 0, `expected a problem like ${expected}`);
      } finally {
        await context.close();
      }
    });
  };
  return dashboard;
}

/**
 * Starts the server on a free port. Resolves when it listens; `stop()` sends SIGTERM and resolves to the exit code.
 * `redis` resolves to the address for the Redis protocol, if `args` contain `--redis-listen`; `filled` resolves when
 * `dev` has added its generated jobs.
 */
export async function startServer(args, { env = {} } = {}) {
  const child = spawn(binary, [...args, "--listen", "127.0.0.1:0"], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = [];
  createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  const exited = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const banner = createInterface({ input: child.stdout });
  const printed = (pattern) =>
    new Promise((resolve) => {
      banner.on("line", (line) => {
        const found = line.match(pattern);
        if (found) resolve(found[1]);
      });
    });
  const [listening, redis] = [printed(/listening on (http:\/\/\S+)/), printed(/(rediss?:\/\/\S+)/)];
  const filled = printed(/added all (\d+) generated jobs/);
  const gone = exited.then((code) => {
    throw new Error(`the server ended with ${code} before it listened:\n${log.join("\n")}`);
  });
  const url = await Promise.race([listening, gone]);
  gone.catch(() => {});
  return {
    url,
    redis,
    filled,
    log,
    stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

/** Collects the errors of a page. */
function watch(page, url) {
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== url && protocol !== "data:") problems.push(`request to another site: ${request.url()}`);
  });
  return problems;
}

/** Resolves when the page shows the message of an action with this text. */
export const flash = (page, text) => page.locator("#flash").getByText(text).waitFor();

/** Resolves when the islands of the page are hydrated. */
export async function live(page) {
  await page.locator("html[data-live]").waitFor({ state: "attached" });
}

let witnesses = 0;

/**
 * Resolves when another page of this browser has shown two changes, one after the other. The pages of a browser share
 * their events, so by then this page has had the time to handle all earlier changes.
 */
export async function otherPageHasChanged(page, url) {
  witnesses += 1;
  const queue = `witness-${witnesses}`;
  const add = (id) => client(url).add(queue, {}, `${queue}-${id}`);
  await add("first");
  const other = await page.context().newPage();
  await other.goto(`/ui/queues/${queue}`);
  await other.locator("[data-state=Live]").waitFor();
  for (const id of ["second", "third"]) {
    await add(id);
    await other.getByRole("link", { name: `${queue}-${id}` }).waitFor();
  }
  await other.close();
  // Other tests count jobs.
  await client(url).post("/cancel", ["first", "second", "third"].map((id) => `${queue}-${id}`));
}

/** Fails if axe finds violations on the page, with the descriptions of its rules; if `rules` is given, only of these. */
export async function assertAccessible(page, rules) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  // Returns violations only, because a full report has megabytes.
  const found = await page.evaluate(async (rules) => {
    const only = rules ? { runOnly: rules } : {};
    const { violations } = await globalThis.axe.run({ resultTypes: ["violations"], ...only });
    return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}`));
  }, rules);
  assert.deepEqual(found, [], `axe on ${page.url()}`);
}

/**
 * Fails if the page does not have exactly one h1, is not accessible, or scrolls horizontally. Tests call this with both
 * color schemes and two or three widths (`inEachLook`). axe is slow, so it checks wide and narrow pages in the light
 * scheme, and only the contrast of wide pages in the dark one; the other combinations differ from these in width only.
 */
export async function assertPresentable(page, name) {
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, name);
  const { width } = page.viewportSize();
  const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  if (!isDark && (width > 1000 || width < 390)) await assertAccessible(page);
  if (isDark && width > 1000) await assertAccessible(page, ["color-contrast"]);
  const beyond = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
  assert.equal(beyond, 0, `${name} scrolls sideways`);
}

/**
 * Calls `check` for the loaded page in both color schemes and in each of these widths. The page is not loaded again,
 * because only its styles depend on them. `look` names the combination.
 */
export async function inEachLook(page, widths, check) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of widths) {
      await page.setViewportSize({ width, height: 844 });
      await check({ look: `${colorScheme}-${width}`, width });
    }
  }
}

/**
 * Checks that each of these pages loads and is presentable in each look; each is a part of a test with `hasParts`.
 * `prepare(number)` runs when a page is loaded. `picture` is the first part of the names of the screenshots.
 */
export async function assertEachPresentable({ page, part }, paths, { picture, prepare = () => {} }) {
  for (const [number, path] of paths.entries()) {
    await part(path, async () => {
      assert.equal((await page.goto(path)).status(), 200);
      await live(page);
      await prepare(number);
      await inEachLook(page, [1440, 390, 320], async ({ look, width }) => {
        await assertPresentable(page, look);
        if (width !== 320) await screenshot(page, `${picture}-${number}-${look}`);
      });
    });
  }
}

/** With SCREENSHOTS=1, saves a screenshot of the page as end2end/screenshots/NAME.png. */
export async function screenshot(page, name) {
  if (!process.env.SCREENSHOTS) return;
  const folder = join(here, "screenshots");
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
