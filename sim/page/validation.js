// Published figures and their predictions, set by set.

const near = 0.2;  // the dashed lines of a chart
const figure = (value) => plain(Number(value.toPrecision(4)));
const error_text = (error) => signed_percent(error);
const error_of = ({predicted, published}) => predicted / published - 1;
const names_of_sets = [...new Set(data.sets.map(({set}) => set))];
const id_of = (set) => "set-" + names_of_sets.indexOf(set);

// The line T = a m + c through the steps of a plan: the error of a, and c / a.
const line_columns = data.sets.some(({lines}) => lines !== null) ? titles("Micro-batch", "Rest") : [];
const line_cells = ({lines, micro_batch_error, published_rest, predicted_rest}) => {
  if (line_columns.length === 0) return [];
  return lines === null ?
      ["", ""] :
      [error_text(micro_batch_error), `${published_rest.toFixed(2)} / ${predicted_rest.toFixed(2)}`];
};
const lines_note = line_columns.length === 0 ?
    "" :
    " Micro-batch is the error of a in T = a m + c, the line through the steps of a plan with several numbers m of " +
        "micro-batches; rest is c / a, published / predicted. Both are medians over such plans.";

function show_sets() {
  const columns = [
    {title: "Set", text: true}, {title: "Quantity", text: true},
    ...titles("Figures", "Counted", "Median error", "Mean", "Worst", "Bias", "Ranking"), ...line_columns
  ];
  const of_errors = ({predicted, median_abs_error, mean_abs_error, worst_abs_error, median_error}) =>
      predicted === 0 ? ["–", "–", "–", "–"] : [
        element("b", {}, percent(median_abs_error)), percent(mean_abs_error), percent(worst_abs_error),
        error_text(median_error)
      ];
  section(
      "sets", "Sets", {long: true},
      "Median, mean and worst are of absolute errors; the bias is the median error of times with " +
          "its sign, of rates that of the times that they imply: minus is too short. Figures that the profile or a constant of the set was fitted to are marked as fitted and do not count. Ranking " +
          "is Kendall's tau between the published and the predicted order of the plans of one job." + lines_note,
      table(
          plural(names_of_sets.length, "set"), columns,
          data.sets.map(
              (set) =>
                  [element("a", {href: "#" + id_of(set.set)}, set.set), set.quantity, String(set.rows),
                   String(set.predicted), ...of_errors(set), set.kendall_tau === null ? "" : set.kendall_tau.toFixed(2),
                   ...line_cells(set)]),
          {cards: true}));
}

function draw_quantity(place, name, rows) {
  const points =
      rows.filter(({predicted}) => predicted > 0)
          .map((row) => ({
                 x: row.published,
                 y: row.predicted,
                 color: row.fitted ? "var(--strong-line)" : "var(--accent)",
                 text: [
                   row.case,
                   `published ${figure(row.published)} ${row.unit}, predicted ${figure(row.predicted)} ${row.unit}`,
                   `error ${error_text(error_of(row))}${row.fitted ? ", fitted" : ""}`
                 ]
               }));
  const all = points.flatMap(({x, y}) => [x, y]);
  const [min, max] = [Math.min(...all) * 0.8, Math.max(...all) * 1.25];
  const within = (times) => [
      [Math.max(min, min / times), Math.max(min, min * times)],
      [Math.min(max, max / times), Math.min(max, max * times)]];
  const axis = (title) => ({name: `${title}, ${rows[0].unit}`, log: true, min, max, form: figure});
  draw_points(place, {
    label: `${name}: predicted over published, ${plural(points.length, "figure")}`,
    height: 330,
    points,
    x: axis("published"),
    y: axis("predicted"),
    lines: [
      {points: within(1), kind: "thin"}, {points: within(1 + near), kind: "dashed"},
      {points: within(1 - near), kind: "dashed"}
    ]
  });
}

function rows_table(rows) {
  return table(
      plural(rows.length, "figure"),
      [{title: "Case", text: true}, ...titles("Published", "Predicted", "Error"), {title: "Source", text: true}],
      rows.map(
          (row) =>
              [row.case, `${figure(row.published)} ${row.unit}`,
               row.predicted === null ? soft(row.not_predicted) : figure(row.predicted),
               row.predicted === null ? "" : error_text(error_of(row)) + (row.fitted ? " (fitted)" : ""),
               soft(row.source)]));
}

function show_set(set) {
  const rows = data.rows.filter((row) => row.set === set);
  const quantities = [...new Set(rows.map(({quantity}) => quantity))];
  const panels = element("div", {className: "panels"});
  section(id_of(set), set, {long: true}, panels);
  for (const quantity of quantities) {
    const own = rows.filter((row) => row.quantity === quantity);
    const charts = own.some(({predicted}) => predicted > 0) ? [element("div", {className: "chart"})] : [];
    panels.append(element(
        "div", {}, element("h3", {}, quantity), ...charts,
        element(
            "details", {}, element("summary", {}, "Figures"),
            element("div", {className: "figures"}, rows_table(own)))));
    charts.forEach((place) => draw_quantity(place, quantity, own));
  }
}

show_answer(data.answer);
show_sets();
names_of_sets.forEach(show_set);
finish();
