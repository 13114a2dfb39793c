// Predicted steps and measured ones. Pairs have `predicted` and `measured` seconds.

const predicted_color = "var(--accent)";
const measured_color = "var(--strong-line)";
const time = (value) => value === 0 ? "–" : value < 0 ? "−" + seconds(-value) : seconds(value);
const error_of = ({predicted, measured}) => measured === 0 ? undefined : predicted / measured - 1;
const error_text = (pair) => error_of(pair) === undefined ? "–" : signed_percent(error_of(pair));
const far = 0.1;  // an error that is worth a colour

// The predicted bar above the measured one.
function pair_bar({predicted, measured}, longest) {
  const bar = (value, color) => element("div", {
    style: `width: ${(100 * Math.max(0, value) / longest).toFixed(2)}%; ` +
        `height: .45rem; margin: 1px 0; border-radius: 2px; background: ${color}`
  });
  return element(
      "div", {className: "pair", role: "img", "aria-label": `predicted ${time(predicted)}, measured ${time(measured)}`},
      bar(predicted, predicted_color), bar(measured, measured_color));
}

// rows: [{name, cell, pair, more: [text]}]
function pairs_table(caption, what, rows, more = []) {
  const longest = Math.max(1e-12, ...rows.flatMap(({pair: {predicted, measured}}) => [predicted, measured]));
  const columns = [
    {title: what, text: true}, ...more.map((title) => ({title})),
    ...titles("Predicted", "Measured", "Difference", "Error"), {title: "", text: true, below: true}
  ];
  return table(
      caption, columns,
      rows.map(
          ({name, pair, others = []}) =>
              [name, ...others, time(pair.predicted), time(pair.measured), time(pair.predicted - pair.measured),
               element("span", {className: Math.abs(error_of(pair) ?? 0) > far ? "misfit" : ""}, error_text(pair)),
               pair_bar(pair, longest)]),
      {cards: true, wide: true});
}

const colors = () => color_legend(
    [{name: "predicted", color: predicted_color}, {name: "measured", color: measured_color}], "Colours of the bars");

function notes_of({plan, core_share, at_pace_s}) {
  const notes = [];
  if (core_share < 1) {
    notes.push(`${plan}: ranks share cores: kernels are predicted to have ${percent(core_share)} of one on average.`);
  }
  if (at_pace_s) {
    notes.push(
        `${plan}: with kernels as fast as they were during the runs, predicted ${time(at_pace_s.predicted)}, error ` +
        `${error_text(at_pace_s)}.`);
  }
  return notes;
}

const noise_of = ({step_time_s}) => step_time_s.noise_floor;

function show_step_times() {
  const rows = data.comparisons.map(
      (each) => ({
        name: plan_name(each.plan),
        pair: each.step_time_s,
        others: [String(each.steps.length), String(each.runs), noise_of(each) === null ? "–" : time(noise_of(each))]
      }));
  const once = data.comparisons.filter((each) => noise_of(each) === null).map(({plan}) => plan);
  const unknown =
      `The noise floor of ${once.join(", ")} is unknown, for steps were run once; execute them with --repeat.`;
  const notes = [...data.comparisons.flatMap(notes_of), ...(once.length > 0 ? [unknown] : [])];
  section(
      "steps", "Step time", {},
      "A difference is predicted less measured, an error the same as a share of what was " +
          "measured. An error below the noise floor means nothing.",
      colors(), pairs_table("Mean over the steps", "Plan", rows, ["Steps", "Runs each", "Noise floor"]),
      ...(notes.length > 0 ? [list(notes)] : []));
}

const pair_of = ({predicted_s: predicted, measured_s: measured}) => ({predicted, measured});
const exposed = ({exchange_s, hidden_s}) =>
    ({predicted: exchange_s.predicted - hidden_s.predicted, measured: exchange_s.measured - hidden_s.measured});
const rank_name = ({rank, stage}) => `rank ${rank}${stage === undefined ? "" : `, stage ${stage}`}`;

function show_plan({plan, families, activities, on_core_s, ranks, all_ranks}, index) {
  const of_families = families.map(
      (each) => ({name: each.family, pair: pair_of(each), others: [each.instructions.toLocaleString("en")]}));
  const of_activities =
      activities.filter(({predicted_s, measured_s}) => predicted_s !== 0 || measured_s !== 0)
          .map((each) => ({name: explained(each.activity, data.definitions.activities), pair: pair_of(each)}));
  if (on_core_s)
    of_activities.push({name: explained("kernels, while on a core", data.definitions.activities), pair: on_core_s});
  const of_ranks = (figure) => ranks.map((rank) => ({name: rank_name(rank), pair: figure(rank)}));
  const some = ranks.length < all_ranks ?
      `the ${ranks.length} of ${all_ranks} ranks whose busy time is predicted worst` :
      "all ranks";
  section(
      `plan-${index}`, plan, {long: true}, colors(),
      pairs_table(
          "Instructions of all ranks; exchanges and collectives hold the wait for the other side", "Instruction",
          of_families, ["How many"]),
      pairs_table("Activities, mean over the ranks", "Activity", of_activities),
      element(
          "details", {}, element("summary", {}, "Ranks"),
          element(
              "div", {className: "figures"},
              pairs_table(`Busy time of ${some}`, "Rank", of_ranks(({busy_s}) => busy_s)),
              pairs_table(`Exchanges that no computation hides, ${some}`, "Rank", of_ranks(exposed)))));
}

show_answer(data.answer);
show_step_times();
data.comparisons.forEach(show_plan);
show_definitions(
    [{title: "Plans", terms: data.definitions.plans}, {title: "Activities", terms: data.definitions.activities}]);
finish();
