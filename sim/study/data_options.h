#pragma once

#include <cstdint>

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

}  // namespace hdpsim
