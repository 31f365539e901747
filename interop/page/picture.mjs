// Draws the pictures of the README from the page of `steadfast load --html`.
//
//     node picture.mjs PAGE NAME     writes NAME-light.png and NAME-dark.png
import { resolve } from "node:path";
import puppeteer from "puppeteer-core";

const [page, name] = process.argv.slice(2);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
for (const scheme of ["light", "dark"]) {
  const tab = await browser.newPage();
  await tab.setViewport({ width: 960, height: 900 });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await tab.goto(`file://${resolve(page)}`);
  const clip = await tab.evaluate(() => {
    const shown = /^(Injected faults|Throughput)/;
    for (const figure of document.querySelectorAll("figure")) {
      if (!shown.test(figure.textContent.trim())) figure.remove();
    }
    const figures = [...document.querySelectorAll("figure")].map((one) => one.getBoundingClientRect());
    const top = figures[0].top - 8;
    return { x: 0, y: top, width: innerWidth, height: figures.at(-1).bottom + 12 - top };
  });
  await tab.screenshot({ path: `${name}-${scheme}.png`, clip, captureBeyondViewport: true });
  await tab.close();
}
await browser.close();
