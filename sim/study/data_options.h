#pragma once

#include <cstdint>

#include "sim/base/diagnostic.h"
#include "sim/document/key.h"
#include "sim/study/catalog.h"
#include "sim/trace/batch_source.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

/// `data` of a study: the sequences of its steps.
struct DataOptions {
  Lengths lengths;
  BatchOptions batch;
  std::int64_t steps = 0;
};

[[nodiscard]] const std::vector<KeyText>& data_keys();

/// Reads `data`. All problems are reported.
[[nodiscard]] DataOptions read_data(const Value& value, Catalog& catalog, Diagnostics& diagnostics);

/// The most sequences of one step that are simulated; a million GPUs with mixed lengths have a quarter of it.
inline constexpr std::int64_t most_sequences_of_step = std::int64_t{1} << 26;

/// Estimates, before any step is made, how many sequences a step has. Reports more than most_sequences_of_step at the
/// key that decides; MachineError, with the same place, where their plans need more memory than this machine has.
void check_step_size(const BatchOptions& options, const BatchSource& batches, Diagnostics& diagnostics);

}  // namespace hdpsim
