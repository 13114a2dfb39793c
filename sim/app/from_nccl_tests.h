#pragma once

#include <string>
#include <vector>

#include "calib/measure/nccl_tests.h"
#include "sim/app/command.h"

namespace hdpsim::app {

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
