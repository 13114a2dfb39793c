#include "sim/report/comparison_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "sim/report/comparison_output.h"
#include "sim/report/markup.h"

namespace hdpsim {
namespace {

constexpr char style[] = R"(.predicted { fill: #4477aa; }
.measured { fill: #ee6677; }
)";

constexpr double bar_width = 260;
constexpr std::size_t ranks_of_page = 64;

std::string time_text(double seconds) {
  return seconds == 0 ? "&ndash;" : duration_text(Duration::seconds(seconds));
}

std::string percent_text(const std::optional<double>& share) {
  return share ? fmt::format("{:+.1f} %", 100 * *share) : "&ndash;";
}

// Draws the predicted bar above the measured one; `longest` seconds fill the width.
std::string bars(const Pair& pair, double longest) {
  const auto width = [&](double seconds) { return longest > 0 ? bar_width * std::max(0.0, seconds) / longest : 0.0; };
  return fmt::format(
      R"(<svg width="{0}" height="16" role="img" aria-label="predicted {1}, measured {2}">)"
      R"(<rect class="predicted" width="{3:.1f}" height="7"/><rect class="measured" y="8" width="{4:.1f}" height="7"/></svg>)",
      bar_width, time_text(pair.predicted), time_text(pair.measured), width(pair.predicted), width(pair.measured));
}

/// A row of a table: its name and its predicted and measured figures.
struct Row {
  std::string name;
  Pair seconds;
};

std::string rows_table(std::string_view what, const std::vector<Row>& rows) {
  double longest = 0;
  for (const Row& row : rows) longest = std::max({longest, row.seconds.predicted, row.seconds.measured});
  std::string text = fmt::format(
      "<table><tr><th>{}</th><th>predicted</th><th>measured</th><th>difference</th><th>error</th><th></th></tr>\n",
      what);
  for (const Row& row : rows) {
    text +=
        fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                    escaped_markup(row.name), time_text(row.seconds.predicted), time_text(row.seconds.measured),
                    time_text(row.seconds.difference()), percent_text(row.seconds.error()), bars(row.seconds, longest));
  }
  return text + "</table>\n";
}

std::string step_times(const std::vector<Comparison>& plans) {
  std::vector<Row> rows;
  rows.reserve(plans.size());
  for (const Comparison& plan : plans) rows.push_back({plan.plan, plan.step_time_s});
  std::string text =
      "<section><h2>Step time</h2>\n" + rows_table("plan", rows) +
      "<p class=\"note\">A difference is predicted less measured, an error the same as a share of what was "
      "measured.</p>\n";
  for (const Comparison& plan : plans) {
    const std::string noise = plan.noise_floor_s ? time_text(*plan.noise_floor_s) : "unknown, for steps were run once";
    text += fmt::format("<p class=\"note\">{}: {} steps, {} runs each, noise floor {}.</p>\n",
                        escaped_markup(plan.plan), plan.steps.size(), plan.runs, noise);
    const std::string busy = busy_machine_text(plan);
    if (!busy.empty()) {
      text += fmt::format("<p><strong>{}: {}.</strong></p>\n", escaped_markup(plan.plan), escaped_markup(busy));
    }
    if (plan.core_share < 1) {
      text += fmt::format(
          "<p class=\"note\">Ranks share cores: kernels are predicted to have {:.0f} % of one on average.</p>\n",
          100 * plan.core_share);
    }
    if (plan.at_pace_s) {
      text += fmt::format(
          "<p class=\"note\">With kernels as fast as they were beside the runs: predicted {}, error {:+.1f} %.</p>\n",
          time_text(plan.at_pace_s->predicted), 100 * plan.at_pace_s->error().value_or(0));
    }
  }
  if (const std::optional<double> tau = ranking_agreement(plans)) {
    text += fmt::format("<p>Ranking of the plans, Kendall&rsquo;s tau: {:.2f}.</p>\n", *tau);
  }
  return text + "</section>\n";
}

std::string families(const Comparison& plan) {
  std::vector<Row> rows;
  for (const FamilyComparison& family : plan.families) rows.push_back({family.family, family.seconds});
  return rows_table("instructions, all ranks", rows);
}

std::string activities(const Comparison& plan) {
  std::vector<Row> rows;
  for (const Activity activity : all_activities) {
    const Pair& pair = plan.activities_s[index_of(activity)];
    const bool any = pair.predicted != 0 || pair.measured != 0;
    if (any) rows.push_back({std::string(activity_name(activity)), pair});
  }
  if (plan.on_core_s) rows.push_back({"kernels, while on a core", *plan.on_core_s});
  return rows_table("activity, mean of the ranks", rows);
}

std::string ranks(const Comparison& plan) {
  std::vector<Row> busy;
  std::vector<Row> exposed;
  for (const std::size_t i : worst_ranks(plan, ranks_of_page)) {
    const auto& [busy_s, exchange_s, hidden_s] = plan.ranks[i];
    const std::string name = "rank " + worker_name(plan, i);
    busy.push_back({name, busy_s});
    exposed.push_back({name, {exchange_s.predicted - hidden_s.predicted, exchange_s.measured - hidden_s.measured}});
  }
  const std::string rest =
      plan.ranks.size() > ranks_of_page
          ? fmt::format("<p class=\"note\">Of {} ranks those whose busy time is predicted worst.</p>\n",
                        plan.ranks.size())
          : "";
  return rest + rows_table("busy", busy) + rows_table("exchanges that no computation hides", exposed);
}

}  // namespace

std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans) {
  std::string page = page_beginning(title, style);
  page +=
      "<p class=\"note\">The upper bar is predicted, the lower one measured; errors are relative to what was "
      "measured.</p>\n";
  page += step_times(plans);
  for (const Comparison& plan : plans) {
    page += fmt::format("<section><h2>{}</h2>\n", escaped_markup(plan.plan)) + families(plan) + activities(plan) +
            ranks(plan) + "</section>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace hdpsim
