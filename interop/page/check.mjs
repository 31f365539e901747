// Opens the page of `steadfast load --html` in Chromium, at three widths, light and dark.
//
//     node check.mjs PAGE [FOLDER FOR SCREENSHOTS]
//
// Fails if something overlaps or is cut off, or if axe-core finds a problem for people who
// cannot see it well.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import puppeteer from "puppeteer-core";

const [page, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const problems = [];
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});

for (const width of [390, 768, 1280]) {
  for (const scheme of ["light", "dark"]) {
    const tab = await browser.newPage();
    const at = (problem) => problems.push(`${width} px, ${scheme}: ${problem}`);
    tab.on("pageerror", (error) => at(`script error: ${error.message}`));
    tab.on("request", (request) => {
      if (!request.url().startsWith("file:")) at(`loads ${request.url()}`);
    });
    await tab.setViewport({ width, height: 900 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await tab.goto(`file://${resolve(page)}`);
    if (folder) await tab.screenshot({ path: `${folder}/${width}-${scheme}.png`, fullPage: true });

    const found = await tab.evaluate(() => {
      const found = [];
      if (document.documentElement.scrollWidth > innerWidth) found.push("scrolls sideways");
      const visible = (element) => element.getClientRects().length > 0;
      for (const figure of document.querySelectorAll("figure")) {
        const title = figure.querySelector("figcaption").textContent;
        const texts = [...figure.querySelectorAll("figcaption, .plot span, .legend")].filter(visible);
        const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
        for (const [text, box] of boxes) {
          if (box.left < 0 || box.right > innerWidth) found.push(`${title}: ${text} is cut off`);
          if (text && parseFloat(getComputedStyle(figure).fontSize) < 11) found.push(`${title}: tiny`);
        }
        boxes.forEach(([text, a], index) => {
          for (const [other, b] of boxes.slice(index + 1)) {
            const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            if (!apart) found.push(`${title}: "${text}" overlaps "${other}"`);
          }
        });
        const drawing = figure.querySelector("svg, .lanes");
        const spoken = drawing.getAttribute("aria-label") ?? drawing.getAttribute("aria-hidden");
        if (!spoken) found.push(`${title}: no label`);
      }
      if (!document.querySelector("figure")) found.push("no chart");
      return found;
    });
    found.forEach(at);

    await tab.evaluate(axe);
    const { violations } = await tab.evaluate(() => globalThis.axe.run());
    for (const { id, help, nodes } of violations) {
      at(`${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 90)).join(" | ")}`);
    }
    await tab.close();
  }
}
await browser.close();
problems.forEach((problem) => console.error(problem));
console.log(`${problems.length} problems`);
process.exit(problems.length ? 1 : 0);
