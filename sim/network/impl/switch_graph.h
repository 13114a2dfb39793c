#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/network/fabric.h"

namespace hdpsim {

/// A graph of switches as routing sees it: the cables at each switch, and how far it is to the switch where a message
/// ends. Memory: O(switches x switches with NICs).
class SwitchGraph {
 public:
  static constexpr std::uint16_t unreachable = std::numeric_limits<std::uint16_t>::max();

  /// Equal cables between two switches.
  struct Bundle {
    std::pair<std::size_t, std::size_t> ends;
    std::size_t cables;
    std::size_t first_parallel;  ///< Cables between the two switches in earlier bundles.
    Bandwidth rate;              ///< Of one cable.
    bool is_missing = false;     ///< It keeps its number and is on no path.
  };
  /// A bundle as one of its ends sees it.
  struct Arc {
    std::size_t bundle;
    std::size_t to;
    std::size_t direction;  ///< 0: as the cable was written. 1: back.
  };

  SwitchGraph(const SwitchGraphSpec& graph, std::int64_t rails, double efficiency);

  [[nodiscard]] std::size_t switches() const { return arcs_.size(); }
  [[nodiscard]] const std::vector<Bundle>& bundles() const { return bundles_; }
  [[nodiscard]] std::span<const Arc> arcs_of(std::size_t which) const { return arcs_[which]; }
  [[nodiscard]] Duration latency_of(std::size_t which) const { return graph_.switches[which].latency; }
  /// By switch: the number of its NICs.
  [[nodiscard]] std::vector<std::int64_t> nics() const;
  [[nodiscard]] std::size_t switch_of(const Port& port) const {
    return graph_.attached[port.node * rails_ + port.rail];
  }
  [[nodiscard]] bool joins_rails(std::size_t from, std::size_t to) const {
    return island_[switch_of({0, from})] == island_[switch_of({0, to})];
  }
  /// By switch: the cables of a shortest way to `target`. One breadth-first search, made when it is first needed and
  /// kept.
  [[nodiscard]] const std::vector<std::uint16_t>& distances_to(std::size_t target) const;
  /// The name of a cable of a bundle in one direction.
  [[nodiscard]] std::string name(std::size_t bundle, std::size_t cable, std::size_t direction) const;

 private:
  void add_bundle(const SwitchGraphSpec::Cable& cable, Bandwidth rate);
  void find_islands();

  SwitchGraphSpec graph_;
  std::size_t rails_;
  std::vector<std::vector<Arc>> arcs_;  ///< By switch.
  std::vector<Bundle> bundles_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> parallel_;  ///< Cables between two switches so far.
  std::vector<std::size_t> island_;                                      ///< By switch.
  mutable std::unordered_map<std::size_t, std::vector<std::uint16_t>> distances_;  ///< By target switch.
};

}  // namespace hdpsim
