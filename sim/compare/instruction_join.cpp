#include "sim/compare/instruction_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>

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

void tell(const Difference& difference, const std::string& file, const std::string& what, Diagnostics& diagnostics) {
  if (difference.count == 0) return;
  diagnostics.error({file, 0, 0},
                    fmt::format("{} instructions {}; the first is {}", difference.count, what, difference.first));
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
  tell(missing, measured.file, fmt::format("of {} were not measured", predicted.file), diagnostics);
  tell(additional, measured.file, fmt::format("are not in {}", predicted.file), diagnostics);
  tell(other, measured.file, fmt::format("are others in {}", predicted.file), diagnostics);
  diagnostics.throw_if_any();
}

}  // namespace hdpsim
