#include "sim/tune/forecast.h"

#include <algorithm>
#include <array>
#include <vector>

#include "sim/study/study_paths.h"
#include "sim/tune/tune.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// What a search expects to compute in all, after every step of it.
struct Expectations {
  std::vector<TuneProgress> reports;

  /// Steps that were left at a point of the search, as it expected and as it was, by what a step of each fidelity
  /// costs.
  [[nodiscard]] double off(std::size_t at, const std::array<double, 4>& costs) const {
    double expected = 0;
    double actual = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      expected += costs[i] * static_cast<double>(reports[at].work[i].left());
      actual += costs[i] * static_cast<double>(reports.back().work[i].done - reports[at].work[i].done);
    }
    return std::max(expected, actual) / std::max(1.0, std::min(expected, actual));
  }
};

TEST_CASE("from the first tenth to the last, a search expects its own work to within twice", "[tune]") {
  Catalog catalog{HDPSIM_SOURCE_DIR};
  const std::vector<std::string> overrides = {
      "sweep={}",
      "data.steps=4",
      "cluster.gpus=64",
      "data.context=64Ki",
      "data.tokens_per_step=1Mi",
      "tune={space: {mesh.tp: [1, 2, 4, 8], mesh.pp: [1, 2, 4], mesh.capacity: [8Ki, 16Ki]}}"};
  const std::string path = HDPSIM_SOURCE_DIR "/configs/studies/sharing.yaml";
  const Study study = load_study(path, overrides, catalog);
  Diagnostics none;
  const Value root = tuning_root(load_document(path, none), overrides);
  Expectations expectations;
  TuneRun run;
  run.report = [&](const TuneProgress& progress) { expectations.reports.push_back(progress); };
  REQUIRE(tune(study, root, catalog, run));
  const std::size_t count = expectations.reports.size();
  for (std::size_t at = count / 10; at < count - count / 10; ++at) {
    CAPTURE(at, count, expectations.reports[at].stage);
    CHECK(expectations.off(at, {1, 6, 6, 1}) < 2.1);
  }
}

}  // namespace
}  // namespace hdpsim
