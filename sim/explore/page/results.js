// ---- Figures of an answer. Every figure of the table is a button that says what it is, what it is made of, and what
// it rests on.

let latest = null;            // the answer that is shown
let explained_figure = null;  // {plan, figure}, so that a new answer explains the same figure again

// A run that was refused has no figures but the words of its policy.
const runs_of = ({result}) => result.runs.filter(({refusal}) => !refusal);
const refused_of = ({result}) => result.runs.filter(({refusal}) => refusal);
const of_plan = (answer, plan) => runs_of(answer).find((run) => run.plan === plan);
const interval_of = (run, figure) => run.uncertainty?.[figure] ?? run[figure];
const best_run = (runs) =>
    runs.filter((run) => run.memory_gb.fits).sort((a, b) => a.step_time_s.mean - b.step_time_s.mean)[0];
// What figures are of, as long as more steps follow.
function so_far(answer) {
  const done = runs_of(answer)[0]?.steps ?? 1;
  if (answer.final || done === answer.steps) return "";
  return done === 1 ? `Of the first of ${answer.steps} steps so far.` :
                      `Of the first ${done} of ${answer.steps} steps so far.`;
}
const steps_text = ({steps}) => steps === 1 ? "the first step" : `${steps} steps`;

function lead_text(runs) {
  const best = best_run(runs);
  if (!best) return runs.length === 1 ? `${runs[0].plan} does not fit the memory.` : "No plan fits the memory.";
  const time =
      `${best.plan}${runs.length > 1 ? " is the fastest:" : " takes"} ${seconds(best.step_time_s.mean)} a step`;
  const {speedup, speedup_over_best_static: over_best} = best;
  const stated = speedup && speedup.versus !== best.plan ? `, ${ratio(speedup.mean)} as fast as ${speedup.versus}` : "";
  const tuned = over_best ?
      `${stated ? " and" : ","} ${ratio(over_best.mean)} as fast as the best static mesh of its tp and pp` :
      "";
  return `${time}${stated}${tuned}.`;
}

function memory_text(run) {
  const {verdict, device_peak, device_at_most, host_peak} = run.memory_gb;
  const {device, host} = latest.limits_gb;
  if (verdict === "at risk")
    return `${digits(device_peak)} to ${digits(device_at_most)} of ${digits(device)} GB: at risk`;
  if (verdict === "fits") return `${digits(device_peak)} of ${digits(device)} GB`;
  return device_peak > device ? `${digits(device_peak)} of ${digits(device)} GB: does not fit` :
                                `${digits(host_peak)} of ${digits(host)} GB of host: does not fit`;
}

// ---- The table: {title, text(run), explain(run)} for each figure

const figures = {
  step_time: {
    title: "Step time",
    text: (run) => seconds(run.step_time_s.mean),
    explain: (run) =>
        [`The mean over ${steps_text(run)}. Its parts are means over all ranks; they sum to it.`, activity_list(run),
         ...evidence_parts(run)],
  },
  spread: {
    title: "p5 – p95",
    text: (run) => {
      const {p5, p95} = interval_of(run, "step_time_s");
      return run.steps === 1 ? "" : range([p5, p95], seconds);
    },
    explain: (run) =>
        [run.uncertainty ? `Of the mean step time, over ${
                               run.uncertainty.samples} samples that draw the steps again and are off by what ` +
                 `calibration missed.${run.uncertainty.advice ? ` To narrow it: ${run.uncertainty.advice}.` : ""}` :
                                                                `From the 5th to the 95th percentile of ${
                               steps_text(run)}: how much batches differ. The error of the costs is not ` +
                 "in it; the setting uncertainty.samples adds that."],
  },
  tokens: {
    title: "Tokens/s",
    text: (run) => short(run.tokens_per_s),
    explain: (run) =>
        [`The tokens of a step, ${tokens(value_at(latest.result.study, "data.tokens_per_step"))}, by its mean ` +
             `time, of all ${run.gpus.toLocaleString("en")} GPUs: ${short(run.tokens_per_s_per_gpu)} a GPU.`,
         ...evidence_parts(run)],
  },
  speedup: {
    title: "Speed-up",
    text: (run) => run.speedup ? ratio(run.speedup.mean) : "",
    explain: (run) => {
      const {versus, tuned_baseline: tuned} = run.speedup;
      const base = tuned ?? of_plan(latest, versus);
      return [
        `The mean step time of ${versus}, ${seconds(base.step_time_s.mean)}, by that of ${run.plan}, ` +
            `${seconds(run.step_time_s.mean)}, on the same batches and ` +
            `${tuned ? `its own best mesh, ${tuned.choices}` : "the same mesh"}. The difference by activity:`,
        difference_list(base, run)
      ];
    },
  },
  over_best: {
    title: "Over best static",
    text: (run) => run.speedup_over_best_static ? ratio(run.speedup_over_best_static.mean) : "",
    explain: (run) => {
      const {sharing, cut, cp, step_time_s} = run.speedup_over_best_static;
      return [
        `The mean step time of static with the fastest sharing on the same tp and pp, ${seconds(step_time_s)}, ` +
        `by that of ${run.plan}, ${seconds(run.step_time_s.mean)}, on the same batches. That sharing is ` +
        `cp_comm_type ${sharing}, cp_cut ${cut}, with ${cp === 1 ? "a rank" : `${cp} ranks`} a group.`
      ];
    },
  },
  mfu: {
    title: "MFU",
    text: (run) => (100 * run.mfu).toFixed(1) + "%",
    explain: (run) =>
        ["FLOPs that the model needs (attention over the exact causal area, and all linear work) by what the " +
             "devices could do in the step at their peak. Time by activity is where the rest goes:",
         activity_list(run)],
  },
  memory: {
    title: "Memory a device",
    text: memory_text,
    explain: (run) => {
      const {parts, rank, stage, step, at_s, host_peak} = run.memory_gb;
      return [
        `The fullest device is of rank ${rank}${latest.result.study.mesh?.pp > 1 ? `, stage ${stage}` : ""}, ` +
            `${seconds(at_s)} into step ${step}. Host memory: ${digits(host_peak)} of ${
                digits(latest.limits_gb.host)} GB a device.`,
        part_list(Object.entries(parts)
                      .filter(([, size]) => size > 0)
                      .map(([name, size]) => [memory_color(name), name, gigabytes(size), ""]))
      ];
    },
  },
};

const percent_of = (share) => share < 0.0005 ? "less than 0.1%" : percent(share);
const memory_color = (name) => `var(--memory-${data.memory_parts.indexOf(name)})`;
const evidence_color = (name) => `var(--evidence-${Object.keys(data.definitions.evidence).indexOf(name)})`;

// rows: [colour, name, figure, meaning]
const part_list = (rows) => element(
    "ul", {className: "parts"},
    ...rows.map(
        ([color, name, figure, meaning]) => element(
            "li", {}, patch(color), element("b", {}, name), " ", figure, ...(meaning ? [soft(" " + meaning)] : []))));

const activity_list = (run) =>
    part_list(Object.entries(run.breakdown_s)
                  .filter(([, time]) => time > 0)
                  .sort(([, a], [, b]) => b - a)
                  .map(
                      ([name, time]) =>
                          [activity_color(name), name, `${seconds(time)}, ${percent_of(time / run.step_time_s.mean)}:`,
                           data.definitions.activities[name].replaceAll("`", "")]));

const difference_list = (base, run) =>
    part_list(Object.keys(run.breakdown_s)
                  .map((name) => [name, run.breakdown_s[name] - base.breakdown_s[name]])
                  .filter(([, by]) => by !== 0)
                  .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a))
                  .map(
                      ([name, by]) =>
                          [activity_color(name), name, `${by < 0 ? "−" : "+"}${seconds(Math.abs(by))}:`,
                           data.definitions.activities[name].replaceAll("`", "")]));

const evidence_parts = (run) =>
    [`What the time rests on; costs are those of ${run.profile}:`,
     part_list(
         Object.entries(run.evidence)
             .filter(([, share]) => share > 0)
             .map(([name,
                    share]) => [evidence_color(name), name, `${percent(share)}:`, data.definitions.evidence[name]]))];

function figure_button(run, name) {
  const text = figures[name].text(run);
  if (!text) return "";
  const button =
      element("button", {type: "button", className: "figure", "data-plan": run.plan, "data-figure": name}, text);
  if (!run.memory_gb.fits) button.classList.add(name === "memory" ? "misfit" : "struck");
  if (name === "memory" && run.memory_gb.verdict === "at risk") button.classList.add("misfit");
  button.addEventListener("click", () => {
    const same = explained_figure?.plan === run.plan && explained_figure.figure === name;
    explained_figure = same ? null : {plan: run.plan, figure: name};
    show_explanation();
    part("explanation").scrollIntoView({block: "nearest"});
  });
  return button;
}

function show_explanation() {
  const place = part("explanation");
  const run = explained_figure && of_plan(latest, explained_figure.plan);
  const name = explained_figure?.figure;
  const known = run && figures[name].text(run);
  for (const button of document.querySelectorAll(".figure")) {
    const {plan, figure} = button.dataset;
    button.setAttribute("aria-expanded", String(Boolean(known) && plan === run.plan && figure === name));
  }
  place.hidden = !known;
  if (!known) return place.replaceChildren();
  place.replaceChildren(
      element(
          "h3", {}, patch(plan_color(run.plan)), `${figures[name].title} of ${run.plan}: ${figures[name].text(run)}`),
      ...figures[name].explain(run).map((each) => typeof each === "string" ? element("p", {}, each) : each));
}

function show_time(answer) {
  const runs = runs_of(answer);
  const used = Object.keys(runs[0].breakdown_s).filter((name) => runs.some((run) => run.breakdown_s[name] > 0));
  draw_stacked(part("time-chart"), {
    label: "Mean step time of every plan by activity",
    rows: runs.map(({plan}) => plan),
    parts: used.map((name) => ({name, color: activity_color(name), values: runs.map((run) => run.breakdown_s[name])})),
    axis: {name: "mean step time", form: short_seconds},
    totals: runs.map((run) => seconds(run.step_time_s.mean)),
    faded: runs.map((run) => !run.memory_gb.fits),
    text: ({name}, i) =>
        [`${runs[i].plan}: ${name}`,
         `${seconds(runs[i].breakdown_s[name])}, ` +
             `${percent(runs[i].breakdown_s[name] / runs[i].step_time_s.mean)} of the step`,
         data.definitions.activities[name].replaceAll("`", "")],
  });
  const names = Object.keys(figures).filter((name) => runs.some((run) => figures[name].text(run)));
  const best = best_run(runs);
  const rows = runs.map(
      (run) =>
          [element("span", {className: run === best ? "best" : ""}, plan_name(run.plan)),
           ...names.map((name) => figure_button(run, name))]);
  const refused = refused_of(answer).map(
      ({plan}) =>
          [plan_name(plan), element("span", {className: "misfit"}, "refused"), ...names.slice(1).map(() => "")]);
  part("time-table")
      .replaceChildren(table(
          `${
              runs[0].steps === 1 ? "The first step" :
                                    `Means over ${runs[0].steps} steps`}; each figure explains itself`,
          [{title: "Plan", text: true}, ...names.map((name) => ({title: figures[name].title}))], [...rows, ...refused],
          {cards: true, wide: true}));
  show_explanation();
}

function show_memory(answer) {
  const runs = runs_of(answer);
  const {limits_gb} = answer;
  const used = data.memory_parts.filter((name) => runs.some((run) => run.memory_gb.parts[name] > 0));
  const those = (verdict) => runs.filter((run) => run.memory_gb.verdict === verdict)
                                 .map((run) => `${run.plan} (${memory_text(run).replace(`: ${verdict}`, "")})`)
                                 .join(", ");
  const misfits = those("does not fit");
  const risks = those("at risk");
  part("memory-verdict").textContent = misfits || risks ?
      [
        misfits && `Does not fit: ${misfits}.`,
        risks && `At risk, where the allocator leaves the largest gaps that were measured: ${risks}.`
      ].filter(Boolean)
          .join(" ") :
      `All plans fit: a device has ${gigabytes(limits_gb.device)}, its share of the host ${gigabytes(limits_gb.host)}.`;
  part("memory-verdict").classList.toggle("misfit", Boolean(misfits || risks));
  draw_stacked(part("memory-chart"), {
    label: "Memory of the fullest device of every plan, by use",
    rows: runs.map(({plan}) => plan),
    parts:
        used.map((name) => ({name, color: memory_color(name), values: runs.map((run) => run.memory_gb.parts[name])})),
    axis: {
      name: "memory of a device",
      form: (size) => `${plain(size)} GB`,
      max: round_end(Math.max(limits_gb.device, ...runs.map((run) => run.memory_gb.device_peak))),
      limit: {at: limits_gb.device, text: `limit ${gigabytes(limits_gb.device)}`}
    },
    totals: runs.map((run) => gigabytes(run.memory_gb.device_peak)),
    text: ({name}, i) => [`${runs[i].plan}: ${name}`, gigabytes(runs[i].memory_gb.parts[name])],
  });
}

function show_evidence(answer) {
  const runs = runs_of(answer);
  const {notes} = answer;
  const kinds = Object.keys(data.definitions.evidence);
  part("evidence-note").textContent = `Share of the ranks' time by the evidence behind it. Costs: ${runs[0].profile}.`;
  draw_stacked(part("evidence-chart"), {
    label: "Share of the time of every plan by evidence",
    rows: runs.map(({plan}) => plan),
    parts: kinds.map((name) => ({name, color: evidence_color(name), values: runs.map((run) => run.evidence[name])})),
    axis: {form: percent, max: 1},
    text: ({name}, i) => [`${runs[i].plan}: ${name}`, percent(runs[i].evidence[name]), data.definitions.evidence[name]],
  });
  const missing =
      runs[0].not_modelled.map((key) => `Left out, for the profile has no figure for it: ${key.replaceAll("_", " ")}.`);
  const sentences = notes.map((note) => note.trim()).map((note) => /[.:]$/.test(note) ? note : sentence(note));
  part("notes").replaceChildren(...[...missing, ...sentences].map((text) => element("li", {}, text)));
}

function show_answer_of(answer) {
  latest = answer;
  for (const {plan} of answer.result.runs)
    if (!data.plans.includes(plan)) data.plans.push(plan);
  study_shown = answer.result.study;
  part("setting").textContent = answer.setting;
  part("answer").textContent = [
    lead_text(runs_of(answer)), so_far(answer),
    ...refused_of(answer).map(({plan, refusal}) => `${plan} is refused: ${refusal}.`)
  ].filter(Boolean).join(" ");
  part("figures").hidden = false;
  part("figures").classList.remove("old");
  show_values();
  show_time(answer);
  show_memory(answer);
  show_evidence(answer);
  show_variants();
}

// ---- Variants: what is pinned, and what is set now

const answers = new Map();  // fragment of a variant -> its last answer

// The settings in which variants differ name them.
function variant_name(from, all) {
  const differing = [...new Set(all.flatMap((each) => [...each.keys()]))].filter(
      (path) => all.some((each) => each.get(path) !== all[0].get(path)));
  const words = differing.map((path) => `${path.split(".").at(-1)} ${from.get(path) ?? text_in(data.study, path)}`);
  return words.join(", ").replace(/\{preset: ([^}]*)\}/g, "$1") || "as in the study";
}

function show_variants() {
  part("variants").hidden = pinned.length === 0;
  if (pinned.length === 0 || !latest) return;
  const all = [...pinned, settings];
  const variants = all.map((from, i) => ({
                             from,
                             now: i === pinned.length,
                             name: i === pinned.length ? `now: ${variant_name(from, all)}` : variant_name(from, all),
                             answer: i === pinned.length ? latest : answers.get(address_of(from, [])),
                           }));
  const known = variants.filter(({answer}) => answer);
  const plans = [...new Set(known.flatMap(({answer}) => runs_of(answer).map(({plan}) => plan)))];
  draw_bars(part("variants-chart"), {
    label: "Step time of every plan in every variant",
    height: 240,
    names: known.map(({name}) => fitted(name, 220)),
    series: plans.map((plan) => ({
                        name: plan,
                        color: plan_color(plan),
                        values: known.map(({answer}) => of_plan(answer, plan)?.step_time_s.mean ?? 0),
                        faded: known.map(({answer}) => of_plan(answer, plan)?.memory_gb.fits === false)
                      })),
    axis: {form: short_seconds, name: "mean step time"},
    text: ({name, values}, i) => [known[i].name, `${name}: ${seconds(values[i])}`],
  });
  const cell = (answer, plan) => {
    const run = answer && of_plan(answer, plan);
    if (!run) return answer ? "–" : "…";
    const speedup = run.speedup && run.speedup.versus !== plan ? `, ${ratio(run.speedup.mean)}` : "";
    return element(run.memory_gb.fits ? "span" : "s", {}, seconds(run.step_time_s.mean) + speedup);
  };
  const rows = variants.map(
      ({from, now, name, answer}, i) =>
          [element("span", {className: now ? "best" : ""}, name), ...plans.map((plan) => cell(answer, plan)),
           now ? "" :
                 element(
                     "span", {className: "actions"}, small_button("Use", `use ${name}`, () => use_variant(from)),
                     small_button("Unpin", `unpin ${name}`, () => unpin(i)))]);
  part("variants-table")
      .replaceChildren(table(
          "Mean step time, and speed-up, of every plan",
          [{title: "Variant", text: true}, ...plans.map((title) => ({title})), {title: ""}], rows,
          {cards: true, wide: true}));
}
function small_button(text, label, act) {
  const button = element("button", {type: "button", "aria-label": label}, text);
  button.addEventListener("click", act);
  return button;
}
