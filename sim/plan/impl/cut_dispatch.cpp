#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/model/shares.h"
#include "sim/plan/impl/group_cuts.h"

namespace hdpsim {
namespace {

class Dispatch final : public GroupCut {
 public:
  Dispatch(const std::vector<std::int64_t>& lengths, std::int64_t ranks, std::int64_t most_tokens)
      : pack_(lengths),
        tokens_(std::max<std::int64_t>(1, std::min(most_tokens, divided(pack_.tokens(), 8 * ranks)))),
        of_each_(divided(pack_.tokens(), tokens_ * ranks)),
        chunks_of_(static_cast<std::size_t>(ranks)) {
    deal();
  }

  [[nodiscard]] std::int64_t ranks() const override { return std::ssize(chunks_of_); }
  [[nodiscard]] std::int64_t chunks() const override { return of_each_ * ranks(); }
  [[nodiscard]] std::vector<std::int64_t> chunks_of(std::int64_t rank) const override {
    return chunks_of_.at(static_cast<std::size_t>(rank));
  }
  [[nodiscard]] std::vector<CutPiece> pieces(std::int64_t chunk) const override {
    return pack_.pieces(chunk * tokens_, (chunk + 1) * tokens_);
  }

 private:
  using Load = std::pair<Int128, std::size_t>;  // pairs of a rank, and the rank

  void deal() {
    const std::vector<Int128> pairs = pairs_of_chunks();
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (std::size_t rank = 0; rank < chunks_of_.size(); ++rank) loads.emplace(0, rank);
    for (const std::int64_t chunk : by_falling(pairs)) {
      const auto [load, rank] = loads.top();
      loads.pop();
      chunks_of_[rank].push_back(chunk);
      const bool is_full = std::ssize(chunks_of_[rank]) == of_each_;
      if (!is_full) loads.emplace(load + pairs[static_cast<std::size_t>(chunk)], rank);
    }
  }

  [[nodiscard]] std::vector<Int128> pairs_of_chunks() const {
    std::vector<Int128> pairs(static_cast<std::size_t>(chunks()));
    for (std::size_t chunk = 0; chunk < pairs.size(); ++chunk) {
      for (const CutPiece& piece : pieces(static_cast<std::int64_t>(chunk))) pairs[chunk] += piece.pairs();
    }
    return pairs;
  }

  static std::vector<std::int64_t> by_falling(const std::vector<Int128>& pairs) {
    std::vector<std::int64_t> order(pairs.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return std::pair(pairs[static_cast<std::size_t>(a)], a) > std::pair(pairs[static_cast<std::size_t>(b)], b);
    });
    return order;
  }

  Pack pack_;
  std::int64_t tokens_;   // of a chunk
  std::int64_t of_each_;  // chunks of a rank
  std::vector<std::vector<std::int64_t>> chunks_of_;
};

}  // namespace

std::unique_ptr<GroupCut> dispatch_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                       std::int64_t most_tokens) {
  HDPSIM_CHECK(ranks >= 1 && most_tokens >= 1, "chunks of {} tokens for {} ranks", most_tokens, ranks);
  return std::make_unique<Dispatch>(lengths, ranks, most_tokens);
}

}  // namespace hdpsim
