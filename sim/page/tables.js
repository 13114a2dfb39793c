// Tables of results as a terminal has them, below a chart of curves where there is one.

const count = (value) => value.toLocaleString("en");

// curves: {title, about, x, y, limit: {at, text}, series: [{name, points: [[x, y], ...]}]}, all values above 0.
function show_curves({title, about, x, y, limit, series}) {
  const dots =
      series.flatMap(({name, points}, s) => points.map(([at, value]) => ({
                                                         x: at,
                                                         y: value,
                                                         color: plan_color(name),
                                                         series: s,
                                                         text: [name, `${count(at)} ${x}`, `${plain(value)} ${y}`]
                                                       })));
  const values = [limit.at, ...dots.map(({y}) => y)];
  section("curves", title, {}, about, chart_place("curves-chart"), figures_place());
  draw_points(part("curves-chart"), {
    label: title,
    points: dots,
    legend: series.map(({name}) => ({name, color: plan_color(name)})),
    x: {name: x, form: count, log: true},
    y: {name: y, form: plain, log: true, limit, min: 0.8 * Math.min(...values), max: 1.25 * Math.max(...values)}
  });
  const columns = [{title: "Plan", text: true}, ...titles(x, y)];
  const rows =
      series.flatMap(({name, points}) => points.map(([at, value]) => [plan_name(name), count(at), plain(value)]));
  show_figures("curves", table(plural(rows.length, "dot"), columns, rows, {cards: true}));
}

// tables: [{title, titles, groups: [{name, rows: [[cell, ...], ...]}]}], the first and the last cell of a row are
// texts.
function show_table({title, titles: names, groups}, index) {
  const columns = names.map((name, i) => ({title: name, text: i === 0 || i === names.length - 1}));
  columns[columns.length - 1].below = true;
  const row = ([first, ...others]) => [data.plans.includes(first) ? plan_name(first) : first, ...others];
  const of_groups = groups.map(({rows}) => rows);
  const rows = groups.flatMap(({name, rows}) => [...(name ? [heading_row([name], columns)] : []), ...rows.map(row)]);
  section(
      `table-${index}`, title, {long: true},
      table(plural(of_groups.flat().length, "row"), columns, rows, {cards: true, wide: true}));
}

show_answer(data.answer);
if (data.curves) show_curves(data.curves);
data.tables.forEach(show_table);
show_definitions(
    [{title: "Plans", terms: data.definitions.plans}, {title: "Activities", terms: data.definitions.activities}]);
finish();
