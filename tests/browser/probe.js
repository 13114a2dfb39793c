// What is `found` on a page whose script has ended: its width, its ground, its charts, and what is wrong with it. Nothing is
// wider than the window, no text of a chart is cut or lies on another one, texts stand out from the ground, and colours of
// plans are not those of activities. It is the body of a function.
"use strict";

const problems = [];
const width = document.documentElement.clientWidth;
const visible = (each) => each.getClientRects().length > 0;
const outside = ({left, right}) => left < -0.5 || right > width + 0.5;
const name_of = (each) => `"${each.textContent.trim().slice(0, 40)}"`;

if (document.documentElement.scrollWidth > width)
  problems.push(`the page is ${document.documentElement.scrollWidth} wide`);
for (const cell of document.querySelectorAll(".cards td, .cards th, #answer p, #answer li, nav a, h1, h2, h3")) {
  if (visible(cell) && outside(cell.getBoundingClientRect())) problems.push(`${name_of(cell)} is out of sight`);
}

// ---- Charts

const charts = [...document.querySelectorAll(".chart")].filter(visible);
for (const chart of charts) {
  const label = chart.getAttribute("aria-label");
  if (!label || chart.getAttribute("role") !== "img") problems.push(`chart ${chart.id} has no name`);
  if (chart.dataset.drawn !== "yes") problems.push(`${label}: not drawn`);
  if (chart.querySelectorAll("[data-mark]").length === 0) problems.push(`${label}: no marks`);
  for (const mark of chart.querySelectorAll("[data-mark]")) {
    if (hover_texts.get(mark) === undefined) {
      problems.push(`${label}: a mark without a text`);
      break;
    }
  }
  if (/NaN|undefined|Infinity|null/.test(chart.innerHTML)) problems.push(`${label}: a figure that is no number`);
  const texts = [...chart.querySelectorAll("text")].map((text) => ({text, box: text.getBoundingClientRect()}));
  for (const {text, box} of texts)
    if (outside(box)) problems.push(`${label}: ${name_of(text)} is cut`);
  const overlap = (a, b) =>
      a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  texts.forEach(({text, box}, i) => texts.slice(i + 1).forEach((other) => {
    if (overlap(box, other.box)) problems.push(`${label}: ${name_of(text)} lies on ${name_of(other.text)}`);
  }));
}

// ---- Colours

const channels = (color) => color.match(/[\d.]+/g)
                                .slice(0, 3)
                                .map((each) => Number(each) / 255)
                                .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
const luminance = (color) => channels(color).reduce((sum, each, i) => sum + each * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) =>
    (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
const ground = getComputedStyle(document.body).backgroundColor;
for (const [selector, least] of [
         ["body", 7], [".soft, caption, section > p", 4.5], [".misfit", 4.5], ["a", 4.5], [".chart text", 4.5]]) {
  const shown = [...document.querySelectorAll(selector)].find(visible);
  const style = shown && getComputedStyle(shown);
  const color = selector.startsWith(".chart") ? style?.fill : style?.color;
  if (shown && contrast(color, ground) < least) problems.push(`${selector}: ${color} on ${ground}`);
}
const root = getComputedStyle(document.documentElement);
const color_named = (name) => root.getPropertyValue(name).trim();
const plan_colors = [...Array(8).keys()].map((i) => color_named(`--plan-${i}`));
for (const activity of data.activities ?? []) {
  if (color_named(`--${activity}`) === "") problems.push(`${activity} has no colour`);
  if (plan_colors.includes(color_named(`--${activity}`))) problems.push(`${activity} has the colour of a plan`);
}
if (new Set(plan_colors).size !== 8) problems.push("two plans have one colour");

const found = {width, ground: luminance(ground) > 0.5 ? "light" : "dark", charts: charts.length, problems};
