#pragma once

#include "sim/validate/impl/set_table.h"
#include "sim/validate/validation_set.h"

namespace hdpsim {

/// The case that a row of a set states; `study` is what all cases have in common. What a job of sequences of one length
/// does not say in its columns, the study may say in its own keys: `mesh.tp`, `mesh.hdp`, `data.tokens_per_step`. All
/// problems of the row are reported, but for those that a column which nobody knows may have caused.
[[nodiscard]] ValidationCase read_case(const SetTable& table, const Value& row, Value study, Diagnostics& diagnostics);

}  // namespace hdpsim
