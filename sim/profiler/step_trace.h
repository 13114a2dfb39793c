#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/profiler/profiler_readers.h"
#include "sim/profiler/recording.h"

namespace hdpsim {

/// One pass of a micro-batch on one rank. Times are seconds since the rank's step began.
struct PassOfTrace {
  std::int64_t micro_batch = 0;
  bool is_forward = true;
  double begin_s = 0;
  double end_s = 0;
  std::array<double, device_activities> seconds{};  ///< Sums to the time from begin to end.
};

/// One step on one rank: from the begin of its range to the end of its optimizer, or of its last kernel.
struct StepOfTrace {
  std::int64_t step = 0;
  double seconds_in_all = 0;
  std::array<double, device_activities> seconds{};  ///< Sums to that time.
  bool has_optimizer = false;
  std::vector<PassOfTrace> passes;  ///< By their begins; none begins before the one before it has ended.
};

/// The steps of one rank that the ranges of its trace name.
struct StepTrace {
  std::string file;
  std::optional<std::int64_t> rank;  ///< By its ranges or by "distributedInfo"; empty: the trace does not say it.
  bool is_of_host = false;           ///< The trace has no kernels of a GPU: operators of CPUs count in their place.
  std::vector<StepOfTrace> steps;    ///< In the order of time; a number may come again.
  std::int64_t work = 0;             ///< Kernels, or operators.
  std::int64_t outside = 0;          ///< Kernels of which nothing says when they were launched: in no pass.
};

/// Reads the trace of one rank by the ranges in it (TrainingRange).
///
/// On a GPU a pass lasts from the first to the last kernel or message that it launched. A kernel belongs to the pass
/// whose range, as the profiler lays it on the kernel's stream (gpu_user_annotation), holds it; else to the one in
/// whose time the host launched it, from whatever thread, as autograd runs backward on its own ones. On CPUs a pass
/// lasts as long as its range, whichever threads work meanwhile.
///
/// A moment with neither kernel nor message is one of a message if the rank waits in a range of an exchange; otherwise
/// it is idle. Of a message, nothing says how long it waits for a late rank.
///
/// InputError: what read_kineto() reports; more than 20 million kernels or operations.
[[nodiscard]] StepTrace read_step_trace(
    const std::filesystem::path& file, const ReportShare& report = [](double) {});

}  // namespace hdpsim
