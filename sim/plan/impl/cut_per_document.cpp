#include <algorithm>
#include <vector>

#include "sim/plan/impl/group_cuts.h"

namespace hdpsim {
namespace {

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

}  // namespace

std::unique_ptr<GroupCut> per_document_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks) {
  return std::make_unique<PerDocument>(lengths, ranks);
}

}  // namespace hdpsim
