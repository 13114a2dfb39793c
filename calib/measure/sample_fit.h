#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "calib/measure/sample_file.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

struct SampleFitOptions {
  std::string source;                   ///< Who fitted: goes behind whose kernels were measured.
  const DeviceProfile* like = nullptr;  ///< Has what samples lack. Null: that stays empty.
  const DeviceProfile* shipped =
      nullptr;  ///< Of the same device: its data sheet, where nothing else has it. May be null.
  std::uint64_t seed = 1;
};

struct SampleFit {
  DeviceProfile profile;
  std::string summary;                ///< fit_summary() of what was measured, without what is kept.
  std::string measured;               ///< Whose kernels they are, as in the profile's source.
  std::vector<std::string> left_out;  ///< Curves with too few samples, and how many those are.
  std::vector<std::string> kept;      ///< Parts of `like`, for people: "host_copies", "network".
};

/// The profile of samples that were measured before, fitted as a calibration fits its own, with the label `measured`.
/// Its source names whose kernels were measured, and what is another profile's: such a part names that one as its
/// source. Figures of the data sheet that neither the header nor a profile has are reported, and samples of too little
/// to make a profile; the result then means nothing.
[[nodiscard]] SampleFit fit_samples(const SampleFile& file, const SampleFitOptions& options, Diagnostics& diagnostics);

/// Whether the samples of a profile are of kernels that another program brought (fit_samples): this one cannot time
/// them again.
[[nodiscard]] bool is_of_other_kernels(const Provenance& provenance);

}  // namespace hdpsim::calib
