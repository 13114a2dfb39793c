#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/measure/nccl_tests.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::calib {

/// Both take runs that do not name their collective as of `otherwise`; empty: this is reported.
[[nodiscard]] std::vector<NcclTestsRun> read_nccl_tests_text(const std::string& file, const std::string& text,
                                                             std::optional<MessageKind> otherwise,
                                                             Diagnostics& diagnostics);
[[nodiscard]] std::vector<NcclTestsRun> read_nccl_tests_json(const std::string& file, const std::string& text,
                                                             std::optional<MessageKind> otherwise,
                                                             Diagnostics& diagnostics);

/// The collective in the name of a program or a file: "all_reduce_perf", "out/alltoall.txt".
[[nodiscard]] std::optional<MessageKind> nccl_tests_kind(std::string_view name);

/// Reports at `position` a run that says nothing about a link: one without a row, or of fewer than two ranks.
bool check_nccl_tests_run(const NcclTestsRun& run, const Position& position, Diagnostics& diagnostics);

/// Writes kind, link and ranks of the run into it and its timings.
void state_kind(NcclTestsRun& run, MessageKind kind);

}  // namespace hdpsim::calib
