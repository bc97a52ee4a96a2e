// The dashboard below a path of its host name, behind a real nginx and a real Caddy, with the configurations of
// packaging/proxies.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { client, lmstfy, until } from "./client.js";
import { flash, live, startServer } from "./dashboard.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const BASE = "/queues";
const TEST_MAX_MS = 180_000;

/** The program in the PATH, or from scripts/unpack.sh proxies. */
function program(name) {
  const unpacked = [`usr/sbin/${name}`, `usr/bin/${name}`].map((path) => join(root, ".tools/proxies", path));
  try {
    return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
  } catch {
    return unpacked.find((path) => existsSync(path));
  }
}

/** A port that was free a moment ago. */
const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Starts a proxy from a file of packaging/proxies. Resolves to its address, and to a function that stops it. */
async function startProxy(name, file, upstream) {
  const folder = await mkdtemp(join(tmpdir(), "switchyard-proxy-"));
  const port = await freePort();
  const given = await readFile(join(root, "packaging/proxies", file), "utf8");
  let text = given.replaceAll("127.0.0.1:3000", new URL(upstream).host);
  let args;
  const config = join(folder, "config");
  if (name === "nginx") {
    text = text.replace("listen 80;", `listen 127.0.0.1:${port};`);
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((it) => `${it}_temp_path ${folder}/${it};`);
    text = `daemon off; pid ${folder}/pid; error_log stderr warn; events {} http { access_log off; ${paths.join(" ")}\n${text}\n}`;
    args = ["-c", config, "-p", folder, "-e", "stderr"];
  } else {
    text = `{\nadmin off\nauto_https off\n}\n${text.replace("www.example.com {", `http://127.0.0.1:${port} {`)}`;
    args = ["run", "--config", config, "--adapter", "caddyfile"];
  }
  await writeFile(config, text);
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program(name), args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text));
  let code;
  const exited = new Promise((resolve) => child.on("exit", (given) => resolve((code = given ?? "a signal"))));
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  for (;;) {
    try {
      await fetch(`${url}${BASE}/health`);
      return { url, stop };
    } catch {
      if (code !== undefined) throw new Error(`${name} ended with ${code}:\n${log}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

let browser;
before(async () => {
  const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
});
after(() => browser?.close());

const behindProxy = ["--trusted-proxy", "127.0.0.1", "--ui-key", "admin:ada:the-key-of-ada"];

/** The ways to run the server below a path: the proxy, the file with its configuration, and flags of the server. */
const WAYS = [
  { name: "nginx", file: "nginx.conf", flags: ["--base-path", BASE] },
  { name: "caddy", file: "Caddyfile", flags: ["--base-path", BASE] },
  { name: "caddy", file: "Caddyfile.strip", flags: [] },
];

for (const { name, file, flags } of WAYS) {
  const skip = program(name) ? false : `${name} is not installed`;
  for (const javaScriptEnabled of [true, false]) {
    const how = javaScriptEnabled ? "with JavaScript" : "without JavaScript";
    test(`the dashboard works below a path, ${file}, ${how}`, { timeout: TEST_MAX_MS, skip }, async () => {
      const server = await startServer(["serve", "--database", "sqlite::memory:", ...behindProxy, ...flags]);
      const proxy = await startProxy(name, file, server.url);
      const context = await browser.newContext({ baseURL: proxy.url, javaScriptEnabled });
      context.setDefaultTimeout(TEST_MAX_MS);
      try {
        const page = await context.newPage();
        const problems = watch(page, proxy.url);
        await use(page, proxy.url, javaScriptEnabled);
        assert.deepEqual(problems, [], "all requests stay below the path, and succeed");
      } finally {
        await context.close();
        await proxy.stop();
        await server.stop();
      }
    });
  }
}

for (const { name, file, flags } of WAYS) {
  const skip = program(name) ? false : `${name} is not installed`;
  test(`a consumer that hangs up behind ${file} is given no job`, { timeout: TEST_MAX_MS, skip }, async () => {
    const open = ["--no-auth", "--trusted-proxy", "127.0.0.1"];
    const server = await startServer(["serve", "--database", "sqlite::memory:", ...open, ...flags]);
    const proxy = await startProxy(name, file, server.url);
    try {
      const url = `${proxy.url}${BASE}`;
      const metrics = async () => (await fetch(`${url}/metrics`)).text();
      const polls = (count) =>
        until(`${count} polls`, async () => (await metrics()).includes(`\nswitchyard_long_polls ${count}\n`));
      const hangUp = new AbortController();
      const waiting = fetch(`${url}/api/shop/orders?ttr=600&timeout=600`, { signal: hangUp.signal });
      await polls(1);
      hangUp.abort();
      await assert.rejects(waiting);
      await polls(0);
      const orders = lmstfy(url, "shop", "orders");
      const id = await orders.publish("x");
      assert.equal((await orders.consume()).job_id, id);
    } finally {
      await proxy.stop();
      await server.stop();
    }
  });
}

/** Collects errors, and requests that are not below the base path. */
function watch(page, origin) {
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
  page.on("request", (request) => {
    const at = new URL(request.url());
    if (at.protocol === "data:") return;
    if (at.origin !== origin || !at.pathname.startsWith(`${BASE}/`)) problems.push(`outside: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  return problems;
}

/** Signs in, follows a failed job to its page, and retries it. */
async function use(page, origin, javaScriptEnabled) {
  const at = (path) => `${origin}${BASE}${path}`;
  // The API has the same path.
  const api = client(`${origin}${BASE}`);
  await api.failed("letters", "Unreadable", "no address", "letter");
  await api.add("a/b", { text: 'href="/ui"' }, "in/folder");

  await page.goto(at("/ui/queues?q=a"));
  assert.equal(new URL(page.url()).pathname, `${BASE}/ui/login`);
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Key or password").fill("the-key-of-ada");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(at("/ui/queues?q=a"));
  const [session] = await page.context().cookies();
  assert.equal(session.path, `${BASE}/ui`);

  // The style sheet is loaded, and a name with a slash reaches the server unchanged.
  await page.goto(at("/ui/queues"));
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.body).margin).catch(() => "0px"), "8px");
  await page.getByRole("link", { name: "a/b", exact: true }).click();
  await page.waitForURL(at("/ui/queues/a%2Fb"));
  await page.getByRole("link", { name: "in/folder" }).first().click();
  await page.waitForURL(at("/ui/jobs/in%2Ffolder"));
  assert.ok((await page.content()).includes(`${origin}${BASE}/`), "curl commands have the path");

  if (javaScriptEnabled) {
    // Event stream: the page shows a job that fails later.
    await page.goto(at("/ui"));
    await live(page);
    await api.failed("parcels", "Lost", "no stamp", "parcel");
    await page.getByRole("link", { name: "Lost" }).waitFor();
    // The palette: a result of the server.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("parcels");
    await page.getByRole("option", { name: /^parcels/ }).click();
    await page.waitForURL(at("/ui/queues/parcels"));
    await live(page);
  }
  await page.goto(at("/ui/failures"));
  await page.getByRole("link", { name: "Unreadable" }).first().click();
  await page.getByRole("button", { name: "Retry job letter" }).click();
  await flash(page, "Job “letter” was requeued.");
  assert.equal(new URL(page.url()).pathname.startsWith(`${BASE}/ui/`), true);
  assert.equal((await api.job("letter")).state, "waiting");

  // Every link of the navigation, an export, and the way out.
  const links = await page.locator("#rail a[href]").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
  assert.ok(links.length > 8);
  for (const link of links) {
    assert.ok(link.startsWith(`${BASE}/ui`), link);
    await page.goto(link);
    await page.getByRole("heading", { level: 1 }).waitFor();
  }
  const file = await page.request.get(at("/ui/jobs.jsonl"));
  assert.equal(file.status(), 200);
  assert.match(await file.text(), /"letter"/);
  await page.goto(at("/ui"));
  await page.getByRole("button", { name: "Sign out" }).first().click();
  await page.waitForURL(at("/ui/login**"));
}
