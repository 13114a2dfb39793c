// A tuning: the candidates that can run, the front of time, memory and GPUs, and the best of each plan.

const most_rows = 100;
const at_least = (candidate, text) => (candidate.steps === 0 ? "≥ " : "") + text;
const times = (value) => value.toFixed(2) + "×";

// What is the same for all candidates needs no column.
const differs = (figure) => !all_same(data.candidates.map(figure));
const best_candidate = data.candidates[0];
const columns = [
  {title: "Rank", cell: ({rank}) => String(rank)}, {title: "Plan", text: true, cell: ({plan}) => plan_name(plan)}, {
    title: "Step time",
    cell: (each) =>
        element("span", {className: each === best_candidate ? "best" : ""}, at_least(each, seconds(each.step_time_s)))
  },
  {title: "To the best", cell: (each) => at_least(each, times(each.ratio.mean))},
  {title: "p5 – p95", cell: ({steps, ratio: {p5, p95}}) => steps > 1 ? soft(range([p5, p95], times)) : ""},
  {title: "Steps",
   cell: ({steps}) => steps === data.steps ? "all" :
       steps === 0                         ? "bound" :
                                             String(steps)},
  {title: "MFU", cell: ({mfu}) => percent(mfu)},
  {title: "Memory", cell: ({device_peak_gb, at_risk}) => gigabytes(device_peak_gb) + (at_risk ? ", at risk" : "")},
  ...(differs(({gpus}) => gpus) ? [{title: "GPUs", cell: ({gpus}) => gpus.toLocaleString("en")}] : []),
  data.currency ? {title: `${data.currency}/Gtoken`, cell: ({cost_per_gigatoken}) => digits(cost_per_gigatoken)} :
                  {title: "GPU-h/Gtoken", cell: ({gpu_hours_per_gigatoken}) => digits(gpu_hours_per_gigatoken)},
  {title: "Choices", text: true, below: true, cell: ({choices}) => element("div", {className: "long"}, choices)}
];
const candidates_table = (caption, candidates) =>
    table(caption, columns, candidates.map((each) => columns.map(({cell}) => cell(each))), {cards: true, wide: true});

function show_best_of_plans() {
  const best = data.candidates.filter(({best_of_plan}) => best_of_plan);
  section(
      "plans", "The best of each plan", {long: true},
      "Each plan with the mesh and the choices that suit it best, simulated over all steps.",
      candidates_table(plural(best.length, "plan"), best));
}

function show_front() {
  const kinds = data.plans.map((plan) => ({name: plan, color: plan_color(plan)}));
  const text = (each) =>
      [each.choices, at_least(each, `${seconds(each.step_time_s)} a step, ${times(each.ratio.mean)} the best`),
       `${gigabytes(each.device_peak_gb)} a device, ${plural(each.gpus, "GPU")}`,
       ...(each.on_front ? ["on the front"] : [])];
  const points =
      [...data.candidates].sort((a, b) => a.on_front - b.on_front).map((each) => ({
                                                                         x: each.step_time_s,
                                                                         y: each.device_peak_gb,
                                                                         color: plan_color(each.plan),
                                                                         series: data.plans.indexOf(each.plan),
                                                                         kind: each.on_front ? "" : "faint",
                                                                         size: each.on_front ? 6 : 4,
                                                                         text: text(each)
                                                                       }));
  const front = data.candidates.filter(({on_front}) => on_front);
  section(
      "front", "Time against memory", {},
      "A dot a candidate that can run; the large ones are the front: no other candidate " +
          "beats them in time, memory (in twentieths of a device) and GPUs together.",
      chart_place("front-chart"),
      element("details", {open: true}, element("summary", {}, "The front"), element("div", {className: "figures"})));
  const longest = Math.max(...data.candidates.map(({step_time_s}) => step_time_s));
  const shortest = Math.min(...data.candidates.map(({step_time_s}) => step_time_s));
  const limit = {at: data.device_memory, text: `memory of a device: ${gigabytes(data.device_memory)}`};
  draw_points(part("front-chart"), {
    label: "Step time and memory of every candidate",
    height: 360,
    points,
    legend: kinds,
    x: {
      name: "step time",
      form: short_seconds,
      ...(longest / shortest > 4 ? {log: true} : {min: shortest * 0.95, max: longest * 1.02})
    },
    y: {
      name: "GB of the fullest device",
      form: plain,
      limit,
      max: round_end(Math.max(limit.at, ...points.map(({y}) => y)))
    }
  });
  show_figures("front", candidates_table(plural(front.length, "candidate"), front));
}

function show_candidates() {
  const shown = data.candidates.slice(0, most_rows);
  section(
      "candidates", "Candidates", {long: true},
      `${data.feasible.toLocaleString("en")} of ` +
          `${data.all.toLocaleString("en")} candidates can run; the best ${
              shown.length} are here, candidates.csv has all.`,
      element(
          "details", {open: shown.length <= 20}, element("summary", {}, plural(shown.length, "candidate")),
          candidates_table("By the time of all steps; those that were dropped by that of the steps they ran", shown)));
  if (data.reasons.length === 0) return;
  section(
      "reasons", "Candidates that cannot run", {},
      element(
          "details", {}, element("summary", {}, plural(data.reasons.length, "reason")),
          table(
              "Reasons", [{title: "How many"}, {title: "Reason", text: true}, {title: "For example", text: true}],
              data.reasons.map(([count, reason, example]) => [count.toLocaleString("en"), reason, soft(example)]))));
}

document.querySelector("header").append(element("p", {}, data.setting));
show_answer(data.answer);
show_best_of_plans();
show_front();
show_candidates();
section(
    "reproduce", "How to go on", {}, "best.yaml next to this page is a study with the best candidate as its only plan:",
    element("pre", {className: "command"}, "hdpsim study best.yaml --out best"));
show_definitions([{title: "Plans", terms: data.definitions.plans}]);
finish();
