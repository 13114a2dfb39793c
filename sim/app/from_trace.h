#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/measure/nccl_tests.h"
#include "sim/app/command.h"

namespace hdpsim::app {

/// `hdpsim calibrate --from-trace`: a profile fitted to traces of PyTorch's profiler. Needs no kernels.
struct FromTraceOptions {
  std::vector<std::string> traces;  ///< None: another kind of calibration.
  std::int64_t gpus_per_node = 0;   ///< 0: as the cluster or the trace says.
};

/// Adds the options, all but `--out` and `--like`, which this kind of calibration also takes. All except the first need
/// it.
void add_from_trace(Command command, FromTraceOptions& options);

/// Fits, prints the report and writes the profile to the file `out`, if that is not empty. `like` names a cluster or a
/// profile, shipped or a file; empty: the shipped profile of the traced device.
int calibrate_from_trace(const FromTraceOptions& options, const std::string& like, const std::string& out,
                         const Session& session);

/// Adds `--nccl-tests FILE`, which may be given several times.
void add_nccl_tests(Command command, std::vector<std::string>& files);

/// What the files hold. InputError with every problem of them.
[[nodiscard]] std::vector<calib::NcclTestsRun> read_nccl_tests_files(const std::vector<std::string>& files);

/// `hdpsim calibrate --nccl-tests FILE... --like NAME`: the profile that NAME is or has, with the messages that
/// nccl-tests measured. Prints what came from where and writes the profile to the file `out`, if that is not empty.
/// Needs neither a device nor kernels.
int calibrate_from_nccl_tests(const std::vector<std::string>& files, const std::string& like, const std::string& out,
                              const Session& session);

}  // namespace hdpsim::app
