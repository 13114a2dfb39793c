#pragma once

#include "sim/profile/device_profile.h"

namespace hdpsim {

// What becomes of the figures of a profile when a kind of kernels or messages runs at `rate` times its rate. Launches
// and latencies stay. Samples, fits and published rates change alike, so that every cost model sees the change; sources
// of the changed figures say that they were fitted.

void scale_products(DeviceProfile& profile, double rate);
void scale_attention(DeviceProfile& profile, double rate);
void scale_memory(DeviceProfile& profile, double rate);
/// Messages and collectives on one kind of link. None gets faster than its link, nor slower than a profile may state.
void scale_links(DeviceProfile& profile, LinkKind kind, double rate);

// How many times faster they can get before a sample or a rate is above the data sheet's peak, or a message as fast as
// its link; at least 1.

[[nodiscard]] double room_of_products(const DeviceProfile& profile);
[[nodiscard]] double room_of_attention(const DeviceProfile& profile);
[[nodiscard]] double room_of_memory(const DeviceProfile& profile);
[[nodiscard]] double room_of_links(const std::optional<LinkProfile>& link);

/// Adds to the source of a figure, once, that it was fitted: "measured by X; fitted to steps (see provenance)".
void tell_fitted(std::string& source);

}  // namespace hdpsim
