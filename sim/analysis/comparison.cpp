#include "sim/analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/duration_sum.h"

namespace hdpsim {
namespace {

auto pass_key(const InstructionRecord& record) {
  return std::tuple(record.rank, record.micro_batch, record.chunk, record.kind);
}

// Records of a worker follow one another, and of them those of a pass.
auto id_of(const InstructionRecord& record) {
  return std::tuple(record.rank, record.stage, instruction_id(record));
}

void sort_by_id(std::vector<InstructionRecord>& records) {
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return id_of(a) < id_of(b); });
}

std::string text_of(const InstructionRecord& record) {
  const std::string pass =
      record.kind == PassKind::whole ? "" : fmt::format("chunk {}, {}, ", record.chunk, pass_kind_name(record.kind));
  return fmt::format("{} (rank {}, micro-batch {}, {}block {}, iteration {}, instruction {})",
                     opcode_name(record.opcode), record.rank.index(), record.micro_batch.index(), pass, record.block,
                     record.iteration, record.instruction);
}

double median(std::vector<double> values) {
  const std::size_t middle = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// ---- Families

constexpr std::array<const char*, 3> direction_suffixes = {"", " forward", " backward"};

std::string family_name(std::size_t family) {
  return fmt::format("{}{}", opcode_name(static_cast<Opcode>(family % opcode_count)),
                     direction_suffixes[family / opcode_count]);
}

// Backward runs the blocks of a whole micro-batch's forward in reverse, so that the later half of the blocks is
// backward.
bool is_forward(const InstructionRecord& record, std::uint32_t last_block) {
  return record.kind == PassKind::whole ? 2 * record.block <= last_block : record.kind == PassKind::forward;
}

// The overhead of a micro-batch, its first block, has no direction.
std::size_t family_of(const InstructionRecord& record, std::uint32_t last_block) {
  const auto opcode = static_cast<std::size_t>(record.opcode);
  if (record.opcode == Opcode::overhead) return opcode;
  return opcode + opcode_count * (is_forward(record, last_block) ? 1 : 2);
}

// Calls visit(record, family); records by id.
template <class Visit>
void for_each_family(const std::vector<InstructionRecord>& records, const Visit& visit) {
  for (std::size_t begin = 0; begin < records.size();) {
    const auto is_of_another = [&](const auto& record) { return pass_key(record) != pass_key(records[begin]); };
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = static_cast<std::size_t>(std::find_if(first, records.end(), is_of_another) - records.begin());
    for (std::size_t i = begin; i < end; ++i) visit(records[i], family_of(records[i], records[end - 1].block));
    begin = end;
  }
}

// ---- Overlap

struct Interval {
  Instant begin;
  Instant end;
};

// Sorts the intervals, and joins those that touch.
void unite(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::size_t united = 0;
  for (const Interval& interval : intervals) {
    if (united > 0 && interval.begin <= intervals[united - 1].end) {
      intervals[united - 1].end = std::max(intervals[united - 1].end, interval.end);
    } else {
      intervals[united++] = interval;
    }
  }
  intervals.resize(united);
}

double total_seconds(const std::vector<Interval>& intervals) {
  Duration total;
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total.seconds();
}

// Length of the intersection of two lists of united intervals.
double common_seconds(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Duration common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Instant begin = std::max(a[i].begin, b[j].begin);
    const Instant end = std::min(a[i].end, b[j].end);
    if (begin < end) common += end - begin;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common.seconds();
}

struct Overlap {
  double exchange_s = 0;
  double hidden_s = 0;
};

Overlap overlap_of(std::span<const InstructionRecord> records) {
  std::vector<Interval> exchanges;
  std::vector<Interval> computing;
  for (const InstructionRecord& record : records) {
    if (record.opcode == Opcode::exchange) {
      exchanges.push_back({record.begin, record.end});
    } else if (record.stream == Stream::compute) {
      computing.push_back({record.begin, record.end});
    }
  }
  unite(exchanges);
  unite(computing);
  return {total_seconds(exchanges), common_seconds(exchanges, computing)};
}

// The records of one worker among those of all, by id.
std::span<const InstructionRecord> records_of(std::size_t worker, const std::vector<InstructionRecord>& records,
                                              std::int64_t stages) {
  const auto worker_of = [=](const InstructionRecord& record) {
    return record.rank.index() * static_cast<std::size_t>(stages) + record.stage;
  };
  const auto first = std::partition_point(records.begin(), records.end(),
                                          [&](const InstructionRecord& r) { return worker_of(r) < worker; });
  const auto last =
      std::partition_point(first, records.end(), [&](const InstructionRecord& r) { return worker_of(r) == worker; });
  return {first, last};
}

// ---- What differs between two timelines

/// Differences of one kind between instructions: their number, and the first.
struct Difference {
  std::int64_t count = 0;
  std::string first;
  void note(const InstructionRecord& record) {
    if (count++ == 0) first = text_of(record);
  }
};

void tell(const Difference& difference, const std::string& file, const std::string& what, Diagnostics& diagnostics) {
  if (difference.count == 0) return;
  diagnostics.error({file, 0, 0},
                    fmt::format("{} instructions {}; the first is {}", difference.count, what, difference.first));
}

void require_title(const std::string& file, const TimelineTitle& title, const std::string& source,
                   Diagnostics& diagnostics) {
  if (title.source == source) return;
  diagnostics.error({file, 0, 0}, fmt::format("this timeline is {}, not {}", title.source, source),
                    "the prediction comes first, then what was measured");
}

template <class T>
void require_same(const std::string& file, const char* what, const T& measured, const T& predicted,
                  Diagnostics& diagnostics) {
  if (measured == predicted) return;
  diagnostics.error({file, 0, 0}, fmt::format("its {} is {}, that of the prediction {}", what, measured, predicted));
}

// ---- Sums over steps

void add_share(Pair& sum, const Pair& pair, double share) {
  sum.predicted += pair.predicted * share;
  sum.measured += pair.measured * share;
}

void add_ranks(std::vector<RankComparison>& sums, const std::vector<RankComparison>& ranks, double share) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    add_share(sums[i].busy_s, ranks[i].busy_s, share);
    add_share(sums[i].exchange_s, ranks[i].exchange_s, share);
    add_share(sums[i].hidden_s, ranks[i].hidden_s, share);
  }
}

std::vector<FamilyComparison> mean_families(const std::vector<Comparison>& steps) {
  std::map<std::string, FamilyComparison> sums;
  std::map<std::string, std::int64_t> instructions;
  const double share = 1 / static_cast<double>(steps.size());
  for (const Comparison& step : steps) {
    for (const FamilyComparison& family : step.families) {
      add_share(sums[family.family].seconds, family.seconds, share);
      instructions[family.family] += family.instructions;
    }
  }
  std::vector<FamilyComparison> means;
  for (const auto& [name, sum] : sums) {
    const std::int64_t count = std::llround(static_cast<double>(instructions[name]) * share);
    means.push_back({name, count, sum.seconds});
  }
  return means;
}

void sort_by_difference(std::vector<FamilyComparison>& families) {
  std::stable_sort(families.begin(), families.end(), [](const FamilyComparison& a, const FamilyComparison& b) {
    return std::abs(a.seconds.difference()) > std::abs(b.seconds.difference());
  });
}

std::string size_text(const Comparison& step) {
  const std::size_t ranks = step.ranks.size() / static_cast<std::size_t>(step.stages);
  return step.stages == 1 ? std::to_string(ranks) : fmt::format("{} x {}", ranks, step.stages);
}

void require_alike(const Comparison& first, const Comparison& other) {
  if (other.plan != first.plan) {
    throw InputError(fmt::format("steps of two plans, '{}' and '{}', have no mean", first.plan, other.plan),
                     "compare them one by one");
  }
  if (other.ranks.size() != first.ranks.size() || other.stages != first.stages) {
    throw InputError(fmt::format("steps on {} and on {} ranks have no mean", size_text(first), size_text(other)),
                     "compare them one by one");
  }
}

double measured_kernels(const Comparison& comparison) {
  double seconds = 0;
  for (const Activity activity : activities_of_kernels) seconds += comparison.activities_s[index_of(activity)].measured;
  return seconds;
}

}  // namespace

double computed_seconds(const std::vector<Breakdown>& ranks) {
  DurationSum sum;
  for (const Breakdown& rank : ranks) {
    for (const Activity activity : activities_of_kernels) sum += rank[activity];
  }
  return ranks.empty() ? 0 : sum.seconds() / static_cast<double>(ranks.size());
}

std::string busy_machine_text(double predicted_share, double on_core_s, double kernels_s) {
  if (!(on_core_s > 0) || on_core_s >= least_of_predicted_cores * predicted_share * kernels_s) return "";
  return fmt::format(
      "kernels had a core {:.0f}% of their time, {:.0f}% was predicted: the machine is busy, and this comparison says "
      "little",
      100 * on_core_s / kernels_s, 100 * predicted_share);
}

std::optional<double> measured_core_share(const Comparison& comparison) {
  const double kernels_s = measured_kernels(comparison);
  if (!comparison.on_core_s || !(kernels_s > 0)) return std::nullopt;
  return comparison.on_core_s->measured / kernels_s;
}

std::string busy_machine_text(const Comparison& comparison) {
  if (!comparison.on_core_s) return "";
  return busy_machine_text(comparison.core_share, comparison.on_core_s->measured, measured_kernels(comparison));
}

std::optional<double> Pair::error() const {
  if (!(measured > 0)) return std::nullopt;
  return difference() / measured;
}

StepComparison::StepComparison(std::string file, TimelineFile predicted)
    : file_(std::move(file)), title_(predicted.title) {
  Diagnostics diagnostics;
  require_title(file_, title_, "predicted", diagnostics);
  if (predicted.timeline.instructions.empty()) diagnostics.error({file_, 0, 0}, "this timeline has no instructions");
  diagnostics.throw_if_any();
  sort_by_id(predicted.timeline.instructions);
  predicted_ = summary(predicted);
  predicted_.on_core_s = computed_seconds(predicted.timeline.ranks) * title_.core_share;
  instructions_ = std::move(predicted.timeline.instructions);
  for_each_family(instructions_, [&](const auto&, std::size_t family) { ++family_instructions_.at(family); });
}

// Requires instructions sorted by id.
StepComparison::Summary StepComparison::summary(const TimelineFile& file) const {
  const Timeline& timeline = file.timeline;
  Summary summary;
  summary.step_time_s = timeline.step_time.seconds();
  if (!file.processor.empty()) summary.on_core_s = computed_seconds(file.processor);
  if (file.title.at_pace) summary.at_pace_s = file.title.at_pace->seconds();
  std::array<DurationSum, family_count> families;
  for_each_family(timeline.instructions, [&](const InstructionRecord& record, std::size_t family) {
    families.at(family) += record.end - record.begin;
  });
  for (std::size_t i = 0; i < family_count; ++i) summary.family_s[i] = families[i].seconds();
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const auto [exchange_s, hidden_s] = overlap_of(records_of(rank, timeline.instructions, title_.stages));
    summary.ranks.push_back({timeline.busy(rank).seconds(), exchange_s, hidden_s});
  }
  const Breakdown mean = timeline.mean();
  for (const Activity activity : all_activities) {
    summary.activity_s[index_of(activity)] = mean[activity].seconds();
  }
  return summary;
}

void StepComparison::require_same_instructions(const std::string& file,
                                               const std::vector<InstructionRecord>& measured) const {
  const auto before = [&](const InstructionRecord& a, const InstructionRecord& b) { return id_of(a) < id_of(b); };
  Difference missing;
  Difference additional;
  Difference other;
  auto p = instructions_.begin();
  auto m = measured.begin();
  while (p != instructions_.end() || m != measured.end()) {
    if (m == measured.end() || (p != instructions_.end() && before(*p, *m))) {
      missing.note(*p++);
    } else if (p == instructions_.end() || before(*m, *p)) {
      additional.note(*m++);
    } else {
      if (p->opcode != m->opcode) other.note(*m);
      ++p;
      ++m;
    }
  }
  Diagnostics diagnostics;
  tell(missing, file, fmt::format("of {} were not measured", file_), diagnostics);
  tell(additional, file, fmt::format("are not in {}", file_), diagnostics);
  tell(other, file, fmt::format("are others in {}", file_), diagnostics);
  diagnostics.throw_if_any();
}

void StepComparison::add(const std::string& file, TimelineFile measured) {
  Diagnostics diagnostics;
  require_title(file, measured.title, "measured", diagnostics);
  require_same(file, "plan", measured.title.plan, title_.plan, diagnostics);
  require_same(file, "step", measured.title.step, title_.step, diagnostics);
  require_same(file, "number of stages", measured.title.stages, title_.stages, diagnostics);
  require_same(file, "number of ranks", measured.timeline.ranks.size(), predicted_.ranks.size(), diagnostics);
  diagnostics.throw_if_any();
  sort_by_id(measured.timeline.instructions);
  require_same_instructions(file, measured.timeline.instructions);
  measured_.push_back(summary(measured));
}

Comparison StepComparison::result() const {
  HDPSIM_CHECK(!measured_.empty(), "step {} was not measured", title_.step);
  const auto pair = [&](const auto& figure) {
    std::vector<double> values;
    for (const Summary& run : measured_) values.push_back(figure(run));
    return Pair{figure(predicted_), median(std::move(values))};
  };
  Comparison result{.plan = title_.plan,
                    .steps = {title_.step},
                    .runs = measured_.size(),
                    .step_time_s = pair([](const Summary& s) { return s.step_time_s; }),
                    .noise_floor_s = {},
                    .core_share = title_.core_share,
                    .on_core_s = {},
                    .families = {},
                    .stages = title_.stages,
                    .ranks = {}};
  if (measured_.size() > 1) {
    std::array<std::vector<double>, 2> halves;
    for (std::size_t i = 0; i < measured_.size(); ++i) halves[i % 2].push_back(measured_[i].step_time_s);
    result.noise_floor_s = std::abs(median(halves[0]) - median(halves[1]));
  }
  const auto knows_cores = [](const Summary& run) { return run.on_core_s.has_value(); };
  if (std::all_of(measured_.begin(), measured_.end(), knows_cores)) {
    result.on_core_s = pair([](const Summary& s) { return *s.on_core_s; });
  }
  const auto knows_pace = [](const Summary& run) { return run.at_pace_s.has_value(); };
  if (std::all_of(measured_.begin(), measured_.end(), knows_pace)) {
    std::vector<double> predicted;
    for (const Summary& run : measured_) predicted.push_back(*run.at_pace_s);
    result.at_pace_s = Pair{median(std::move(predicted)), result.step_time_s.measured};
  }
  for (std::size_t i = 0; i < family_count; ++i) {
    if (family_instructions_[i] == 0) continue;
    result.families.push_back(
        {family_name(i), family_instructions_[i], pair([i](const Summary& s) { return s.family_s[i]; })});
  }
  sort_by_difference(result.families);
  for (std::size_t rank = 0; rank < predicted_.ranks.size(); ++rank) {
    result.ranks.push_back({pair([rank](const Summary& s) { return s.ranks[rank].busy_s; }),
                            pair([rank](const Summary& s) { return s.ranks[rank].exchange_s; }),
                            pair([rank](const Summary& s) { return s.ranks[rank].hidden_s; })});
  }
  for (std::size_t i = 0; i < activity_count; ++i) {
    result.activities_s[i] = pair([i](const Summary& s) { return s.activity_s[i]; });
  }
  return result;
}

std::string worker_name(const Comparison& comparison, std::size_t worker) {
  const auto stages = static_cast<std::size_t>(comparison.stages);
  return stages == 1 ? std::to_string(worker) : fmt::format("{}, stage {}", worker / stages, worker % stages);
}

std::vector<std::size_t> worst_ranks(const Comparison& comparison, std::size_t most) {
  const std::vector<RankComparison>& ranks = comparison.ranks;
  std::vector<std::size_t> worst(ranks.size());
  std::iota(worst.begin(), worst.end(), std::size_t{0});
  if (worst.size() <= most) return worst;
  std::stable_sort(worst.begin(), worst.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(ranks[a].busy_s.difference()) > std::abs(ranks[b].busy_s.difference());
  });
  worst.resize(most);
  return worst;
}

Comparison mean_of(const std::vector<Comparison>& steps) {
  HDPSIM_CHECK(!steps.empty(), "no steps have a mean");
  const double share = 1 / static_cast<double>(steps.size());
  Comparison mean{.plan = steps[0].plan,
                  .steps = {},
                  .runs = steps[0].runs,
                  .step_time_s = {},
                  .noise_floor_s = 0,
                  .core_share = 0,
                  .on_core_s = Pair{},
                  .at_pace_s = Pair{},
                  .families = mean_families(steps),
                  .stages = steps[0].stages,
                  .ranks = std::vector<RankComparison>(steps[0].ranks.size())};
  for (const Comparison& step : steps) {
    require_alike(steps[0], step);
    mean.steps.insert(mean.steps.end(), step.steps.begin(), step.steps.end());
    mean.runs = std::min(mean.runs, step.runs);
    add_share(mean.step_time_s, step.step_time_s, share);
    mean.core_share += step.core_share * share;
    if (!step.noise_floor_s) mean.noise_floor_s.reset();
    if (mean.noise_floor_s) *mean.noise_floor_s += *step.noise_floor_s * share;
    if (!step.on_core_s) mean.on_core_s.reset();
    if (mean.on_core_s) add_share(*mean.on_core_s, *step.on_core_s, share);
    if (!step.at_pace_s) mean.at_pace_s.reset();
    if (mean.at_pace_s) add_share(*mean.at_pace_s, *step.at_pace_s, share);
    add_ranks(mean.ranks, step.ranks, share);
    for (std::size_t i = 0; i < activity_count; ++i) add_share(mean.activities_s[i], step.activities_s[i], share);
  }
  sort_by_difference(mean.families);
  return mean;
}

}  // namespace hdpsim
