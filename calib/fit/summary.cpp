#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "calib/fit/report.h"

namespace hdpsim::calib {
namespace {

/// All fits of one family together.
struct Family {
  std::string_view name;
  std::string_view noise_name;
  std::vector<const FitQuality*> fits;
};

std::string line_of(const Family& family, const std::vector<NoiseFloor>& noise) {
  constexpr double to_percent = 100;
  std::int64_t samples = 0;
  double error = 0;
  double worst = 0;
  for (const FitQuality* fit : family.fits) {
    samples += fit->samples;
    error += fit->held_out.mean * static_cast<double>(fit->samples);
    worst = std::max(worst, fit->held_out.max);
  }
  const auto floor =
      std::find_if(noise.begin(), noise.end(), [&](const NoiseFloor& n) { return n.family == family.noise_name; });
  const std::string noise_text = floor == noise.end() ? "-" : fmt::format("{:.2f} %", to_percent * floor->mean);
  return fmt::format("{:<18} {:>8} {:>16} {:>16} {:>13}\n", family.name, samples,
                     fmt::format("{:.2f} %", to_percent * error / static_cast<double>(samples)),
                     fmt::format("{:.2f} %", to_percent * worst), noise_text);
}

}  // namespace

std::string fit_summary(const DeviceProfile& profile) {
  const ProfileFits& fits = profile.fits;
  std::vector<Family> families = {{"attention", "attention", {}},  {"attention, packed", "attention", {}},
                                  {"matrix products", "gemm", {}}, {"memory-bound", "memory_bound", {}},
                                  {"copies", "copies", {}},        {"messages", "messages", {}}};
  for (const AttentionFit& fit : fits.attention) {
    families[0].fits.push_back(&fit.quality);
    if (fit.packed) families[1].fits.push_back(&*fit.packed);
  }
  if (fits.gemm) families[2].fits.push_back(&fits.gemm->quality);
  // The fit for all kernels has the samples of every other one, which are not counted twice.
  for (const MemoryBoundFit& fit : fits.memory_bound) {
    if (fit.kernel != every_kernel) families[3].fits.push_back(&fit.quality);
  }
  for (const CopyFit& fit : fits.copies) families[4].fits.push_back(&fit.quality);
  for (const MessageFit& fit : fits.messages) families[5].fits.push_back(&fit.quality);

  std::string text = fmt::format("{:<18} {:>8} {:>16} {:>16} {:>13}\n", "family", "samples", "held-out error",
                                 "at most", "noise floor");
  for (const Family& family : families) {
    if (!family.fits.empty()) text += line_of(family, profile.samples.noise);
  }
  return text;
}

}  // namespace hdpsim::calib
