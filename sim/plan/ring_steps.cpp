#include "sim/plan/ring_steps.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The queries of a chunk whose document began in an earlier chunk: they see its tokens there. No queries if there is no
// such document.
struct Spill {
  std::size_t document = 0;
  std::int64_t queries = 0;
  std::int64_t chunk = 0;
  std::int64_t first = 0;  // the chunk in which the document begins ...
  std::int64_t head = 0;   // ... with so many tokens
};

// From this step on a rank has so many pairs more, or fewer.
using Change = std::pair<std::int64_t, Int128>;

// A rank has so many pairs in the steps [begin, end).
struct StepRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Int128 pairs = 0;
  std::int64_t rank = 0;
};

class UnevenRing {
 public:
  explicit UnevenRing(const GroupCut& cut) : ranks_(cut.ranks()), steps_(static_cast<std::size_t>(ranks_)) {
    require_zigzag(cut);
    read(cut);
    find_own(cut);
  }

  std::vector<RingStep> steps() {
    std::vector<StepRange> ranges;
    for (std::int64_t rank = 0; rank < ranks_; ++rank) add_ranges(rank, ranges);
    take_busiest(std::move(ranges));
    return std::move(steps_);
  }

 private:
  static void require_zigzag(const GroupCut& cut) {
    for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) {
      const std::vector<std::int64_t> both{rank, 2 * cut.ranks() - 1 - rank};
      HDPSIM_CHECK(cut.chunks_of(rank) == both, "a ring over chunks that rank {} holds otherwise than in a zigzag",
                   rank);
    }
  }

  void read(const GroupCut& cut) {
    Spill open;  // of the document that the last chunk ended with
    for (std::int64_t chunk = 0; chunk < cut.chunks(); ++chunk) {
      const std::vector<CutPiece> pieces = cut.pieces(chunk);
      std::int64_t tokens = 0;
      for (const CutPiece& piece : pieces) tokens += piece.tokens;
      sizes_.push_back(tokens);
      const bool spills = !pieces.empty() && pieces.front().begin > 0;
      spills_.push_back(spills ? Spill{open.document, pieces.front().tokens, chunk, open.first, open.head} : Spill{});
      const bool goes_on = spills && pieces.size() == 1;
      if (!pieces.empty() && !goes_on) open = {pieces.back().document, 0, 0, chunk, pieces.back().tokens};
    }
  }

  void find_own(const GroupCut& cut) {
    RingStep& first = steps_.front();
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      std::vector<std::int64_t> own;
      std::size_t last = 0;
      for (const CutPiece& piece : pieces_of(cut, rank)) {
        if (own.empty() || piece.document != last) own.push_back(0);
        own.back() += piece.tokens;
        last = piece.document;
      }
      Int128 pairs = 0;
      for (const std::int64_t tokens : own) pairs += Int128{tokens} * (tokens + 1) / 2;
      first.all += pairs;
      if (rank == 0 || pairs > first.pairs) std::tie(first.rank, first.pairs, first.own) = std::tie(rank, pairs, own);
    }
  }

  [[nodiscard]] const Spill& spill(std::int64_t chunk) const { return spills_[static_cast<std::size_t>(chunk)]; }
  [[nodiscard]] std::int64_t size(std::int64_t chunk) const { return sizes_[static_cast<std::size_t>(chunk)]; }

  // Tokens of the document of a spill in an earlier chunk.
  [[nodiscard]] std::int64_t keys(const Spill& of, std::int64_t chunk) const {
    if (chunk < of.first || chunk >= of.chunk) return 0;
    return chunk == of.first ? of.head : size(chunk);
  }

  void add_ranges(std::int64_t rank, std::vector<StepRange>& ranges) const {
    std::vector<Change> changes;
    for (const std::int64_t chunk : {rank, 2 * ranks_ - 1 - rank}) {
      const Spill& of = spill(chunk);
      if (of.queries > 0) add_changes(rank, of, changes);
    }
    std::sort(changes.begin(), changes.end());
    Int128 pairs = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      pairs += changes[i].second;
      const std::int64_t end = i + 1 < changes.size() ? changes[i + 1].first : ranks_;
      if (pairs > 0 && end > changes[i].first) ranges.push_back({changes[i].first, end, pairs, rank});
    }
  }

  // Runs of earlier chunks that have equally many tokens of the document: the one in which it begins, and the others,
  // whose sizes change once.
  void add_changes(std::int64_t rank, const Spill& of, std::vector<Change>& changes) const {
    for (std::int64_t begin = of.first; begin < of.chunk;) {
      std::int64_t end = begin + 1;
      if (begin > of.first) end = std::min(of.chunk, end_of_size(begin));
      const Int128 pairs = Int128{of.queries} * keys(of, begin);
      add_chunks(rank, begin, std::min(end, ranks_), pairs, changes);
      add_chunks(rank, std::max(begin, ranks_), end, pairs, changes);
      begin = end;
    }
  }

  // The first chunks may have one token more than all that follow.
  [[nodiscard]] std::int64_t end_of_size(std::int64_t chunk) const {
    const auto smaller = std::partition_point(sizes_.begin(), sizes_.end(),
                                              [&](std::int64_t tokens) { return tokens >= sizes_.front(); });
    const std::int64_t larger = smaller - sizes_.begin();
    return chunk < larger ? larger : std::ssize(sizes_);
  }

  // The chunks [begin, end) of one half, in whose steps the rank has so many pairs more. Ranks hold the first half in
  // their order, and the second in the opposite one.
  void add_chunks(std::int64_t rank, std::int64_t begin, std::int64_t end, Int128 pairs,
                  std::vector<Change>& changes) const {
    if (begin >= end) return;
    const bool first_half = begin < ranks_;
    const std::int64_t low = first_half ? begin : 2 * ranks_ - end;           // the ranks from here ...
    const std::int64_t high = first_half ? end - 1 : 2 * ranks_ - 1 - begin;  // ... to here
    add_steps(rank - std::min(high, rank - 1), rank - low, pairs, changes);   // before the rank
    add_steps(rank + ranks_ - high, rank + ranks_ - std::max(low, rank + 1), pairs, changes);  // behind it
  }

  static void add_steps(std::int64_t first, std::int64_t last, Int128 pairs, std::vector<Change>& changes) {
    if (first > last) return;
    changes.emplace_back(first, pairs);
    changes.emplace_back(last + 1, -pairs);
  }

  void take_busiest(std::vector<StepRange> ranges) {
    std::vector<Int128> more(steps_.size() + 1);
    for (const StepRange& range : ranges) {
      more[static_cast<std::size_t>(range.begin)] += range.pairs;
      more[static_cast<std::size_t>(range.end)] -= range.pairs;
    }
    std::sort(ranges.begin(), ranges.end(), [](const StepRange& a, const StepRange& b) { return a.begin < b.begin; });
    const auto is_less = [](const StepRange* a, const StepRange* b) {
      return std::tuple(a->pairs, -a->rank) < std::tuple(b->pairs, -b->rank);
    };
    std::priority_queue<const StepRange*, std::vector<const StepRange*>, decltype(is_less)> open(is_less);
    auto next = ranges.begin();
    Int128 all = 0;
    for (std::int64_t k = 1; k < ranks_; ++k) {
      for (; next != ranges.end() && next->begin <= k; ++next) open.push(&*next);
      while (!open.empty() && open.top()->end <= k) open.pop();
      RingStep& step = steps_[static_cast<std::size_t>(k)];
      step.all = all += more[static_cast<std::size_t>(k)];
      if (open.empty()) continue;
      step.rank = open.top()->rank;
      step.pairs = open.top()->pairs;
      step.foreign = tiles(step.rank, k);
    }
  }

  [[nodiscard]] std::vector<ForeignTile> tiles(std::int64_t rank, std::int64_t step) const {
    const std::int64_t other = (rank - step + ranks_) % ranks_;
    std::vector<ForeignTile> tiles;
    const Spill* last = nullptr;
    for (const std::int64_t chunk : {rank, 2 * ranks_ - 1 - rank}) {
      const Spill& of = spill(chunk);
      const std::int64_t seen = of.queries > 0 ? keys(of, other) + keys(of, 2 * ranks_ - 1 - other) : 0;
      if (seen == 0) continue;
      const bool same = last != nullptr && last->document == of.document;
      if (!same) tiles.emplace_back();
      tiles.back().queries += of.queries;
      tiles.back().pairs += Int128{of.queries} * seen;
      last = &of;
    }
    return tiles;
  }

  std::int64_t ranks_;
  std::vector<std::int64_t> sizes_;  // by chunk
  std::vector<Spill> spills_;        // by chunk
  std::vector<RingStep> steps_;
};

}  // namespace

std::vector<RingStep> ring_steps(const GroupCut& per_pack) {
  return UnevenRing(per_pack).steps();
}

}  // namespace hdpsim
