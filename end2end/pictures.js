// Takes the screenshots for the documentation: the main pages with generated traffic, light and dark, wide and narrow.
//
//     make pictures

import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { startServer } from "./dashboard.js";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../docs/images");

/** How long traffic is generated before the screenshots, so that the charts are filled, in milliseconds. */
const PLAYED_MS = Number(process.env.PLAYED_MS ?? 180_000);

const WIDTHS = { wide: 1440, narrow: 390 };
const HEIGHT = 900;

const server = await startServer(["dev"]);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
try {
  await new Promise((resolve) => setTimeout(resolve, PLAYED_MS));
  const results = async (path) => (await (await fetch(server.url + path)).json()).results;
  const failed = await results("/failed");
  const [group] = Object.entries(failed).sort((a, b) => b[1] - a[1])[0];
  const { jobs } = await results(`/failed/${encodeURIComponent(group)}`);
  const job = jobs[0].id ?? jobs[0];
  await mkdir(folder, { recursive: true });
  const pages = {
    overview: "/ui",
    queues: "/ui/queues",
    queue: "/ui/queues/mail/waiting",
    statistics: "/ui/stats?range=1h",
    failures: "/ui/failures",
    failure: `/ui/failures/${encodeURIComponent(group)}`,
    job: `/ui/jobs/${encodeURIComponent(job)}`,
    search: "/ui/jobs?q=state%3Afailed",
    confirm: "/ui/confirm?do=retry&of=all&q=state%3Afailed",
    workers: "/ui/workers",
  };
  for (const colorScheme of ["light", "dark"]) {
    for (const [name, width] of Object.entries(WIDTHS)) {
      const context = await browser.newContext({ baseURL: server.url, colorScheme, viewport: { width, height: HEIGHT } });
      const page = await context.newPage();
      for (const [what, path] of Object.entries(pages)) {
        await page.goto(path);
        await page.locator("html[data-live]").waitFor({ state: "attached" });
        await page.screenshot({ path: join(folder, `${what}-${colorScheme}-${name}.png`) });
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
