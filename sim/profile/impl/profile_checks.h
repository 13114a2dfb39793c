#pragma once

#include <vector>

#include "sim/document/reader.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What readers of all maps of a profile know of it.
struct KnownProfile {
  ProfileLabel label = ProfileLabel::measured;
  FlopRate peak;  ///< Zero as long as it is not known.
};

// What must hold between the fields of a map, once it is read; most maps need nothing. The arguments after the object
// are those of its fields().
template <class T, class... Context>
void check_whole(MapReader& /*map*/, const KnownProfile& /*known*/, const T& /*object*/,
                 const Context&... /*context*/) {}
void check_whole(MapReader& map, const KnownProfile& known, const Provenance& provenance);
void check_whole(MapReader& map, const KnownProfile& known, const AttentionSample& sample, const AttentionCurve& curve);
void check_whole(MapReader& map, const KnownProfile& known, const PackedSample& sample, const AttentionCurve& curve);
void check_whole(MapReader& map, const KnownProfile& known, const GemmShapeSample& sample, const GemmTable& table,
                 const double& speed);
void check_whole(MapReader& map, const KnownProfile& known, const GemmTable& table, const double& speed);
void check_whole(MapReader& map, const KnownProfile& known, const SendRecvRate& rate);
void check_whole(MapReader& map, const KnownProfile& known, const ConnectionCosts& costs);
void check_whole(MapReader& map, const KnownProfile& known, const AttentionFit& fit);
void check_whole(MapReader& map, const KnownProfile& known, const GemmFit& fit);
void check_whole(MapReader& map, const KnownProfile& known, const TransferCurve& curve);
void check_whole(MapReader& map, const KnownProfile& known, const ProfileFits& fits);

// What must hold between an item of a list and those `before` it; `value` is what it was read from.
template <class T>
void check_item(const T& /*item*/, const std::vector<T>& /*before*/, const Value& /*value*/,
                Diagnostics& /*diagnostics*/) {}
void check_item(const AttentionCurve& curve, const std::vector<AttentionCurve>& before, const Value& value,
                Diagnostics& diagnostics);
void check_item(const AttentionSample& sample, const std::vector<AttentionSample>& before, const Value& value,
                Diagnostics& diagnostics);

}  // namespace hdpsim
