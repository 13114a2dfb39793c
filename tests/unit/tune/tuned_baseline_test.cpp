#include "sim/tune/tuned_baseline.h"

#include <algorithm>
#include <limits>

#include "sim/run/runner.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Overrides = std::vector<std::string>;
using Baselines = std::vector<std::shared_ptr<const Run>>;

constexpr char path[] = HDPSIM_SOURCE_DIR "/configs/studies/tune.yaml";
const std::vector<std::string> degrees = {"1", "2", "4"};
const std::vector<std::string> capacities = {"8Ki", "16Ki"};

/// Two plans on a mesh of tp 2 with 8Ki tokens, and a small space of meshes.
Overrides with(const Overrides& more) {
  Overrides all = {"data.steps=2", "plans=[static, hdp-balance]", "compare_to={static: tuned}",
                   "tune.space={mesh.tp: [1, 2, 4], mesh.pp: [1], mesh.capacity: [8Ki, 16Ki], mesh.recompute: [none]}"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Compared {
  Study study;
  std::vector<Run> runs;
};

Compared compared(const Overrides& more = {}) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics none;
  const Value root = tuning_root(load_document(path, none), with(more));
  Compared result{load_study(path, with(more), catalog), {}};
  result.runs = *run_study(result.study, {});
  REQUIRE(compare_with_tuned(result.study, root, catalog, {}, result.runs));
  return result;
}

// The mean step times of `static` on all meshes of the space on which it fits.
double least_static_time(const Overrides& more = {}) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& tp : degrees) {
    for (const std::string& capacity : capacities) {
      Overrides one = with(more);
      one.insert(one.end(), {"plans=[static]", "compare_to=null"});
      one.push_back("mesh.tp=" + tp);
      one.push_back("mesh.capacity=" + capacity);
      try {
        Catalog catalog(HDPSIM_SOURCE_DIR);
        const auto runs = run_study(load_study(path, one, catalog), {});
        if (runs->front().metrics.fits) least = std::min(least, runs->front().metrics.step_time_s.mean);
      } catch (const InputError&) {  // the ranks of this mesh do not hold the context
      }
    }
  }
  return least;
}

TEST_CASE("speed-ups are over the best mesh of the baseline, where the study asks for that", "[tune]") {
  const Compared found = compared();
  const double best = least_static_time();
  for (const Run& run : found.runs) {
    REQUIRE(run.tuned_baseline);
    CHECK(run.tuned_baseline->metrics.step_time_s.mean == Approx(best).epsilon(1e-9));
    CHECK(run.metrics.speedup->versus == "static (tuned)");
    CHECK(run.metrics.speedup->mean == Approx(best / run.metrics.step_time_s.mean).epsilon(1e-9));
  }
  // The study's own mesh is not the best one, so that its speed-up is below 1.
  CHECK(found.runs[0].info.plan == "static");
  CHECK(found.runs[0].metrics.speedup->mean < 1);
  CHECK_THAT(found.runs[0].tuned_baseline->info.tuned, Catch::Contains("tp ") && Catch::Contains("capacity "));
}

TEST_CASE("every point of a sweep has a baseline of its own, whatever the number of threads", "[tune]") {
  const Overrides sweep = {"data.steps=1", "sweep={data.context: [32Ki, 64Ki]}"};
  const Compared found = compared(sweep);
  REQUIRE(found.runs.size() == 4);
  for (std::size_t point = 0; point < 2; ++point) {
    const Run& baseline = *found.runs[2 * point].tuned_baseline;
    CHECK(baseline.info.point == point);
    CHECK(baseline.metrics.step_time_s.mean ==
          Approx(least_static_time({"data.steps=1", point == 0 ? "data.context=32Ki" : "data.context=64Ki"})));
  }
}

TEST_CASE("a baseline has the cluster of the plans that are compared with it", "[tune]") {
  const Overrides sizes = {"data.steps=1", "tune.objective=cost",
                           "tune.space={cluster.gpus: [16, 32], mesh.tp: [2], mesh.pp: [1], mesh.capacity: [8Ki], "
                           "mesh.recompute: [none]}"};
  CHECK(compared(sizes).runs[0].tuned_baseline->info.gpus == 32);
}

TEST_CASE("a baseline that fits on no mesh is wrong input that says so", "[tune]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Overrides none_fits = with({"data.steps=1", "tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki]}"});
  Diagnostics none;
  const Value root = tuning_root(load_document(path, none), none_fits);
  const Study study = load_study(path, none_fits, catalog);
  try {
    (void)tuned_baselines(study, root, catalog, {});
    FAIL("it found one");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::Contains("the baseline static cannot be tuned"));
    CHECK_THAT(error.what(), Catch::Contains("does not fit"));
  }
}

}  // namespace
}  // namespace hdpsim
