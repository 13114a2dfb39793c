// The report of a study: results, where the time goes, one run in detail, and what all of it rests on.

const {plans} = data;
const activities = Object.keys(data.definitions.activities);
const evidence_kinds = Object.keys(data.definitions.evidence);
const memory_color = (index) => `var(--memory-${index % 9})`;
const evidence_color = (index) => `var(--evidence-${index})`;
const pass_colors = {
  forward: "var(--pass-forward)",
  backward: "var(--pass-backward)",
  "input gradient": "var(--pass-backward)",
  "weight gradient": "var(--pass-weight)",
};

// ---- Figures of a run

// Intervals are those of the simulated means where every run has them, otherwise the spread of the steps.
const uncertain = data.runs.every(({uncertainty}) => uncertainty);
const resampled = (figure, interval) =>
    ({...figure, ...(uncertain && interval ? {...interval, mean: figure.mean} : {})});
const step_time_of = (run) => resampled(run.step_time_s, run.uncertainty?.step_time_s);
const speedup_of = (run) => resampled(run.speedup, run.uncertainty?.speedup);

// With the median between them where it is one of means, which the best static mesh has none of.
const spread = ({p5, p50, p95}, form) =>
    uncertain && p50 === undefined ? "–" : range(uncertain ? [p5, p50, p95] : [p5, p95], form);
const with_spread = (found, form) =>
    found.p5 === undefined || !has_spread ? form(found.mean) : `${form(found.mean)} (${spread(found, form)})`;
const step_counts = [...new Set(data.runs.map((run) => run.steps))];
const spread_name = uncertain ? "p5 – p50 – p95" : "p5 – p95";
const spread_title =
    uncertain ? spread_name : `${spread_name} of ${step_counts.join(", ")} step${step_counts.at(-1) === 1 ? "" : "s"}`;

// One step has no spread.
const has_spread = uncertain || step_counts.some((steps) => steps > 1);
const spread_columns = has_spread ? titles(spread_name) : [];
const spread_cells = (text) => has_spread ? [soft(text)] : [];

// How sure the runs are, where published runs say it and the study's own intervals do not.
const are_sure = !uncertain && data.runs.some(({confidence}) => confidence);
const sure_title = (title) =>
    are_sure ? {title, meaning: "below it, where nine of ten published figures would lie"} : {title};
const with_sure = (figure, sure, form) =>
    are_sure && sure ? element("span", {}, figure, element("br"), soft(range([sure.least, sure.most], form))) : figure;

const unless_it_fits = ({memory_gb: {verdict}}) => verdict === "fits" ? "" : `; ${verdict}`;
const compared = data.runs.find(({speedup}) => speedup);
const versus = compared?.speedup.versus;
// The best static mesh of the same tp and pp, which speed-ups are also over.
const over_best = data.runs.some((run) => run.speedup_over_best_static);

// ---- Names

const by_step_time = (a, b) => a.step_time_s.mean - b.step_time_s.mean;
const many_points = data.points.length > 1;
const point_name = (point, between = ", ") => data.points[point].coordinates.map(([, value]) => value).join(between);
const full_point_name = (point) => data.points[point].coordinates.map(([path, value]) => path + " " + value).join(", ");
const run_name = (run) => [point_name(run.point), run.plan].filter(Boolean).join(" · ");
const worker_name = (run, rank, stage) => run.stages > 1 ? `rank ${rank} stage ${stage}` : `rank ${rank}`;
const plans_that_ran = plans.filter((plan) => data.runs.some((run) => run.plan === plan));
const refused_at = (point, plan) => data.refused.find((run) => run.point === point && run.plan === plan);
const runs_at = (point) => data.runs.filter((run) => run.point === point);
const run_at = (point, plan) => data.runs.find((run) => run.point === point && run.plan === plan);

// Bars for all runs of a large sweep would not fit on a page: those of the chosen point are then shown.
const most_bars = 60;
const comparable_runs = () => data.runs.length <= most_bars ? data.runs : runs_at(chosen_point());

// ---- Results

// Its length is the step time as a share of `longest`.
function breakdown_bar(run, longest = run.step_time_s.mean) {
  const parts = used_activities([run]).map(
      ({name}) => ({
        name,
        color: activity_color(name),
        share: run.breakdown_s[name] / longest,
        time: run.breakdown_s[name],
        text: `${seconds(run.breakdown_s[name])}, ${percent(run.breakdown_s[name] / run.step_time_s.mean)}`,
      }));
  const largest = parts.filter(({share}) => share >= 0.005)
                      .sort((a, b) => b.share - a.share)
                      .map(({name, time}) => `${name} ${percent(time / run.step_time_s.mean)}`)
                      .join(", ");
  return share_bar(parts, {label: `${run.plan ?? "rank"}: ${largest}`, faded: run.memory_gb && !run.memory_gb.fits});
}

// What is at least 95 % sure is not said to be so.
const sure_enough = 0.95;
function memory_text({memory_gb: memory, confidence}) {
  const fits = confidence?.fits ?? undefined;
  if (memory.verdict === "at risk") {
    const {device_peak, device_at_most, device_limit} = memory;
    const range = `${digits(device_peak)} to ${digits(device_at_most)} of ${digits(device_limit)} GB`;
    const how = fits === undefined ? "" : ` (fits: ${percent(fits)})`;
    return element("span", {className: "misfit"}, `at risk: ${range}${how}`);
  }
  if (memory.fits) {
    return gigabytes(memory.device_peak) + (fits < sure_enough ? ` (fits: ${percent(fits)})` : "");
  }
  const too_much = (use, limit, what, how = "") =>
      element("span", {className: "misfit"}, `does not fit${how}: ${digits(use)} of ${digits(limit)} ${what}`);
  if (memory.device_peak > memory.device_limit) {
    const how = fits === undefined ? "" : ` (${percent(1 - fits)} sure)`;
    return too_much(memory.device_peak, memory.device_limit, "GB", how);
  }
  return too_much(memory.host_peak, memory.host_limit, "GB of host");
}

// Plans that exceed the memory and whether speed-ups are stated over one of them.
function misfits_text() {
  const misfits = data.runs.filter(({memory_gb}) => !memory_gb.fits);
  if (misfits.length === 0) return "";
  const over = misfits.find(({plan, speedup}) => plan === speedup?.versus);
  return `; struck out: ${plural(misfits.length, "run")} of a plan that does not fit the memory` +
      (over ? `, among them ${over.plan}, over which speed-ups are stated` : "");
}

// The figures of a plan that cannot run are struck out, and it is as fast as nothing.
function result_row(run, best, longest) {
  const figure = (text) => run.memory_gb.fits ? text : element("s", {}, text);
  const speedups = run.plan === versus ?
      [figure(ratio(1)), ...spread_cells("")] :
      run.memory_gb.fits && run.speedup ?
      [
        with_sure(
            element("span", {className: run === best ? "best" : ""}, ratio(run.speedup.mean)), run.confidence?.speedup,
            ratio),
        ...spread_cells(spread(speedup_of(run), ratio))
      ] :
      ["–", ...spread_cells("")];
  const best_static =
      run.memory_gb.fits && run.speedup_over_best_static ? ratio(run.speedup_over_best_static.mean) : "–";
  return [
    plan_name(run.plan),
    with_sure(
        element("span", {className: run === best ? "best" : ""}, figure(seconds(run.step_time_s.mean))),
        run.confidence?.step_time_s, seconds),
    ...spread_cells(spread(step_time_of(run), seconds)), ...(compared ? speedups : []),
    ...(over_best ? [best_static] : []), figure(short(run.tokens_per_s)), figure((100 * run.mfu).toFixed(1) + "%"),
    memory_text(run), breakdown_bar(run, longest)
  ];
}

// A plan that was refused has no figures: its policy's words take their place.
function refused_row({plan, why}, columns) {
  const none = columns.slice(2).map(() => "–");
  return [plan_name(plan), ...none, element("span", {className: "misfit"}, `refused: ${why}`)];
}

const best_static_column = {
  title: "Over best static",
  meaning: "speed-up over static on the same tp and pp with the fastest sharing, which is named in brackets"
};

function show_results() {
  const columns = [
    {title: "Plan", text: true}, sure_title("Step time"), ...spread_columns,
    ...(compared ? [sure_title("Speed-up"), ...spread_columns] : []), ...(over_best ? [best_static_column] : []),
    {title: "Tokens/s"}, {title: "MFU", meaning: "FLOPs of the model a second, as a share of the devices' peak"},
    {title: "Memory a device"}, {title: "Where the time goes", text: true, below: true}
  ];
  const same_setting = all_same(data.points.map(({setting}) => setting));
  const rows = data.points.flatMap((point, index) => {
    const runs = runs_at(index);
    const [best] = runs.filter(({memory_gb}) => memory_gb.fits).sort(by_step_time);
    const shown = point.best_static ? [...runs, point.best_static] : runs;
    const longest = Math.max(...shown.map(({step_time_s}) => step_time_s.mean));
    const title = [full_point_name(index), ...(same_setting ? [] : [soft(" " + point.setting)])];
    return [
      ...(many_points ? [heading_row(title, columns)] : []), ...shown.map((run) => result_row(run, best, longest)),
      ...data.refused.filter((run) => run.point === index).map((run) => refused_row(run, columns))
    ];
  });
  const legend = color_legend(
      used_activities(data.runs).map(({name}) => ({name, color: activity_color(name), meaning: meaning_of(name)})),
      "Colours of the bars");
  section(
      "results", "Results", {long: true},
      element(
          "p", {}, "What a step takes, the mean over the steps of a run",
          ...(has_spread ? [", with ", results_interval()] : []),
          ". A bar " +
              "shows where the time of the mean rank goes; it is as long as the step."),
      legend,
      table(
          `${plural(data.runs.length, "run")}, ${has_spread ? spread_title : "one step each"}; the fastest plan ${
              many_points ? "of a point " : ""}is bold` +
              misfits_text(),
          columns, rows, {cards: true, wide: true}),
      ...narrower());
}

const results_interval = () => element(
    "span", {id: "results-intervals"},
    uncertain ? `the 5th, 50th and 95th percentile over ${
                    data.runs[0].uncertainty.samples} samples, which draw the steps again and ` +
            "are off by what calibration missed, where that is known. Plans see the same samples" :
                "the 5th and the 95th percentile");

// What would narrow the intervals: runs of which the same is true are listed together.
function narrower() {
  if (!uncertain) return [];
  const together = new Map();
  for (const run of data.runs) {
    const {unknown, variance: [{source}], advice} = run.uncertainty;
    if (!advice) continue;
    const line = unknown.length > 0 ?
        `the interval does not include the error of ${unknown[0]}, which is not known; to know it: ${advice}.` :
        `most of the variance comes from ${source}; to narrow the interval: ${advice}.`;
    together.set(line, [...(together.get(line) ?? []), run]);
  }
  const whose = (runs) => runs.length === data.runs.length ? "All runs" :
      runs.length <= 3                                     ? runs.map(run_name).join("; ") :
                                                             `${runs.length} runs, ${run_name(runs[0])} among them`;
  if (together.size === 0) return [];
  return [element(
      "ul", {className: "notes", id: "narrower"},
      ...[...together].map(([line, runs]) => element("li", {}, `${whose(runs)}: ${line}`)))];
}

// ---- Points of a sweep

// Figures that points can be compared by.
const comparisons = [
  {name: "Step time", axis: "step time", form: seconds, short: short_seconds, figure: step_time_of},
  ...(compared ?
          [
            {name: "Speed-up", axis: `times as fast as ${versus}`, form: ratio, short: short_ratio, figure: speedup_of}
          ] :
          []),
  ...(over_best && data.runs.every((run) => run.speedup_over_best_static) ? [{
    name: "Over best static",
    axis: "times as fast as the best static mesh of the same tp and pp",
    form: ratio,
    short: short_ratio,
    figure: ({speedup_over_best_static: found}) => uncertain ? {mean: found.mean} : found
  }] :
                                                                            []),
  {
    name: "Tokens/s",
    axis: "tokens a second",
    form: short,
    short: round_count,
    figure: (run) => ({mean: run.tokens_per_s})
  },
  {
    name: "MFU",
    axis: "model FLOPs of the peak",
    form: (value) => (100 * value).toFixed(1) + "%",
    short: percent,
    figure: (run) => ({mean: run.mfu})
  },
];

// A swept text as a number: "256Ki" is 262144. Nothing for other texts.
function number_of(text) {
  const [, amount, prefix, unit] = /^([\d.]+)\s*(Ki|Mi|Gi|k|M|G|T)?(.*)$/.exec(text) ?? [];
  const sizes = {Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, k: 1e3, M: 1e6, G: 1e9, T: 1e12};
  return amount === undefined ? undefined : {value: Number(amount) * (sizes[prefix] ?? 1), unit};
}
// The swept key of most numbers, at least three: {column, values by point}.
function number_axis() {
  const columns = data.points[0].coordinates.map(([path], column) => {
    const numbers = data.points.map(({coordinates}) => number_of(coordinates[column][1]));
    const usable = numbers.every((number) => number && number.value > 0 && number.unit === numbers[0].unit);
    const values = usable ? numbers.map(({value}) => value) : [];
    return {path, column, values, distinct: new Set(values).size};
  });
  const [longest] = columns.sort((a, b) => b.distinct - a.distinct);
  return longest?.distinct >= 3 ? longest : undefined;
}

function show_points() {
  if (!many_points) return;
  const place = element("div", {id: "points-charts"});
  const numbers = number_axis();
  const redraw = (comparison) => {
    if (numbers)
      draw_curves(place, numbers, comparison);
    else
      draw_point_bars(place, comparison);
    show_figures("points", by_point_table(comparison));
  };
  section(
      "points", "The sweep", {},
      element(
          "p", {}, numbers ? "A curve a plan; the band holds " : "A bar a plan and point; whiskers hold ",
          element(
              "span", {id: "points-intervals"},
              uncertain ? `the 5th to 95th percentile over ${data.runs[0].uncertainty.samples} samples${
                              numbers ? "" : ", a dot at the 50th"}` :
                          "the 5th to 95th percentile of the steps, of a speed-up step by step"),
          data.runs.every(({memory_gb}) => memory_gb.fits) ? "." :
                                                             `. What is ${numbers ? "hollow" : "faint"} does not fit.`),
      one_of("What to compare", comparisons.map((each) => ({name: each.name, value: each})), redraw), place,
      figures_place());
  redraw(comparisons[0]);
}

function draw_point_bars(place, {name, axis, form, short, figure}) {
  if (!place.firstChild) place.append(chart_place("points-chart"));
  const series = plans_that_ran.map((plan) => {
    const runs = data.points.map((_, point) => run_at(point, plan));
    const found = runs.map((run) => run && figure(run));
    const spread_of = ({p5, p50, p95}) => [p5, p95, ...(uncertain ? [p50] : [])];
    return {
      name: plan,
      color: plan_color(plan),
      values: found.map((each) => each?.mean),
      faded: runs.map((run) => run && !run.memory_gb.fits),
      whiskers: found.find(Boolean).p5 === undefined ? undefined : found.map((each) => each && spread_of(each))
    };
  });
  const text = ({name: plan}, point) =>
      [point_name(point), plan, with_spread(figure(run_at(point, plan)), form) + unless_it_fits(run_at(point, plan))];
  draw_bars(place.firstChild, {
    label: `${name} of every plan at every point`,
    names: data.points.map((_, i) => point_name(i)),
    series,
    axis: {name: axis, form: short},
    value_form: form,
    text
  });
}

// A panel for each combination of the other swept keys.
function draw_curves(place, {path, column, values}, {name, axis, form, short, figure}) {
  const other_names = data.points.map(
      ({coordinates}) => coordinates.filter((_, i) => i !== column).map(([, value]) => value).join(", "));
  const groups = [...new Set(other_names)];
  if (!place.firstChild) {
    place.className = groups.length > 1 ? "panels" : "";
    place.append(...groups.map(
        (group, i) =>
            element("div", {}, ...(group ? [element("b", {}, group)] : []), chart_place(`points-chart-${i}`))));
  }
  const text_of = new Map(values.map((value, point) => [value, data.points[point].coordinates[column][1]]));
  const x = {
    name: path,
    log: Math.max(...values) / Math.min(...values) >= 4,
    form: (value) => text_of.get(value) ?? short_text(value),
    marks: [...text_of.keys()].sort((a, b) => a - b)
  };
  groups.forEach((group, g) => {
    const points =
        data.points.map((_, i) => i).filter((i) => other_names[i] === group).sort((a, b) => values[a] - values[b]);
    const series = plans_that_ran.map((plan) => {
      const runs = points.map((point) => run_at(point, plan)).filter(Boolean);
      const found = runs.map(figure);
      return {
        name: plan,
        color: plan_color(plan),
        points: found.map(({mean}, i) => [values[runs[i].point], mean]),
        band: found[0]?.p5 === undefined ? [] : found.map(({p5, p95}, i) => [values[runs[i].point], p5, p95]),
        faded: runs.map(({memory_gb}) => !memory_gb.fits),
        text: (i) => with_spread(found[i], form) + unless_it_fits(runs[i])
      };
    });
    draw_lines(part(`points-chart-${g}`), {
      label: `${name} over ${path}${group ? `, ${group}` : ""}`,
      series,
      x,
      dots: true,
      y: {name: axis, form: short},
      title: (at) => `${path} ${x.form(at)}`
    });
  });
}
const short_text = (value) => tokens(value);

function by_point_table({name, form, figure}) {
  const rows = data.points.map((_, point) => [full_point_name(point), ...plans.map((plan) => {
                                 const run = run_at(point, plan);
                                 if (!run) return "refused";
                                 return with_spread(figure(run), form) + unless_it_fits(run);
                               })]);
  return table(
      `${name}, mean${has_spread ? ` (${spread_title})` : ""}`, [{title: "Point", text: true}, ...titles(...plans)],
      rows);
}

// ---- Tokens a step

// The lead over the plan that speed-ups are over, or else the rate itself; a plan that cannot run has no point.
function show_tokens() {
  const rows = data.tokens;
  if (rows.length === 0) return;
  const base = plans.indexOf(versus);
  const value_of = ([, rates], plan) =>
      rates[plan] === null || (base >= 0 && rates[base] === null) ? null : rates[plan] / (base >= 0 ? rates[base] : 1);
  const form = base >= 0 ? ratio : short;
  const series = plans.map((name, plan) => {
    const points = rows.map((row) => [row[0], value_of(row, plan)]).filter(([, value]) => value !== null);
    return {name, color: plan_color(name), points};
  });
  const what = base >= 0 ? `times as fast as ${versus}` : "tokens a second";
  section(
      "tokens", "The lead over tokens a step", {},
      element(
          "p", {},
          `How much plans differ depends on the tokens of a step${
              many_points ? `, here at ${full_point_name(data.points.length - 1)}` : ""}. ` +
              "Other numbers than the study's own are simulated with one to four steps."),
      chart_place("tokens-chart"), figures_place());
  draw_lines(part("tokens-chart"), {
    label: `${what} over tokens a step`,
    height: 240,
    dots: true,
    series: series.filter(({points}) => points.length > 0),
    x: {name: "tokens of a step", log: true, marks: rows.map(([count]) => count), form: tokens},
    y: {name: what, form: base >= 0 ? short_ratio : round_count, exact: form}
  });
  show_figures(
      "tokens",
      table(
          `Plans by tokens of a step: ${what}`,
          [{title: "Plan", text: true}, ...titles(...rows.map(([count]) => tokens(count)))],
          plans.map((name, plan) => [name, ...rows.map((row) => {
                      const value = value_of(row, plan);
                      return value === null ? "–" : form(value);
                    })])));
}

// ---- Where the time goes

function show_breakdown_section() {
  section(
      "breakdown", "Where the time goes", {}, "Mean over ranks and steps; the parts sum to the step time.",
      one_of(
          "Scale", [{name: "Seconds", value: false}, {name: "Shares", value: true}],
          (shares) => draw_breakdown(shares)),
      chart_place("breakdown-chart"), figures_place());
}
let breakdown_in_shares = false;
function draw_breakdown(shares = breakdown_in_shares) {
  breakdown_in_shares = shares;
  const runs = comparable_runs();
  const used = used_activities(runs);
  const text = (name, run, time) =>
      [run_name(run),
       [
         activity_color(name),
         `${name}: ${seconds(time)}, ` +
             `${percent(time / run.step_time_s.mean)}`
       ],
       ...(meaning_of(name) ? [meaning_of(name)] : [])];
  draw_stacked(part("breakdown-chart"), {
    label: "Time by activity, a bar a run",
    rows: runs.map(run_name),
    faded: runs.map(({memory_gb}) => !memory_gb.fits),
    parts: used.map(({name, i}) => ({
                      name,
                      color: activity_color(name),
                      i,
                      values: runs.map((run) => run.breakdown_s[name] / (shares ? run.step_time_s.mean : 1))
                    })),
    text: ({name}, row) => text(name, runs[row], runs[row].breakdown_s[name]),
    totals: shares ? undefined : runs.map((run) => seconds(run.step_time_s.mean)),
    axis: shares ? {name: "share of the step", form: percent, max: 1} : {form: short_seconds},
  });
  show_figures(
      "breakdown",
      table(
          "Time by activity, mean over ranks and steps",
          [{title: "Run", text: true}, ...used.map(({name}) => ({title: name, meaning: meaning_of(name)}))],
          runs.map((run) => [run_name(run), ...used.map(({name}) => seconds(run.breakdown_s[name]))])));
}

// ---- One run

const chosen_point = () => Number(part("choose-point")?.value ?? 0);
const chosen_plan = () => part("choose-plan").value;

// What depends on the choice, in the order of the page: {id: draw(run)}, filled by the sections below.
const shows = {};
function detail(id, title, show, ...children) {
  section(id, title, {part_of: true}, ...children);
  shows[id] = show;
}
const hide = (id) => {
  part(id).hidden = true;
};

// ---- Why it takes as long as it does

// Lines of [depth, text] as items, those of depth 1 in a list of their own.
function nested(lines) {
  const items = [];
  for (const [depth, text] of lines) {
    if (depth === 0)
      items.push(element("li", {}, text));
    else if (items.at(-1).lastElementChild)
      items.at(-1).lastElementChild.append(element("li", {}, text));
    else
      items.at(-1).append(element("ul", {}, element("li", {}, text)));
  }
  return items;
}

// What a user could change in the study; the time of a step alone says little where it has other tokens.
function show_advice({advised, advice}) {
  part("why-advice").hidden = !advised;
  if (!advised) return;
  const note = advice.length === 0 ? "No change of the study that was tried gains anything." :
                                     "What you could change, each planned anew and simulated:";
  const rows = advice.map(
      ([change, time, gain, device]) =>
          [element("code", {}, change), seconds(time), gain === null ? "runs" : signed_percent(-gain),
           gigabytes(device)]);
  const columns =
      [{title: "--set", text: true}, {title: "Step time"}, {title: "Time of a token"}, {title: "Memory a device"}];
  part("why-advice").replaceChildren(element("p", {}, note), ...(rows.length === 0 ? [] : [
                                       table("Changes of the study", columns, rows, {cards: true})
                                     ]));
}

function show_why(run) {
  if (!run.why) return hide("why");
  show_advice(run.why);
  const {step, lines, changes, step_time} = run.why;
  part("why-step").textContent = `Step ${step}, which with ${runs_at(run.point)[0].plan} is the nearest to the median:`;
  part("why-text").replaceChildren(...nested(lines));
  part("why-chart").hidden = changes.length === 0;
  part("why-note").textContent = changes.length === 0 ?
      "Nothing that was tried would make it faster." :
      "What would help, the plan being the same, each simulated on its own:";
  if (changes.length === 0) return;
  const rows = ["as it is", ...changes.map(([change, , bound]) => change + (bound ? " (a bound)" : ""))];
  const times = [step_time, ...changes.map(([, time]) => time)];
  const gain = (i) => i === 0 ? "" : ` (${signed_percent(times[i] / step_time - 1)})`;
  draw_stacked(part("why-chart"), {
    label: "Step time with one thing improved",
    rows,
    axis: {form: short_seconds},
    parts: [{name: "step time", color: plan_color(run.plan), values: times}],
    faded: times.map((_, i) => i > 0),
    totals: times.map((time, i) => seconds(time) + gain(i)),
    text: (_, i) => [rows[i], seconds(times[i]) + gain(i)],
  });
}

// ---- How busy ranks are

function show_ranks(run) {
  const {cells, ranks_per_cell} = run.busy_map;
  if (cells.length === 0) return hide("ranks");
  const wanted = 2 ** Math.min(7, Math.max(3, Math.ceil(Math.log2(Math.sqrt(cells.length * 4)))));
  // A row of a pipeline holds all stages of its ranks.
  const columns = ranks_per_cell > 1 ? wanted : run.stages * Math.max(1, Math.round(wanted / run.stages));
  const workers = run.ranks * run.stages;
  const what = run.stages > 1 ? "stage of a rank" : "rank";
  part("per-cell").textContent = plural(run.ranks, "rank") + (run.stages > 1 ? ` of ${run.stages} stages, ` : ", ") +
      (ranks_per_cell === 1 ?
           `a cell for each ${what}.` :
           `a cell is the mean of ${ranks_per_cell} consecutive ones${run.stages > 1 ? ", stage by stage" : ""}.`);
  const first = (cell) => cell * ranks_per_cell;
  const name_of = (worker) => worker_name(run, Math.floor(worker / run.stages), worker % run.stages);
  const name = (cell) => ranks_per_cell === 1 ?
      name_of(cell) :
      `${name_of(first(cell))} to ${name_of(Math.min(workers, first(cell) + ranks_per_cell) - 1)}`;
  draw_heat(part("rank-map"), {
    label: `How busy each of ${workers} ${what}s is`,
    columns,
    ends: ["0%", "100% of the step busy"],
    values: cells.map((busy) => busy / run.step_time_s.mean),
    row_name: (row) => "rank " + Math.floor(first(row * columns) / run.stages),
    text: (cell) =>
        [name(cell), `busy ${seconds(cells[cell])}, ${percent(cells[cell] / run.step_time_s.mean)} of the step`],
  });
  show_histogram(run);
}

function show_histogram(run) {
  const {least, most, counts} = run.busy_histogram;
  const width = (most - least) / counts.length;
  const fine = (value) => scaled(
      value, [[1, " s"], [1e-3, " ms"], [1e-6, " µs"]],
      most > least ? Math.max(3, 1 + Math.ceil(Math.log10(most / (most - least)) + Math.log10(counts.length) / 2)) : 3);
  const bin = (i) => counts.length === 1 ? seconds(least) : range([least + i * width, least + (i + 1) * width], fine);
  draw_bars(part("rank-histogram"), {
    label: "How many ranks are busy how long",
    height: 190,
    names: counts.map((_, i) => fine(least + i * width)),
    series: [{name: "ranks", color: plan_color(run.plan), values: counts}],
    x_name: "busy time of a rank",
    axis: {name: "ranks", form: plain, max: Math.max(...counts) * 1.02},
    text: (_, i) => [bin(i), plural(counts[i], "rank")],
  });
  const {min, mean, max, std} = run.rank_busy_s;
  show_figures(
      "ranks",
      table(
          "Busy time over ranks, mean over steps of each step's figure",
          titles("least", "mean", "most", "standard deviation"), [[min, mean, max, std].map(seconds)]),
      table(
          "Ranks by busy time", [{title: "busy", text: true}, {title: "ranks"}],
          counts.map((count, i) => [bin(i), count.toLocaleString("en")]).filter(([, count]) => count !== "0")));
}

function show_stages(run) {
  if (run.stages === 1) return hide("stages");
  const stages = run.stage_breakdowns.map((breakdown_s, stage) => ({stage, breakdown_s}));
  const used = used_activities(stages);
  const name_of = ({stage}) => `stage ${stage}`;
  draw_stacked(part("stages-chart"), {
    label: "Time by activity, a bar a stage",
    rows: stages.map(name_of),
    axis: {form: short_seconds},
    parts: used.map(
        ({name}) => ({name, color: activity_color(name), values: stages.map(({breakdown_s}) => breakdown_s[name])})),
    text: ({name, color, values}, i) => [`stage ${i}`, [color, `${name}: ${seconds(values[i])}`]],
  });
  show_figures(
      "stages",
      table(
          "Time by activity, mean over ranks and steps",
          [{title: "Stage", text: true}, ...used.map(({name}) => ({title: name}))],
          stages.map((stage) => [name_of(stage), ...used.map(({name}) => seconds(stage.breakdown_s[name]))])));
}

// ---- Who works with whom

// Group sizes in powers of two: 1, 2, 3 to 4, 5 to 8, ...
const size_class = (ranks) => Math.ceil(Math.log2(ranks));
const size_name = (index) => {
  const most = 2 ** index;
  return index < 2 ? String(most) : `${most / 2 + 1} – ${most}`;
};
const size_color = (index, last) => heat_color(0.12 + 0.88 * index / Math.max(1, last));

// Of one stage: colours by group size. Of a pipeline: by the kind of pass.
function lane_kinds(run, step) {
  const pieces = step.lanes.flatMap((lane) => lane.pieces);
  if (run.stages > 1) {
    const kinds = Object.keys(pass_colors).filter((kind) => pieces.some((piece) => piece[5] === kind));
    return {
      kinds: kinds.map((name) => ({name, color: pass_colors[name]})),
      kind_of: (piece) => kinds.indexOf(piece[5])
    };
  }
  const classes = [...new Set(pieces.map(([, , ranks]) => size_class(ranks)))].sort((a, b) => a - b);
  const name = (index) => size_name(index) + (index === 0 ? " rank" : " ranks");
  return {
    kinds: classes.map((index) => ({name: name(index), color: size_color(index, classes.at(-1))})),
    kind_of: ([, , ranks]) => classes.indexOf(size_class(ranks))
  };
}

function show_timeline(run) {
  const step = run.shown_step;
  if (!step || step.lanes.length === 0) return hide("timeline");
  const lane_name = ({rank, stage}) => worker_name(run, rank, stage);
  note_timeline(run, step);
  const pass_text = ([kind, micro_batch, chunk]) =>
      kind ? [`${kind} of micro-batch ${micro_batch}, chunk ${chunk}`] : [];
  const text = (lane, [begin, end, ranks, count, offload, ...pass]) =>
      [`${lane_name(lane)}: ${plural(ranks, "rank")}, ${tokens(count)} tokens`, ...pass_text(pass),
       `${seconds(begin)} to ${seconds(end)}: ${seconds(end - begin)}`,
       ...(offload > 0 ? [`offload ${percent(offload)}`] : [])];
  const {kinds, kind_of} = lane_kinds(run, step);
  const bars = step.lanes.flatMap((lane, i) => lane.pieces.map((piece) => ({
                                                                 lane: i,
                                                                 from: piece[0],
                                                                 to: piece[1],
                                                                 kind: kind_of(piece),
                                                                 mark: String(run.stages > 1 ? piece[6] : piece[2]),
                                                                 text: text(lane, piece)
                                                               })));
  draw_lanes(part("timeline-chart"), {
    label: `Micro-batches of ${step.lanes.length} lanes over one step`,
    lanes: step.lanes.map(lane_name),
    bars,
    kinds,
    x: {name: "time since the start of the step", form: short_seconds, max: step.time}
  });
  show_figures("timeline", lane_shares(step, lane_name), lane_pieces(run, step, lane_name));
}

function note_timeline(run, step) {
  const left_out = step.lanes.reduce((sum, lane) => sum + lane.left_out, 0);
  const shown = new Set(step.lanes.map(({rank}) => rank)).size;
  part("lanes-note").textContent = `Step ${step.step} (${seconds(step.time)}): ${shown} of ` +
      `${plural(run.ranks, "rank")}, from the least busy one to the busiest` +
      (run.stages > 1 ? `, ${run.stages} stages each.` : ".") +
      (left_out > 0 ? ` ${left_out.toLocaleString("en")} later bars are not shown.` : "") +
      (run.stages > 1 ?
           " A bar is a pass of a micro-batch, whose number it has, through a stage." :
           " A bar is a micro-batch, from the first of its ranks that begins to the last that ends; the number is " +
               "how many ranks share it.") +
      " Gaps are waits, set-up and the end of the step.";
  const file =
      run.timeline && element("a", {href: run.timeline.split("/").map(encodeURIComponent).join("/")}, run.timeline);
  part("timeline-file").replaceChildren(...(file ? [" In full, for ui.perfetto.dev: ", file, "."] : []));
}

const waits = ["group_wait", "bubble"];
const busy_of = ({breakdown_s}) =>
    activities.reduce((sum, name) => sum + (waits.includes(name) ? 0 : breakdown_s[name]), 0);
function lane_shares(step, lane_name) {
  return table(
      "Where the time of the shown ranks goes in this step",
      [{title: "Rank", text: true}, ...titles("busy"), {title: "Where the time goes", text: true}],
      step.lanes.map(
          (lane) =>
              [lane_name(lane), seconds(busy_of(lane)),
               breakdown_bar({plan: lane_name(lane), breakdown_s: lane.breakdown_s, step_time_s: {mean: step.time}})]));
}
function lane_pieces(run, step, lane_name) {
  const pass_columns = run.stages > 1 ? [{title: "Pass", text: true}, ...titles("micro-batch", "chunk")] : [];
  return table(
      "Micro-batches of the shown ranks",
      [{title: "Rank", text: true}, ...titles("begin", "end", "ranks", "tokens", "offload"), ...pass_columns],
      step.lanes.flatMap(
          (lane) => lane.pieces.map(
              ([begin, end, ranks, count, offload, ...pass]) =>
                  [lane_name(lane), seconds(begin), seconds(end), String(ranks), tokens(count), percent(offload),
                   ...pass.map(String)])));
}

function show_groups(run) {
  const runs = runs_at(run.point).filter((other) => other.shown_step);
  if (runs.length === 0) return hide("groups");
  part("groups-note").textContent = `Step ${runs[0].shown_step.step}.`;
  const total = (each, column) => each.shown_step.group_sizes.reduce((sum, row) => sum + row[column], 0);
  const last = Math.max(...runs.flatMap((each) => each.shown_step.group_sizes.map(([ranks]) => size_class(ranks))));
  const classes = [...Array(last + 1).keys()];
  const share = (each, index) => each.shown_step.group_sizes.filter(([ranks]) => size_class(ranks) === index)
                                     .reduce((sum, row) => sum + row[2], 0) /
      total(each, 2);
  draw_bars(part("groups-chart"), {
    label: "Share of the tokens by group size, of every plan of the point",
    height: 240,
    names: classes.map(size_name),
    series: runs.map(
        (each) =>
            ({name: each.plan, color: plan_color(each.plan), values: classes.map((index) => share(each, index))})),
    axis: {name: "share of the tokens", form: percent, max: 1},
    x_name: "ranks in the group",
    text: (
        {name, values}, index) => [`groups of ${size_name(index)}`, `${name}: ${percent(values[index])} of the tokens`],
  });
  show_figures(
      "groups",
      table(
          "Micro-batches by group size",
          [{title: "Plan", text: true}, ...titles("ranks", "micro-batches", "tokens", "share of tokens")],
          runs.flatMap(
              (each) => each.shown_step.group_sizes.map(
                  ([ranks, count, sum]) =>
                      [each.plan, String(ranks), count.toLocaleString("en"), tokens(sum),
                       percent(sum / total(each, 2))]))));
}

// ---- Memory

function verdict_of({memory_gb: memory, stages}) {
  const place = worker_name({stages}, memory.rank, memory.stage);
  const use = `${gigabytes(memory.device_peak)} of ${gigabytes(memory.device_limit)} on a device of ${place}, ` +
      `${seconds(memory.at_s)} after the start of step ${memory.step}`;
  const host = memory.host_peak > 0 ?
      `; ${gigabytes(memory.host_peak)} of ${gigabytes(memory.host_limit)} of a device's ` +
          "share of host memory" :
      "";
  const largest = Object.entries(memory.parts)
                      .sort(([, a], [, b]) => b - a)
                      .slice(0, 3)
                      .map(([name, size]) => `${name} ${gigabytes(size)}`)
                      .join(", ");
  const risk = memory.verdict === "at risk" ?
      `; where the allocator leaves the largest gaps that were measured, ${gigabytes(memory.device_at_most)}` :
      "";
  return `${memory.verdict}: at most ${use}${host}${risk}. Largest there: ${largest}.`;
}
const device_limit_of = ({device_limit}) => ({at: device_limit, text: `limit of a device: ${gigabytes(device_limit)}`});

function show_memory(run) {
  const runs = runs_at(run.point);
  const limit = device_limit_of(run.memory_gb);
  part("memory-verdict").textContent = `${run.plan} ${verdict_of(run)}`;
  const used = Object.keys(run.memory_gb.parts)
                   .map((name, i) => ({name, i}))
                   .filter(({name}) => runs.some(({memory_gb}) => memory_gb.parts[name] > 0));
  draw_stacked(part("memory-parts"), {
    label: "The fullest device by use, a bar a plan",
    rows: runs.map(({plan}) => plan),
    parts: used.map(
        ({name, i}) => ({name, color: memory_color(i), values: runs.map(({memory_gb}) => memory_gb.parts[name])})),
    text: ({name, color, values}, i) => [runs[i].plan, [color, `${name}: ${gigabytes(values[i])}`]],
    axis: {
      name: "GB of the fullest device",
      form: plain,
      limit,
      max: round_end(Math.max(limit.at, ...runs.map(({memory_gb}) => memory_gb.device_peak)))
    },
  });
  show_memory_over_time(run, limit);
  show_figures("memory", memory_table(runs, used), ...(run.samples.length > 0 ? [samples_table(run.samples)] : []));
}
function memory_table(runs, used) {
  return table(
      "GB on the fullest device at its fullest moment",
      [{title: "Plan", text: true}, ...titles("peak", "limit", "verdict"), ...used.map(({name}) => ({title: name}))],
      runs.map(
          ({plan, memory_gb: {device_peak, device_limit, verdict, parts}}) =>
              [plan, digits(device_peak), digits(device_limit), verdict,
               ...used.map(({name}) => digits(parts[name]))]));
}
function samples_table(ranks) {
  return table(
      "Memory of the shown ranks", [{title: "Rank", text: true}, ...titles("time", "device, GB", "host, GB")],
      ranks.flatMap(
          ({rank, samples}) =>
              samples.map(([at, device, host]) => [`rank ${rank}`, seconds(at), digits(device), digits(host)])));
}

function show_memory_over_time(run, limit) {
  const {samples: ranks, memory_gb: {step}} = run;
  const place = part("memory-time");
  place.hidden = ranks.length === 0;
  const left_out = ranks.reduce((sum, rank) => sum + rank.left_out, 0);
  part("memory-note").textContent = ranks.length === 0 ?
      "" :
      `Over step ${step}, the one with the fullest device: ${plural(ranks.length, "rank")}, the fullest` +
          `${run.stages > 1 ? ", on their first stage" : ""}; dashed: a device's share of host memory.` +
          (left_out > 0 ? ` ${plural(left_out, "later sample")} not shown.` : "");
  if (ranks.length === 0) return;
  const series = ranks.flatMap(({rank, samples}, i) => {
    const curve = (column) => samples.map((sample) => [sample[0], sample[column]]);
    const line = {name: `rank ${rank}`, color: memory_color([0, 3, 6, 5][i % 4]), points: curve(1)};
    const host = {...line, name: `rank ${rank}, host`, points: curve(2), dashed: true};
    return samples.some(([, , bytes]) => bytes > 0) ? [line, host] : [line];
  });
  draw_lines(place, {
    label: `Memory of ${ranks.length} ranks over one step`,
    series,
    y: {name: "GB", form: plain, exact: gigabytes, limit},
    x: {name: "time since the start of the step", form: short_seconds, min: 0, max: ranks[0].samples.at(-1)[0]},
    title: seconds
  });
}

// ---- Links

function show_links(run) {
  const kinds = run.shown_step?.links ?? [];
  if (run.links.length === 0 && kinds.length === 0) return hide("links");
  const others = kinds.some((kind) => kind.others > 0);
  const use_bar = ({mean, most}) => share_bar(
      [
        {name: "on the mean", color: plan_color(run.plan), share: mean, text: percent(mean)},
        {name: "the busiest", color: "var(--strong-line)", share: most - mean, text: percent(most)}
      ],
      {label: `use of its rate: mean ${percent(mean)}, busiest ${percent(most)}`});
  const columns = [
    {title: "Links", text: true}, ...titles("How many", "Rate", "Mean use", "Busiest"),
    ...(others ? [{title: "Of it other jobs"}] : []), {title: "0 to 100%", text: true, below: true},
    {title: "The busiest one", text: true}
  ];
  part("links-kinds").replaceChildren(...(kinds.length === 0 ? [] : [
    table(
        `Share of their rate that messages of step ${run.shown_step.step} used, by kind of link`, columns,
        kinds.map(
            (kind) =>
                [kind.links === 1 ? kind.busiest : kind.kind, kind.links.toLocaleString("en"),
                 digits(kind.rate) + " GB/s", percent(kind.mean), percent(kind.most),
                 ...(others ? [percent(kind.others)] : []), use_bar(kind), kind.most > 0 ? kind.busiest : "–"]),
        {cards: true, wide: true})
  ]));
  show_figures(
      "links",
      table(
          `The ${run.links.length} busiest links over all steps; links.csv has more`,
          [{title: "Link", text: true}, ...titles("rate", "sent by this job", "use", "other jobs")],
          run.links.map(
              ([name, rate, sent, use,
                other]) => [name, digits(rate) + " GB/s", short(sent * 1e9) + "B", percent(use), percent(other)])));
}

// ---- Lengths

function show_lengths(run) {
  const {lengths, trace} = data.points[run.point];
  if (!lengths) return hide("lengths");
  part("lengths-note").textContent = `${lengths.count.toLocaleString("en")} sequences of ` +
      `${run.steps === 1 ? "the step" : `all ${run.steps} steps`}, ` +
      `${short(lengths.tokens)} tokens; mean ${short(lengths.mean)}, longest ${tokens(lengths.max)}.` +
      trace.map((note) => " " + sentence(note)).join("");
  const shares = lengths.shares.filter(([above], i) => i === 0 || above < lengths.max);
  const kinds = [
    ["sequences", 1, "var(--strong-line)"], ["tokens", 2, "var(--memory-1)"], ["sum of squares", 3, "var(--memory-0)"]
  ];
  draw_lines(part("lengths-chart"), {
    label: "Share of sequences, tokens and squared lengths above powers of two",
    height: 240,
    dots: true,
    series: kinds.map(([name, column, color]) => ({name, color, points: shares.map((row) => [row[0], row[column]])})),
    x: {name: "in sequences longer than", log: true, marks: shares.map(([above]) => above), form: tokens},
    y: {form: percent, max: 1},
    title: (above) => `above ${tokens(above)} tokens`
  });
  const small = (share) => share > 0 && share < 0.001 ? "<0.1%" : (100 * share).toFixed(1) + "%";
  show_figures(
      "lengths",
      table(
          "Shares above a length", titles("above", ...kinds.map(([title]) => title)),
          shares.map(([above, ...parts]) => [tokens(above), ...parts.map(small)])),
      table(
          "Percentiles", titles("percent", "tokens"),
          lengths.percentiles.map(([share, length]) => [String(share), length.toLocaleString("en")])));
}

// ---- What the time rests on

function show_evidence_section() {
  const profiles = [...new Set(data.points.map(({profile}) => profile))];
  section(
      "evidence", "What the time rests on", {},
      "Share of the predicted rank time by the kind of evidence behind it. " +
          `Costs come from: ${profiles.join("; ")}.`,
      chart_place("evidence-chart"), figures_place(), list(limits()));
}
// What the intervals of published runs rest on, once for runs of which the same is true.
function sure_texts() {
  const text = ({kind, errors_of, sets, figures}) =>
      `90% intervals hold nine of ten published figures, by the errors of ${plural(figures, "step")} in ${
          plural(sets, "set")} that are ${errors_of}` +
      (errors_of === kind ? "." : `: nothing was published that is ${kind}.`);
  return [...new Set(data.runs.filter(({confidence}) => confidence).map(({confidence}) => text(confidence)))];
}
function limits() {
  const missing = [...new Set(data.points.flatMap(({not_modelled}) => not_modelled))];
  const unknown = [...new Set(data.runs.flatMap(({uncertainty}) => uncertainty?.unknown ?? []))];
  return [
    uncertain ? `${spread_title} hold the spread of the batches and the profile's errors of the costs` +
            (unknown.length > 0 ? `, but not those of ${unknown.join(", ")}, which nobody knows.` : ".") :
        !has_spread             ? "One step was simulated: how much batches differ is not known." :
                                  `${spread_title} are the spread over the simulated steps of a run: how much batches differ.`,
    ...sure_texts(),
    ...new Set(data.points.flatMap(({trace}) => trace.map(sentence))),
    ...(missing.length > 0 ? [`Not simulated, because the profile has no figure for it: ${
                                 missing.map((key) => key.replaceAll("_", " ")).join(", ")}.`] :
                             []),
  ];
}
function draw_evidence() {
  const runs = comparable_runs();
  const used =
      evidence_kinds.map((name, i) => ({name, i})).filter(({name}) => runs.some((run) => run.evidence[name] > 0));
  draw_stacked(part("evidence-chart"), {
    label: "Share of the time by evidence, a bar a run",
    rows: runs.map(run_name),
    parts: used.map(({name, i}) => ({name, color: evidence_color(i), values: runs.map((run) => run.evidence[name])})),
    text:
        ({name, color, values},
         i) => [run_name(runs[i]), [color, `${name}: ${percent(values[i])}`], data.definitions.evidence[name] ?? ""],
    axis: {name: "share of the rank time", form: percent, max: 1},
  });
  show_figures(
      "evidence",
      table(
          "Share of the rank time", [{title: "Run", text: true}, ...evidence_kinds.map((title) => ({title}))],
          runs.map((run) => [run_name(run), ...evidence_kinds.map((name) => percent(run.evidence[name]))])),
      ...(uncertain ? [variance_table(runs)] : []));
}
function variance_table(runs) {
  const sources = [...new Set(runs.flatMap(({uncertainty}) => uncertainty.variance.map(({source}) => source)))];
  const share = (run, source) => run.uncertainty.variance.find((each) => each.source === source)?.share ?? 0;
  return table(
      "Where the variance of the mean step time comes from", [{title: "Run", text: true}, ...titles(...sources)],
      runs.map((run) => [run_name(run), ...sources.map((source) => percent(share(run, source)))]));
}

// ---- The page

function show_header() {
  const settings = [...new Set(data.points.map(({setting}) => setting))];
  const header = document.querySelector("header");
  header.append(
      element("p", {}, settings.length === 1 ? settings[0] : `${plural(settings.length, "setting")}, see below`));
  show_answer(data.answer);
}

function show_chooser() {
  const option = (value, name) => element("option", {value}, name);
  const point = element(
      "label", {}, "Point ",
      element("select", {id: "choose-point"}, ...data.points.map((_, i) => option(i, full_point_name(i)))));
  const plan =
      element("label", {}, "Plan ", element("select", {id: "choose-plan"}, ...plans.map((name) => option(name, name))));
  const form = element("form", {id: "chooser"}, ...(many_points ? [point] : []), plan);
  section(
      "choice", "One run in detail", {}, form, element("p", {id: "chosen", className: "plain", "aria-live": "polite"}));
  if (many_points) part("choose-point").value = data.points.length - 1;
  const [best] = runs_at(data.points.length - 1).filter(({memory_gb}) => memory_gb.fits).sort(by_step_time);
  part("choose-plan").value = best?.plan ?? plans.at(-1);
  form.addEventListener("change", show_choice);
  form.addEventListener("submit", (event) => event.preventDefault());
}

function show_choice() {
  const run = run_at(chosen_point(), chosen_plan());
  if (!run) return show_refusal(refused_at(chosen_point(), chosen_plan()));
  for (const id of Object.keys(shows)) part(id).hidden = false;
  const {background} = data.points[run.point];
  part("chosen").textContent = `${many_points ? full_point_name(run.point) + "; " : ""}${run.plan}: ` +
      `${seconds(run.step_time_s.mean)} a step${unless_it_fits(run)}.` +
      (background.length > 0 ? ` Beside it: ${background.join("; ")}.` : "");
  for (const show of Object.values(shows)) show(run);
  if (data.runs.length > most_bars) {
    draw_breakdown();
    draw_evidence();
  }
}

function show_refusal({point, plan, why}) {
  for (const id of Object.keys(shows)) hide(id);
  part("chosen").textContent = `${many_points ? full_point_name(point) + "; " : ""}${plan} is refused: ${why}.`;
  if (data.runs.length > most_bars && runs_at(point).length > 0) {
    draw_breakdown();
    draw_evidence();
  }
}

function show_details() {
  const span = (id) => element("span", {id});
  detail(
      "why", "Why it takes so long, and what would help", show_why, element("p", {id: "why-step"}),
      element("ul", {className: "notes", id: "why-text"}), element("p", {id: "why-note"}), chart_place("why-chart"),
      element("div", {id: "why-advice"}));
  detail(
      "ranks", "How busy the ranks are", show_ranks,
      element(
          "p", {},
          "Time that a rank does not wait for others, as a " +
              "share of the step, mean over steps. ",
          span("per-cell")),
      chart_place("rank-map"), chart_place("rank-histogram"), figures_place());
  if (data.runs.some(({stages}) => stages > 1)) {
    detail(
        "stages", "Stages of the pipeline", show_stages,
        "Where the time of a stage goes, mean over its ranks and over " +
            "steps.",
        chart_place("stages-chart"), figures_place());
  }
  detail(
      "timeline", "Who works with whom, and when", show_timeline,
      element(
          "p", {}, span("lanes-note"), " Drag over a part of the time to see it closer; a double click shows all.",
          span("timeline-file")),
      chart_place("timeline-chart"), figures_place());
  detail(
      "groups", "Group sizes", show_groups,
      element(
          "p", {},
          "How many ranks share a micro-batch, by the share of the " +
              "tokens that groups of this size process. ",
          span("groups-note")),
      chart_place("groups-chart"), figures_place());
  detail(
      "memory", "Memory", show_memory, element("p", {id: "memory-verdict"}), chart_place("memory-parts"),
      element("p", {id: "memory-note"}), chart_place("memory-time"), figures_place());
  detail("links", "Links", show_links, element("div", {id: "links-kinds"}), figures_place("Busiest links"));
  detail(
      "lengths", "Lengths of the sequences", show_lengths,
      element(
          "p", {}, span("lengths-note"),
          " The sum of squared " +
              "lengths is what attention costs."),
      chart_place("lengths-chart"), figures_place());
}

function show_reproduce() {
  section(
      "reproduce", "How to repeat it", {long: true},
      `Simulated by hdpsim ${
          data.version}. This is the study with every default and override put in; it gives the same ` +
          "results again. It is study.yaml next to this page:",
      element("pre", {className: "command"}, "hdpsim study study.yaml --out results"),
      element(
          "details", {}, element("summary", {}, "study.yaml"),
          element("pre", {id: "study", tabIndex: 0, role: "region", "aria-label": "The resolved study"}, data.study)));
}

show_header();
show_results();
show_points();
show_tokens();
show_breakdown_section();
show_chooser();
show_details();
show_evidence_section();
const used_plans = Object.fromEntries(
    plans.filter((plan) => data.definitions.plans[plan]).map((plan) => [plan, data.definitions.plans[plan]]));
const used_names = new Set(used_activities(data.runs).map(({name}) => name));
show_definitions([
  {title: "Plans", terms: used_plans}, {
    title: "Activities",
    terms: Object.fromEntries(Object.entries(data.definitions.activities).filter(([name]) => used_names.has(name)))
  },
  {title: "Evidence", terms: data.definitions.evidence}
]);
show_reproduce();
draw_breakdown();
draw_evidence();
show_choice();
finish();
