#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
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

/// The batch with every length rounded up to a multiple of so many tokens, at least 1. O(n).
[[nodiscard]] Batch rounded(Batch batch, std::int64_t multiple);

/// Compute seconds of a whole sequence on one rank, without the fixed time of a micro-batch.
[[nodiscard]] double work_of(const WorkModel& work, std::int64_t tokens);

/// The sequences of a batch in the order of the data.
[[nodiscard]] SequenceList in_data_order(const Batch& batch);
/// The sequences of a batch, longest first; those of equal length keep the order of the data. O(n) times the digits of
/// the longest.
[[nodiscard]] SequenceList longest_first(const Batch& batch);
/// The same for some sequences; those of equal length keep their order. O(n log n).
[[nodiscard]] SequenceList longest_first(const Batch& batch, SequenceList sequences);

/// A sequence by its index in the batch, with its length. Large batches are planned from lists of these: the length by
/// index is somewhere else in memory for each.
struct SizedSequence {
  std::uint32_t sequence;
  std::uint32_t tokens;  ///< See limits::most_tokens_of_sequence.
  friend bool operator==(const SizedSequence&, const SizedSequence&) = default;
};
using SizedList = std::vector<SizedSequence>;

/// longest_first() with lengths. The same cost.
[[nodiscard]] SizedList sized_longest_first(const Batch& batch);
[[nodiscard]] SizedList sized(const Batch& batch, std::span<const std::size_t> sequences);

[[nodiscard]] std::int64_t tokens_of(std::span<const SizedSequence> sequences);
[[nodiscard]] double pairs_of(std::span<const SizedSequence> sequences);  ///< causal_pairs() of all, in their order.

/// Rooms of numbered packs, of which best fit chooses.
class BestFit {
 public:
  /// Which of the packs with equal room is taken.
  enum class Equals : std::uint8_t {
    first_pack,    ///< The one of the lowest number.
    longest_since  ///< The one that has had this room for longest.
  };
  struct Room {
    std::size_t pack;
    std::int64_t tokens;
  };

  explicit BestFit(Equals equals = Equals::first_pack) : equals_(equals) {}

  /// A pack that is full is never taken again. O(log packs).
  void put(std::size_t pack, std::int64_t room) {
    const auto number = static_cast<std::uint32_t>(pack);
    if (room > 0) open_.emplace(room, equals_ == Equals::first_pack ? number : puts_++, number);
  }
  /// Takes out the pack with the least room for so many tokens, at least 1; empty if none has room. O(log packs).
  [[nodiscard]] std::optional<Room> take(std::int64_t tokens) {
    const auto least = open_.lower_bound({tokens, 0, 0});
    if (least == open_.end()) return std::nullopt;
    const Room taken{std::get<2>(*least), std::get<0>(*least)};
    open_.erase(least);
    return taken;
  }

 private:
  Equals equals_;
  std::uint32_t puts_ = 0;
  std::set<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>> open_;  // (room, order among equals, pack)
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
  /// Whether a bin has room for an item of this size. O(1).
  [[nodiscard]] bool has_room(std::int64_t size) const { return size <= free_[1]; }
  /// Leaves a bin so much room; with none it gets no more items. O(log items).
  void set_free(std::size_t bin, std::int64_t free);

 private:
  std::int64_t room_;
  std::size_t leaves_ = 1;
  std::vector<std::int64_t>
      free_;  // a tournament tree: node i has the maximum of 2i and 2i + 1, the leaves are the bins
};

/// The sequences of packs, one pack after another in one list.
class PackList {
 public:
  /// `pack_of` has the number of the pack of each sequence, in the order in which `for_each` calls its argument with
  /// them; those of a pack keep this order. O(sequences).
  template <class ForEach>
  PackList(const std::vector<std::uint32_t>& pack_of, std::size_t packs, const ForEach& for_each)
      : sequences_(pack_of.size()), ends_(packs + 1) {
    for (const std::uint32_t pack : pack_of) ++ends_[pack + 1];
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    // Each entry is the begin of its pack at first, and its end after this loop.
    for_each([&, pack = pack_of.begin()](const SizedSequence& each) mutable { sequences_[ends_[*pack++]++] = each; });
  }

  [[nodiscard]] std::size_t size() const { return ends_.size() - 1; }
  [[nodiscard]] std::span<const SizedSequence> operator[](std::size_t pack) const {
    const std::size_t begin = pack == 0 ? 0 : ends_[pack - 1];
    return std::span(sequences_).subspan(begin, ends_[pack] - begin);
  }

 private:
  SizedList sequences_;
  std::vector<std::uint32_t> ends_;  // of each pack, and once more the last
};

/// The packs of best_fit() as one list. In the order of the data a pack has the place of the sequence that opened it,
/// its longest if they come longest first: that is independent of the number of others that joined it. If the key were
/// the first member in the data, the fullest packs would move to the front.
[[nodiscard]] PackList best_fit_list(const SizedList& sequences, std::int64_t room,
                                     DealOrder order = DealOrder::descending,
                                     BestFit::Equals equals = BestFit::Equals::first_pack);

/// Packs sequences into packs of at most `room` tokens by best fit: each goes where it leaves the least room. For
/// sequences longest first this is best-fit decreasing, which needs at most 11/9 of the minimum number of packs
/// (Johnson 1974). Packs are in the order in which they were opened, and each begins with the sequence that opened it.
/// O(n log packs).
[[nodiscard]] std::vector<SequencePack> best_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                                 BestFit::Equals equals = BestFit::Equals::first_pack);

/// Packs sequences in their order into packs of at most `room` tokens and `most` sequences (empty: any number): one
/// that does not fit closes the open pack and opens the next. A longer sequence has a pack of its own. O(n).
[[nodiscard]] std::vector<SequencePack> next_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                                 std::optional<std::int64_t> most = {});

/// The same, but a sequence goes to the first pack that has room for it, behind what is there. O(n log n).
[[nodiscard]] std::vector<SequencePack> first_fit(const Batch& batch, const SequenceList& sequences, std::int64_t room,
                                                  std::optional<std::int64_t> most = {});

/// Packs sequences in their order, each into the pack of fewest tokens, the first among equals, or into a new one if
/// that has no room. A longer sequence has a pack of its own. O(n log packs).
[[nodiscard]] std::vector<SequencePack> emptiest_fit(const Batch& batch, const SequenceList& sequences,
                                                     std::int64_t room);

/// What a sequence of so many tokens costs.
using SequenceWork = std::function<double(std::int64_t tokens)>;

/// Packs of even work, whatever their tokens.
struct WorkPacks {
  std::vector<SequencePack> packs;
  SequenceList left;  ///< What fits into none of them, in the order of the sequences.
};

/// WLB-LLM's greedy packing (Wang et al. 2025, arXiv 2503.17924, algorithm 1): each sequence, in `order`, goes to the
/// pack of least work or, where it has no room for it, to that of fewest tokens; the first among equals. A pack holds
/// `room` tokens. `count` >= 1. O(sequences log count).
[[nodiscard]] WorkPacks pack_by_work(const Batch& batch, const SequenceList& order, std::size_t count,
                                     std::int64_t room, const SequenceWork& work);

/// The same for all sequences of a batch, longest first; what finds no room goes to the pack of least work, whatever
/// that holds, as in the baseline of DistCA (hao-ai-lab/distca at 039f2e40, balance_data_for_wlbllm). A single pack has
/// the sequences in the order of the data.
[[nodiscard]] std::vector<SequencePack> pack_all_by_work(const Batch& batch, std::size_t count, std::int64_t room,
                                                         const SequenceWork& work);

/// Halves packs until their number is a multiple, or none has several sequences: each time the one of most work, of
/// equals the last; the second half becomes the last pack. Its sequences, those of most work first, go each to the half
/// of less, of equals the first. Packs state this work then. O(n log n log multiple).
void halve_heaviest(std::vector<SequencePack>& packs, std::size_t multiple, const Batch& batch,
                    const SequenceWork& work);

/// Which sequence a pack gives away.
enum class Given : std::uint8_t { first, last };

/// Packs give sequences away, each of which becomes the last pack, until their number is a multiple, or none of
/// `givers`, which are numbers of packs, has several: the first of these gives all but one, then the next. O(givers +
/// sequences given), or O(sequences squared) of packs that give their first ones.
void split_off(std::vector<SequencePack>& packs, std::span<const std::size_t> givers, std::size_t multiple,
               const Batch& batch, Given given = Given::last);

/// The numbers of packs, those of most sequences first, of equals the last: in this order SkyRL and NeMo RL split them
/// off. O(packs log packs).
[[nodiscard]] std::vector<std::size_t> most_sequences_first(const std::vector<SequencePack>& packs);

/// The packs of several replicas in the order in which packs are given to replicas in turn; where a replica has none
/// left, an empty one.
[[nodiscard]] std::vector<SequencePack> packs_in_turn(std::vector<std::vector<SequencePack>> by_replica);

}  // namespace hdpsim
