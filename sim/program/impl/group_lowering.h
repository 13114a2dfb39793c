#pragma once

#include <optional>

#include "sim/base/check.h"
#include "sim/program/impl/gathered_attention.h"
#include "sim/program/impl/layer_passes.h"
#include "sim/program/impl/ring.h"
#include "sim/program/impl/served_attention.h"
#include "sim/program/impl/traded_attention.h"

namespace hdpsim {

/// A way to share a sequence (KeyExchange) in instructions. Each is in a file of its own in this folder.
struct GroupLowering {
  /// The attention core of a layer over the ranks of its group. `projected` computes queries, keys and values; if
  /// empty, they exist already.
  void (*forward)(PassWriter& writer, std::optional<Index> projected) = nullptr;
  /// From the gradient of attention's output, which `differentiated` computes, to those of queries, keys and values.
  /// Returns the exchange that brings the last of them, if one does and nothing waits for it yet.
  std::optional<Index> (*backward)(PassWriter& writer, Index differentiated) = nullptr;
  /// A layer, and its backward without what ends the iteration. Where these are others than its parts one after the
  /// other, there is no core by itself.
  void (*layer_forward)(PassWriter& writer) = parts_forward;
  void (*layer_backward)(PassWriter& writer) = parts_backward;
};

[[nodiscard]] inline GroupLowering lowering_of(const GroupSharing& sharing) {
  switch (sharing.exchange) {
    case KeyExchange::ring:
      return {forward_ring, backward_ring};
    case KeyExchange::all_gather:
      return {forward_gathered, backward_gathered};
    case KeyExchange::all_to_all:
      return {forward_traded, backward_traded};
    case KeyExchange::group_cast:
      return {forward_cast, backward_cast};
    case KeyExchange::query_ring:
      return {forward_ring, backward_ring};
    case KeyExchange::servers:
      return {.layer_forward = served_forward, .layer_backward = served_backward};
  }
  HDPSIM_CHECK(false, "exchange {} is not lowered", static_cast<int>(sharing.exchange));
}

}  // namespace hdpsim
