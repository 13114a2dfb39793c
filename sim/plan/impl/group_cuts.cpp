#include "sim/plan/impl/group_cuts.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

class PerPack final : public GroupCut {
 public:
  PerPack(const std::vector<std::int64_t>& lengths, std::int64_t ranks)
      : ranks_(ranks), pack_(lengths), parts_(pack_.tokens(), ranks, 0) {}

  [[nodiscard]] std::int64_t ranks() const override { return ranks_; }
  [[nodiscard]] std::int64_t chunks() const override { return 2 * ranks_; }
  [[nodiscard]] std::vector<std::int64_t> chunks_of(std::int64_t rank) const override {
    return {rank, 2 * ranks_ - 1 - rank};
  }
  [[nodiscard]] std::vector<CutPiece> pieces(std::int64_t chunk) const override {
    return pack_.pieces(parts_.begin(chunk), parts_.begin(chunk + 1));
  }

 private:
  std::int64_t ranks_;
  Pack pack_;
  PartDealing parts_;
};

class PerDocument final : public GroupCut {
 public:
  PerDocument(const std::vector<std::int64_t>& lengths, std::int64_t ranks) : ranks_(ranks) {
    documents_.reserve(lengths.size());
    std::int64_t first = 0;
    for (const std::int64_t tokens : lengths) first = documents_.emplace_back(tokens, ranks, first).next();
  }

  [[nodiscard]] std::int64_t ranks() const override { return ranks_; }
  [[nodiscard]] std::int64_t chunks() const override { return 2 * ranks_; }
  [[nodiscard]] std::vector<std::int64_t> chunks_of(std::int64_t rank) const override {
    return {rank, 2 * ranks_ - 1 - rank};
  }
  [[nodiscard]] std::vector<CutPiece> pieces(std::int64_t chunk) const override {
    std::vector<CutPiece> pieces;
    pieces.reserve(documents_.size());
    for (std::size_t i = 0; i < documents_.size(); ++i) {
      const std::int64_t begin = documents_[i].begin(chunk);
      const std::int64_t end = documents_[i].begin(chunk + 1);
      if (end > begin) pieces.push_back({i, begin, end - begin});
    }
    return pieces;
  }
  // Part by part, which needs neither pieces nor their order by document.
  [[nodiscard]] std::vector<RankWork> work() const override {
    std::vector<RankWork> all(static_cast<std::size_t>(ranks_));
    std::vector<LastPart> last(all.size());
    for (const PartDealing& document : documents_) add(document, all, last);
    for (RankWork& rank : all) rank.remote_keys -= rank.tokens;
    return all;
  }

 private:
  struct LastPart {
    const PartDealing* document = nullptr;
    std::int64_t end = 0;
  };

  // Of each document the end of a rank's last part counts, which replaces that of its first one.
  void add(const PartDealing& document, std::vector<RankWork>& all, std::vector<LastPart>& last) const {
    document.for_each([&](std::int64_t part, std::int64_t begin, std::int64_t tokens) {
      const auto rank = static_cast<std::size_t>(std::min(part, 2 * ranks_ - 1 - part));
      const CutPiece piece{0, begin, tokens};
      all[rank].pairs += piece.pairs();
      all[rank].tokens += tokens;
      all[rank].remote_keys += piece.end() - (last[rank].document == &document ? last[rank].end : 0);
      last[rank] = {&document, piece.end()};
    });
  }

  std::int64_t ranks_;
  std::vector<PartDealing> documents_;
};

class Dispatch final : public GroupCut {
 public:
  Dispatch(const std::vector<std::int64_t>& lengths, std::int64_t ranks, std::int64_t most_tokens)
      : pack_(lengths),
        tokens_(std::max<std::int64_t>(1, std::min(most_tokens, divided(pack_.tokens(), 8 * ranks)))),
        chunks_per_rank_(divided(pack_.tokens(), tokens_ * ranks)),
        chunks_of_(static_cast<std::size_t>(ranks)) {
    deal();
  }

  [[nodiscard]] std::int64_t ranks() const override { return std::ssize(chunks_of_); }
  [[nodiscard]] std::int64_t chunks() const override { return chunks_per_rank_ * ranks(); }
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
      const bool is_full = std::ssize(chunks_of_[rank]) == chunks_per_rank_;
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
  std::int64_t tokens_;           // of a chunk
  std::int64_t chunks_per_rank_;  // chunks of a rank
  std::vector<std::vector<std::int64_t>> chunks_of_;
};

}  // namespace

std::int64_t PartDealing::begin(std::int64_t part) const {
  const std::int64_t straight = std::clamp<std::int64_t>(part - first_, 0, remainder_);
  const std::int64_t wrapped = std::clamp<std::int64_t>(first_ + remainder_ - parts_, 0, std::min(part, first_));
  return part * each_ + straight + wrapped;
}

Pack::Pack(const std::vector<std::int64_t>& lengths) : begins_{0} {
  begins_.reserve(lengths.size() + 1);
  for (const std::int64_t length : lengths) begins_.push_back(begins_.back() + length);
}

std::vector<CutPiece> Pack::pieces(std::int64_t begin, std::int64_t end) const {
  std::vector<CutPiece> pieces;
  const std::int64_t last = std::min(end, tokens());
  // Empty documents begin where the next one does.
  auto document = std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1;
  while (begin < last) {
    const auto index = static_cast<std::size_t>(document);
    const std::int64_t tokens = std::min(last, begins_[index + 1]) - begin;
    if (tokens > 0) pieces.push_back({index, begin - begins_[index], tokens});
    begin += tokens;
    ++document;
  }
  return pieces;
}

std::unique_ptr<GroupCut> per_pack_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks) {
  return std::make_unique<PerPack>(lengths, ranks);
}

std::unique_ptr<GroupCut> per_document_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks) {
  return std::make_unique<PerDocument>(lengths, ranks);
}

std::unique_ptr<GroupCut> dispatch_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks,
                                       std::int64_t most_tokens) {
  HDPSIM_CHECK(ranks >= 1 && most_tokens >= 1, "chunks of {} tokens for {} ranks", most_tokens, ranks);
  return std::make_unique<Dispatch>(lengths, ranks, most_tokens);
}

}  // namespace hdpsim
