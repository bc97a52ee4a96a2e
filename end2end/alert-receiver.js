// A receiver of alerts, for tests and as an example: checks the signature and the age of each body, and prints the body.
//
//     node end2end/alert-receiver.js --secret-file FILE [--port 8080]

import { createHmac, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

/** Larger bodies are refused. */
const BODY_BYTES_MAX = 65_536;

/** Older bodies may have been recorded and sent again. */
const AGE_MAX_MS = 5 * 60_000;

/** Whether the header `Switchyard-Signature` is the signature of the body. */
export function isGenuine(secret, body, header) {
  const expected = Buffer.from(`sha256=${createHmac("sha256", secret).update(body).digest("hex")}`);
  const given = Buffer.from(header ?? "");
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/**
 * Listens, and calls `receive` with each genuine alert, once. Resolves to the address of the webhook, and a function
 * that ends the receiver. `answer` returns the status of the response; by default, it is 204.
 */
export async function startReceiver({ secret, port = 0, receive, answer = () => 204 }) {
  const seen = new Set();
  const server = createServer(async (request, response) => {
    const parts = [];
    let size = 0;
    for await (const part of request) {
      size += part.length;
      if (size > BODY_BYTES_MAX) return response.writeHead(413).end();
      parts.push(part);
    }
    const body = Buffer.concat(parts);
    if (!isGenuine(secret, body, request.headers["switchyard-signature"])) return response.writeHead(401).end();
    const alert = JSON.parse(body);
    if (Math.abs(Date.now() - Date.parse(alert.sent_at)) > AGE_MAX_MS) return response.writeHead(401).end();
    const status = answer(alert);
    // A delivery is repeated if the response to it was lost.
    if (status < 300 && !seen.has(alert.id)) {
      seen.add(alert.id);
      receive(alert);
    }
    response.writeHead(status).end();
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/alerts`, stop: () => server.close() };
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  const { values } = parseArgs({
    options: { "secret-file": { type: "string" }, port: { type: "string", default: "8080" } },
  });
  if (!values["secret-file"]) throw new Error("usage: alert-receiver.js --secret-file FILE [--port PORT]");
  const secret = (await readFile(values["secret-file"], "utf8")).replace(/[\r\n]+$/, "");
  const receive = (alert) => console.log(JSON.stringify(alert));
  const { url } = await startReceiver({ secret, port: Number(values.port), receive });
  console.error(`receiving alerts at ${url}`);
}
