#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/ring/rank_attention.h"
#include "kernels/ring/ring_instructions.h"
#include "kernels/ring/scratch.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Message that a rank needs before one of its pieces: of rank `owner` those from `held` on, at `halo` of its halo.
struct HaloRows {
  int owner = 0;  ///< Position in the ring; the rank itself, where its other piece has them.
  std::int64_t held = 0;
  std::int64_t halo = 0;
  std::int64_t rows = 0;
  friend bool operator==(const HaloRows&, const HaloRows&) = default;
};

/// The halo of a rank: of each of its pieces, the window - 1 rows of the document before it, or as many as there are.
struct Halo {
  std::vector<HaloRows> needed;        ///< In the order of the pieces, and of the document.
  std::vector<AttentionBlock> blocks;  ///< The queries that see the halo: of each piece the first ones.
  std::int64_t rows = 0;
};

/// The halo of the rank at `position` of a zigzag; `pieces` are those of all ranks, by position. O(documents + rows of
/// chunks that the window covers).
[[nodiscard]] Halo halo_of(const std::vector<std::vector<Piece>>& pieces, int position, std::int64_t window);

/// Attention of documents that are cut over a ring's ranks in a zigzag, each token to those of its window: in place of
/// the keys and values of all ranks, a rank gets its halo. One exchange, one launch at a time, for whoever follows a
/// program:
///   forward   exchange of keys and values; attention of each piece to itself; attention to the halo
///   backward  the same; then an exchange that brings their gradients back to the ranks that have the rows
/// Gradients of one row are added in the order of the ring. The element is fp32.
///
/// A rank sends and receives 2 (window - 1) rows of a document at most, and as many fp32 gradients. Memory of the
/// backend, kept between calls: 3 times that, and for backward as much again, and heads x rows fp32.
class HaloKeys {
 public:
  /// Both must outlive this.
  HaloKeys(Backend& backend, Transport& transport);
  HaloKeys(const HaloKeys&) = delete;
  HaloKeys& operator=(const HaloKeys&) = delete;
  /// Waits for messages that an error has left under way: their buffers are about to go.
  ~HaloKeys();

  /// From now on this ring, with windows of so many tokens. O(ranks x documents).
  void join(const RingPlace& place, const AttentionHeads& heads, std::int64_t window);
  void begin(const RingForward& op);
  void begin(const RingBackward& op);

  /// Starts the next exchange of the pass: of keys and values, then of their gradients.
  void exchange();
  /// For the exchange under way; gradients are then added. DeviceError if a peer fails: which exchange of which ring,
  /// and whom the transport waits for.
  void wait();
  /// The next launch of the pass: to a rank's own keys, then to its halo.
  void attend();

 private:
  /// Message in the order in which a message has them, and where they begin among those of all messages.
  struct Message {
    std::vector<HaloRows> ranges;
    std::size_t first = 0;
    std::size_t count = 0;
  };
  /// Another rank of the ring.
  struct Peer {
    int rank = 0;    ///< Of the transport.
    Message wanted;  ///< Message of this rank in the halo of the peer.
    Message needed;  ///< Message of the peer in the halo of this rank.
  };
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(kv_width(heads_)) * sizeof(float); }
  [[nodiscard]] std::size_t at(std::int64_t row) const { return static_cast<std::size_t>(row) * row_bytes(); }
  [[nodiscard]] RankLaunch launch(const std::vector<AttentionBlock>& blocks) const {
    return {heads_, blocks, rows_, backend_.element()};
  }
  void find_peers(const std::vector<std::vector<Piece>>& pieces, std::int64_t window);
  /// Copies the rows of messages, keys or gradients, to where they are sent from.
  void pack(bool gradients);
  void take_keys();
  void add_gradients();
  /// Adds rows of gradients to those of the rank's own keys and values.
  void add(std::int64_t row, const std::byte* rows, std::int64_t count);
  void attend_own();
  void attend_halo();

  Backend& backend_;
  Transport& transport_;
  AttentionHeads heads_;
  RingPlace place_;
  std::int64_t rows_ = 0;
  std::vector<AttentionBlock> own_;  ///< Each piece against itself.
  Halo halo_;
  std::vector<HaloRows> of_own_;  ///< The part of the halo that the rank has itself.
  std::vector<Peer> peers_;       ///< In the order of the ring.
  std::size_t most_ = 0;          ///< Message that are sent or received at once.
  bool is_backward_ = false;
  RingForward forward_;
  RingBackward backward_;
  int exchanges_ = 0;  ///< Of the pass, so far.
  int launches_ = 0;
  bool under_way_ = false;
  Ticket ticket_ = 0;
  Scratch sent_;
  Scratch received_;
  Scratch keys_;    ///< [halo rows, kv_width()]
  Scratch d_keys_;  ///< The same.
  Scratch delta_;
};

}  // namespace hdpsim::kernels
