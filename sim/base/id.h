#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace hdpsim {

/// The index of one thing of the kind that Tag names. Ids of different kinds do not mix.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<std::uint32_t>(index)) {}
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  std::uint32_t value_ = 0;
};

using HdpRank = Id<struct HdpRankTag>;          ///< One slice of a model replica: tp x pp devices.
using DeviceId = Id<struct DeviceTag>;          ///< One GPU (or CPU in place of one).
using NodeId = Id<struct NodeTag>;              ///< One host with its devices.
using LinkId = Id<struct LinkTag>;              ///< One direction of one network link.
using SequenceId = Id<struct SequenceTag>;      ///< One sequence of the batch.
using MicroBatchId = Id<struct MicroBatchTag>;  ///< One micro-batch of the plan.

}  // namespace hdpsim

template <class Tag>
struct std::hash<hdpsim::Id<Tag>> {
  std::size_t operator()(hdpsim::Id<Tag> id) const noexcept { return id.index(); }
};
