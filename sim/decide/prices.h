#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/document/key.h"
#include "sim/study/price.h"

namespace hdpsim {

/// What a cluster costs, or a type of device. At least one of the figures is there, and one power at most.
struct HardwarePrice {
  std::optional<Price> price{};        ///< Of a GPU-hour.
  std::optional<double> gpu_watts{};   ///< Of a GPU with its share of the node, ...
  std::optional<double> node_watts{};  ///< ... or of a whole node.

  /// The watts of a GPU with its share of a node of that many; empty if no power is stated.
  [[nodiscard]] std::optional<double> watts_of_gpu(std::int64_t gpus_per_node) const;
};

/// A user's file of prices: all in one currency.
struct Prices {
  std::string file;
  std::map<std::string, HardwarePrice> hardware;  ///< By the name of a cluster, or of a device type.
  std::optional<Price> electricity{};             ///< Of a kWh; every entry then states a power.
  double pue = 1;                                 ///< Power of the site over that of its nodes.
  std::string currency;                           ///< Empty if nothing has a price.
};

/// The keys of a file of prices.
[[nodiscard]] const std::vector<KeyText>& price_keys();

/// Reads the file:
///     hardware:
///       h100-rail: {price: 2.10 USD/GPU-hour, node_power: 10.2 kW}
///       A100-80GB: {gpu_power: 800 W}
///     electricity: 0.09 USD/kWh
///     pue: 1.2
/// InputError with every problem.
[[nodiscard]] Prices load_prices(const std::string& path);

/// The entry of the cluster, or else of its type of device. InputError if there is none, or only the latter and the
/// cluster has other devices, too.
[[nodiscard]] const HardwarePrice& price_for(const Prices& prices, const ClusterSpec& cluster);

}  // namespace hdpsim
