#include "sim/report/validation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sim/report/markup.h"

namespace hdpsim {
namespace {

constexpr char style[] = R"(td.source { text-align: left; color: #555; font-size: 85%; }
svg text { font: 12px sans-serif; fill: #555; }
circle { fill: #4477aa; fill-opacity: 0.6; }
line.equal { stroke: #222; } line.near { stroke: #bbb; stroke-dasharray: 4 3; } rect { fill: none; stroke: #bbb; }
)";

constexpr double side = 320;
constexpr double margin = 48;
constexpr double near_share = 0.2;

std::string figure(double value) {
  return fmt::format("{:.4g}", value);
}
std::string percent(double share) {
  return fmt::format("{:+.1f}&nbsp;%", 100 * share);
}

using Rows = std::vector<const ValidationRow*>;

/// Groups rows by a key, in the order of their first occurrence.
template <class KeyOf>
std::vector<std::pair<std::string, Rows>> grouped(const Rows& rows, const KeyOf& key_of) {
  std::vector<std::pair<std::string, Rows>> groups;
  for (const ValidationRow* row : rows) {
    const std::string key = key_of(*row);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& each) { return each.first == key; });
    if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
    group->second.push_back(row);
  }
  return groups;
}

std::string errors_table(const std::vector<ValidationSummary>& sets) {
  std::string text =
      "<table><tr><th>set</th><th>rows</th><th>predicted</th><th>median error</th><th>mean</th><th>worst</th>"
      "<th>bias</th></tr>\n";
  for (const ValidationSummary& set : sets) {
    text += fmt::format("<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td>", escaped_markup(set.set),
                        set.rows, set.predicted);
    if (set.predicted > 0) {
      text += fmt::format("<td>{:.1f}&nbsp;%</td><td>{:.1f}&nbsp;%</td><td>{:.1f}&nbsp;%</td><td>{}</td>",
                          100 * set.median_abs_error, 100 * set.mean_abs_error, 100 * set.worst_abs_error,
                          percent(set.median_error));
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

/// A chart whose logarithmic axes are the same, from the least to the greatest of both figures.
class Scatter {
 public:
  explicit Scatter(const Rows& rows) : rows_(rows) {
    for (const ValidationRow* row : rows) {
      for (const double value : {row->published, *row->predicted}) {
        least_ = std::min(least_, value);
        most_ = std::max(most_, value);
      }
    }
    least_ *= 0.8;
    most_ *= 1.25;
  }

  [[nodiscard]] std::string svg(const std::string& unit) const {
    std::string text =
        fmt::format(R"(<svg width="{0}" height="{0}" role="img" aria-label="predicted over published, {1} rows">)"
                    R"(<rect x="{2}" y="0" width="{3}" height="{3}"/>)",
                    side + margin, rows_.size(), margin, side);
    text += line("equal", 1) + line("near", 1 + near_share) + line("near", 1 - near_share);
    for (const ValidationRow* row : rows_) {
      text += fmt::format(
          R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}: {} published, {} predicted</title></circle>)",
          x(row->published), y(*row->predicted), escaped_markup(row->case_name), figure(row->published),
          figure(*row->predicted));
    }
    text += fmt::format(R"(<text x="{0}" y="{1}">{2}</text><text x="{3}" y="{1}" text-anchor="end">{4} {5}</text>)",
                        margin, side + 16, figure(least_), margin + side, figure(most_), escaped_markup(unit));
    text += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">published</text>)", margin + side / 2, side + 32);
    return text +
           fmt::format(
               R"svg(<text transform="translate(14 {}) rotate(-90)" text-anchor="middle">predicted</text></svg>)svg",
               side / 2) +
           "\n";
  }

 private:
  [[nodiscard]] double place(double value) const { return side * std::log(value / least_) / std::log(most_ / least_); }
  [[nodiscard]] double x(double value) const { return margin + place(value); }
  [[nodiscard]] double y(double value) const { return side - place(value); }

  // The line on which predicted is `times` times published, within the axes.
  [[nodiscard]] std::string line(std::string_view kind, double times) const {
    const double from = std::max(least_, least_ / times);
    const double to = std::min(most_, most_ / times);
    return fmt::format(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", kind, x(from),
                       y(from * times), x(to), y(to * times));
  }

  const Rows& rows_;
  double least_ = 1e300;
  double most_ = 0;
};

std::string rows_table(const Rows& rows) {
  std::string text = "<table><tr><th>case</th><th>published</th><th>predicted</th><th>error</th><th>source</th></tr>\n";
  for (const ValidationRow* row : rows) {
    const std::string predicted = row->predicted ? figure(*row->predicted) : escaped_markup(row->not_predicted);
    text += fmt::format("<tr><td>{}</td><td>{} {}</td><td>{}</td><td>{}</td><td class=\"source\">{}</td></tr>\n",
                        escaped_markup(row->case_name), figure(row->published), escaped_markup(row->unit), predicted,
                        row->predicted ? percent(row->error()) + (row->fitted ? " (fitted)" : "") : "",
                        escaped_markup(row->source));
  }
  return text + "</table>\n";
}

std::string quantity_section(const std::string& quantity, const Rows& rows) {
  Rows predicted;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(predicted),
               [](const ValidationRow* row) { return row->predicted && *row->predicted > 0; });
  const std::string chart = predicted.empty() ? "" : Scatter(predicted).svg(predicted.front()->unit);
  return fmt::format("<h3>{}</h3>\n{}<details><summary>{} rows</summary>\n{}</details>\n", escaped_markup(quantity),
                     chart, rows.size(), rows_table(rows));
}

}  // namespace

std::string validation_page(const std::vector<ValidationRow>& rows) {
  Rows all;
  for (const ValidationRow& row : rows) all.push_back(&row);
  std::string page = page_beginning("Predicted against published", style);
  page += errors_table(summarize(rows));
  page += fmt::format(
      "<p class=\"note\">Median, mean and worst are of absolute errors; the bias is the median error with its sign. "
      "Rows "
      "that a constant of the set was taken from are marked as fitted and do not count. In the charts the line is "
      "where both are equal, the dashed ones are {:.0f} % off.</p>\n",
      100 * near_share);
  for (const auto& [set, of_set] : grouped(all, [](const ValidationRow& row) { return row.set; })) {
    page += fmt::format("<section id=\"{0}\">\n<h2>{0}</h2>\n", escaped_markup(set));
    for (const auto& [quantity, of_quantity] : grouped(of_set, [](const ValidationRow& row) { return row.quantity; })) {
      page += quantity_section(quantity, of_quantity);
    }
    page += "</section>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace hdpsim
