#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/ring/scratch.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/group_transport.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// A tensor in both of its forms on one of n ranks.
///   tokens  the rows that the rank holds, with all heads: n parts of `width` bytes each, one after another
///   heads   the rows of all ranks in the order of the group, with the rank's own part of the heads
struct TradedTensor {
  StridedRows<std::byte> tokens;
  StridedRows<std::byte> heads;
  std::size_t width = 0;
};

/// All-to-alls in which ranks trade tokens for heads and back (DeepSpeed-Ulysses, Jacobs et al. 2023): rank r has the
/// r-th of n equal parts of the heads. A rank sends n parts of m x width bytes, m the most rows of a rank, one of them
/// to itself. Each comes in three calls, so that the collective can be timed apart from the copies before and behind
/// it.
///
/// Memory of the backend, kept between calls: 2 n m x the largest width.
class TradedHeads {
 public:
  enum class Way : std::uint8_t { to_heads, to_tokens };

  /// Both must outlive this.
  TradedHeads(Backend& backend, Transport& transport)
      : backend_(backend), transport_(transport), sent_(backend), received_(backend) {}

  /// From now on among these ranks. `rows` must outlive its use.
  void join(const GroupRows& rows);
  void prepare(const TradedTensor& tensor, Way way);
  void trade(const TradedTensor& tensor);
  void finish(const TradedTensor& tensor, Way way);

 private:
  [[nodiscard]] std::size_t part_bytes(const TradedTensor& tensor) const {
    return static_cast<std::size_t>(rows_->most()) * tensor.width;
  }
  [[nodiscard]] StridedRows<std::byte> part(const Scratch& of, const TradedTensor& tensor, std::size_t member) const {
    return {of.data() + member * part_bytes(tensor), tensor.width};
  }

  Backend& backend_;
  Transport& transport_;
  const GroupRows* rows_ = nullptr;
  std::optional<GroupTransport> group_;
  std::vector<int> joined_;  ///< Members of group_.
  Scratch sent_;             ///< [members, most rows, width]
  Scratch received_;
};

}  // namespace hdpsim::kernels
