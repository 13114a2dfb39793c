#include "calib/fit/doubts.h"

#include "sim/cost/cost_model.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

// Without the samples, because the profile would repeat the sample of a launch that has one.
DeviceProfile fits_alone(DeviceProfile profile) {
  profile.attention.clear();
  return profile;
}

}  // namespace

Samples slower_than_fitted(const Samples& samples, const DeviceProfile& profile, double share) {
  Samples found;
  found.circumstances = samples.circumstances;
  const auto is_slower = [share](const Timing& timing, double fitted_s) {
    return timing.median_s > (1 + share) * fitted_s;
  };
  const auto cost = make_cost_model(fits_alone(profile));
  for (const AttentionTiming& sample : samples.attention) {
    if (is_slower(sample.timing, cost->attention(sample.op).time.seconds())) found.attention.push_back(sample);
  }
  for (const MemoryBoundTiming& sample : samples.memory_bound) {
    for (const MemoryBoundFit& fit : profile.fits.memory_bound) {
      if (fit.kernel != sample.kernel) continue;
      const double fitted_s = fitted_seconds(fit.curve, static_cast<double>(sample.bytes));
      if (is_slower(sample.timing, fitted_s)) found.memory_bound.push_back(sample);
    }
  }
  for (const MessageTiming& sample : samples.messages) {
    const MessageFit* fit = message_fit(profile.fits, sample.link, sample.kind, sample.ranks);
    if (fit == nullptr) continue;
    const double fitted_s = fitted_seconds(*fit, static_cast<double>(sample.bytes));
    if (is_slower(sample.timing, fitted_s)) found.messages.push_back(sample);
  }
  return found;
}

}  // namespace hdpsim::calib
