#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/plan/impl/shared_options.h"
#include "sim/plan/work_model.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// Sequences by their index in the batch.
using SequenceList = std::vector<std::size_t>;

/// Sequences that share a micro-batch.
struct SequencePack {
  SequenceList sequences;
  std::int64_t tokens = 0;
  double work = 0;  ///< In the unit of whoever balances it; 0 where nobody does.

  void add(std::size_t sequence, std::int64_t more_tokens, double more_work = 0) {
    sequences.push_back(sequence);
    tokens += more_tokens;
    work += more_work;
  }
  friend bool operator==(const SequencePack&, const SequencePack&) = default;
};

[[nodiscard]] std::int64_t tokens_of(const Batch& batch, std::span<const std::size_t> sequences);

/// Compute seconds of a whole sequence on one rank, without the fixed time of a micro-batch.
[[nodiscard]] double work_of(const WorkModel& work, std::int64_t tokens);

/// The sequences of a batch in the order of the data.
[[nodiscard]] SequenceList in_data_order(const Batch& batch);
/// The sequences of a batch, longest first; those of equal length keep the order of the data. O(n) times the digits of
/// the longest.
[[nodiscard]] SequenceList longest_first(const Batch& batch);

/// Rooms of numbered packs, of which best fit chooses. Packs of one room are a heap; the rooms are a tree of 64
/// children a node, which are found by the bits of a word, with the nodes of rooms that occur: it is as high as the
/// largest room has digits, and rooms of a usual capacity stay in the cache however many packs there are.
class BestFit {
 public:
  struct Room {
    std::size_t pack;
    std::int64_t tokens;
  };
  /// A pack that is full is never taken again.
  /// O(digits of the room + log packs of this room).
  void put(std::size_t pack, std::int64_t room);
  /// Takes out the pack with the least room for so many tokens, at least 1, the first among equals; empty if none has
  /// room. O(digits of the room + log packs of this room).
  [[nodiscard]] std::optional<Room> take(std::int64_t tokens);

 private:
  static constexpr unsigned bits = 6;
  static constexpr unsigned fan = 1U << bits;
  static constexpr std::uint32_t absent = UINT32_MAX;
  struct Node {
    Node() { children.fill(absent); }
    std::uint64_t filled = 0;                   ///< The children that have packs.
    std::array<std::uint32_t, fan> children{};  ///< Indices of nodes; on level 0, of heaps.
  };

  [[nodiscard]] static unsigned digit(std::int64_t room, unsigned level) {
    return static_cast<unsigned>(static_cast<std::uint64_t>(room) >> (bits * level)) % fan;
  }
  [[nodiscard]] bool is_beyond(std::int64_t room) const {
    return (static_cast<std::uint64_t>(room) >> (bits * level_)) >= fan;
  }
  [[nodiscard]] std::uint32_t child(std::uint32_t node, unsigned at, unsigned level);
  [[nodiscard]] bool take_from(std::uint32_t node, unsigned level, std::int64_t tokens, Room& taken);

  std::vector<Node> nodes_{1};
  std::vector<std::vector<std::uint32_t>> heaps_;  // the first pack of a room on top
  std::vector<std::uint32_t> free_nodes_;
  std::vector<std::uint32_t> free_heaps_;
  std::uint32_t root_ = 0;
  unsigned level_ = 0;  // of the root
};

/// Bins of equal room, filled first fit: each item goes to the first bin that has room for it, behind what is there.
class FirstFit {
 public:
  struct Place {
    std::size_t bin;
    std::int64_t begin;  ///< What the bin held before.
  };
  /// For at most `items` items.
  FirstFit(std::size_t items, std::int64_t room);
  /// Places an item of this size, 1 to the room (checked). O(log items).
  [[nodiscard]] Place place(std::int64_t size);

 private:
  std::int64_t room_;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t>
      free_;  // a tournament tree: node i has the maximum of 2i and 2i + 1, the leaves are the bins
};

/// The sequences of packs, one pack after another.
class PackList {
 public:
  /// `pack_of` has the pack of each of `sequences`, which are numbered in the order in which they were opened; those of
  /// a pack keep their order. O(sequences).
  PackList(const SequenceList& sequences, const std::vector<std::uint32_t>& pack_of, std::size_t packs);

  [[nodiscard]] std::size_t size() const { return begins_.size() - 1; }
  [[nodiscard]] std::span<const std::size_t> operator[](std::size_t pack) const {
    return std::span(sequences_).subspan(begins_[pack], begins_[pack + 1] - begins_[pack]);
  }

 private:
  SequenceList sequences_;
  std::vector<std::size_t> begins_;  // of each pack, and the end of the last
};

/// The packs of best_fit() as one list.
[[nodiscard]] PackList best_fit_list(const Batch& batch, const SequenceList& sequences, std::int64_t room);

/// Packs sequences into packs of at most `room` tokens by best fit: each goes where it leaves the least room. For
/// sequences longest first this is best-fit decreasing, which needs at most 11/9 of the minimum number of packs
/// (Johnson 1974). Packs are in the order in which they were opened, and each begins with the sequence that opened it.
/// O(n (digits of the room + log packs of a room)).
[[nodiscard]] std::vector<SequencePack> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room);

/// Packs sequences in the order of the data into packs of at most `room` tokens and `most` sequences (empty: any
/// number): one that does not fit closes the open pack and opens the next. A longer sequence has a pack of its own.
/// O(n).
[[nodiscard]] std::vector<SequencePack> next_fit(const Batch& batch, std::int64_t room,
                                                 std::optional<std::int64_t> most = {});

/// Packs of even work, whatever their tokens.
struct WorkPacks {
  std::vector<SequencePack> packs;
  SequenceList left;  ///< What fits into none of them, in the order of the sequences.
};

/// WLB-LLM's greedy packing (Wang et al. 2025, arXiv 2503.17924, algorithm 1): each sequence, in `order`, goes to the
/// pack of least work or, where it has no room for it, to that of fewest tokens; the first among equals. A pack holds
/// `room` tokens. `count` >= 1. O(sequences log count).
[[nodiscard]] WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count,
                                     std::int64_t room, const WorkModel& work);

/// Orders packs that best_fit() made of sequences longest first. The key is the sequence that opened a pack, the
/// longest: its place in the data is independent of the number of others that joined it. If the key were the first
/// member in the data, the fullest packs would move to the front.
void put_in_order(std::vector<SequencePack>& packs, DealOrder order);
/// The same of a list of packs of a batch with so many sequences: their numbers in that order. O(sequences).
[[nodiscard]] std::vector<std::uint32_t> in_order(const PackList& packs, DealOrder order, std::size_t sequences);

}  // namespace hdpsim
