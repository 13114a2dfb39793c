#include <vector>

#include "sim/plan/impl/group_cuts.h"

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

}  // namespace

std::unique_ptr<GroupCut> per_pack_cut(const std::vector<std::int64_t>& lengths, std::int64_t ranks) {
  return std::make_unique<PerPack>(lengths, ranks);
}

}  // namespace hdpsim
