#include "sim/compare/instruction_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/compare/timeline_file.h"

namespace hdpsim {
namespace {

// Records of a worker follow one another, and of them those of a pass.
auto id_of(const InstructionRecord& record) {
  return std::tuple(record.rank, record.stage, instruction_id(record));
}

std::string record_text(const InstructionRecord& record) {
  const std::string pass =
      record.kind == PassKind::whole ? "" : fmt::format("chunk {}, {}, ", record.chunk, pass_kind_name(record.kind));
  return fmt::format("{} (rank {}, micro-batch {}, {}block {}, iteration {}, instruction {})",
                     opcode_name(record.opcode), record.rank.index(), record.micro_batch.index(), pass, record.block,
                     record.iteration, record.instruction);
}

/// Differences of one kind between instructions: their number, and the first.
struct Difference {
  std::int64_t count = 0;
  std::string first;
  void note(const InstructionRecord& record) {
    if (count++ == 0) first = record_text(record);
  }
};

void report(const Difference& difference, const std::string& file, const std::string& what, Diagnostics& diagnostics) {
  if (difference.count == 0) return;
  diagnostics.error({file, 0, 0},
                    fmt::format("{} instructions {}; the first is {}", difference.count, what, difference.first));
}

constexpr std::array<const char*, 3> direction_suffixes = {"", " forward", " backward"};

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

auto pass_key(const InstructionRecord& record) {
  return std::tuple(record.rank, record.micro_batch, record.chunk, record.kind);
}

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

}  // namespace

void sort_by_id(std::vector<InstructionRecord>& records) {
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return id_of(a) < id_of(b); });
}

void require_same_instructions(const NamedInstructions& predicted, const NamedInstructions& measured) {
  const auto before = [&](const InstructionRecord& a, const InstructionRecord& b) { return id_of(a) < id_of(b); };
  Difference missing;
  Difference additional;
  Difference other;
  auto p = predicted.records.begin();
  auto m = measured.records.begin();
  while (p != predicted.records.end() || m != measured.records.end()) {
    if (m == measured.records.end() || (p != predicted.records.end() && before(*p, *m))) {
      missing.note(*p++);
    } else if (p == predicted.records.end() || before(*m, *p)) {
      additional.note(*m++);
    } else {
      if (p->opcode != m->opcode) other.note(*m);
      ++p;
      ++m;
    }
  }
  Diagnostics diagnostics;
  report(missing, measured.file, fmt::format("of {} were not measured", predicted.file), diagnostics);
  report(additional, measured.file, fmt::format("are not in {}", predicted.file), diagnostics);
  report(other, measured.file, fmt::format("are others in {}", predicted.file), diagnostics);
  diagnostics.throw_if_any();
}

std::string instruction_family_name(std::size_t family) {
  return fmt::format("{}{}", opcode_name(static_cast<Opcode>(family % opcode_count)),
                     direction_suffixes[family / opcode_count]);
}

void for_each_family(const std::vector<InstructionRecord>& records,
                     const std::function<void(const InstructionRecord& record, std::size_t family)>& visit) {
  for (std::size_t begin = 0; begin < records.size();) {
    const auto is_of_another = [&](const auto& record) { return pass_key(record) != pass_key(records[begin]); };
    const auto first = records.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = static_cast<std::size_t>(std::find_if(first, records.end(), is_of_another) - records.begin());
    for (std::size_t i = begin; i < end; ++i) visit(records[i], family_of(records[i], records[end - 1].block));
    begin = end;
  }
}

ExchangeOverlap exchange_overlap(std::span<const InstructionRecord> records) {
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

}  // namespace hdpsim
