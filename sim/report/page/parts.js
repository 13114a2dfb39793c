"use strict";
// What every section of a page is made of: numbers, elements, tables, charts. Text from files reaches the page as text
// nodes only, never as HTML, and tooltips of charts are drawn, not marked up.

const has_charts = typeof echarts !== "undefined";

// ---- Numbers for people

const digits = (value, count = 3) => {
  if (value === 0) return "0";
  const places = Math.min(12, Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toFixed(places);
};
const scaled = (value, steps) => {
  for (const [size, unit] of steps) {
    if (Math.abs(value) >= size * 0.9995) return digits(value / size) + unit;
  }
  return value === 0 ? "0" : digits(value / steps.at(-1)[0]) + steps.at(-1)[1];
};
const seconds = (value) => scaled(value, [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]]);
const short_seconds = (value) => seconds(value).replace(/\.0+ /, " ");
const short = (value) => scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]);
const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + "%";
const ratio = (value) => value.toFixed(2) + "×";
// Of an axis: 0.5, 1, 1.5 and not 0.50, 1.0, 1.5.
const plain = (value) => String(Number(digits(value)));
const short_ratio = (value) => plain(value) + "×";
const tokens = (count) => {
  for (const [size, unit] of [[2 ** 20, "Mi"], [2 ** 10, "Ki"]]) {
    if (count >= size && count % size === 0) return count / size + unit;
  }
  return count.toLocaleString("en");
};
// "1.02 – 1.30 s": a unit that all of them have stands once.
const range = (values, form) => {
  const texts = values.map(form);
  const unit = texts[0].replace(/^[0-9.]+/, "");
  const numbers = texts.map((text) => text.endsWith(unit) ? text.slice(0, text.length - unit.length) : text);
  return numbers.every((text) => /^[0-9.]+$/.test(text)) ? numbers.join(" – ") + unit : texts.join(" – ");
};
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

// ---- Elements

const part = (id) => document.getElementById(id);
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const titles = (...names) => names.map((title) => ({title}));

// columns: [{title, text}], text for columns that are not numbers; rows: of strings or elements. The first is a header.
function table(caption, columns, rows) {
  const head = columns.map(({title, text}) => element("th", {scope: "col", className: text ? "text" : ""}, title));
  const row = (cells) => element("tr", {}, ...cells.map((cell, i) => {
    const className = columns[i].text ? "text" : "";
    return i === 0 ? element("th", {scope: "row", className}, cell) : element("td", {className}, cell);
  }));
  const whole = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)),
                        element("tbody", {}, ...rows.map((cells) => Array.isArray(cells) ? row(cells) : cells)));
  return element("div", {className: "scroll", tabIndex: 0, role: "region", "aria-label": caption}, whole);
}

// The figures behind a chart. Without charts they are all there is, and open.
function show_figures(section, ...tables) {
  part(section).querySelector(".figures").replaceChildren(...tables);
  if (!has_charts) part(section).querySelector("details").open = true;
}

// ---- Charts

const charts = new Map();
const print_width = 680;  // pixels between the margins of A4

function draw(place, label, height, option) {
  if (!has_charts) return;
  place.style.height = height + "px";
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.dataset.drawn = "no";
  charts.get(place)?.dispose();
  const chart = echarts.init(place, null, {renderer: "svg"});
  chart.on("finished", () => { place.dataset.drawn = "yes"; });
  chart.setOption({animation: false, textStyle: {fontFamily: "system-ui, sans-serif"}, ...option});
  charts.set(place, chart);
}

const chart_of = (section) => part(section).querySelector(".chart");
const grid = (more = {}) => ({left: 4, right: 28, top: 48, bottom: 4, outerBoundsMode: "same", ...more});
const legend = (more = {}) => ({top: 0, left: 0, itemWidth: 14, itemHeight: 10, type: "scroll", ...more});
// Of a few entries: goes on in a second line instead of on a second page, which paper does not turn.
const whole_legend = () => legend({type: "plain", itemGap: 8});
const axis_name = (name) => ({name, nameLocation: "middle", nameGap: 28, nameTextStyle: {color: "#57606a"}});
const tooltip = (formatter, more = {}) => ({renderMode: "richText", confine: true, formatter, ...more});
const value_axis = (name, form) => ({type: "value", ...axis_name(name), axisLabel: {formatter: form}});
