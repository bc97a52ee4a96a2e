// What the browser tests share: the real server on a free port, a Chromium, and pages that watch themselves.
//
//     const dashboard = startDashboard();
//     dashboard.test("a failed job is retried by click", async ({ page, url }) => { … });
//
// A test fails when its page logs an error, throws, breaks its Content-Security-Policy, or asks another site.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const binary = process.env.SWITCHYARD ?? join(here, "../target/debug/switchyard");
const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** One server and one browser for all tests of a file. `args` are further arguments of `switchyard serve`. */
export function startDashboard({ args = [], database = "sqlite::memory:" } = {}) {
  const dashboard = { server: undefined, browser: undefined };
  before(async () => {
    dashboard.server = await startServer(["serve", "--database", database, ...args]);
    dashboard.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
      args: [
        "--no-sandbox", // CI runs as root
        "--disable-gpu",
        // Not a word to anybody but our server.
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
   * `options` are those of a Playwright context (`javaScriptEnabled`, `colorScheme`, `viewport`, …), and `expected`,
   * a pattern of the problems that the test provokes: one must come, and no other kind.
   */
  dashboard.test = (name, options, body) => {
    if (body === undefined) [options, body] = [{}, options];
    const { expected, ...contextOptions } = options;
    test(name, { timeout: 60_000 }, async () => {
      const { url } = dashboard.server;
      const context = await dashboard.browser.newContext({ baseURL: url, ...contextOptions });
      try {
        const page = await context.newPage();
        const problems = watch(page, url);
        await body({ page, context, url, server: dashboard.server, browser: dashboard.browser });
        const surprises = problems.filter((problem) => !expected?.test(problem));
        assert.deepEqual(surprises, [], "the page must log no error and ask no other site");
        if (expected) assert.notEqual(problems.length, 0, `expected a problem like ${expected}`);
      } finally {
        await context.close();
      }
    });
  };
  return dashboard;
}

/** Starts the binary on a free port. Resolves when it listens; `stop()` sends SIGTERM and resolves to its exit code. */
export async function startServer(args, { env = {} } = {}) {
  const child = spawn(binary, [...args, "--listen", "127.0.0.1:0"], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = [];
  createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  const exited = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  const listening = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = line.match(/listening on (http:\/\/\S+)/);
      if (found) resolve(found[1]);
    });
  });
  const gone = exited.then((code) => {
    throw new Error(`the server ended with ${code} before it listened:\n${log.join("\n")}`);
  });
  const url = await Promise.race([listening, gone]);
  gone.catch(() => {});
  return {
    url,
    log,
    stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

/** Collects what a page must never do. */
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

/** Resolves when the islands of the page are hydrated. */
export async function live(page) {
  await page.locator("html[data-live]").waitFor({ state: "attached" });
}

/** Fails with what axe finds on the page, in the words of its rules. */
export async function assertAccessible(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  // Only what is wrong comes back: a report on everything that is right is megabytes.
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run({ resultTypes: ["violations"] });
    return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.html}`));
  });
  assert.deepEqual(found, [], `axe on ${page.url()}`);
}

/**
 * Fails if the page has not one first heading, is not accessible, or scrolls sideways. Pages come here in both colours and
 * two or three widths. axe, which takes longer than all the rest, looks at both colours on a wide page and at a narrow page
 * in the light: what else there is to see differs from these in its width only.
 */
export async function assertPresentable(page, name) {
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, name);
  const { width } = page.viewportSize();
  const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  if (width > 1000 || (width < 390 && !isDark)) await assertAccessible(page);
  const beyond = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
  assert.equal(beyond, 0, `${name} scrolls sideways`);
}

/** With SCREENSHOTS=1 saves the page as end2end/screenshots/NAME.png, for people to look at. */
export async function screenshot(page, name) {
  if (!process.env.SCREENSHOTS) return;
  const folder = join(here, "screenshots");
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
