#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/network/impl/fabrics.h"

namespace hdpsim {
namespace {

/// Every node has a link up and a link down in every dimension, on every rail. A dimension of two nodes has both links
/// too: a ring of two is two cables.
class TorusFabric final : public Fabric {
 public:
  TorusFabric(const TorusSpec& torus, std::int64_t rails, double efficiency)
      : rails_(static_cast<std::size_t>(rails)), rate_(torus.bandwidth.scaled(efficiency)), latency_(torus.latency) {
    for (const std::int64_t length : torus.shape) shape_.push_back(static_cast<std::size_t>(length));
  }

  [[nodiscard]] FabricPath path(const Port& from, const Port& to) const override {
    FabricPath path;
    std::size_t node = from.node;
    std::size_t stride = 1;
    for (std::size_t dimension = 0; dimension < shape_.size(); ++dimension) {
      const std::size_t length = shape_[dimension];
      const std::size_t here = node / stride % length;
      const std::size_t there = to.node / stride % length;
      const std::size_t up = (there + length - here) % length;
      const bool goes_up = up <= length - up;
      const std::size_t hops = goes_up ? up : length - up;
      for (std::size_t hop = 0; hop < hops; ++hop) {
        path.append(id(node, from.rail, dimension, goes_up ? 0 : 1));
        path.latency += latency_;
        const std::size_t at = node / stride % length;
        const std::size_t next = (at + (goes_up ? 1 : length - 1)) % length;
        node = node - at * stride + next * stride;
      }
      stride *= length;
    }
    return path;
  }

  [[nodiscard]] std::size_t link_count() const override {
    std::size_t nodes = 1;
    for (const std::size_t length : shape_) nodes *= length;
    return nodes * rails_ * shape_.size() * 2;
  }
  [[nodiscard]] Bandwidth rate(std::size_t /*link*/) const override { return rate_; }

  [[nodiscard]] std::string name(std::size_t link) const override {
    const std::size_t direction = link % 2;
    const std::size_t dimension = link / 2 % shape_.size();
    const std::size_t rail = link / 2 / shape_.size() % rails_;
    const std::size_t node = link / 2 / shape_.size() / rails_;
    return fmt::format("torus node {} rail {} dimension {} {}", node, rail, dimension, direction == 0 ? "up" : "down");
  }

 private:
  [[nodiscard]] std::size_t id(std::size_t node, std::size_t rail, std::size_t dimension, std::size_t direction) const {
    return ((node * rails_ + rail) * shape_.size() + dimension) * 2 + direction;
  }

  std::vector<std::size_t> shape_;
  std::size_t rails_;
  Bandwidth rate_;
  Duration latency_;
};

}  // namespace

std::unique_ptr<Fabric> make_torus_fabric(const TorusSpec& torus, std::int64_t rails, double efficiency) {
  return std::make_unique<TorusFabric>(torus, rails, efficiency);
}

}  // namespace hdpsim
