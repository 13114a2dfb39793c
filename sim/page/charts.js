"use strict";
// Charts as SVG, drawn by the page itself. Each draw_*(place, options) fills an element, and may be called again with
// other options. A chart is drawn at the width that it has, and again when that changes, so that its text keeps its
// size. Colours are CSS: "var(--plan-1)". Hover texts are lists of lines and stay text.
//
//   draw_bars(place, {label, height, names, series: [{name, color, values, faded, whiskers}], axis, x_name, text,
//                     value_form})
//   draw_stacked(place, {label, rows, parts: [{name, color, values}], axis, text, totals, faded})
//   draw_lines(place, {label, height, series: [{name, color, points, dashed, step, band, faded, text}], x, y, title,
//                      dots, legend})
//   draw_points(place, {label, height, points: [{x, y, color, kind, size, series, text}], lines, x, y, legend})
//   draw_heat(place, {label, columns, values, row_name, text, ends})
//   draw_lanes(place, {label, lanes, bars: [{lane, from, to, kind, mark, text}], kinds: [{name, color}], x})
//
// An axis is {name, form, max, min, log, limit, marks}: form writes a value, limit is a line with a text of its own,
// marks are values to label instead of round ones. What is faded is supposed, or cannot run. A bar of no value is left
// out.

const svg_space = "http://www.w3.org/2000/svg";
const print_width = 680;  // pixels between the margins of A4
const small_text = 12;

const drawings = new Map();  // place -> {paint, height}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(svg_space, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// ---- Text

const measure = document.createElement("canvas").getContext("2d");
function text_width(text, size = small_text) {
  measure.font = `${size}px system-ui, sans-serif`;
  return measure.measureText(text).width;
}

// The text, cut at its end to fit so many pixels.
function fitted(text, width) {
  if (text_width(text) <= width) return text;
  let length = text.length;
  while (length > 1 && text_width(text.slice(0, length) + "…") > width) --length;
  return text.slice(0, length) + "…";
}

const written = (text, x, y, anchor = "start", more = {}) =>
    shape("text", {x, y, "text-anchor": anchor, ...more}, text);

// Whether text on this colour has to be dark.
function is_light(color) {
  const probe = shape("rect", {style: `fill: ${color}`});
  drawing_board().append(probe);
  const computed = getComputedStyle(probe).fill;  // rgb(...), or oklab(...) of a mixed colour
  const [a, b, c] = (computed.match(/-?[\d.]+(e-?\d+)?/g) ?? [255, 255, 255]).map(Number);
  probe.remove();
  return computed.startsWith("oklab") ? a > 0.68 : 0.299 * a + 0.587 * b + 0.114 * c > 150;
}
function drawing_board() {
  let board = document.getElementById("drawing-board");
  if (!board) {
    board =
        shape("svg", {id: "drawing-board", width: 0, height: 0, "aria-hidden": "true", style: "position: absolute"});
    document.body.append(board);
  }
  return board;
}

// ---- Axes

// Round values from least to most, about `count` of them.
function round_values(least, most, count) {
  const rough = (most - least) / Math.max(1, count);
  if (!(rough > 0)) return [least];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999) * power;
  const values = [];
  for (let i = Math.ceil(least / step - 1e-9); i * step <= most + step * 1e-9; ++i) values.push(i * step || 0);
  return values;
}
// 1, 2 and 5 times powers of ten, or of ten alone over many decades.
function round_powers(least, most) {
  const values = [];
  for (let power = Math.floor(Math.log10(least)); 10 ** power <= most; ++power) {
    for (const times of most / least > 300 ? [1] : [1, 2, 5]) {
      const value = times * 10 ** power;
      if (value >= least * 0.999 && value <= most * 1.001) values.push(value);
    }
  }
  return values;
}

// A scale from values to pixels: {place(value), labels: [[pixel, text]], step} of an axis or of {names}.
function scale_of(axis, from, to, count = 5) {
  if (axis.names) {
    const step = (to - from) / Math.max(1, axis.names.length);
    const place = (index) => from + (index + 0.5) * step;
    return {place, step, labels: axis.names.map((name, i) => [place(i), name])};
  }
  const {min = 0, max, form = String} = axis;
  const along =
      axis.log ? (value) => Math.log(value / min) / Math.log(max / min) : (value) => (value - min) / (max - min);
  const place = (value) => from + (max > min ? along(value) : 0.5) * (to - from);
  const values = axis.marks ?? (axis.log ? round_powers(min, max) : round_values(min, max, count));
  return {place, labels: values.map((value) => [place(value), form(value)])};
}

// The end of an axis that has room for a value: round, and a little above it.
function round_end(value) {
  const steps = round_values(0, value * 1.04, 5);
  const step = steps[1] ?? 1;
  return value > 0 ? Math.ceil(value * 1.04 / step) * step : 1;
}

// Labels that do not touch: every one, or every second, third, ...
function apart(labels, size_of) {
  if (labels.length < 2) return labels;
  const gap = Math.abs(labels[1][0] - labels[0][0]);
  const widest = Math.max(...labels.map(([, text]) => size_of(text)));
  const every = Math.max(1, Math.ceil((widest + 10) / Math.max(gap, 0.01)));
  return labels.filter((_, i) => i % every === 0);
}
// The labels at uneven distances that leave room after the one before.
function apart_unevenly(labels) {
  let free = -Infinity;
  return labels.filter(([at, text]) => {
    const half = text_width(text) / 2;
    if (at - half < free) return false;
    free = at + half + 10;
    return true;
  });
}

// The plot between two axes, with grid and labels: {svg, left, right, top, bottom, x, y}.
function plot(svg, width, height, {x, y, top = 14, right = 14}) {
  const bottom = height - (x.name ? 40 : 22);
  if (y.name) top += 16;
  const rough = scale_of(y, bottom, top, Math.max(2, (bottom - top) / 50));
  const widest = Math.max(0, ...rough.labels.map(([, text]) => text_width(text)));
  const left = y.names ? Math.min(widest, width * 0.34) + 10 : widest + 8;
  const across = scale_of(x, left, width - right, Math.max(2, (width - left) / 90));
  const grid = shape("g", {class: "grid"});
  const texts = shape("g", {class: "labels"});
  for (const [at, text] of rough.labels) {
    if (!y.names) grid.append(shape("line", {x1: left, x2: width - right, y1: at, y2: at}));
    texts.append(written(fitted(text, left - 4), left - 8, at + 4, "end"));
  }
  const below = x.names ? apart(across.labels, text_width) : apart_unevenly(across.labels);
  for (const [at, text] of below) {
    if (!x.names) grid.append(shape("line", {x1: at, x2: at, y1: top, y2: bottom}));
    const half = text_width(text) / 2;
    texts.append(written(text, Math.min(Math.max(at, half), width - half), bottom + 16, "middle"));
  }
  if (x.name) texts.append(written(x.name, (left + width - right) / 2, height - 6, "middle", {class: "name"}));
  if (y.name) texts.append(written(y.name, 0, 12, "start", {class: "name"}));
  grid.append(shape("line", {class: "base", x1: left, x2: width - right, y1: bottom, y2: bottom}));
  svg.append(grid, texts);
  return {left, right: width - right, top, bottom, x: across, y: rough};
}

// A line with its text across the plot, at a value of one of its axes.
function limit_line(svg, area, {x, y}) {
  if (y.limit) {
    const at = area.y.place(y.limit.at);
    svg.append(
        shape("line", {class: "limit", x1: area.left, x2: area.right, y1: at, y2: at}),
        written(y.limit.text, area.right, at - 5, "end", {class: "limit"}));
  }
  if (x.limit) {
    const at = area.x.place(x.limit.at);
    const half = text_width(x.limit.text) / 2;
    const middle = Math.min(Math.max(at, half), area.right + 14 - half);
    svg.append(
        shape("line", {class: "limit", x1: at, x2: at, y1: area.top - 4, y2: area.bottom}),
        written(x.limit.text, middle, area.top - 8, "middle", {class: "limit"}));
  }
}

// ---- Hover texts

const hover_texts = new WeakMap();  // mark -> () => [line, ...]
const with_text = (mark, text) => {
  if (text) hover_texts.set(mark, text);
  return mark;
};

const hover_box = document.createElement("div");
hover_box.className = "hover";
hover_box.hidden = true;

// lines: texts, or [colour, text] with a patch of that colour before it. The first is a title.
function show_hover(event, lines) {
  if (!hover_box.isConnected) document.body.append(hover_box);
  hover_box.replaceChildren(...lines.map((line) => {
    const row = document.createElement("div");
    if (Array.isArray(line)) {
      const patch = document.createElement("i");
      patch.style.background = line[0];
      row.append(patch);
    }
    row.append(Array.isArray(line) ? line[1] : line);
    return row;
  }));
  hover_box.hidden = false;
  const {width, height} = hover_box.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
  const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;
  hover_box.style.left = Math.max(8, x) + "px";
  hover_box.style.top = y + "px";
}
const hide_hover = () => {
  hover_box.hidden = true;
};

function follow_pointer(place) {
  const look = (event) => {
    const mark = event.target.closest?.("[data-mark]");
    const text = mark && hover_texts.get(mark);
    if (text)
      show_hover(event, text(event));
    else
      hide_hover();
  };
  place.addEventListener("pointermove", look);
  place.addEventListener("pointerdown", look);
  place.addEventListener("pointerleave", hide_hover);
}

// ---- Drawing and drawing again

function repaint(place, width = place.clientWidth) {
  const drawing = drawings.get(place);
  if (!drawing || !(width > 0)) return;
  const height = typeof drawing.height === "function" ? drawing.height(width) : drawing.height;
  const svg = shape("svg", {width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true"});
  drawing.paint(svg, width, height);
  place.querySelector("svg")?.remove();
  place.append(svg);
  place.dataset.drawn = "yes";
}
const repaint_all = (width) => drawings.forEach((_, place) => repaint(place, width));

const widths = new ResizeObserver((entries) => {
  if (!matchMedia("print").matches) entries.forEach(({target}) => repaint(target));
});

// legend: [{name, color, dashed}] above the chart; pointing at an entry dims the others.
function draw(place, {label, height, legend = []}, paint) {
  if (!drawings.has(place)) {
    widths.observe(place);
    follow_pointer(place);
  }
  drawings.set(place, {paint, height});
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.dataset.drawn = "no";
  place.replaceChildren(...(legend.length > 0 ? [legend_of(legend, place)] : []));
  repaint(place);
}

function legend_of(entries, place) {
  const list = document.createElement("ul");
  list.className = "legend";
  entries.forEach(({name, color, dashed}, index) => {
    const patch = document.createElement("i");
    patch.className = dashed ? "dashed" : "";
    patch.style.setProperty("--patch", color);
    const item = document.createElement("li");
    item.append(patch, name);
    item.addEventListener("pointerenter", () => dim_others(place, index));
    item.addEventListener("pointerleave", () => dim_others(place, -1));
    list.append(item);
  });
  return list;
}
function dim_others(place, index) {
  place.querySelectorAll("[data-series]").forEach((mark) => {
    mark.classList.toggle("dim", index >= 0 && mark.dataset.series !== String(index));
  });
}
const series_group = (index) => shape("g", {"data-series": index});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => repaint_all());
addEventListener("beforeprint", () => repaint_all(print_width));
addEventListener("afterprint", () => repaint_all());

// ---- Charts

// A colour, or its faint shade: of what cannot run, or is only supposed.
const shade = (color, faded) => faded ? `color-mix(in oklab, ${color} 35%, var(--ground))` : color;

// Upright bars: a group a name, in it one of each series. whiskers[i]: [low, high, middle]; text(series, i): lines.
function draw_bars(place, {label, height = 300, names, series, axis, x_name, text, value_form}) {
  const legend = series.length > 1 ? series : [];
  draw(place, {label, height, legend}, (svg, width, tall) => {
    const ends = series.flatMap(({values, whiskers}) => [...values, ...(whiskers ?? []).map((ends) => ends?.[1])]);
    const y = {...axis, max: axis.max ?? round_end(Math.max(0, ...ends.filter((end) => end !== undefined)))};
    const area = plot(svg, width, tall, {x: {names, name: x_name}, y});
    const room = area.x.step * (names.length === 1 ? 0.5 : 0.76);
    const thick = Math.min(56, room / series.length);
    series.forEach((each, s) => {
      const group = series_group(s);
      each.values.forEach((value, i) => {
        if (value === undefined) return;
        const left = area.x.place(i) + (s - series.length / 2) * thick;
        const top = area.y.place(value);
        const box = {x: left, y: top, width: Math.max(1, thick - 2), height: Math.max(0, area.bottom - top), rx: 2};
        group.append(with_text(
            shape("rect", {...box, "data-mark": "", style: `fill: ${shade(each.color, each.faded?.[i])}`}),
            () => text(each, i)));
        if (value_form && text_width(value_form(value)) < thick + 4) {
          const above = each.whiskers?.[i] ? area.y.place(Math.max(each.whiskers[i][1], value)) : top;
          group.append(written(value_form(value), left + thick / 2 - 1, above - 5, "middle", {class: "value"}));
        }
        if (each.whiskers?.[i]) group.append(whisker(area, left + thick / 2 - 1, thick, each.whiskers[i]));
      });
      svg.append(group);
    });
    limit_line(svg, area, {x: {}, y});
  });
}

function whisker(area, x, thick, [low, high, middle]) {
  const [y1, y2] = [area.y.place(low), area.y.place(high)];
  const tip = Math.min(5, thick / 4);
  const group = shape(
      "g", {class: "whisker"},
      shape("path", {d: `M${x} ${y1}V${y2}M${x - tip} ${y1}H${x + tip}M${x - tip} ${y2}H${x + tip}`}));
  if (middle !== undefined) group.append(shape("circle", {cx: x, cy: area.y.place(middle), r: 3}));
  return group;
}

// Bars that lie: a row an item, made of parts. parts[i].values by row; text(part, row): lines; totals: texts at ends.
function draw_stacked(place, {label, rows, parts, axis, text, totals, faded}) {
  const above = (width) => width < 560;  // row names are above their bars then
  const tall = (row_count, width) => above(width) ? 42 : row_count > 60 ? 14 : row_count > 16 ? 22 : 30;
  const top = axis.limit ? 22 : 6;
  const height = (width) => top + rows.length * tall(rows.length, width) + (axis.name ? 42 : 24);
  const legend = parts.length > 1 ? parts : [];
  draw(place, {label, height, legend}, (svg, width, whole) => {
    const sums = rows.map((_, i) => parts.reduce((sum, {values}) => sum + values[i], 0));
    const x = {...axis, max: axis.max ?? Math.max(...sums, 1e-12) * 1.01};
    const names = above(width) ? rows.map(() => "") : rows;
    const right = totals && !axis.max ? Math.max(14, ...totals.map((each) => text_width(each) + 8)) : 14;
    const area = plot(svg, width, whole, {x, y: {names: [...names].reverse()}, top, right});
    const thick = above(width) ? 20 : Math.max(6, area.y.step * -0.68);
    const center = (i) => area.y.place(rows.length - 1 - i) + (above(width) ? 8 : 0);
    const ends = rows.map(() => 0);
    parts.forEach((part, p) => {
      const group = series_group(p);
      part.values.forEach((value, i) => {
        if (!(value > 0)) return;
        const from = area.x.place(ends[i]);
        ends[i] += value;
        const box = {x: from, y: center(i) - thick / 2, width: area.x.place(ends[i]) - from, height: thick};
        group.append(with_text(
            shape("rect", {...box, "data-mark": "", class: "part", style: `fill: ${shade(part.color, faded?.[i])}`}),
            () => text(part, i)));
      });
      svg.append(group);
    });
    rows.forEach((name, i) => {
      if (above(width)) svg.append(written(fitted(name, width), area.left, center(i) - 15, "start", {class: "row"}));
      if (totals) svg.append(written(totals[i], area.x.place(ends[i]) + 6, center(i) + 4, "start", {class: "value"}));
    });
    limit_line(svg, area, {x, y: {}});
  });
}

// Curves. points: [[x, y], ...] ascending; step: the value holds until the next point; band: [[x, low, high], ...].
// Pointing anywhere shows all series there: text(x) makes the title.
function draw_lines(place, {label, height = 280, series, x, y, title, dots, legend}) {
  const entries = legend ?? (series.length > 1 ? series : []);
  draw(place, {label, height, legend: entries}, (svg, width, tall) => {
    const all = series.flatMap(({points}) => points);
    const bands = series.flatMap(({band}) => band ?? []);
    const xs = all.map(([at]) => at);
    const most = Math.max(y.limit?.at ?? 0, ...all.map(([, value]) => value), ...bands.map(([, , high]) => high));
    const scales = {x: {min: Math.min(...xs), max: Math.max(...xs), ...x}, y: {max: round_end(most), ...y}};
    const area = plot(svg, width, tall, {...scales, right: 18});
    const at = ([px, py]) => `${area.x.place(px).toFixed(1)} ${area.y.place(py).toFixed(1)}`;
    series.forEach((each, s) => {
      const group = series_group(s);
      if (each.band?.length > 0) {
        const upper = each.band.map(([px, , high]) => at([px, high]));
        const lower = each.band.map(([px, low]) => at([px, low])).reverse();
        group.append(
            shape("path", {class: "band", d: `M${[...upper, ...lower].join("L")}Z`, style: `fill: ${each.color}`}));
      }
      const path = each.points.map(
          (point, i) => i === 0 ? `M${at(point)}` :
              each.step ? `H${area.x.place(point[0]).toFixed(1)}V${area.y.place(point[1]).toFixed(1)}` :
                          `L${at(point)}`);
      group.append(shape(
          "path", {class: each.dashed ? "line dashed" : "line", d: path.join(""), style: `stroke: ${each.color}`}));
      if (dots) {
        each.points.forEach(([px, py], i) => group.append(shape("circle", {
          class: each.faded?.[i] ? "dot hollow" : "dot",
          cx: area.x.place(px),
          cy: area.y.place(py),
          r: 4,
          style: `--patch: ${each.color}`
        })));
      }
      svg.append(group);
    });
    limit_line(svg, area, scales);
    read_across(svg, area, series, scales, title);
  });
}

// A transparent sheet over the plot: the x under the pointer, and every series' value there.
function read_across(svg, area, series, {x, y}, title = (at) => (x.form ?? String)(at)) {
  const rule = shape("line", {class: "rule", y1: area.top, y2: area.bottom, visibility: "hidden"});
  const box = {x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top};
  const sheet = shape("rect", {...box, class: "sheet", "data-mark": ""});
  const xs = [...new Set(series.flatMap(({points}) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const exact = y.exact ?? y.form ?? String;
  with_text(sheet, (event) => {
    const pixel = event.clientX - svg.getBoundingClientRect().left;
    const near = xs.reduce(
        (best, at) => Math.abs(area.x.place(at) - pixel) < Math.abs(area.x.place(best) - pixel) ? at : best, xs[0]);
    rule.setAttribute("x1", area.x.place(near));
    rule.setAttribute("x2", area.x.place(near));
    rule.setAttribute("visibility", "visible");
    const lines = series.map((each) => {
      const i = each.points.findLastIndex(([at]) => at <= near);
      const hit = i >= 0 && (each.step || each.points[i][0] === near);
      return hit ? [each.color, `${each.name}: ${each.text ? each.text(i) : exact(each.points[i][1])}`] : null;
    });
    return [title(near), ...lines.filter(Boolean)];
  });
  sheet.addEventListener("pointerleave", () => rule.setAttribute("visibility", "hidden"));
  svg.append(rule, sheet);
}

// Dots of two figures. lines: [{points, class}] behind them. The text of a dot is a list of lines.
function draw_points(place, {label, height = 320, points, lines = [], x, y, legend = []}) {
  draw(place, {label, height, legend}, (svg, width, tall) => {
    const end = (axis, figure) => {
      const all = points.map(figure);
      const [least, most] = [Math.min(...all), Math.max(...all)];
      return axis.log ? {min: least * 0.8, max: most * 1.25, ...axis} : {max: round_end(most), ...axis};
    };
    const scales = {x: end(x, (point) => point.x), y: end(y, (point) => point.y)};
    const area = plot(svg, width, tall, {...scales, right: 18});
    for (const line of lines) {
      const path = line.points.map(([px, py]) => `${area.x.place(px).toFixed(1)} ${area.y.place(py).toFixed(1)}`);
      svg.append(shape("path", {class: `line ${line.kind ?? ""}`, d: `M${path.join("L")}`}));
    }
    limit_line(svg, area, scales);
    points.forEach(
        (point) => svg.append(with_text(
            shape("circle", {
              "data-mark": "",
              "data-series": point.series,
              class: `point ${point.kind ?? ""}`,
              cx: area.x.place(point.x),
              cy: area.y.place(point.y),
              r: point.size ?? 4,
              style: `--patch: ${point.color}`
            }),
            () => point.text)));
  });
}

const heat_color = (share) => `color-mix(in oklab, var(--heat-most) ${(100 * share).toFixed(1)}%, var(--heat-least))`;

// Cells in rows of `columns`, coloured by values from 0 to 1.
function draw_heat(place, {label, columns, values, row_name, text, ends}) {
  const rows = Math.ceil(values.length / columns);
  const tall = Math.min(26, Math.max(8, 360 / rows));
  draw(place, {label, height: 34 + rows * tall}, (svg, width) => {
    heat_legend(svg, ends);
    const names = [...Array(rows).keys()].map(row_name);
    const left = Math.max(...names.map((name) => text_width(name))) + 10;
    const wide = Math.min(46, (width - left) / columns);
    const gap = Math.min(wide, tall) > 7 ? 1.5 : 0.3;
    const every = Math.max(1, Math.ceil(16 / tall));
    names.forEach((name, row) => {
      if (row % every === 0) svg.append(written(name, left - 8, 30 + (row + 0.5) * tall + 4, "end"));
    });
    values.forEach(
        (value, i) => svg.append(with_text(
            shape("rect", {
              x: left + (i % columns) * wide,
              y: 30 + Math.floor(i / columns) * tall,
              width: wide - gap,
              height: tall - gap,
              rx: gap > 1 ? 2 : 0,
              "data-mark": "",
              style: `fill: ${heat_color(value)}`
            }),
            () => text(i))));
  });
}
function heat_legend(svg, [least, most]) {
  const from = text_width(least) + 8;
  svg.append(written(least, 0, 14));
  for (let i = 0; i < 20; ++i) {
    svg.append(
        shape("rect", {x: from + i * 7, y: 4, width: 7.5, height: 12, style: `fill: ${heat_color((i + 0.5) / 20)}`}));
  }
  svg.append(written(most, from + 148, 14));
}

// Bars over time on lanes. Dragging over a part of the time shows that part alone; a double click shows all again.
function draw_lanes(place, {label, lanes, bars, kinds, x}) {
  const view = {from: x.min ?? 0, to: x.max};
  const tall = 28;
  const height = 8 + lanes.length * tall + 42;
  draw(place, {label, height, legend: kinds}, (svg, width, whole) => {
    const dark_text = kinds.map(({color}) => is_light(color));
    const shown = {...x, min: view.from, max: view.to};
    const area = plot(svg, width, whole, {x: shown, y: {names: [...lanes].reverse()}, top: 8});
    const clip = `clip-${[...drawings.keys()].indexOf(place)}`;
    const box = {x: area.left, y: area.top, width: area.right - area.left, height: area.bottom - area.top};
    svg.append(shape("clipPath", {id: clip}, shape("rect", box)));
    const groups = kinds.map((_, kind) => series_group(kind));
    for (const bar of bars) {
      if (bar.to < view.from || bar.from > view.to) continue;
      const y = area.y.place(lanes.length - 1 - bar.lane);
      const [left, right] = [area.x.place(bar.from), area.x.place(bar.to)];
      const piece = {x: left, y: y - tall * 0.38, width: Math.max(0.5, right - left), height: tall * 0.76};
      groups[bar.kind].append(with_text(
          shape("rect", {
            ...piece,
            "data-mark": "",
            class: right - left > 3 ? "part" : undefined,
            style: `fill: ${kinds[bar.kind].color}`
          }),
          () => bar.text));
      const [begin, end] = [Math.max(left, area.left), Math.min(right, area.right)];
      if (end - begin > 8 + text_width(bar.mark)) {
        groups[bar.kind].append(written(
            bar.mark, (begin + end) / 2, y + 4, "middle", {class: dark_text[bar.kind] ? "on-light" : "on-dark"}));
      }
    }
    svg.append(shape("g", {"clip-path": `url(#${clip})`}, ...groups));
    zoom_by_dragging(place, svg, area, view, {min: x.min ?? 0, max: x.max});
  });
}

function zoom_by_dragging(place, svg, area, view, {min, max}) {
  const value_at = (event) => {
    const pixel = event.clientX - svg.getBoundingClientRect().left;
    const share = Math.min(1, Math.max(0, (pixel - area.left) / (area.right - area.left)));
    return view.from + share * (view.to - view.from);
  };
  const show = (from, to) => {
    Object.assign(view, {from, to});
    repaint(place);
  };
  let begin = null;
  const veil = shape("rect", {class: "veil", y: area.top, height: area.bottom - area.top, width: 0});
  svg.append(veil);
  svg.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse") begin = value_at(event);
  });
  svg.addEventListener("pointermove", (event) => {
    if (begin === null) return;
    const [a, b] = [begin, value_at(event)].sort((p, q) => p - q).map(area.x.place);
    veil.setAttribute("x", a);
    veil.setAttribute("width", b - a);
  });
  svg.addEventListener("pointerup", (event) => {
    const [a, b] = [begin, value_at(event)].sort((p, q) => p - q);
    const dragged = begin !== null && area.x.place(b) - area.x.place(a) > 6;
    begin = null;
    if (dragged) show(a, b);
  });
  svg.addEventListener("pointerleave", () => {
    begin = null;
    veil.setAttribute("width", 0);
  });
  svg.addEventListener("dblclick", () => show(min, max));
}
