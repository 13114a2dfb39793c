// Whatever happens to what an execution has kept, the one that goes on with it ends with the results of an undisturbed
// one, or refuses to; and whatever happens to a timeline, it is refused or compared to figures that can be.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/compare/step_comparison.h"
#include "sim/replay/replay.h"
#include "sim/replay/replay_report.h"
#include "sim/results/csv.h"
#include "sim/run/runner.h"
#include "sim/tune/tune.h"
#include "sim/tune/tune_report.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"
#include "tests/support/study_file.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;  // by name

constexpr char kept_study[] = R"(name: small
cluster: {preset: a100-rail-3tier, gpus: 8}
model: {preset: llama-7b}
profile: bytescale-implied
data: {lengths: {preset: github}, context: 16Ki, tokens_per_step: 64Ki, steps: 3, seed: 1}
mesh: {tp: 2, capacity: 8Ki}
plans: [static, hdp-balance]
tune: {space: {mesh.tp: [2, 4], mesh.pp: [1], mesh.capacity: [8Ki, auto]}}
)";

const std::vector<std::string> another_seed = {"data.seed=2"};

Files files_of(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

void put(const fs::path& folder, const Files& files) {
  for (const auto& [name, text] : files) std::ofstream(folder / name, std::ios::binary) << text;
}

// ---- Damage

std::size_t picked(RandomStream& random, std::size_t count) {
  return static_cast<std::size_t>(random.below(count));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

void change_lines(std::string& text, RandomStream& random) {
  std::vector<std::string> lines = lines_of(text);
  if (lines.empty()) return;
  const std::size_t one = picked(random, lines.size());
  const std::size_t other = picked(random, lines.size());
  const auto at = lines.begin() + static_cast<std::ptrdiff_t>(one);
  switch (random.below(4)) {
    case 0:
      lines.erase(at);
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), std::string(lines[one]));
      break;
    case 2:
      std::swap(lines[one], lines[other]);
      break;
    default:
      lines[one].resize(picked(random, lines[one].size()));
  }
  text.clear();
  for (const std::string& line : lines) text += line;
}

void change_number(std::string& text, RandomStream& random) {
  static const std::array<const char*, 10> numbers = {"NaN",  "inf",   "-1", "0",    "1e308", "9223372036854775807",
                                                      "-0.5", "1e999", "",   "\"x\""};
  const std::size_t from = picked(random, text.size());
  const std::size_t begin = std::min(text.find_first_of("0123456789", from), text.size());
  const std::size_t end = std::min(text.find_first_not_of("0123456789.", begin), text.size());
  text.replace(begin, end - begin, numbers.at(picked(random, numbers.size())));
}

void change_byte(std::string& text, RandomStream& random) {
  const std::size_t at = picked(random, text.size());
  switch (random.below(4)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
      break;
    case 1:
      text.erase(at, 1);
      break;
    case 2:
      text.insert(at, 1, static_cast<char>(random.below(256)));
      break;
    default:
      text.resize(at);
  }
}

/// Damages one of the files. `others` are those of another execution. True if what is left may be none of the files, or
/// a whole title of another execution: that is the user's mistake, and nothing to be simulated again.
bool damage(Files& files, const Files& others, RandomStream& random) {
  const auto chosen = std::next(files.begin(), static_cast<std::ptrdiff_t>(picked(random, files.size())));
  const auto strange = std::next(others.begin(), static_cast<std::ptrdiff_t>(picked(random, others.size())));
  std::string& text = chosen->second;
  if (text.empty()) return false;
  switch (random.below(12)) {
    case 0:
      files.erase(chosen);
      return true;
    case 1:
      text = strange->second;
      return true;
    case 2: {  // a line of another execution
      std::vector<std::string> lines = lines_of(text);
      const std::vector<std::string> foreign = lines_of(strange->second);
      lines[picked(random, lines.size())] = foreign[picked(random, foreign.size())];
      text.clear();
      for (const std::string& line : lines) text += line;
      return true;
    }
    case 3:
    case 4:
    case 5:
      change_lines(text, random);
      break;
    case 6:
    case 7:
    case 8:
      change_number(text, random);
      break;
    default:
      change_byte(text, random);
  }
  return false;
}

/// Something that keeps files and goes on with them.
struct Keeper {
  /// Results as text; throws as the command does. `folder` may hold what was kept.
  std::function<std::string(const fs::path& folder, const std::vector<std::string>& overrides, bool resume)> run;
  fs::path below;  ///< Where in the folder the files are.
};

void check_keeper(const char* name, const Keeper& keeper, std::uint64_t mutations) {
  const test::TemporaryFolder whole;
  const test::TemporaryFolder other;
  const std::string results = keeper.run(whole.path(), {}, false);
  (void)keeper.run(other.path(), another_seed, false);
  const Files kept = files_of(whole.path() / keeper.below);
  const Files others = files_of(other.path() / keeper.below);
  REQUIRE(!kept.empty());
  REQUIRE(keeper.run(whole.path(), {}, true) == results);
  std::uint64_t refused = 0;
  std::uint64_t tried = 0;
  for (const std::uint64_t seed : tests::seeds(mutations)) {
    ++tried;
    INFO("replay: HDPSIM_SEED=" << seed << ", " << name);
    RandomStream random(seed, "damage");
    Files files = kept;
    bool may_be_refused = damage(files, others, random);
    if (random.below(4) == 0) may_be_refused |= damage(files, others, random);
    const test::TemporaryFolder folder;
    fs::create_directories(folder.path() / keeper.below);
    put(folder.path() / keeper.below, files);
    std::string found = results;
    try {
      found = keeper.run(folder.path(), {}, true);
    } catch (const InputError&) {
      REQUIRE(may_be_refused);
      ++refused;
      continue;
    }
    REQUIRE((found == results));
    REQUIRE((files_of(folder.path() / keeper.below) == kept));
  }
  constexpr std::uint64_t enough_for_a_share = 30;  // one seed alone, and a tenth of them under sanitizers, are fewer
  CHECK((refused * 5 <= tried || tried < enough_for_a_share));
}

TEST_CASE("a study that goes on with damaged runs has the results of an undisturbed one", "[property][resume]") {
  const test::StudyFile file(kept_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto run = [&](const fs::path& folder, const std::vector<std::string>& overrides, bool resume) {
    const Study study = load_study(file.path(), overrides, catalog);
    fs::create_directories(folder / "runs");
    const RunStore store(folder / "runs");
    const auto runs = run_study(study, {.store = &store, .resume = resume, .version = "1"});
    std::string text;
    for (const ResultTable table : {ResultTable::runs, ResultTable::steps, ResultTable::ranks, ResultTable::links}) {
      text += table_csv(table, *runs);
    }
    // What the processor took is all that may differ.
    fs::remove_all(folder / "runs");
    fs::create_directories(folder / "runs");
    for (std::size_t number = 0; number < runs->size(); ++number) {
      RunResult result = runs->at(number).result;
      for (StepResult& step : result.steps) step.phases = {};
      store.save(run_identity(study, number, "1"), result);
    }
    return text;
  };
  check_keeper("study", {run, "runs"}, 200);
}

TEST_CASE("a replay that goes on with damaged steps has the results of an undisturbed one", "[property][resume]") {
  const test::StudyFile file(kept_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto run = [&](const fs::path& folder, const std::vector<std::string>& overrides, bool resume) {
    const Study study = load_study(file.path(), overrides, catalog);
    const auto result =
        replay(study, study.points[0], {.steps = 6, .folder = folder, .resume = resume, .version = "1"});
    return replay_json(*result, study.resolved, "1");
  };
  check_keeper("replay", {run, ""}, 250);
}

TEST_CASE("a tuning that goes on with a damaged journal has the results of an undisturbed one", "[property][resume]") {
  const test::StudyFile file(kept_study);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto run = [&](const fs::path& folder, const std::vector<std::string>& overrides, bool resume) {
    const Study study = load_study(file.path(), overrides, catalog);
    Diagnostics none;
    const Value root = tuning_root(load_document(file.path(), none), overrides);
    const auto result = tune(study, root, catalog, {.folder = folder, .resume = resume, .version = "1"});
    return tune_json(*result, study.tune.price, study.resolved, "1");
  };
  check_keeper("tuning", {run, ""}, 30);
}

// ---- Timelines

// Two ranks with a micro-batch each, of one layer: its products, an exchange and attention, forward and backward.
Timeline small_timeline(Duration unit) {
  Timeline timeline;
  timeline.step_time = 20 * unit;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    Breakdown& breakdown = timeline.ranks.emplace_back();
    breakdown[Activity::attention] = 9 * unit;
    breakdown[Activity::linear] = 7 * unit;
    breakdown[Activity::group_wait] = 4 * unit;
    const auto at = [&](std::int64_t units) { return Instant::at(units * unit); };
    timeline.micro_batches.push_back({at(1), at(16)});
    std::int64_t begin = 1;
    for (std::uint32_t i = 0; i < 5; ++i, begin += 3) {
      timeline.instructions.push_back({.rank = HdpRank(rank),
                                       .micro_batch = MicroBatchId(rank),
                                       .block = i / 3,
                                       .instruction = i % 3,
                                       .opcode = i % 3 == 1 ? Opcode::exchange : Opcode::dense,
                                       .stream = i % 3 == 1 ? Stream::comm : Stream::compute,
                                       .begin = at(begin),
                                       .end = at(begin + 3)});
    }
  }
  return timeline;
}

void require_possible(const Comparison& comparison) {
  const auto is_possible = [](const Pair& pair) {
    return std::isfinite(pair.predicted) && pair.predicted >= 0 && std::isfinite(pair.measured) && pair.measured >= 0;
  };
  REQUIRE(is_possible(comparison.step_time_s));
  const double ranks_s = comparison.step_time_s.measured * static_cast<double>(comparison.ranks.size());
  for (const FamilyComparison& family : comparison.families) {
    REQUIRE(is_possible(family.seconds));
    REQUIRE(family.seconds.measured <= ranks_s * static_cast<double>(family.instructions) + 1e-9);
  }
  for (const RankComparison& rank : comparison.ranks) {
    REQUIRE((is_possible(rank.busy_s) && is_possible(rank.exchange_s) && is_possible(rank.hidden_s)));
  }
  for (const Pair& activity : comparison.activities_s) REQUIRE(is_possible(activity));
}

TEST_CASE("a damaged timeline is refused, or its figures are possible", "[property][compare]") {
  const std::string predicted = timeline_text({"predicted", "p", 0}, small_timeline(Duration::seconds(0.01)));
  const Files whole = {{"measured", timeline_text({"measured", "p", 0}, small_timeline(Duration::seconds(0.012)))}};
  const Files others = {{"predicted", predicted}};
  std::size_t refused = 0;
  std::size_t tried = 0;
  for (const std::uint64_t seed : tests::seeds(500)) {
    ++tried;
    INFO("replay: HDPSIM_SEED=" << seed);
    RandomStream random(seed, "damage");
    Files files = whole;
    (void)damage(files, others, random);
    try {
      StepComparison comparison("predicted", read_timeline("predicted", predicted));
      comparison.add("measured", read_timeline("measured", files["measured"]));
      require_possible(comparison.result());
    } catch (const InputError&) {
      ++refused;
    }
  }
  if (tests::one_seed()) return;
  CHECK(refused > tried / 2);
  CHECK(refused < tried);
}

}  // namespace
}  // namespace hdpsim
