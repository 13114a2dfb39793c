#include "sim/model/expert_compression.h"

#include <cmath>
#include <utility>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

// A radix sort of 64-bit keys with the 64-bit places of their copies takes 8 bits a pass, which reads and writes both.
constexpr std::int64_t sort_passes = 8;
constexpr std::int64_t sort_bytes = sort_passes * 2 * (8 + 8);

/// Adds kernels that read or write tensors of copies and of clusters.
class Kernels {
 public:
  Kernels(const Transformer& model, const ExpertCompression& compression, std::int64_t copies, Direction direction)
      : row_(copy_width(model) * model.element_bytes),
        copies_(copies),
        clusters_(static_cast<std::int64_t>(std::ceil(static_cast<double>(copies) * compression.rate))) {
    work_.direction = direction;
  }

  void hash(const Transformer& model, const ExpertCompression& compression) {
    const std::int64_t components = compression.hashes * compression.columns;
    if (copies_ > 0) work_.gemms.push_back({copies_, components, copy_width(model)});
    work_.add({Bytes(copies_ * components * model.element_bytes), 1});
    work_.add({Bytes(copies_ * sort_bytes), sort_passes});
    work_.in_loops += sort_passes - 1;  // one operation of the framework
  }

  void pass(std::int64_t of_copies, std::int64_t of_clusters) {
    work_.add({Bytes((of_copies * copies_ + of_clusters * clusters_) * row_), 1});
  }

  [[nodiscard]] LinearPart take() { return std::move(work_); }

 private:
  std::int64_t row_;  // bytes
  std::int64_t copies_;
  std::int64_t clusters_;
  LinearPart work_;
};

}  // namespace

LinearPart clustering(const Transformer& model, const ExpertCompression& compression, std::int64_t copies,
                      Direction direction) {
  Kernels kernels(model, compression, copies, direction);
  if (direction == Direction::forward) {
    kernels.hash(model, compression);
    kernels.pass(1, 1);  // means
    kernels.pass(2, 1);  // differences
  } else {
    kernels.pass(1, 1);  // sums of gradients
  }
  return kernels.take();
}

LinearPart restoring(const Transformer& model, const ExpertCompression& compression, std::int64_t copies,
                     Direction direction) {
  Kernels kernels(model, compression, copies, direction);
  // Backward reads both the gradients of the means and the sums of the results'.
  kernels.pass(2, direction == Direction::forward ? 1 : 2);
  return kernels.take();
}

}  // namespace hdpsim
