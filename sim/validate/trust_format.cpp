#include "sim/validate/trust_format.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "sim/document/json.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

constexpr std::array<ErrorOf, 3> all_figures = {ErrorOf::step_time, ErrorOf::speedup, ErrorOf::memory};

std::string whole_percent(double share) {
  return fmt::format("{:.0f}%", 100 * share);
}

std::string trust_table(const std::vector<ValidationRow>& rows) {
  const std::vector<PredictionError> errors = prediction_errors(rows);
  std::vector<TextRow> lines = {{"figure", "sets", "figures", "90%", "kept out", "kind of run"}};
  for (const KindTrust& kind : trust_by_kind(errors)) {
    lines.push_back({std::string(name_of(kind.of)), fmt::format("{}", kind.sets), fmt::format("{}", kind.figures),
                     fmt::format("{:.2f}-{:.2f}", kind.range.least, kind.range.most), whole_percent(kind.covered),
                     text_of(kind.kind)});
  }
  std::string text;
  for (const std::string& line : aligned_lines(lines)) text += line;
  text +=
      "90%: the interval that holds nine of ten published figures, over those predicted\n"
      "kept out: the share of the figures within the interval that the other sets make, without the figures' own\n"
      "\n";
  for (const ErrorOf figure : all_figures) {
    const auto covered = [&](LeftOut what) { return whole_percent(covered_share(figure, errors, what)); };
    text += fmt::format(
        "{}: {} of kept-out figures lie within their interval, {} where all of their device is left out, {} where all "
        "of their stack is\n",
        name_of(figure), covered(LeftOut::set), covered(LeftOut::device), covered(LeftOut::stack));
  }
  const UnlikelyRun run = least_likely_run(rows);
  if (run.fits < 1) {
    text += fmt::format("of runs that ran, the least likely to fit by the other sets is {}: {}, with {}\n", run.set,
                        run.case_name, whole_percent(run.fits));
  }
  return text;
}

std::string trust_json(const std::vector<ValidationRow>& rows) {
  const std::vector<PredictionError> errors = prediction_errors(rows);
  Json covered = Json::object();
  for (const ErrorOf figure : all_figures) {
    covered[std::string(name_of(figure))] = {{"set", covered_share(figure, errors)},
                                             {"stack", covered_share(figure, errors, LeftOut::stack)},
                                             {"device", covered_share(figure, errors, LeftOut::device)}};
  }
  const UnlikelyRun run = least_likely_run(rows);
  return json_page({{"schema", "hdpsim.trust/1"},
                    {"kinds", kind_trust_figures().json_list(trust_by_kind(errors))},
                    {"covered", covered},
                    {"least_likely_run", {{"set", run.set}, {"case", run.case_name}, {"fits", run.fits}}}});
}

}  // namespace

const FigureTable<KindTrust>& kind_trust_figures() {
  static const FigureTable<KindTrust> figures([](auto& all) {
    all.add({"figure", "figure", "", "what was predicted: `step_time`, `speedup` or `memory`"},
            [](const KindTrust& kind) { return name_of(kind.of); });
    all.add({"kind", "kind", "", "the kind of run: workload, what its framework runs on, device"},
            [](const KindTrust& kind) { return text_of(kind.kind); });
    all.add({"sets", "sets", "", "sets that have such figures"}, at(&KindTrust::sets));
    all.add({"figures", "figures", "", "their figures; of a speed-up also every two plans of one job"},
            at(&KindTrust::figures));
    all.add({"least", "least", "", "the lower end of the interval that holds 90 % of published over predicted"},
            at(&KindTrust::range, &FactorRange::least));
    all.add({"most", "most", "", "its upper end"}, at(&KindTrust::range, &FactorRange::most));
    all.add({"covered", "covered", "share",
             "share of the figures within the interval that all sets but their own make; sets count alike"},
            at(&KindTrust::covered));
  });
  return figures;
}

std::string trust_formatted(const std::vector<ValidationRow>& rows, Format format) {
  switch (format) {
    case Format::table:
      return trust_table(rows);
    case Format::csv:
      return kind_trust_figures().csv(trust_by_kind(prediction_errors(rows)));
    case Format::json:
      return trust_json(rows);
  }
  return {};
}

}  // namespace hdpsim
