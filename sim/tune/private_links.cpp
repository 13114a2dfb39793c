#include "sim/tune/private_links.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/engine/priced_program.h"

namespace hdpsim {
namespace {

/// The hops of a step, each of which is looked up once.
class HopCheck {
 public:
  HopCheck(const Program& program, const Machine& machine) : program_(program), machine_(machine) {}

  [[nodiscard]] bool has_private_ring(PassId id) {
    const Pipeline& pipeline = program_.pipeline();
    const std::vector<HdpRank>& group = pipeline.micro_batch(id).group;
    const GroupSharing sharing = program_.sharing(pipeline.micro_batch(id));
    const auto stage = static_cast<std::uint64_t>(pipeline.pass(id).stage);
    bool any_new = false;
    for (std::size_t i = 0; group.size() > 1 && i < group.size(); ++i) {
      any_new |= seen_.insert(key(group[i], group[sharing.next(i)], stage)).second;
    }
    if (!any_new) return true;
    const std::vector<Hop> hops = ring_hops(program_, id, machine_);
    return std::all_of(hops.begin(), hops.end(), [](const Hop& hop) { return hop.is_private; });
  }

  [[nodiscard]] bool has_private_messages() const {
    const Pipeline& pipeline = program_.pipeline();
    std::set<std::pair<std::int64_t, std::int64_t>> ways;
    for (std::size_t p = 0; p < pipeline.passes(); ++p) {
      const auto target = pipeline.target(PassId(p));
      if (target) ways.emplace(pipeline.pass(PassId(p)).stage, pipeline.pass(*target).stage);
    }
    for (const auto& [from, to] : ways) {
      for (std::int64_t rank = 0; rank < program_.plan().ranks; ++rank) {
        if (!stage_hop(HdpRank(static_cast<std::size_t>(rank)), from, to, machine_).is_private) return false;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t key(HdpRank from, HdpRank to, std::uint64_t stage) const {
    const auto ranks = static_cast<std::uint64_t>(program_.plan().ranks);
    return (stage * ranks + from.index()) * ranks + to.index();
  }

  const Program& program_;
  const Machine& machine_;
  std::unordered_set<std::uint64_t> seen_;  // pairs of neighbours in rings
};

}  // namespace

bool has_private_links(const Program& program, const Machine& machine) {
  if (program.options().model.moe) return false;
  HopCheck check(program, machine);
  for (std::size_t p = 0; p < program.pipeline().passes(); ++p) {
    if (!check.has_private_ring(PassId(p))) return false;
  }
  return check.has_private_messages();
}

}  // namespace hdpsim
