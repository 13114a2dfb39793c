#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::calib {

/// One output of nccl-tests (github.com/NVIDIA/nccl-tests).
struct NcclTestsRun {
  MessageKind kind = MessageKind::send_recv;
  std::int64_t ranks = 0;
  LinkKind link = LinkKind::nvlink;  ///< network where the ranks are on several hosts.
  std::string nccl;                  ///< Version; may be empty.
  std::vector<MessageTiming> timings;
};

/// What is asked about, for runs that do not say it themselves.
struct NcclTestsAsked {
  std::string_view collective;  ///< Such as "all_reduce"; empty: none.
  std::int64_t ranks = 0;       ///< 0: none.
};

/// Reads what nccl-tests prints, of any release and behind the prefixes of launchers and logs (`srun -l`, mpirun's
/// --tag-output, time stamps), or the JSON that it writes with -J. Times are those of the out-of-place runs. A file may
/// hold several runs one after another. Which collective it is comes from the line "# Collective test starting", which
/// versions before 2.16 do not print, or else from the name of the file (all_reduce.txt), or else it is the one that
/// is asked about. So are the ranks where the list of devices was cut off, unless the bandwidths are those of others.
/// Reported, with line and column: rows that cannot be read, rows with wrong results, runs of a single rank (a copy, no
/// link), output of several runs at once, runs without a row, collectives that training here does not use.
[[nodiscard]] std::vector<NcclTestsRun> read_nccl_tests(const std::string& path, Diagnostics& diagnostics,
                                                        const NcclTestsAsked& asked = {});

/// The same for a text in memory; `file` is the name that diagnostics carry.
[[nodiscard]] std::vector<NcclTestsRun> parse_nccl_tests(const std::string& file, const std::string& text,
                                                         Diagnostics& diagnostics, const NcclTestsAsked& asked = {});

}  // namespace hdpsim::calib
