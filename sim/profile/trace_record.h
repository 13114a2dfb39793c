#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hdpsim {

/// One part of a profile that came from traces of a profiler.
struct TracedPart {
  std::string part;  ///< "gemm", "attention causal forward 128", "nvlink all_gather", "host_issue", ...
  /// "fitted": from samples of many sizes, as a calibration fits them. "scaled": the starting profile's figures times
  /// one factor, for want of sizes.
  std::string how;
  std::string value;         ///< What came out, in words: "13.4 us", "1.08 times the time of the starting profile".
  std::int64_t samples = 0;  ///< Kernels, launches or messages.
  std::int64_t sizes = 0;    ///< Different shapes or amounts of bytes among them.
  /// Deciles 1 and 9 of measured / predicted over the samples, with the figures of this profile.
  double p10 = 1;
  double p90 = 1;
  friend bool operator==(const TracedPart&, const TracedPart&) = default;
};

/// One file of a profiler: a rank.
struct TracedFile {
  std::string file;
  std::int64_t kernels = 0;
  friend bool operator==(const TracedFile&, const TracedFile&) = default;
};

/// A part that the traces did not determine: that of the starting profile.
struct KeptPart {
  std::string part;
  std::string why;
  friend bool operator==(const KeptPart&, const KeptPart&) = default;
};

/// What a profile has from traces, and what it kept of the profile with which the fit started.
struct TraceRecord {
  std::string start;  ///< The starting profile, and its label.
  std::vector<TracedFile> files;
  double kernel_s = 0;      ///< Time of all kernels in them.
  double unclassified = 0;  ///< Share of it in kernels whose names say nothing known.
  std::vector<TracedPart> parts;
  std::vector<KeptPart> kept;
  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

}  // namespace hdpsim
