#include "sim/app/production_replay.h"

#include <fmt/format.h>

#include <deque>

#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/document/values.h"
#include "sim/production/production_report.h"
#include "sim/run/step.h"

namespace hdpsim::app {
namespace {

// The study without each of its mechanisms. One that is then refused is left out.
std::deque<Study> studies_without(const ProductionOrder& order, const Study& study, Catalog& catalog,
                                  std::vector<ProductionVariant>& variants) {
  std::deque<Study> studies;  // variants point at them
  for (const std::string& mechanism : mechanism_names()) {
    if (!has_mechanism(study.resolved, mechanism)) continue;
    std::vector<std::string> without = order.without;
    without.push_back(mechanism);
    try {
      Study& changed =
          studies.emplace_back(load_study(order.file, overrides_of(order.choice, order.overrides), catalog, without));
      variants.push_back({mechanism, &changed, &choose(changed, order.choice)});
    } catch (const InputError& error) {
      note(fmt::format("nothing is said without {}: {}", mechanism, error.diagnostics().sorted().front().message));
    }
  }
  return studies;
}

std::string formatted(const ProductionResult& result, const Study& study, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return production_csv(result);
    case Format::json:
      return production_json(result, study.resolved, version);
  }
  return production_table(result);
}

}  // namespace

int replay_production(const ProductionOrder& order, const Study& study, const StudyPoint& point, Catalog& catalog,
                      const Session& session) {
  std::vector<ProductionVariant> variants = {{"", &study, &point}};
  std::deque<Study> others;
  if (order.ablate) others = studies_without(order, study, catalog, variants);
  for (const ProductionVariant& variant : variants) require_simulable(*variant.point);
  Resumable work(order.keeping, session, {.kind = "study", .results = production_file_names()});
  const auto result = work.run([&](ProgressDisplay& display) {
    SimulatedSteps known(work.kept().open({"production", fmt::format("hdpsim: {}\n", version)}));
    return produce(variants, catalog, known,
                   {.jobs = order.jobs, .stop = is_stopped, .report = [&](const ProductionProgress& progress) {
                      display.show(progress);
                    }});
  });
  if (!result || is_stopped()) return stopped_before(order.keeping, study.name, "its hours were over");
  work.write([&](OutputFolder& folder) { write_production(folder, *result, study.resolved, version); });
  print(formatted(*result, study, order.format), order.format);
  return 0;
}

}  // namespace hdpsim::app
