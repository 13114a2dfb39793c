#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/measure/nccl_tests.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::calib {

/// What runs are of that do not say it; what is empty or 0 is reported where a run does not say it.
struct RunUnsaid {
  std::optional<MessageKind> kind;
  std::int64_t ranks = 0;
};
[[nodiscard]] std::vector<NcclTestsRun> read_nccl_tests_text(const std::string& file, const std::string& text,
                                                             const RunUnsaid& otherwise, Diagnostics& diagnostics);
[[nodiscard]] std::vector<NcclTestsRun> read_nccl_tests_json(const std::string& file, const std::string& text,
                                                             const RunUnsaid& otherwise, Diagnostics& diagnostics);

/// The collective in the name of a program or a file: "all_reduce_perf", "out/alltoall.txt".
[[nodiscard]] std::optional<MessageKind> nccl_tests_kind(std::string_view name);

/// Reports at `position` a run that says nothing about a link: one without a row, or of fewer than two ranks.
bool check_nccl_tests_run(const NcclTestsRun& run, const Position& position, Diagnostics& diagnostics);

/// Writes kind, link and ranks of the run into it and its timings.
void state_kind(NcclTestsRun& run, MessageKind kind);

}  // namespace hdpsim::calib
