// The clients of qless that are connected over the Redis protocol.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { assertPresentable, live, screenshot, startDashboard } from "./dashboard.js";
import { until } from "./client.js";

const dashboard = startDashboard({
  args: [
    "--redis-listen", "127.0.0.1:0",
    "--ui-key", "viewer:vera:the-key-of-vera",
    "--ui-key", "operator:olga:the-key-of-olga",
  ],
});

/** Connects a client, and sends these commands in lines. Resolves when they have run. */
async function redisClient(server, commands) {
  const { hostname, port } = new URL(await server.redis);
  const socket = connect(Number(port), hostname);
  socket.write([...commands, "PING"].map((command) => `${command}\r\n`).join(""));
  await new Promise((resolve, reject) => {
    let replies = "";
    socket.on("error", reject);
    socket.on("data", (bytes) => {
      replies += bytes;
      if (/pong/i.test(replies)) resolve();
    });
  });
  return socket;
}

/** Disconnects clients, and waits until the page lists none. */
async function disconnect(page, clients) {
  for (const client of clients) client.destroy();
  await until("no client is connected", async () => {
    await page.goto("/ui/redis");
    return (await page.getByText("0 qless clients").count()) > 0;
  });
}

/** A context with the credentials of this person. */
const as = (name) => ({ extraHTTPHeaders: { authorization: `Bearer the-key-of-${name}` } });

for (const colorScheme of ["light", "dark"]) {
  dashboard.test(`an operator sees who is connected (${colorScheme})`, { colorScheme, ...as("olga") }, async ({ page, server }) => {
    const worker = await redisClient(server, ["CLIENT SETNAME resize-7", "CLIENT SETINFO LIB-NAME redis-py", "SUBSCRIBE ql:w:resize-7"]);
    const other = await redisClient(server, ["CLIENT SETINFO LIB-NAME redis-rb"]);
    await page.goto("/ui/workers");
    await page.getByRole("link", { name: "2 Redis clients" }).click();
    await page.waitForURL("**/ui/redis");
    await live(page);
    const row = page.getByRole("row").filter({ hasText: "resize-7" });
    const cells = await row.getByRole("cell").allTextContents();
    assert.equal(cells[0].trim(), `127.0.0.1:${worker.localPort}`);
    assert.match(cells[2], /^\s*ping/);
    assert.equal(cells[3].trim(), "1");
    assert.match(cells[4], /redis-py/);
    await page.getByText("2 qless clients").waitFor();
    for (const width of [1440, 390, 320]) {
      await page.setViewportSize({ width, height: 900 });
      await assertPresentable(page, `redis ${width}`);
      await screenshot(page, `redis-${width}-${colorScheme}`);
    }
    await disconnect(page, [worker, other]);
  });
}

dashboard.test("an operator sees who is connected, without JavaScript", { javaScriptEnabled: false, ...as("olga") }, async ({ page, server }) => {
  const client = await redisClient(server, ["CLIENT SETNAME <b>bold</b>"]);
  await page.goto("/ui/redis");
  await page.getByRole("row").filter({ hasText: "<b>bold</b>" }).waitFor();
  await disconnect(page, [client]);
});

dashboard.test("a viewer does not see the clients", { expected: /status of 403/, ...as("vera") }, async ({ page }) => {
  await page.goto("/ui/workers");
  await page.getByRole("heading", { name: "Workers" }).waitFor();
  assert.equal(await page.getByRole("link", { name: /Redis client/ }).count(), 0);
  await page.goto("/ui/redis");
  await page.getByRole("heading", { name: "Not allowed" }).waitFor();
});
