#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "sim/base/quantity_text.h"
#include "sim/replay/replay_report.h"
#include "sim/replay/replay_text.h"
#include "sim/report/markup.h"

namespace hdpsim {
namespace {

constexpr char style[] = R"(th, td { white-space: nowrap; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: #555; }
.mean { fill: none; stroke-width: 1.5; } .band { opacity: 0.2; stroke: none; } .axis { stroke: #ccc; }
)";

// Colours that people with colour blindness can tell apart (Paul Tol's bright scheme).
constexpr std::array<std::string_view, 7> colours = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                     "#66ccee", "#aa3377", "#bbbbbb"};

std::string_view colour_of(std::size_t plan) {
  return colours[plan % colours.size()];
}

std::string time_text(double seconds) {
  return duration_text(Duration::seconds(seconds));
}

/// Curves over the steps of a replay, from zero up to `top`.
class Chart {
 public:
  Chart(const ReplaySummary& summary, double top) : summary_(summary), top_(top > 0 ? top : 1) {}

  using Figure = std::function<double(const SeriesPoint&)>;
  void line(const Figure& figure, std::string_view colour) {
    body_ += fmt::format(R"(<polyline class="mean" stroke="{}" points="{}"/>)", colour, points(figure, false)) + "\n";
  }
  void band(const Figure& from, const Figure& to, std::string_view colour) {
    body_ += fmt::format(R"(<polygon class="band" fill="{}" points="{}{}"/>)", colour, points(from, false),
                         points(to, true)) +
             "\n";
  }
  /// `top` and the steps are the labels of the axes.
  [[nodiscard]] std::string text(const std::string& label, const std::string& top) const {
    return fmt::format(R"(<svg viewBox="0 0 {0} {1}" role="img" aria-label="{2}">)"
                       R"(<line class="axis" x1="0" x2="{0}" y1="{3}" y2="{3}"/>)"
                       R"(<line class="axis" x1="0" x2="{0}" y1="16" y2="16"/><text x="0" y="12">{4}</text>)"
                       R"(<text x="0" y="{1}">step 0</text><text x="{0}" y="{1}" text-anchor="end">step {5}</text>)",
                       width, height + 18, escaped_markup(label), height, escaped_markup(top),
                       summary_.rules.steps - 1) +
           "\n" + body_ + "</svg>\n";
  }

 private:
  static constexpr double width = 900;
  static constexpr double height = 220;

  [[nodiscard]] std::string points(const Figure& figure, bool backwards) const {
    std::string text;
    const std::size_t count = summary_.series.size();
    for (std::size_t i = 0; i < count; ++i) {
      const SeriesPoint& point = summary_.series[backwards ? count - 1 - i : i];
      const double middle = static_cast<double>(point.first + point.last + 1) / 2;
      text += fmt::format("{:.1f},{:.1f} ", width * middle / static_cast<double>(summary_.rules.steps),
                          height - (height - 16) * figure(point) / top_);
    }
    return text;
  }

  const ReplaySummary& summary_;
  double top_;
  std::string body_;
};

std::string times_chart(const ReplayResult& result) {
  double most = 0;
  for (const PlanSummary& plan : result.summary.plans) most = std::max(most, plan.time_s.quantile(1));
  Chart chart(result.summary, most);
  std::string legend;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const auto band = [i](double SeriesPoint::Band::*figure) {
      return [i, figure](const SeriesPoint& point) { return point.plans[i].*figure; };
    };
    chart.band(band(&SeriesPoint::Band::least_s), band(&SeriesPoint::Band::most_s), colour_of(i));
    chart.line(band(&SeriesPoint::Band::mean_s), colour_of(i));
    legend +=
        fmt::format(R"(<span style="color:{}">&#9632;</span> {} )", colour_of(i), escaped_markup(result.plans[i]));
  }
  return fmt::format("<section><h2>Step time</h2>\n<p>{}</p>\n{}</section>\n", legend,
                     chart.text("step time over the steps", time_text(most)));
}

std::string lengths_chart(const ReplayResult& result) {
  double most = 0;
  for (const SeriesPoint& point : result.summary.series) most = std::max(most, point.weighted_length);
  Chart chart(result.summary, most);
  chart.line([](const SeriesPoint& point) { return point.weighted_length; }, colours[0]);
  return fmt::format("<section><h2>Lengths</h2>\n<p>{}</p>\n{}</section>\n", escaped_markup(lengths_sentence(result)),
                     chart.text("length of the sequence of a token over the steps", short_number(most) + " tokens"));
}

std::string plans_table(const ReplayResult& result) {
  std::string text =
      "<section><h2>Plans</h2>\n<table><tr><th>plan</th><th>mean</th><th>p5</th><th>p50</th><th>p95</th><th>p99</th>"
      "<th>slowest</th><th>speed-up</th><th>fastest in</th></tr>\n";
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const PlanSummary& plan = result.summary.plans[i];
    const bool fits = plan.does_not_fit == 0;
    const std::string mean = time_text(plan.mean_s);
    text += fmt::format("<tr><td>{}</td><td>{}</td>", escaped_markup(result.plans[i]),
                        fits ? mean : fmt::format("<s>{}</s>", mean));
    for (const double p : {0.05, 0.5, 0.95, 0.99, 1.0}) {
      text += fmt::format("<td>{}</td>", time_text(plan.time_s.quantile(p)));
    }
    text += fits ? fmt::format("<td>{:.2f}x</td><td>{} steps</td></tr>\n", plan.speedup, plan.fastest)
                 : fmt::format("<td colspan=\"2\">{}</td></tr>\n", unfit_text(result, i));
  }
  return text + fmt::format("</table>\n<p>{}</p></section>\n", escaped_markup(best_sentence(result)));
}

std::string leads(const ReplayResult& result) {
  std::string text = "<section><h2>Where plans lose their lead</h2>\n";
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    if (plan == result.summary.rules.baseline) continue;
    text += fmt::format("<p>{}</p>\n<ul>\n", escaped_markup(lead_sentence(result, plan)));
    for (const Stretch& stretch : result.summary.plans[plan].lowest) {
      text += fmt::format("<li>{}</li>\n", escaped_markup(stretch_sentence(result, stretch)));
    }
    text += "</ul>\n";
  }
  return text + "</section>\n";
}

std::string worst_steps(const ReplayResult& result) {
  std::string text = "<section><h2>The slowest steps</h2>\n";
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    text += fmt::format("<h3>{}</h3>\n<ul>\n", escaped_markup(result.plans[plan]));
    for (const StepCause& cause : result.worst[plan]) {
      text += fmt::format("<li>{}</li>\n", escaped_markup(step_sentence(result, cause)));
    }
    text += "</ul>\n";
  }
  return text + "</section>\n";
}

}  // namespace

std::string replay_page(const ReplayResult& result) {
  return page_beginning(result.study, style) + fmt::format("<p>{}</p>\n", escaped_markup(result.setting)) +
         plans_table(result) + times_chart(result) + lengths_chart(result) + leads(result) + worst_steps(result) +
         fmt::format("<p>Costs: {}.</p>\n</body>\n</html>\n", escaped_markup(result.profile));
}

}  // namespace hdpsim
