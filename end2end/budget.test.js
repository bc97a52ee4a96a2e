// The transfer size of pages: the overview with 50 busy queues, and lists. scripts/size.sh checks the size of files.

import assert from "node:assert/strict";
import { get } from "node:http";
import { after, before, test } from "node:test";
import { client } from "./client.js";
import { startServer } from "./dashboard.js";

const QUEUES = 50;
const PAGE_BYTES_MAX = 60_000;
const PAGE_BYTES_COMPRESSED_MAX = 12_000;

let server;
before(async () => {
  server = await startServer(["serve", "--database", "sqlite::memory:"]);
});
after(() => server?.stop());

/** The body as received, its length, and its content encoding. */
function received(path, encoding, url = server.url) {
  return new Promise((resolve, reject) => {
    const request = get(url + path, { headers: { "accept-encoding": encoding } }, async (answer) => {
      const parts = await answer.toArray();
      const body = Buffer.concat(parts);
      resolve({ body, bytes: body.length, status: answer.statusCode, encoding: answer.headers["content-encoding"] });
    });
    request.on("error", reject);
  });
}

test("the overview of 50 queues stays within its budget", async () => {
  const api = client(server.url);
  for (let number = 0; number < QUEUES; number++) {
    const queue = `area-${number % 7}.kind-${number}`;
    for (let job = 0; job < 3; job++) await api.add(queue, { number, job }, `waits-${number}-${job}`);
    await api.failed(queue, `Error${number % 9}`, `order ${number} of nobody`, `fails-${number}`, `worker-${number}`);
  }
  const plain = await received("/ui", "identity");
  assert.equal(plain.status, 200);
  assert.equal(plain.encoding, undefined);
  assert.ok(plain.bytes <= PAGE_BYTES_MAX, `${plain.bytes} bytes`);
  for (const encoding of ["br", "gzip"]) {
    const packed = await received("/ui", encoding);
    assert.equal(packed.encoding, encoding);
    assert.ok(packed.bytes <= PAGE_BYTES_COMPRESSED_MAX, `${packed.bytes} bytes by ${encoding}`);
    console.log(`the overview: ${plain.bytes} bytes, ${packed.bytes} by ${encoding}`);
  }
});

// Lists of which each kind of page is opened once, with the most rows that it can have.
const LISTS = [
  "/ui", "/ui/queues", "/ui/jobs", "/ui/jobs?q=state:failed", "/ui/jobs?q=-state:failed", "/ui/failures", "/ui/scheduled",
  "/ui/recurring", "/ui/workers", "/ui/tags", "/ui/dead", "/ui/operations", "/ui/audit", "/ui/tracked", "/ui/namespaces",
];
const OTHERS = [
  /^\/ui\/(queues|relay|lmstfy\/[^/]+)\/[^/]+$/, /^\/ui\/(queues|relay|lmstfy\/[^/]+)\/[^/]+\/[a-z]+$/, /^\/ui\/jobq\/[^/]+$/,
  /^\/ui\/failures\/[^/]+$/, /^\/ui\/tags\/[^/]+$/, /^\/ui\/workers\/[^/]+$/, /^\/ui\/jobs\/[^/]+$/,
];
const OF_EACH_MAX = 12;

test("pages stay within their budget when all lists are full", async (t) => {
  const full = await startServer(["dev", "--jobs", "20000"]);
  t.after(() => full.stop());
  await full.filled;
  const found = new Set();
  const over = [];
  const check = async (path) => {
    const plain = await received(path, "identity", full.url);
    // Jobs are completed and workers end meanwhile, so their pages may no longer exist.
    if (plain.status === 404 && /^\/ui\/(jobs|workers)\/[^/]+$/.test(path)) return;
    assert.equal(plain.status, 200, path);
    for (const [, href] of plain.body.toString().matchAll(/ href="([^"?#]+)"/g)) found.add(href);
    const packed = await received(path, "gzip", full.url);
    if (plain.bytes > PAGE_BYTES_MAX || packed.bytes > PAGE_BYTES_COMPRESSED_MAX)
      over.push(`${path}: ${plain.bytes} bytes, ${packed.bytes} by gzip`);
  };
  for (const path of LISTS) await check(path);
  for (const kind of OTHERS) {
    const some = [...found].filter((path) => kind.test(path)).slice(0, OF_EACH_MAX);
    assert.ok(some.length > 0, String(kind));
    for (const path of some) await check(path);
  }
  assert.deepEqual(over, []);
});

test("compression does not delay the live feed", async () => {
  const answer = await fetch(`${server.url}/ui/events`, { headers: { "accept-encoding": "br, gzip" } });
  assert.equal(answer.headers.get("content-encoding"), null);
  const reader = answer.body.getReader();
  const { value } = await reader.read();
  assert.match(new TextDecoder().decode(value), /^(event|id|data|retry|:)/);
  await reader.cancel();
});
