#include "sim/tune/tuned_baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "sim/document/values.h"
#include "sim/run/runner.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using Overrides = std::vector<std::string>;
using Baselines = std::vector<std::shared_ptr<const Run>>;

constexpr char path[] = HDPSIM_SOURCE_DIR "/configs/studies/tune.yaml";
const std::vector<std::string> degrees = {"1", "2", "4"};
const std::vector<std::string> capacities = {"8Ki", "16Ki"};

/// Two plans on a mesh of tp 2 with 8Ki tokens, and a small space of meshes.
Overrides with(const Overrides& more) {
  Overrides all = {
      "data.steps=2", "plans=[static, hdp-balance]", "compare_to={static: tuned}",
      "tune.space={mesh.tp: [1, 2, 4], mesh.pp: [1], mesh.capacity: [8Ki, 16Ki], training.recompute: [none], "
      "mesh.cp_comm_type: [p2p], mesh.zero: [1]}"};
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

TEST_CASE("a tuned baseline shares a sequence in the way that is fastest", "[tune]") {
  const Overrides open = {
      "tune.space={mesh.tp: [1, 2, 4], mesh.pp: [1], mesh.capacity: [8Ki, 16Ki], training.recompute: [none]}"};
  const Compared found = compared(open);
  const Run& baseline = *found.runs[0].tuned_baseline;
  double least = least_static_time();
  for (const char* sharing : {"all_gather", "a2a"}) {
    least = std::min(least, least_static_time({fmt::format("mesh.cp_comm_type={}", sharing)}));
  }
  CHECK(least < least_static_time());
  CHECK(baseline.metrics.step_time_s.mean <= least * (1 + 1e-9));
  CHECK_THAT(baseline.info.tuned, Catch::Contains("cp_comm_type "));
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
                           "training.recompute: [none]}"};
  CHECK(compared(sizes).runs[0].tuned_baseline->info.gpus == 32);
}

TEST_CASE("a baseline that fits on no mesh is wrong input that says so", "[tune]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Overrides none_fits = with({"data.steps=1",
                                    "tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki], "
                                    "training.recompute: [none]}"});
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

/// Searches for baselines with what was kept in a folder, and notes of which points it reported.
struct KeptSearch {
  Overrides overrides;
  test::TemporaryFolder folder{};
  std::set<std::string> searched{};

  Baselines run(bool resume) {
    searched.clear();
    Catalog catalog(HDPSIM_SOURCE_DIR);
    Diagnostics none;
    const Value root = tuning_root(load_document(path, none), with(overrides));
    Journal journal = JournalFolder{folder.path(), resume}.open(runs_title());
    const TuneRun search{.jobs = 2, .version = "1", .report = [&](const TuneProgress& progress) {
                           searched.insert(progress.stage.substr(0, progress.stage.find(" of ")));
                         }};
    return tuned_baselines(load_study(path, with(overrides), catalog), root, catalog, {search, &journal}).value();
  }
};

using Points = std::set<std::string>;

TEST_CASE("points at which a search sees the same have one search", "[tune]") {
  // Candidates have a mesh.tp of their own, so that it is no part of the question; the context is.
  KeptSearch meshes{.overrides = {"data.steps=1", "data.context=64Ki", "sweep={mesh.tp: [1, 2, 4]}"}};
  const Baselines same = meshes.run(false);
  CHECK(meshes.searched == Points{"tuning static, point 1"});
  REQUIRE(same.size() == 3);
  for (std::size_t point = 0; point < same.size(); ++point) {
    CHECK(same[point]->info.point == point);
    CHECK(line_of(same[point]->info.coordinates.at(0).value) == std::to_string(1 << point));
    CHECK(same[point]->result.steps.at(0).time == same[0]->result.steps.at(0).time);
    CHECK(same[point]->info.tuned == same[0]->info.tuned);
  }
  KeptSearch contexts{.overrides = {"data.steps=1", "sweep={data.context: [32Ki, 64Ki]}"}};
  CHECK(contexts.run(false).size() == 2);
  CHECK(contexts.searched == Points{"tuning static, point 1", "tuning static, point 2"});
}

TEST_CASE("a baseline that was found is not searched for again, unless another one is asked for", "[tune][resume]") {
  KeptSearch search{.overrides = {"data.steps=2", "data.context=64Ki"}};
  const Baselines first = search.run(false);
  const Baselines again = search.run(true);
  CHECK(search.searched.empty());
  CHECK(again.at(0)->info.tuned == first.at(0)->info.tuned);
  CHECK(again.at(0)->info.setting == first.at(0)->info.setting);
  CHECK(again.at(0)->metrics.breakdown.total() == first.at(0)->metrics.breakdown.total());

  search.overrides.emplace_back("plans=[{static: {cp: 8}}, hdp-balance]");  // the baseline's options
  (void)search.run(true);
  CHECK(search.searched.size() == 1);
}

}  // namespace
}  // namespace hdpsim
