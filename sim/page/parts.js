"use strict";
// What every page is made of: numbers, elements, sections, tables, colours. Text from files enters a page as text
// nodes only, never as HTML.

const data = JSON.parse(document.getElementById("page-data").textContent);

// ---- Numbers for people

const digits = (value, count = 3) => {
  if (value === 0) return "0";
  const places = Math.min(12, Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toFixed(places);
};
const scaled = (value, steps, count = 3) => {
  for (const [size, unit] of steps) {
    if (Math.abs(value) >= size * 0.9995) return digits(value / size, count) + unit;
  }
  return value === 0 ? "0" : digits(value / steps.at(-1)[0], count) + steps.at(-1)[1];
};
const seconds = (value) => scaled(value, [[1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]]);
const short_seconds = (value) => value === 0 ? "0" : seconds(value).replace(/(\.\d*?)0+ /, "$1 ").replace(/\. /, " ");
const short = (value) => scaled(value, [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]);
const round_count = (value) => short(value).replace(/\.0+(\D*)$/, "$1");
const percent = (share) => (100 * share).toFixed(share > 0 && share < 0.0995 ? 1 : 0) + "%";
const signed_percent = (share) => (share < 0 ? "−" : "+") + (100 * Math.abs(share)).toFixed(1) + "%";
const ratio = (value) => value.toFixed(2) + "×";
// A number on an axis: 0.5, 1, 1.5 and not 0.50, 1.0, 1.5.
const plain = (value) => String(Number(digits(value)));
const short_ratio = (value) => plain(value) + "×";
const gigabytes = (value) => digits(value) + " GB";
const tokens = (count) => {
  for (const [size, unit] of [[2 ** 20, "Mi"], [2 ** 10, "Ki"]]) {
    if (count >= size && count % size === 0) return count / size + unit;
  }
  return count.toLocaleString("en");
};
// "1.02 – 1.30 s": a unit that all of them have is written once.
const range = (values, form) => {
  const texts = values.map(form);
  const unit = texts[0].replace(/^[0-9.]+/, "");
  const numbers = texts.map((text) => text.endsWith(unit) ? text.slice(0, text.length - unit.length) : text);
  return numbers.every((text) => /^[0-9.]+$/.test(text)) ? numbers.join(" – ") + unit : texts.join(" – ");
};
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}.`;
const all_same = (values) => values.every((value) => value === values[0]);

// ---- Colours

// A plan has one colour on every page: that of its policy (data.colors), or of its place among the plans.
const plan_color = (plan) => `var(--plan-${Math.max(0, data.colors?.[plan] ?? data.plans.indexOf(plan)) % 8})`;
const activity_color = (activity) => `var(--${activity})`;

// ---- Activities of a step

const used_activities = (runs) => Object.keys(data.definitions.activities)
                                      .map((name, i) => ({name, i}))
                                      .filter(({name}) => runs.some((run) => run.breakdown_s[name] > 0));
const meaning_of = (activity) => data.definitions.activities[activity];

// ---- Elements

const part = (id) => document.getElementById(id);
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name in made && name !== "style")
      made[name] = value;
    else
      made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
const soft = (text) => element("span", {className: "soft"}, text);
const patch = (color) => element("i", {className: "patch", style: `background: ${color}`});
const plan_name = (plan) =>
    element("span", {className: "plan"}, patch(plan_color(plan)), explained(plan, data.definitions?.plans));
// A name with its definition, where there is one.
const explained = (name, definitions = {}) =>
    definitions[name] ? element("abbr", {title: definitions[name], tabIndex: 0}, name) : name;
const list = (texts, className = "notes") =>
    element("ul", {className}, ...texts.map((text) => element("li", {}, text)));

// A section with its heading, at the end of the page. children: elements, or texts that become paragraphs.
function section(id, title, {part_of = false, long = false} = {}, ...children) {
  const heading = element(part_of ? "h3" : "h2", {id: `${id}-title`}, title);
  const className = [part_of ? "part" : "", long ? "long" : ""].filter(Boolean).join(" ");
  const made = element(
      "section", {id, className, "aria-labelledby": heading.id}, heading,
      ...children.map((child) => typeof child === "string" ? element("p", {}, child) : child));
  part("main").append(made);
  return made;
}
const chart_place = (id) => element("div", {className: "chart", id});
// The figures behind a chart, folded.
const figures_place = (name = "Figures") =>
    element("details", {}, element("summary", {}, name), element("div", {className: "figures"}));
const show_figures = (id, ...tables) => part(id).querySelector(".figures").replaceChildren(...tables);

// Links to the sections, in their order.
function name_sections() {
  const links = [...document.querySelectorAll("main section:not(.part):not([hidden])")].map(
      (each) => element("li", {}, element("a", {href: "#" + each.id}, each.querySelector("h2").textContent)));
  part("main").before(element("nav", {"aria-label": "Sections"}, element("ul", {id: "sections"}, ...links)));
}

// The paragraph that says the most, and what it rests on. answer: {lead, notes}.
function show_answer({lead, notes}) {
  if (!lead) return;
  document.querySelector("header").append(element(
      "div", {className: "answer", id: "answer"}, element("p", {className: "lead"}, lead),
      ...(notes.length > 0 ? [list(notes, "")] : [])));
}

// Buttons of which one is pressed: choices of {name, value}.
function one_of(label, choices, choose) {
  const buttons = choices.map(({name, value}, i) => {
    const button = element("button", {type: "button", "aria-pressed": String(i === 0)}, name);
    button.addEventListener("click", () => {
      buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
      choose(value);
    });
    return button;
  });
  return element(
      "div", {className: "controls"},
      element("div", {className: "switch", role: "group", "aria-label": label}, ...buttons));
}

// ---- Tables

const titles = (...names) => names.map((title) => ({title}));

// columns: [{title, text, below}], text for columns that are not numbers; rows: of strings or elements. The first is a
// header. cards: on a phone every row becomes a card, so that no column is out of sight; a column `below` its title.
function table(caption, columns, rows, {cards = false, wide = false} = {}) {
  const kind = ({text, below}) => [text ? "text" : "", below ? "below" : ""].filter(Boolean).join(" ");
  const head = columns.map(
      (column) => element("th", {scope: "col", className: kind(column), title: column.meaning ?? ""}, column.title));
  const row = (cells) => element(
      "tr", {},
      ...cells.map(
          (cell, i) => i === 0 ? element("th", {scope: "row", className: kind(columns[i])}, cell) :
                                 element("td", {className: kind(columns[i]), "data-title": columns[i].title}, cell)));
  const whole = element(
      "table", {className: wide ? "wide" : ""}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...rows.map((cells) => Array.isArray(cells) ? row(cells) : cells)));
  return element(
      "div", {className: cards ? "scroll cards" : "scroll", tabIndex: 0, role: "region", "aria-label": caption}, whole);
}
// A row of a table that is a heading of those below it.
const heading_row = (children, columns) =>
    element("tr", {className: "point"}, element("th", {scope: "colgroup", colSpan: columns.length}, ...children));

// A bar of parts {name, color, share}, all shares of the whole width.
function share_bar(parts, {label, faded} = {}) {
  const pieces = parts.map(
      ({color, share}) => element("span", {style: `width: ${(100 * share).toFixed(3)}%; background: ${color}`}));
  const bar = element(
      "div", {className: faded ? "bar faded" : "bar", role: "img", "aria-label": label, "data-mark": ""}, ...pieces);
  follow_pointer(bar);
  return with_text(
      bar, () => [label.split(": ")[0], ...parts.map(({name, color, text}) => [color, `${name} ${text}`])]);
}
function color_legend(entries, label) {
  return element(
      "ul", {className: "legend", "aria-label": label},
      ...entries.map(
          ({name, color, meaning}) =>
              element("li", {}, element("i", {style: `--patch: ${color}`}), explained(name, {[name]: meaning}))));
}

// The definitions behind the names of a page, folded: a list of {title, terms: {name: text}}.
function show_definitions(groups) {
  const shown = groups.filter(({terms}) => Object.keys(terms).length > 0);
  if (shown.length === 0) return;
  section(
      "words", "Names", {long: true},
      ...shown.map(
          ({title, terms}) => element(
              "details", {}, element("summary", {}, title),
              element(
                  "dl", {},
                  ...Object.entries(terms).flatMap(
                      ([name, text]) => [element("dt", {}, name), element("dd", {}, text)])))));
}

// The end of a page's script: what tests wait for.
function finish() {
  name_sections();
  document.documentElement.dataset.shown = String(Math.round(performance.now()));
}
