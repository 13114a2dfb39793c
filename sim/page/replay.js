// A replay: plans over the steps of a trace, where they lose their lead, and why the slowest steps are slow.

const series_of = (figure) => data.series.map((point) => [(point[0] + point[1]) / 2, figure(point)]);
const step_axis = {
  name: "step",
  form: (step) => Math.round(step).toLocaleString("en"),
  min: 0,
  max: Math.max(1, data.steps - 1)
};

function breakdown_bar({plan, breakdown_s, step_time_s: {mean}, unfit}, longest) {
  const parts = used_activities(data.summaries).map(({name}) => ({
                                      name,
                                      color: activity_color(name),
                                      share: breakdown_s[name] / longest,
                                      text: `${seconds(breakdown_s[name])}, ${percent(breakdown_s[name] / mean)}`
                                    }));
  return share_bar(parts, {label: `${plan}: where the time goes`, faded: unfit !== ""});
}

const over_best = data.summaries.every(({speedup_over_best_static}) => speedup_over_best_static);

function show_plans() {
  const columns = [
    {title: "Plan", text: true}, ...titles("Mean", "p5", "p50", "p95", "p99", "Slowest", "Speed-up", "p5 – p95"),
    ...(over_best ? titles("Over best static") : []), ...titles("Fastest in"),
    {title: "Where the time goes", text: true, below: true}
  ];
  const longest = Math.max(...data.summaries.map(({step_time_s}) => step_time_s.mean));
  const fitting = data.summaries.filter(({unfit}) => !unfit).map(({step_time_s}) => step_time_s.mean);
  const row = (summary) => {
    const {plan, step_time_s: {mean, p5, p50, p95, p99, max}, speedup, speedup_over_best_static: best_static} = summary;
    const {fastest_steps, unfit} = summary;
    const best = !unfit && mean === Math.min(...fitting);
    const is_baseline = plan === data.baseline;
    const shown =
        unfit ? element("s", {}, seconds(mean)) : element("span", {className: best ? "best" : ""}, seconds(mean));
    return [
      plan_name(plan), shown, ...[p5, p50, p95, p99, max].map((value) => soft(seconds(value))),
      unfit ? "–" : ratio(speedup.mean), unfit || is_baseline ? "" : soft(range([speedup.p5, speedup.p95], ratio)),
      ...(over_best ? [unfit ? "–" : ratio(best_static.mean)] : []), unfit ? "–" : plural(fastest_steps, "step"),
      breakdown_bar(summary, longest)
    ];
  };
  const misfits = data.summaries.filter(({unfit}) => unfit).map(({plan, unfit}) => `${plan} ${unfit}.`);
  const risks = data.summaries.filter(({risk}) => risk).map(({plan, risk}) => `${plan}: ${risk}.`);
  section(
      "plans", "Plans", {long: true},
      `Step times over ${plural(data.steps, "step")}; speed-ups are over ${data.baseline}, ` +
          "of the means, with percentiles of the ratios step by step. A bar is as long as the mean step.",
      color_legend(
          used_activities(data.summaries)
              .map(({name}) => ({name, color: activity_color(name), meaning: meaning_of(name)})),
          "Colours of the bars"),
      table(
          `${plural(data.plans.length, "plan")}; the fastest is bold`, columns, data.summaries.map(row),
          {cards: true, wide: true}),
      ...[...misfits, ...risks].map((text) => element("p", {className: "misfit"}, text)));
}

function show_times() {
  const window_text = ([first, last]) => first === last ? `step ${first}` : `steps ${first} to ${last}`;
  section(
      "times", "Step time", {},
      data.series.every(([first, last]) => first === last) ?
          "A curve a plan." :
          "A curve a plan: the mean over some steps, and a band from the fastest of them to the slowest.",
      chart_place("times-chart"), figures_place());
  const series = data.plans.map(
      (name, plan) => ({
        name,
        color: plan_color(name),
        points: series_of(([, , , bands]) => bands[plan][1]),
        band: data.series.map(([first, last, , bands]) => [(first + last) / 2, bands[plan][0], bands[plan][2]])
      }));
  draw_lines(part("times-chart"), {
    label: "Step time of every plan over the steps",
    series,
    x: step_axis,
    height: 300,
    y: {name: "step time", form: short_seconds, exact: seconds},
    title: (at) => window_text(data.series.find(([first, last]) => (first + last) / 2 === at))
  });
  show_figures(
      "times",
      table(
          "Mean step time", [{title: "Steps", text: true}, ...titles(...data.plans), {title: "length"}],
          data.series.map(
              (point) => [window_text(point), ...point[3].map(([, mean]) => seconds(mean)), short(point[2])])));
}

function show_lengths() {
  section("lengths", "Lengths", {}, data.lengths, chart_place("lengths-chart"));
  draw_lines(part("lengths-chart"), {
    label: "Length of the sequence of a token over the steps",
    height: 220,
    x: step_axis,
    series:
        [{name: "length of a token's sequence", color: "var(--memory-1)", points: series_of(([, , length]) => length)}],
    y: {name: "tokens of the sequence that a token is in, mean", form: round_count},
    title: (at) => `about step ${Math.round(at)}`
  });
}

function show_leads() {
  const shown = data.leads.map(
      ({plan, text, stretches}) => element(
          "div", {}, element("p", {className: "plain"}, patch(plan_color(plan)), text),
          list(stretches.map((each) => each.text))));
  if (shown.length > 0) section("leads", "Where plans lose their lead", {}, ...shown);
}

function show_slowest() {
  const shown =
      data.summaries.filter(({worst}) => worst.length > 0)
          .map(
              ({plan, worst}) => element(
                  "div", {}, element("h3", {}, patch(plan_color(plan)), plan), list(worst.map(({text}) => text))));
  if (shown.length > 0) section("slowest", "The slowest steps", {}, ...shown);
}

document.querySelector("header").append(element("p", {}, data.setting));
show_answer(data.answer);
show_plans();
show_times();
show_lengths();
show_leads();
show_slowest();
show_definitions([
  {title: "Plans", terms: data.definitions.plans}, {
    title: "Activities",
    terms: Object.fromEntries(used_activities(data.summaries).map(({name}) => [name, meaning_of(name)]))
  }
]);
finish();
