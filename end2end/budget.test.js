// The transfer size of a page: the overview with 50 busy queues. scripts/size.sh checks the size of files.

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

/** The body as received, and its content encoding. */
function received(path, encoding) {
  return new Promise((resolve, reject) => {
    const request = get(server.url + path, { headers: { "accept-encoding": encoding } }, async (answer) => {
      let bytes = 0;
      for await (const part of answer) bytes += part.length;
      resolve({ bytes, status: answer.statusCode, encoding: answer.headers["content-encoding"] });
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

test("compression does not delay the live feed", async () => {
  const answer = await fetch(`${server.url}/ui/events`, { headers: { "accept-encoding": "br, gzip" } });
  assert.equal(answer.headers.get("content-encoding"), null);
  const reader = answer.body.getReader();
  const { value } = await reader.read();
  assert.match(new TextDecoder().decode(value), /^(event|id|data|retry|:)/);
  await reader.cancel();
});
