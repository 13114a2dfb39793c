#include "sim/run/best_static.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/study/sharing_choice.h"
#include "tests/support/study_file.h"

namespace hdpsim {
namespace {

using Overrides = std::vector<std::string>;

constexpr char path[] = HDPSIM_SOURCE_DIR "/configs/studies/tiny.yaml";

/// One point of 16 ranks, of which 8 hold a sequence; two steps, on both of which ways are judged.
Overrides with(const Overrides& more) {
  Overrides all = {"sweep=null", "data.steps=2", "data.context=64Ki", "plans=[static, hdp-balance]"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Compared {
  Study study;
  std::vector<Run> runs;
};

Compared compared(const Overrides& more = {}, std::size_t jobs = 1) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Compared result{load_study(path, with(more), catalog), {}};
  result.runs = *run_study(result.study, {});
  REQUIRE(compare_with_best_static(result.study, catalog, {.jobs = jobs}, result.runs));
  return result;
}

// The least mean step time of `static` over every sharing that fits, with groups of these sizes.
double least_time(const Overrides& more, const std::vector<std::int64_t>& degrees) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  double least = std::numeric_limits<double>::infinity();
  const Study stated = load_study(path, with(more), catalog);
  for (const SharingChoice& sharing : allowed_sharings(stated.points[0].spec)) {
    for (const std::int64_t degree : degrees) {
      Overrides one = with(more);
      one.push_back(fmt::format("mesh.cp_comm_type={}", word_of(sharing.exchange)));
      one.push_back(fmt::format("mesh.cp_cut={}", word_of(sharing.cut)));
      one.push_back(fmt::format("plans=[{{static: {{cp: {}}}}}]", degree));
      const auto runs = run_study(load_study(path, one, catalog), {});
      if (runs->front().metrics.fits) least = std::min(least, runs->front().metrics.step_time_s.mean);
    }
  }
  return least;
}

TEST_CASE("speed-ups are also over the fastest way of static to share a sequence on the same mesh", "[best-static]") {
  const Compared found = compared();
  const double best = least_time({}, {8, 16});
  REQUIRE(best < found.runs[0].metrics.step_time_s.mean);  // a ring is not the fastest
  for (const Run& run : found.runs) {
    REQUIRE(run.metrics.over_best_static);
    const BestStaticSpeedup& over = *run.metrics.over_best_static;
    CHECK(over.step_time_s == Approx(best).epsilon(1e-9));
    CHECK(over.speedup.mean == Approx(best / run.metrics.step_time_s.mean).epsilon(1e-9));
    CHECK(over.sharing != "p2p");
    CHECK(run.best_static->info.plan.starts_with("static (" + over.sharing));
    CHECK(run.metrics.speedup->versus == "static");  // as stated, as before
    CHECK(run.is_over_another_static());
  }
  CHECK(found.runs[0].best_static->metrics.speedup->mean ==
        Approx(found.runs[0].metrics.step_time_s.mean / best).epsilon(1e-9));
}

TEST_CASE("a degree that the study states is kept, one that it leaves open is searched", "[best-static]") {
  const Compared stated = compared({"plans=[{static: {cp: 16}}, hdp-balance]"});
  CHECK(stated.runs[1].metrics.over_best_static->cp == 16);
  CHECK(stated.runs[1].metrics.over_best_static->step_time_s == Approx(least_time({}, {16})).epsilon(1e-9));
  const Compared open = compared();
  CHECK(open.runs[1].metrics.over_best_static->step_time_s <= stated.runs[1].metrics.over_best_static->step_time_s);
}

TEST_CASE("a baseline that shares in the fastest way is the best one itself", "[best-static]") {
  const BestStaticSpeedup fastest = *compared().runs[0].metrics.over_best_static;
  const Compared found = compared(
      {"mesh.cp_comm_type=" + fastest.sharing, fmt::format("plans=[{{static: {{cp: {}}}}}, hdp-balance]", fastest.cp)});
  for (const Run& run : found.runs) {
    CHECK(run.best_static->info.plan == found.runs[0].info.plan);
    CHECK(run.metrics.over_best_static->speedup.mean == run.metrics.speedup->mean);
    CHECK_FALSE(run.is_over_another_static());
  }
}

TEST_CASE("a sharing that does not fit is not the best one", "[best-static]") {
  // What a ring needs less than a gathering: the device has a little more than that.
  const auto peak = [](const std::string& sharing) {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    const auto runs =
        run_study(load_study(path, with({"plans=[static]", "mesh.cp_comm_type=" + sharing}), catalog), {});
    return runs->front().metrics.memory.device.gigabytes();
  };
  const double ring = peak("p2p");
  const double trading = peak("a2a");
  REQUIRE(ring < trading);
  const Overrides small = {fmt::format("cluster.node.gpu_memory={:.3f} GB", (ring + trading) / 2)};
  const Compared found = compared(small);
  CHECK(found.runs[0].metrics.fits);
  CHECK(found.runs[0].best_static->metrics.fits);
  CHECK(found.runs[0].metrics.over_best_static->step_time_s <= 1.01 * least_time(small, {8, 16}));
}

TEST_CASE("studies that compare with another plan, a tuned one or none have no best static mesh", "[best-static]") {
  for (const char* other : {"compare_to=hdp-balance", "compare_to=null", "compare_to={static: tuned}"}) {
    CAPTURE(other);
    for (const Run& run : compared({other}).runs) {
      CHECK(run.best_static == nullptr);
      CHECK_FALSE(run.metrics.over_best_static);
    }
  }
}

TEST_CASE("points that differ in sharing alone have one best static mesh, whatever the number of threads",
          "[best-static]") {
  const Overrides sweep = {"sweep={data.context: [32Ki, 64Ki], mesh.cp_comm_type: [p2p, all_gather]}"};
  const Compared found = compared(sweep, 3);
  REQUIRE(found.runs.size() == 8);
  for (std::size_t point = 0; point < 4; ++point) {
    const Run& run = found.runs[2 * point];
    CHECK(run.best_static->info.point == point);
    const double least = least_time({point < 2 ? "data.context=32Ki" : "data.context=64Ki"},
                                    point < 2 ? std::vector<std::int64_t>{4, 8, 16} : std::vector<std::int64_t>{8, 16});
    CHECK(run.metrics.over_best_static->step_time_s == Approx(least).epsilon(1e-9));
  }
}

TEST_CASE("the best static mesh that was found is not simulated over all steps again", "[best-static][resume]") {
  const test::TemporaryFolder folder;
  Journal journal = Journal::begin(folder.path() / journal_name, runs_title());
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const Study study = load_study(path, with({"data.steps=6"}), catalog);
  const RunnerOptions how{.journal = &journal, .version = "1"};
  auto first = *run_study(study, how);
  REQUIRE(compare_with_best_static(study, catalog, how, first));
  CHECK(journal.size() == 3);  // two plans and the best mesh
  const auto size = std::filesystem::file_size(folder.path() / journal_name);
  auto again = *run_study(study, how);
  REQUIRE(compare_with_best_static(study, catalog, how, again));
  CHECK(std::filesystem::file_size(folder.path() / journal_name) == size);
  CHECK(again[1].metrics.over_best_static->speedup.mean == first[1].metrics.over_best_static->speedup.mean);
}

TEST_CASE("models allow the sharings that their layers can have", "[best-static]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto allowed = [&](const std::string& model) {
    std::vector<std::string> found;
    const Study study = load_study(path, with({"model={preset: " + model + "}", "plans=[static]"}), catalog);
    for (const auto& [exchange, cut] : allowed_sharings(study.points[0].spec)) {
      found.push_back(fmt::format("{} {}", word_of(exchange), word_of(cut)));
    }
    return found;
  };
  CHECK(allowed("llama-7b") ==
        std::vector<std::string>{"p2p per_document", "p2p per_pack", "all_gather per_document", "all_gather per_pack",
                                 "all_gather dispatch", "all_gather adaptive", "a2a per_document",
                                 "group_cast dispatch", "group_cast per_document", "group_cast per_pack"});
  // Layers of windows are cut per document.
  CHECK(allowed("gemma-2-27b") == std::vector<std::string>{"p2p per_document", "all_gather per_document",
                                                           "a2a per_document", "group_cast per_document"});
  // Queries choose among gathered keys.
  CHECK(allowed("deepseek-v3.2") == std::vector<std::string>{"all_gather per_document"});
}

}  // namespace
}  // namespace hdpsim
