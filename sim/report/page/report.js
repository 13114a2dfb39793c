// The sections of the report, drawn from the data in the page.

const data = JSON.parse(document.getElementById("report-data").textContent);
const plans = [...new Set(data.runs.map((run) => run.plan))];

const plan_colors = ["#7a828c", "#0b6fb8", "#d1591a", "#1a8f6a", "#b8569a", "#c99700", "#5a4fcf", "#8a5a2b"];
const activity_colors = {
  attention: "#1c5fae", linear: "#6aa9e0", cp_comm: "#d1591a", tp_comm: "#f0a04b", offload_stall: "#9b4fb0",
  bubble: "#e3c7ea", group_wait: "#b9c0c8", grad_sync: "#1a8f6a", optimizer: "#8fd1b3", data_wait: "#c99700",
  overhead: "#4c535b",
};
const pass_colors = {
  forward: "#4a92cb", backward: "#1a8f6a", "input gradient": "#1a8f6a", "weight gradient": "#c9b400",
};
const memory_colors = ["#12508a", "#4a92cb", "#b3d0ea", "#1a8f6a", "#8fd1b3", "#c9b400", "#d1591a", "#b9c0c8",
                       "#7a828c"];
const evidence_colors = ["#1a8f6a", "#8fd1b3", "#f0a04b", "#b9c0c8"];
const size_colors = ["#dbe7f3", "#b3d0ea", "#7fb3dd", "#4a92cb", "#1f6fb2", "#12508a", "#0c3a66", "#5a4fcf", "#8a3fb0",
                     "#b83280", "#d1591a", "#e08f00", "#c9b400"];

// Intervals are those of the simulated means where every run has them, otherwise the spread of the steps.
const uncertain = data.runs.every(({uncertainty}) => uncertainty);
const step_time_of = (run) => ({...run.step_time, ...(uncertain ? run.uncertainty.step_time : {})});
const speedup_of = (run) => ({...run.speedup, ...(uncertain ? run.uncertainty.speedup : {})});

const plan_color = (plan) => plan_colors[plans.indexOf(plan) % plan_colors.length];
const activity_color = (activity) => activity_colors[activity] ?? "#888";

// ---- Charts over all runs

// Lines from low to high on the bars of series `index` of `count`: items [category, low, high, middle], of which the
// middle, if there is one, gets a dot.
function whiskers(name, items, index, count) {
  return {
    type: "custom", name, silent: true, z: 5, color: "#1b1f24", tooltip: {show: false},
    encode: {x: 0, y: [1, 2]}, data: items,
    renderItem(_, api) {
      const layout = api.barLayout({barGap: "10%", barCategoryGap: "30%", count})[index];
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const high = api.coord([api.value(0), api.value(2)])[1];
      const center = x + layout.offsetCenter;
      const tip = Math.min(4, layout.width / 3);
      const line = (x1, y1, x2, y2) => ({type: "line", shape: {x1, y1, x2, y2}, style: {stroke: "#1b1f24"}});
      const [, middle] = api.coord([api.value(0), api.value(3)]);
      const dot = {type: "circle", shape: {cx: center, cy: middle, r: 3}, style: {fill: "#fff", stroke: "#1b1f24"}};
      return {type: "group", children: [line(center, low, center, high), line(center - tip, low, center + tip, low),
                                        line(center - tip, high, center + tip, high), ...(middle >= 0 ? [dot] : [])]};
    },
  };
}

// Bars by point and plan, with intervals. figure(run) is {mean, p5, p50, p95}.
function draw_by_point(section, label, axis, form, figure) {
  const points = data.points.map((_, point) => point_name(point, "\n") || "all");
  const bars = plans.map((plan) => ({
    type: "bar", name: plan, color: plan_color(plan), barGap: "10%", barCategoryGap: "30%",
    data: runs_of(plan).map((run) => ({value: figure(run).mean, itemStyle: {opacity: run.memory.fits ? 1 : 0.25}})),
  }));
  const interval_of = (run) => {
    const {p5, p50, p95} = figure(run);
    return [run.point, p5, p95, ...(uncertain ? [p50] : [])];
  };
  const intervals = plans.map((plan, i) => whiskers(plan, runs_of(plan).map(interval_of), i, plans.length));
  const text = ({seriesName, dataIndex}) => {
    const run = runs_of(seriesName)[dataIndex];
    return `${point_name(dataIndex, ", ")}\n${seriesName}: ${with_spread(figure(run), form)}${unless_it_fits(run)}`;
  };
  draw(chart_of(section), label, 340, {
    grid: grid(), legend: legend({data: plans}), tooltip: tooltip(text),
    xAxis: {type: "category", data: points, axisTick: {show: false}, axisLabel: {hideOverlap: true, lineHeight: 15}},
    yAxis: {type: "value", ...axis_name(axis.name), nameLocation: "end", nameGap: 12,
            axisLabel: {formatter: axis.form}},
    series: [...bars, ...intervals],
  });
}

// Stacked bars, one an item: parts[i] of {name, color, value(item)}. axis.limit: a line there.
function draw_stacked(place, label, items, name_of, parts, axis) {
  const rows = items.map(name_of);
  const series = parts.map(({name, color, value}) => ({
    type: "bar", name, color, stack: "all", barCategoryGap: "25%", data: items.map(value),
  }));
  if (axis.limit !== undefined && series.length > 0) {
    const at_the_top = {position: "start", distance: 4};  // rows are counted downwards
    series[0].markLine = limit_line({xAxis: axis.limit}, axis.exact, at_the_top);
  }
  const exact = axis.exact ?? axis.form;
  const text = ({seriesName, value, dataIndex}) => `${rows[dataIndex]}\n${seriesName}: ${exact(value)}`;
  draw(place, label, 98 + items.length * (items.length > 60 ? 14 : 22), {
    grid: grid({top: 56}), legend: whole_legend(), tooltip: tooltip(text),
    xAxis: {...value_axis(axis.name, axis.form), max: axis.max},
    yAxis: {type: "category", inverse: true, data: rows, axisTick: {show: false},
            axisLabel: {width: 260, overflow: "truncate"}},
    series,
  });
}

const limit_line = (at, form, place) => ({
  silent: true, symbol: "none", lineStyle: {color: "#b3261e", type: "solid", width: 1.5},
  label: {formatter: ({value}) => `limit of a device: ${form(value)}`, color: "#b3261e", ...place}, data: [at],
});

// With the median between them where it is one of means.
const spread = ({p5, p50, p95}, form) => range(uncertain ? [p5, p50, p95] : [p5, p95], form);
const with_spread = (found, form) => `${form(found.mean)} (${spread(found, form)})`;
const step_counts = [...new Set(data.runs.map((run) => run.steps))];
const spread_name = uncertain ? "p5 – p50 – p95" : "p5 – p95";
const spread_title = uncertain ? spread_name
  : `${spread_name} of ${step_counts.join(", ")} step${step_counts.at(-1) === 1 ? "" : "s"}`;

// ---- Names

const point_name = (point, between) =>
  data.points[point].coordinates.map(([, value]) => value).join(between);
const full_point_name = (point) =>
  data.points[point].coordinates.map(([path, value]) => path + " " + value).join(", ") || "the only point";
const run_name = (run) => [point_name(run.point, ", "), run.plan].filter(Boolean).join(" · ");
const worker_name = (run, rank, stage) => run.stages > 1 ? `rank ${rank} stage ${stage}` : `rank ${rank}`;
const runs_of = (plan) => data.runs.filter((run) => run.plan === plan);
const sentence = (note) => `${note[0].toUpperCase()}${note.slice(1)}.`;
const all_same = (values) => values.every((value) => value === values[0]);

// Bars for all runs of a large sweep would not fit on a page: those of the chosen point then stand for all.
const most_bars = 100;
const comparable_runs = () =>
  data.runs.length <= most_bars ? data.runs : data.runs.filter((run) => run.point === chosen().point);

// ---- The sections

function used_activities(runs) {
  return data.activities.map((name, i) => ({name, i})).filter(({i}) => runs.some((run) => run.breakdown[i] > 0));
}

function breakdown_bar(run) {
  const parts = used_activities([run]).map(({name, i}) => ({name, share: run.breakdown[i] / run.step_time.mean}));
  const text = parts.filter(({share}) => share >= 0.005).sort((a, b) => b.share - a.share)
    .map(({name, share}) => `${name} ${percent(share)}`).join(", ");
  const pieces = parts.map(({name, share}) => {
    const piece = element("span", {});
    piece.style.width = 100 * share + "%";
    piece.style.background = activity_color(name);
    return piece;
  });
  return element("div", {className: "bar", role: "img", title: text, "aria-label": text}, ...pieces);
}

function activity_legend() {
  const entries = used_activities(data.runs).map(({name}) => {
    const color = element("i", {});
    color.style.background = activity_color(name);
    return element("li", {}, color, name);
  });
  return element("ul", {className: "legend", "aria-label": "Colours of the bars"}, ...entries);
}

const unless_it_fits = ({memory}) => memory.fits ? "" : "; does not fit";

function memory_text({memory}) {
  if (memory.fits) return digits(memory.device) + " GB";
  const too_much = (use, limit, what) => element("span", {className: "misfit"},
    `does not fit: ${digits(use)} of ${digits(limit)} ${what}`);
  if (memory.device > memory.device_limit) return too_much(memory.device, memory.device_limit, "GB");
  return too_much(memory.host, memory.host_limit, "GB of host");
}

// Plans that exceed the memory and whether speed-ups are stated over one of them.
function misfits_text() {
  const misfits = data.runs.filter(({memory}) => !memory.fits);
  if (misfits.length === 0) return "";
  const over = misfits.find(({plan, speedup}) => plan === speedup?.versus);
  return `; struck out: ${plural(misfits.length, "run")} of a plan that does not fit the memory` +
    (over ? `, among them ${over.plan}, over which speed-ups are stated` : "");
}

function show_results() {
  const compared = data.runs.some((run) => run.speedup);
  const columns = [{title: "Plan", text: true}, {title: "Step time"}, {title: spread_name}, {title: "Tokens/s"},
                   ...(compared ? [{title: "Speed-up"}, {title: spread_name}] : []), {title: "MFU"},
                   {title: "Memory a device"}, {title: "Where the time goes", text: true}];
  const soft = (text) => element("span", {className: "interval"}, text);
  // What a plan that cannot run would reach is struck out, and it is as fast as nothing.
  const figure = (run, text) => run.memory.fits ? text : element("s", {}, text);
  const speedups = (run) => run.memory.fits
    ? [ratio(run.speedup.mean), soft(spread(speedup_of(run), ratio))] : ["–", ""];
  const row = (run, best) => [
    run.plan, element("span", {className: run === best ? "best" : ""}, figure(run, seconds(run.step_time.mean))),
    soft(spread(step_time_of(run), seconds)), figure(run, short(run.tokens_per_s)), ...(compared ? speedups(run) : []),
    figure(run, (100 * run.mfu).toFixed(1) + "%"), memory_text(run), breakdown_bar(run)];
  const rows = data.points.flatMap((point, index) => {
    const runs = data.runs.filter((run) => run.point === index);
    const [best] = runs.filter(({memory}) => memory.fits).sort((a, b) => a.step_time.mean - b.step_time.mean);
    const own_setting = all_same(data.points.map(({setting}) => setting)) ? "" : ": " + point.setting;
    const title = full_point_name(index) + own_setting;
    const heading = element("tr", {className: "point"},
                            element("th", {scope: "colgroup", colSpan: columns.length}, title));
    return [...(data.points.length > 1 ? [heading] : []), ...runs.map((run) => row(run, best))];
  });
  part("results-table").append(activity_legend(), table(
    `${plural(data.runs.length, "run")}, ${spread_title}; the fastest plan of a point is bold` + misfits_text(),
    columns, rows));
}

function show_speedup() {
  const run = data.runs.find(({speedup}) => speedup);
  if (!run) return remove("speedup");
  const versus = run.speedup.versus;
  part("versus").textContent = versus;
  draw_by_point("speedup", `Speed-up of every plan over ${versus} at every point`,
                {name: "times as fast", form: short_ratio}, ratio, speedup_of);
  show_figures("speedup", by_point_table(`Speed-up over ${versus}`, ratio, speedup_of));
}

function show_step_time() {
  draw_by_point("step-time", "Step time of every plan at every point", {name: "step time", form: short_seconds},
                seconds, step_time_of);
  show_figures("step-time", by_point_table("Step time", seconds, step_time_of));
}

function by_point_table(caption, form, figure) {
  const columns = [{title: "Point", text: true}, ...plans.map((title) => ({title}))];
  const rows = data.points.map((_, point) => [full_point_name(point), ...plans.map((plan) => {
    const run = data.runs.find((each) => each.point === point && each.plan === plan);
    return with_spread(figure(run), form) + unless_it_fits(run);
  })]);
  return table(`${caption}, mean (${spread_title})`, columns, rows);
}

// What the intervals are of, and what would narrow them: runs of which the same is true are told together.
function show_uncertainty() {
  if (!uncertain) return;
  const samples = data.runs[0].uncertainty.samples;
  part("results-intervals").textContent = `the 5th, 50th and 95th percentile over ${samples} samples, which draw the ` +
    "steps again and are off by what calibration missed, where that is known. Plans see the same samples";
  for (const section of ["speedup", "step-time"])
    part(section + "-intervals").textContent = `5th to 95th percentile over ${samples} samples, a dot at the 50th`;
  const together = new Map();
  for (const run of data.runs) {
    const {unknown, variance: [[source]], advice} = run.uncertainty;
    if (!advice) continue;
    const line = unknown.length > 0
      ? `the interval leaves out the error of ${unknown[0]}, which is not known; to know it: ${advice}.`
      : `most of the variance comes from ${source}; to narrow the interval: ${advice}.`;
    together.set(line, [...(together.get(line) ?? []), run]);
  }
  const whose = (runs) => runs.length === data.runs.length ? "All runs"
    : runs.length <= 3 ? runs.map(run_name).join("; ") : `${runs.length} runs, ${run_name(runs[0])} among them`;
  const lines = [...together].map(([line, runs]) => element("li", {}, `${whose(runs)}: ${line}`));
  part("narrower").append(...lines);
  part("narrower").hidden = lines.length === 0;
}

function show_breakdown() {
  const shares = part("as-shares").checked;
  const runs = comparable_runs();
  const used = used_activities(runs);
  const value = (run, i) => run.breakdown[i] / (shares ? run.step_time.mean : 1);
  const parts = used.map(({name, i}) => ({name, color: activity_color(name), value: (run) => value(run, i)}));
  const axis = shares ? {name: "share of the step", form: percent, max: 1}
    : {name: "mean step time", form: short_seconds, exact: seconds};
  draw_stacked(chart_of("breakdown"), "Time by activity, a bar a run", runs, run_name, parts, axis);
  show_figures("breakdown", table("Seconds by activity, mean over ranks and steps",
    [{title: "Run", text: true}, ...used.map(({name}) => ({title: name}))],
    runs.map((run) => [run_name(run), ...used.map(({i}) => seconds(run.breakdown[i]))])));
}

function variance_table(runs) {
  const sources = [...new Set(runs.flatMap(({uncertainty}) => uncertainty.variance.map(([source]) => source)))];
  const share = (run, source) => new Map(run.uncertainty.variance).get(source) ?? 0;
  return table("Where the variance of the mean step time comes from",
    [{title: "Run", text: true}, ...sources.map((title) => ({title}))],
    runs.map((run) => [run_name(run), ...sources.map((source) => percent(share(run, source)))]));
}

function show_evidence() {
  const runs = comparable_runs();
  const kinds = data.evidence.map((name, i) => ({name, color: evidence_colors[i], value: (run) => run.evidence[i]}));
  draw_stacked(chart_of("evidence"), "Share of the time by evidence, a bar a run", runs, run_name, kinds,
               {name: "share of the rank time", form: percent, max: 1});
  show_figures("evidence", table("Share of the rank time",
    [{title: "Run", text: true}, ...data.evidence.map((title) => ({title}))],
    runs.map((run) => [run_name(run), ...run.evidence.map(percent)])), ...(uncertain ? [variance_table(runs)] : []));
  const profiles = [...new Set(data.points.map(({profile}) => profile))];
  part("evidence-note").textContent = `Costs come from: ${profiles.join("; ")}.`;
  const missing = [...new Set(data.points.flatMap(({not_modelled}) => not_modelled))];
  const unknown = [...new Set(data.runs.flatMap(({uncertainty}) => uncertainty?.unknown ?? []))];
  const limits = [
    uncertain ? "Intervals hold the spread of the batches and the errors of the costs" +
      (unknown.length > 0 ? `, but not those of ${unknown.join(", ")}, which nobody knows.` : ".")
      : `Intervals, ${spread_title}, are the spread over the simulated steps of a run: how much batches differ. They do ` +
        "not hold the error of the costs.",
    ...new Set(data.points.flatMap(({trace}) => trace.map(sentence))),
    ...missing.map((key) => `Left out, for the profile has no figure for it: ${key.replaceAll("_", " ")}.`),
  ];
  part("limits").replaceChildren(...limits.map((text) => element("li", {}, text)));
}

// ---- One run

function chosen() {
  const point = Number(part("choose-point").value);
  const plan = part("choose-plan").value;
  return data.runs.find((run) => run.point === point && run.plan === plan);
}

// Sequential colours from light to dark, which print well in grey.
const heat_colors = ["#f3f6fa", "#c3dbf0", "#7fb3dd", "#3a86c4", "#14558f", "#0b2f52"];

function show_ranks(run) {
  const {cells, ranks_per_cell} = run.busy_map;
  if (cells.length === 0) return hide("ranks");
  const wanted = 2 ** Math.min(7, Math.max(3, Math.ceil(Math.log2(Math.sqrt(cells.length * 4)))));
  // Of a pipeline a row holds all stages of its ranks.
  const columns = ranks_per_cell > 1 ? wanted : run.stages * Math.max(1, Math.round(wanted / run.stages));
  const rows = Math.ceil(cells.length / columns);
  const whole = run.step_time.mean;
  const workers = run.ranks * run.stages;
  const what = run.stages > 1 ? "stage of a rank" : "rank";
  part("per-cell").textContent = plural(run.ranks, "rank") + (run.stages > 1 ? ` of ${run.stages} stages, ` : ", ") +
    (ranks_per_cell === 1 ? `a cell for each ${what}.`
      : `a cell is the mean of ${ranks_per_cell} consecutive ones${run.stages > 1 ? ", stage by stage" : ""}.`);
  const first = (cell) => cell * ranks_per_cell;
  const name_of = (worker) => worker_name(run, Math.floor(worker / run.stages), worker % run.stages);
  const name = (cell) => ranks_per_cell === 1 ? name_of(cell)
    : `${name_of(first(cell))} to ${name_of(Math.min(workers, first(cell) + ranks_per_cell) - 1)}`;
  const text = ({data: [x, y]}) => {
    const cell = y * columns + x;
    return `${name(cell)}\nbusy ${seconds(cells[cell])}, ${percent(cells[cell] / whole)} of the step`;
  };
  draw(part("rank-map"), `How busy each of ${workers} ${what}s is`, 80 + rows * Math.min(22, Math.max(8, 360 / rows)), {
    grid: grid(), tooltip: tooltip(text),
    xAxis: {type: "category", data: [...Array(columns).keys()].map((x) => "+" + (run.stages > 1 && ranks_per_cell === 1
              ? `${Math.floor(x / run.stages)} s${x % run.stages}` : first(x))), position: "bottom",
            axisTick: {show: false}, axisLine: {show: false}},
    yAxis: {type: "category", inverse: true, axisTick: {show: false}, axisLine: {show: false},
            data: [...Array(rows).keys()].map((y) => "rank " + Math.floor(first(y * columns) / run.stages))},
    visualMap: {type: "continuous", min: 0, max: 1, dimension: 2, orient: "horizontal", left: 0, top: 0,
                itemHeight: 160, itemWidth: 12, text: ["100% busy", "0%"], inRange: {color: heat_colors},
                formatter: percent},
    series: [{type: "heatmap", data: cells.map((busy, i) => [i % columns, Math.floor(i / columns), busy / whole]),
              itemStyle: {borderColor: "#fff", borderWidth: rows > 24 ? 0.3 : 1}, progressive: 0}],
  });
  show_histogram(run);
}

function show_histogram(run) {
  const {least, most, counts} = run.busy_histogram;
  const width = (most - least) / counts.length;
  const fine = (value) => value >= 1 ? digits(value, 4) + " s" : seconds(value);
  const bin = (i) => counts.length === 1 ? seconds(least)
    : range([least + i * width, least + (i + 1) * width], fine);
  draw(part("rank-histogram"), "How many ranks are busy how long", 220, {
    grid: grid({top: 32}), tooltip: tooltip(({dataIndex, value}) => `${bin(dataIndex)}\n${plural(value, "rank")}`),
    xAxis: {type: "category", ...axis_name("busy time of a rank"), data: counts.map((_, i) => fine(least + i * width)),
            axisTick: {show: false}, axisLabel: {hideOverlap: true}},
    yAxis: {type: "value", name: "ranks", nameTextStyle: {color: "#57606a", align: "left"}, minInterval: 1},
    series: [{type: "bar", data: counts, color: plan_color(run.plan), barCategoryGap: "6%"}],
  });
  const [min, mean, max, deviation] = run.busy;
  show_figures("ranks",
    table("Busy time over ranks, mean over steps of each step's figure",
          titles("least", "mean", "most", "standard deviation"),
          [[min, mean, max, deviation].map(seconds)]),
    table("Ranks by busy time", [{title: "busy", text: true}, {title: "ranks"}],
          counts.map((count, i) => [bin(i), count.toLocaleString("en")]).filter(([, count]) => count !== "0")));
}

// Group sizes in powers of two: 1, 2, 3 to 4, 5 to 8, ...
const size_class = (ranks) => Math.ceil(Math.log2(ranks));
const size_name = (index) => {
  const most = 2 ** index;
  return index < 2 ? String(most) : `${most / 2 + 1} – ${most}`;
};

// Of one stage: bars by group size. Of a pipeline: by the kind of pass, with the micro-batch's number.
function bars_of(run, step) {
  const bars = new Map();
  step.lanes.forEach((lane, y) => lane.pieces.forEach(([begin, end, ranks, , , kind, micro_batch], i) => {
    const key = run.stages > 1 ? kind : size_class(ranks);
    if (!bars.has(key)) bars.set(key, []);
    bars.get(key).push([y, begin, end, run.stages > 1 ? micro_batch : ranks, i]);
  }));
  const style = (key) => run.stages > 1 ? {name: key, color: pass_colors[key]}
    : {name: size_name(key), color: size_colors[Math.min(key, size_colors.length - 1)]};
  const order = run.stages > 1 ? Object.keys(pass_colors).filter((kind) => bars.has(kind))
    : [...bars.keys()].sort((a, b) => a - b);
  return order.map((key) => ({
    type: "custom", ...style(key), encode: {x: [1, 2], y: 0}, data: bars.get(key), renderItem: piece_of_lane,
  }));
}

function show_timeline(run) {
  const step = run.shown_step;
  if (!step || step.lanes.length === 0) return hide("timeline");
  const lane_name = ({rank, stage}) => worker_name(run, rank, stage);
  const left_out = step.lanes.reduce((sum, lane) => sum + lane.left_out, 0);
  const shown = new Set(step.lanes.map(({rank}) => rank)).size;
  part("lanes-note").textContent = `Step ${step.step} (${seconds(step.time)}): ${shown} of ` +
    `${plural(run.ranks, "rank")}, from the least busy one to the busiest` +
    (run.stages > 1 ? `, ${run.stages} stages each.` : ".") +
    (left_out > 0 ? ` ${left_out.toLocaleString("en")} later bars are left out.` : "");
  part("bars-note").textContent = run.stages > 1
    ? "A bar is a pass of a micro-batch, whose number it has, through a stage."
    : "A bar is a micro-batch, from the first of its ranks that begins to the last that ends; the number is how many " +
      "ranks share it.";
  const file = run.timeline && element("a", {href: run.timeline.split("/").map(encodeURIComponent).join("/")},
                                       run.timeline);
  part("timeline-file").replaceChildren(...(file ? ["In full, for ui.perfetto.dev: ", file, "."] : []));
  const pass_text = (kind, micro_batch, chunk) => kind ? `${kind} of micro-batch ${micro_batch}, chunk ${chunk}\n` : "";
  const text = ({data: [y, , , , i]}) => {
    const [begin, end, ranks, count, offload, ...pass] = step.lanes[y].pieces[i];
    return `${lane_name(step.lanes[y])}: ${plural(ranks, "rank")}, ${tokens(count)} tokens\n${pass_text(...pass)}` +
      `${seconds(begin)} to ${seconds(end)}: ${seconds(end - begin)}` +
      (offload > 0 ? `\noffload ${percent(offload)}` : "");
  };
  const label = `Micro-batches of ${step.lanes.length} lanes over one step`;
  draw(chart_of("timeline"), label, 110 + 30 * step.lanes.length, {
    grid: grid({bottom: 28}),
    legend: legend({formatter: (name) => run.stages > 1 ? name : name + (name === "1" ? " rank" : " ranks")}),
    tooltip: tooltip(text),
    xAxis: {...value_axis("time since the start of the step", short_seconds), min: 0, max: step.time},
    yAxis: {type: "category", inverse: true, data: step.lanes.map(lane_name), axisTick: {show: false}},
    dataZoom: [{type: "slider", height: 14, bottom: 4, filterMode: "weakFilter", brushSelect: false,
                labelFormatter: (value) => seconds(value)}],
    series: bars_of(run, step),
  });
  const pass_columns = run.stages > 1 ? [{title: "Pass", text: true}, ...titles("micro-batch", "chunk")] : [];
  show_figures("timeline",
    table("Where the time of the shown ranks goes in this step",
      [{title: "Rank", text: true}, ...titles("busy"), {title: "Where the time goes", text: true}],
      step.lanes.map((lane) => [lane_name(lane), seconds(busy_of(lane)),
                                breakdown_bar({breakdown: lane.breakdown, step_time: {mean: step.time}})])),
    table("Micro-batches of the shown ranks",
      [{title: "Rank", text: true}, ...titles("begin", "end", "ranks", "tokens", "offload"), ...pass_columns],
      step.lanes.flatMap((lane) => lane.pieces.map(([begin, end, ranks, count, offload, ...pass]) =>
        [lane_name(lane), seconds(begin), seconds(end), String(ranks), tokens(count), percent(offload),
         ...pass.map(String)]))));
}

const waits = ["group_wait", "bubble"];
const busy_of = ({breakdown}) =>
  breakdown.reduce((sum, time, i) => sum + (waits.includes(data.activities[i]) ? 0 : time), 0);

function show_stages(run) {
  if (run.stages === 1) return hide("stages");
  const stages = run.stage_breakdowns.map((breakdown, stage) => ({stage, breakdown}));
  const used = used_activities(stages);
  const parts = used.map(({name, i}) => ({name, color: activity_color(name), value: ({breakdown}) => breakdown[i]}));
  const name_of = ({stage}) => `stage ${stage}`;
  draw_stacked(chart_of("stages"), "Time by activity, a bar a stage", stages, name_of, parts,
               {name: "mean step time", form: short_seconds, exact: seconds});
  show_figures("stages", table("Seconds by activity, mean over ranks and steps",
    [{title: "Stage", text: true}, ...used.map(({name}) => ({title: name}))],
    stages.map((stage) => [name_of(stage), ...used.map(({i}) => seconds(stage.breakdown[i]))])));
}

const above = (size) => 10 * Math.ceil(size * 1.02 / 10);
const gigabytes = (value) => digits(value) + " GB";

function verdict_of({memory, stages}) {
  const place = worker_name({stages}, memory.rank, memory.stage);
  const use = `${gigabytes(memory.device)} of ${gigabytes(memory.device_limit)} on a device of ${place}, ` +
    `${seconds(memory.at)} after the start of step ${memory.step}`;
  const host = memory.host > 0 ? `; ${gigabytes(memory.host)} of ${gigabytes(memory.host_limit)} of a device's ` +
    "share of host memory" : "";
  const largest = memory.parts.map((size, i) => ({size, name: data.memory_parts[i]}))
    .sort((a, b) => b.size - a.size).slice(0, 3).map(({size, name}) => `${name} ${gigabytes(size)}`).join(", ");
  return `${memory.fits ? "fits" : "does not fit"}: at most ${use}${host}. Largest there: ${largest}.`;
}

function show_memory(run) {
  const runs = data.runs.filter(({point}) => point === run.point);
  const {ranks, device_limit, step} = run.memory;
  part("memory-verdict").textContent = `${run.plan} ${verdict_of(run)}`;
  const used = data.memory_parts.map((name, i) => ({name, i})).filter(({i}) => runs.some((r) => r.memory.parts[i] > 0));
  const parts = used.map(({name, i}) => ({name, color: memory_colors[i % memory_colors.length],
                                          value: ({memory}) => memory.parts[i]}));
  draw_stacked(part("memory-parts"), "The fullest device by use, a bar a plan", runs, ({plan}) => plan, parts,
               {name: "memory of the fullest device, GB", form: plain, exact: gigabytes,
                limit: device_limit,
                max: above(Math.max(device_limit, ...runs.map(({memory}) => memory.device)))});
  show_memory_over_time(run, ranks, device_limit, step);
  show_figures("memory",
    table("GB on the fullest device at its fullest moment", [{title: "Plan", text: true},
      ...titles("peak", "limit", "fits"), ...used.map(({name}) => ({title: name}))],
      runs.map(({plan, memory}) => [plan, digits(memory.device), digits(memory.device_limit),
                                    memory.fits ? "yes" : "no",
                                    ...used.map(({i}) => digits(memory.parts[i]))])),
    ...(ranks.length > 0 ? [table("Memory of the shown ranks",
      [{title: "Rank", text: true}, ...titles("time", "device, GB", "host, GB")],
      ranks.flatMap(({rank, samples}) => samples.map(([at, device, host]) =>
        [`rank ${rank}`, seconds(at), digits(device), digits(host)])))] : []));
}

function show_memory_over_time(run, ranks, limit, step) {
  const place = part("memory-time");
  if (has_charts) place.hidden = ranks.length === 0;
  const left_out = ranks.reduce((sum, rank) => sum + rank.left_out, 0);
  part("memory-note").textContent = ranks.length === 0 ? "" :
    `Over step ${step}, the one with the fullest device: ${plural(ranks.length, "rank")}, the fullest` +
    `${run.stages > 1 ? ", on their first stage" : ""}; dashed: a device's share of host memory.` +
    (left_out > 0 ? ` ${plural(left_out, "later sample")} left out.` : "");
  if (ranks.length === 0) return;
  const line = (rank, samples, column, more) => ({
    type: "line", name: `rank ${rank}`, showSymbol: false, symbolSize: 5,
    data: samples.map((sample) => [sample[0], sample[column]]), ...more,
  });
  const series = ranks.flatMap(({rank, samples}, i) => {
    const color = plan_colors[(i + 1) % plan_colors.length];
    const host = samples.some(([, , bytes]) => bytes > 0);
    return [line(rank, samples, 1, {color, lineStyle: {width: 1.5}}),
            ...(host ? [line(rank, samples, 2, {color, lineStyle: {width: 1, type: "dashed"}})] : [])];
  });
  series[0].markLine = limit_line({yAxis: limit}, gigabytes, {position: "insideEndTop"});
  draw(place, `Memory of ${ranks.length} ranks over one step`, 300, {
    grid: grid(), legend: legend(),
    tooltip: tooltip(({seriesName, data: [at, bytes]}) => `${seriesName}, ${seconds(at)}\n${gigabytes(bytes)}`),
    xAxis: {...value_axis("time since the start of the step", short_seconds), min: 0, max: ranks[0].samples.at(-1)[0]},
    yAxis: {type: "value", name: "GB", nameTextStyle: {align: "left"},
            max: (value) => above(Math.max(limit, value.max)),
            axisLabel: {formatter: plain}},
    series,
  });
}

const light = (color) => {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 150;
};

function piece_of_lane(place, api) {
  const [x, y] = api.coord([api.value(1), api.value(0)]);
  const end = api.coord([api.value(2), api.value(0)])[0];
  const height = api.size([0, 1])[1] * 0.72;
  const shape = echarts.graphic.clipRectByRect({x, y: y - height / 2, width: Math.max(end - x, 0.5), height},
                                               place.coordSys);
  if (!shape) return undefined;
  const fill = api.visual("color");
  const label = String(api.value(3));
  const fits = shape.width > 8 + 7 * label.length;
  return {
    type: "rect", shape, style: {fill, stroke: "#fff", lineWidth: shape.width > 3 ? 0.7 : 0},
    ...(fits ? {textConfig: {position: "inside"},
                textContent: {style: {text: label, fontSize: 11, fill: light(fill) ? "#1b1f24" : "#fff"}}} : {}),
  };
}

function show_groups(run) {
  const runs = data.runs.filter((other) => other.point === run.point && other.shown_step);
  if (runs.length === 0) return hide("groups");
  part("groups-note").textContent = `Step ${runs[0].shown_step.step}, all plans of the point.`;
  const total = (each, column) => each.shown_step.group_sizes.reduce((sum, row) => sum + row[column], 0);
  const last = Math.max(...runs.flatMap((each) => each.shown_step.group_sizes.map(([ranks]) => size_class(ranks))));
  const classes = [...Array(last + 1).keys()];
  const share = (each, index) => each.shown_step.group_sizes
    .filter(([ranks]) => size_class(ranks) === index).reduce((sum, row) => sum + row[2], 0) / total(each, 2);
  draw(chart_of("groups"), "Share of the tokens by group size, of every plan of the point", 280, {
    grid: grid(), legend: legend(),
    tooltip: tooltip(({seriesName, dataIndex, value}) =>
      `${seriesName}, groups of ${size_name(dataIndex)}\n${percent(value)} of the tokens`),
    xAxis: {type: "category", ...axis_name("ranks in the group"), data: classes.map(size_name),
            axisTick: {show: false}, axisLabel: {interval: 0, hideOverlap: true}},
    yAxis: {type: "value", axisLabel: {formatter: percent}},
    series: runs.map((each) => ({type: "bar", name: each.plan, color: plan_color(each.plan), barGap: "10%",
                                 data: classes.map((index) => share(each, index))})),
  });
  show_figures("groups", table("Micro-batches by group size",
    [{title: "Plan", text: true}, ...titles("ranks", "micro-batches", "tokens", "share of tokens")],
    runs.flatMap((each) => each.shown_step.group_sizes.map(([ranks, count, sum]) =>
      [each.plan, String(ranks), count.toLocaleString("en"), tokens(sum), percent(sum / total(each, 2))]))));
}

function show_links(run) {
  if (run.links.length === 0) return hide("links");
  const names = run.links.map(([name]) => name);
  const others = run.links.some(([, , , , other]) => other > 0);
  const series = [{name: "this job", index: 3, color: plan_color(run.plan)},
                  ...(others ? [{name: "other jobs", index: 4, color: "#c9b400"}] : [])];
  draw(chart_of("links"), "Use of the busiest links", 80 + 20 * names.length, {
    grid: grid({top: others ? 44 : 8}), legend: legend({show: others}),
    tooltip: tooltip(({name, seriesName, value}) => `${name}\n${seriesName}: ${percent(value)} of its rate`),
    xAxis: {...value_axis("share of the link's rate", percent), max: 1},
    yAxis: {type: "category", inverse: true, data: names, axisTick: {show: false},
            axisLabel: {width: 300, overflow: "truncate"}},
    series: series.map(({name, index, color}) => ({type: "bar", name, color, stack: "all",
                                                   data: run.links.map((link) => link[index])})),
  });
  show_figures("links", table(`The ${names.length} busiest links; links.csv has more`,
    [{title: "Link", text: true}, ...titles("rate", "sent by this job", "use", "other jobs")],
    run.links.map(([name, rate, sent, use, other]) =>
      [name, digits(rate) + " GB/s", short(sent * 1e9) + "B", percent(use), percent(other)])));
}

function show_lengths(run) {
  const lengths = data.points[run.point].lengths;
  if (!lengths) return hide("lengths");
  part("lengths-note").textContent = `${lengths.count.toLocaleString("en")} sequences of all ${run.steps} steps, ` +
    `${short(lengths.tokens)} tokens; mean ${short(lengths.mean)}, longest ${tokens(lengths.max)}.` +
    data.points[run.point].trace.map((note) => " " + sentence(note)).join("");
  const shares = lengths.shares.filter(([above], i) => i === 0 || above < lengths.max);
  const kinds = [["sequences", 1, "#b9c0c8"], ["tokens", 2, "#6aa9e0"], ["sum of squares", 3, "#1c5fae"]];
  draw(chart_of("lengths"), "Share of sequences, tokens and squared lengths above powers of two", 280, {
    grid: grid(), legend: legend(),
    tooltip: tooltip(({seriesName, name, value}) => `above ${name} tokens\n${percent(value)} of the ${seriesName}`),
    xAxis: {type: "category", ...axis_name("in sequences longer than"), axisTick: {show: false},
            data: shares.map(([above]) => tokens(above))},
    yAxis: {type: "value", max: 1, axisLabel: {formatter: percent}},
    series: kinds.map(([name, column, color]) => ({type: "bar", name, color, barGap: "5%",
                                                   data: shares.map((row) => row[column])})),
  });
  const small = (share) => share > 0 && share < 0.001 ? "<0.1%" : (100 * share).toFixed(1) + "%";
  show_figures("lengths",
    table("Shares above a length", [{title: "above"}, ...kinds.map(([title]) => ({title}))],
          shares.map(([above, ...parts]) => [tokens(above), ...parts.map(small)])),
    table("Percentiles", [{title: "percent"}, {title: "tokens"}],
          lengths.percentiles.map(([share, length]) => [String(share), length.toLocaleString("en")])));
}

// ---- The page

const remove = (section) => part(section).remove();
const hide = (section) => { part(section).hidden = true; };

function show_choice() {
  const run = chosen();
  const shows = {ranks: show_ranks, timeline: show_timeline, groups: show_groups, memory: show_memory,
                 links: show_links,
                 lengths: show_lengths, ...(pipelined ? {stages: show_stages} : {})};
  for (const section of Object.keys(shows)) part(section).hidden = false;
  const background = data.points[run.point].background;
  part("chosen").textContent = `${full_point_name(run.point)}; ${run.plan}: ${seconds(run.step_time.mean)} a step. ` +
    (background.length > 0 ? `Beside it: ${background.join("; ")}.` : "");
  for (const show of Object.values(shows)) show(run);
  if (data.runs.length > most_bars) show_comparisons();
}

const pipelined = data.runs.some(({stages}) => stages > 1);
if (!pipelined) remove("stages");

function show_comparisons() {
  show_breakdown();
  show_evidence();
}

function offer_choices() {
  const option = (value, name) => element("option", {value}, name);
  part("choose-point").append(...data.points.map((_, point) => option(point, full_point_name(point))));
  part("choose-plan").append(...plans.map((plan) => option(plan, plan)));
  part("choose-point").value = data.points.length - 1;
  part("choose-plan").value = plans.at(-1);
  part("chooser").addEventListener("change", show_choice);
  part("chooser").addEventListener("submit", (event) => event.preventDefault());
  part("as-shares").addEventListener("change", show_breakdown);
}

function name_sections() {
  const links = [...document.querySelectorAll("main section")].map((section) => {
    const heading = section.querySelector("h2, h3");
    heading.id = section.id + "-title";
    section.setAttribute("aria-labelledby", heading.id);
    return element("li", {}, element("a", {href: "#" + section.id}, heading.textContent));
  });
  part("sections").append(...links);
}

function show_header() {
  const settings = [...new Set(data.points.map(({setting}) => setting))];
  const one = settings.length === 1;
  part("setting").textContent = one ? settings[0] : `${plural(settings.length, "setting")}, see below`;
  const profiles = [...new Set(data.points.map(({profile}) => profile))];
  part("label").textContent = `Simulated. Costs: ${profiles.join("; ")}.`;
  part("version").textContent = data.version;
  part("study").textContent = data.study;
}

function follow_the_width() {
  const resize = (size) => charts.forEach((chart) => {
    chart.resize(size);
    chart.getZr().flush();  // a printer does not wait for the next frame
  });
  let pending = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(pending);
    if (!matchMedia("print").matches) pending = requestAnimationFrame(() => resize());
  });
  const offer_zoom = (show) => charts.get(chart_of("timeline"))?.setOption({dataZoom: [{show}]});
  window.addEventListener("beforeprint", () => { offer_zoom(false); resize({width: print_width}); });
  window.addEventListener("afterprint", () => { offer_zoom(true); resize({width: "auto"}); });
}

part("no-charts").hidden = has_charts;
if (!has_charts) {
  document.querySelectorAll(".chart").forEach((place) => place.remove());
  document.querySelectorAll(".control").forEach((control) => { control.hidden = true; });
}
show_header();
show_uncertainty();
show_results();
show_speedup();
show_step_time();
offer_choices();
show_comparisons();
show_choice();
name_sections();
follow_the_width();
document.documentElement.dataset.shown = String(Math.round(performance.now()));
