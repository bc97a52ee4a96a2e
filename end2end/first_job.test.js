// The commands of docs/first-job.md, run in order, with the output that the page shows.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startDashboard } from "./dashboard.js";

const here = dirname(fileURLToPath(import.meta.url));
const binary = resolve(process.env.SWITCHYARD ?? join(here, "../target/debug/switchyard"));
const SHOWN = "http://127.0.0.1:3000";

const dashboard = startDashboard();

/** The commands of a part of the page, each with the output that it shows. */
function commandsIn(text) {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block]) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const lines = part.trimEnd().split("\n");
        const end = lines[0].endsWith("<<'END'") ? lines.indexOf("END") + 1 : 1;
        return { command: lines.slice(0, end).join("\n"), shown: lines.slice(end).join("\n") };
      }),
  );
}

/** Runs a command. Resolves to what it writes to both outputs, which are one pipe, as in a terminal, to keep the order. */
function run(command, folder, url) {
  const env = { ...process.env, PATH: `${folder}/bin:${process.env.PATH}`, SWITCHYARD_SERVER: url, NO_COLOR: "1" };
  const shown = command.replaceAll(SHOWN, url).replace("curl ", "curl -s ");
  const child = spawn("bash", ["-c", `exec 2>&1\n${shown}`], { cwd: folder, env });
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  return new Promise((done) => child.on("close", () => done(output.trimEnd())));
}

/** Fails unless the output is the one shown, in which `…` is any text. */
function assertShown(output, shown, command) {
  const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = shown.split("…").map(literal).join("[^]*");
  assert.match(`\n${output}\n`, new RegExp(`^\n${pattern}\n$`), command);
}

dashboard.test("the commands of the page have the output that it shows", async ({ page, url }) => {
  const text = await readFile(join(here, "../docs/first-job.md"), "utf8");
  const [before, after] = text.split("press **Retry**");
  const [serve, ...first] = commandsIn(before);
  assert.equal(serve.command, "switchyard serve");
  const folder = await mkdtemp(join(tmpdir(), "first-job-"));
  try {
    await run("mkdir bin", folder, url);
    await symlink(binary, join(folder, "bin/switchyard"));
    for (const { command, shown } of first) assertShown(await run(command, folder, url), shown, command);
    await page.goto("/ui/failures");
    await page.getByRole("link", { name: "SmtpError" }).first().click();
    await page.getByRole("link", { name: "welcome-1" }).first().click();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator("#flash").waitFor();
    for (const { command, shown } of commandsIn(after)) assertShown(await run(command, folder, url), shown, command);
    const response = await fetch(`${url}/job/welcome-1`);
    assert.equal((await response.json()).results.state, "complete");
  } finally {
    await rm(folder, { recursive: true });
  }
});
