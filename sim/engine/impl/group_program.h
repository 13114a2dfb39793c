#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The data that the workers of a pass share while it runs in the exact fidelity.
struct GroupProgram {
  PricedProgram priced;
  using Instructions = std::vector<std::uint32_t>;
  std::vector<std::array<Instructions, stream_count>> streams;  ///< By block: the instructions of each stream.
  std::vector<Instructions> turns;                       ///< By block and instruction: its index in its stream's list.
  std::vector<std::pair<WorkerId, std::size_t>> places;  ///< Workers with their index in the group, sorted.
  std::size_t ranks_left = 0;
  bool starts_together = false;  ///< The group has connections to set up.
  bool is_private = false;
  /// By sub-group of a collective: the workers that have come to it, with the times.
  std::vector<std::vector<std::pair<WorkerId, Instant>>> meetings{};
  std::vector<Hop> hops{};        ///< Hops of a private ring; ExchangeBoard has those of other rings.
  std::vector<Instant> begins{};  ///< Private ring: when each rank begins.
  Instant began{};                ///< Private ring, once all ranks have begun: when the first began.
  Instant ends{};                 ///< Private ring, once all ranks have begun: when the last will have ended.

  GroupProgram(PricedProgram program, const std::vector<WorkerId>& group)
      : priced(std::move(program)), ranks_left(group.size()) {
    places.reserve(group.size());
    for (std::size_t i = 0; i < group.size(); ++i) places.emplace_back(group[i], i);
    std::sort(places.begin(), places.end());
    for (const Block& block : priced.program.blocks) {
      auto& lists = streams.emplace_back();
      Instructions& turn = turns.emplace_back();
      for (std::uint32_t i = 0; i < block.body.size(); ++i) {
        auto& list = lists[static_cast<std::size_t>(block.body[i].stream)];
        turn.push_back(static_cast<std::uint32_t>(list.size()));
        list.push_back(i);
      }
    }
  }

  /// The share of a private ring that is done, by time.
  [[nodiscard]] double share_done(Instant now) const {
    return ends > began ? (now - began).seconds() / (ends - began).seconds() : 0;
  }
  /// The index of a worker in the group. O(log ranks).
  [[nodiscard]] std::size_t place_of(WorkerId worker) const {
    return std::lower_bound(places.begin(), places.end(), std::pair(worker, std::size_t{0}))->second;
  }
};

}  // namespace hdpsim
