#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/ring/rank_attention.h"
#include "kernels/ring/scratch.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/group_transport.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// What lies together in `kv` of RingForward.
enum class KeyOrValue : std::uint8_t { key, value };

/// Causal attention of the queries that a rank holds to the keys and values of its whole group, which it gathers first
/// (Llama 3, 2024, section 3.3.2): one collective, one kernel at a time, for whoever follows a program. Each
/// collective comes in three calls, so that it can be timed apart from the copies before and behind it.
///
/// With n ranks, m the most rows of one and w the width of a token's keys, or of its values:
///   forward   keys, then values: an all-gather that leaves n m w elements on every rank; all rows are put in the order
///             of the documents; attention
///   backward  the same; then, of the gradients of all keys and values, an all-gather's reverse: a reduce-scatter of
///             n m w fp32 each, added in the order of the ranks
/// Ranks with fewer than m rows send as many, the last of which nobody reads.
///
/// The blocks of one launch of attention share no key (kernels/spec/attention.h), but the pieces of a document on one
/// rank see the same ones: a launch has one piece of each document.
///
/// Memory of the backend, kept between calls: 5 n m w elements, and for backward 4 n m w fp32.
class GatheredKeys {
 public:
  /// Both must outlive this.
  GatheredKeys(Backend& backend, Transport& transport);

  /// The launches of a rank: queries as it holds them, keys in the order of the group.
  using Launches = std::vector<std::vector<AttentionBlock>>;
  /// From now on this group. What is referred to must outlive its use.
  void join(const GroupRows& rows, const Launches& launches, const AttentionHeads& heads);

  /// Gathers the keys or the values of [rows, kv_width()] elements.
  void prepare_gather(KeyOrValue which, const void* kv);
  void gather(KeyOrValue which);
  /// Puts what has been gathered in the order of the group.
  void put_in_order();

  /// Attention to what has been put in order; `kv` of the operation is not read. RingBackward::d_kv is not written:
  /// the gradients of all keys and values stay here.
  void attend(const RingForward& op);
  void attend(const RingBackward& op);

  /// Sums the gradients of the rank's own keys or values over the group, into [rows, kv_width()] fp32.
  void prepare_reduce(KeyOrValue which);
  void reduce(KeyOrValue which);
  void finish_reduce(KeyOrValue which, float* d_kv);

 private:
  using Of = std::array<Scratch, 2>;
  /// Elements of a token's keys, or of its values.
  [[nodiscard]] std::size_t width(KeyOrValue which) const {
    const std::int64_t keys = key_width(heads_);
    return static_cast<std::size_t>(which == KeyOrValue::key ? keys : kv_width(heads_) - keys);
  }
  /// The keys or the values of rows of both, `each` bytes a number.
  template <class T>
  [[nodiscard]] StridedRows<T> part(T* both, KeyOrValue which, std::size_t each) const {
    const std::size_t before = which == KeyOrValue::key ? 0 : width(KeyOrValue::key) * each;
    return {both + before, static_cast<std::size_t>(kv_width(heads_)) * each};
  }
  [[nodiscard]] RankLaunch launch(const std::vector<AttentionBlock>& blocks) const {
    return {heads_, blocks, rows_->own(), backend_.element()};
  }
  [[nodiscard]] std::size_t most() const { return static_cast<std::size_t>(rows_->most()); }
  [[nodiscard]] std::size_t members() const { return rows_->members.size(); }

  Backend& backend_;
  Transport& transport_;
  AttentionHeads heads_;
  const GroupRows* rows_ = nullptr;
  const Launches* launches_ = nullptr;
  std::optional<GroupTransport> group_;
  std::vector<int> joined_;  ///< Members of group_.
  Scratch own_;              ///< Elements [most, width()]
  Of gathered_;              ///< Elements [members, most, width()], of keys and of values
  Scratch ordered_;          ///< Elements [all, kv_width()]
  Scratch delta_;            ///< fp32 [heads, rows]
  Scratch d_ordered_;        ///< fp32 [all, kv_width()]
  Scratch d_gathered_;       ///< fp32 [members, most, width()]
  Scratch d_own_;            ///< fp32 [most, width()]
};

}  // namespace hdpsim::kernels
