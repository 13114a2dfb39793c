// Whatever happens to what an execution has kept, the one that goes on with it ends with the results of an undisturbed
// one, or refuses to; and whatever happens to a timeline, it is refused or compared to figures that can be.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
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
#include "sim/validate/validation_format.h"
#include "sim/validate/validation_study.h"
#include "tests/support/catch.h"
#include "tests/support/file_text.h"
#include "tests/support/seeds.h"
#include "tests/support/small_validation_set.h"
#include "tests/support/study_file.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

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
      text.resize(at);  // also what is left of a process that was killed there
  }
}

/// Puts a line of the text `others` into a place of `text`.
void take_line(std::string& text, const std::string& others, RandomStream& random) {
  std::vector<std::string> lines = lines_of(text);
  const std::vector<std::string> foreign = lines_of(others);
  lines[picked(random, lines.size())] = foreign[picked(random, foreign.size())];
  text.clear();
  for (const std::string& line : lines) text += line;
}

void damage(std::string& text, const std::string& others, RandomStream& random) {
  if (text.empty()) return;
  switch (random.below(12)) {
    case 0:
      text = others;
      break;
    case 1:
      return take_line(text, others, random);
    case 2:
    case 3:
    case 4:
      return change_lines(text, random);
    case 5:
    case 6:
    case 7:
      return change_number(text, random);
    default:
      return change_byte(text, random);
  }
}

// ---- Journals

/// A kind of work that keeps its finished jobs in a journal.
struct Worker {
  const char* name;
  /// Works with a journal in `kept`; returns the results as text and throws as the command does.
  std::function<std::string(const JournalFolder& kept, const std::vector<std::string>& overrides)> work;
};

/// What remains of a journal, and what a worker has to name of it.
struct Remains {
  bool is_of_others = false;  ///< The whole title of other work: the user's mistake.
  std::size_t damaged = 0;    ///< Lines with an end that nobody has written so, or elsewhere.
};

Remains remains_of(const std::string& text, const std::string& whole, const std::string& others) {
  std::vector<std::string> records = lines_of(whole);
  const std::vector<std::string> foreign = lines_of(others);
  const std::string title = records.front();
  records.erase(records.begin());
  // Records of one title are no damage: their keys say what they are of.
  if (foreign.front() == title) records.insert(records.end(), foreign.begin() + 1, foreign.end());
  const std::vector<std::string> lines = lines_of(text);
  Remains remains{.is_of_others = !lines.empty() && foreign.front() != title && lines[0] == foreign.front()};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_whole = i == 0 ? lines[i] == title : std::count(records.begin(), records.end(), lines[i]) > 0;
    if (lines[i].ends_with('\n') && !is_whole) ++remains.damaged;
  }
  return remains;
}

void check_worker(const Worker& worker, std::uint64_t mutations) {
  const test::TemporaryFolder whole;
  const test::TemporaryFolder other;
  const std::string results = worker.work({whole.path()}, {});
  (void)worker.work({other.path()}, another_seed);
  const std::string kept = test::text_of(whole.path() / journal_name);
  const std::string others = test::text_of(other.path() / journal_name);
  REQUIRE(lines_of(kept).size() > 2);
  for (const std::uint64_t seed : tests::seeds(mutations)) {
    INFO("replay: HDPSIM_SEED=" << seed << ", " << worker.name);
    RandomStream random(seed, "damage");
    std::string text = kept;
    damage(text, others, random);
    if (random.below(4) == 0) damage(text, others, random);
    const Remains remains = remains_of(text, kept, others);
    const test::TemporaryFolder folder;
    std::ofstream(folder.path() / journal_name, std::ios::binary) << text;
    std::size_t named = 0;
    const auto resumed = [&] {
      named = 0;
      return worker.work({folder.path(), true, [&](const Diagnostic&) { ++named; }}, {});
    };
    std::string found;
    try {
      found = resumed();
    } catch (const InputError&) {
      REQUIRE(remains.is_of_others);
      REQUIRE((test::text_of(folder.path() / journal_name) == text));
      continue;
    }
    REQUIRE_FALSE(remains.is_of_others);
    REQUIRE((found == results));
    REQUIRE(named == remains.damaged);
    REQUIRE((resumed() == results));
    REQUIRE(named == 0);  // damage is named once
  }
}

TEST_CASE("work that continues from a journal ends with the results of undisturbed work, whatever became of it",
          "[property][resume]") {
  const test::StudyFile file(kept_study);
  const test::StudyFile set(test::small_validation_set);
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto study = [&](const JournalFolder& kept, const std::vector<std::string>& overrides) {
    Journal journal = kept.open(runs_title());
    const auto runs = run_study(load_study(file.path(), overrides, catalog), {.journal = &journal, .version = "1"});
    std::string text;
    for (const ResultTable table : {ResultTable::runs, ResultTable::steps, ResultTable::ranks, ResultTable::links}) {
      text += table_csv(table, *runs);
    }
    return text;
  };
  const auto validation = [&](const JournalFolder& kept, const std::vector<std::string>& overrides) {
    Journal journal = kept.open(runs_title());
    const auto rows = validate(load_validation(set.path(), catalog, {overrides, {}}), {.journal = &journal});
    return formatted(*rows, Format::json);
  };
  const auto replayed = [&](const JournalFolder& kept, const std::vector<std::string>& overrides) {
    const Study read = load_study(file.path(), overrides, catalog);
    const auto result = replay(read, read.points[0], {.steps = 6, .kept = kept, .version = "1"});
    return replay_json(*result, read.resolved, "1") + test::text_of(kept.path / "steps.csv") +
           test::text_of(kept.path / "windows.csv");
  };
  const auto tuned = [&](const JournalFolder& kept, const std::vector<std::string>& overrides) {
    const Study read = load_study(file.path(), overrides, catalog);
    Diagnostics none;
    const Value root = tuning_root(load_document(file.path(), none), overrides);
    const auto result = tune(read, root, catalog, {.kept = kept, .version = "1"});
    return tune_json(*result, read.tune.price, read.resolved, "1");
  };
  check_worker({"study", study}, 100);
  check_worker({"validation", validation}, 60);
  check_worker({"replay", replayed}, 150);
  check_worker({"tuning", tuned}, 30);
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
  const std::string whole = timeline_text({"measured", "p", 0}, small_timeline(Duration::seconds(0.012)));
  std::size_t refused = 0;
  std::size_t tried = 0;
  for (const std::uint64_t seed : tests::seeds(500)) {
    ++tried;
    INFO("replay: HDPSIM_SEED=" << seed);
    RandomStream random(seed, "damage");
    std::string measured = whole;
    damage(measured, predicted, random);
    try {
      StepComparison comparison("predicted", read_timeline("predicted", predicted));
      comparison.add("measured", read_timeline("measured", measured));
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
