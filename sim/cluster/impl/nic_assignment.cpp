#include "sim/cluster/impl/nic_assignment.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/text.h"

namespace hdpsim {
namespace {

// Levels of the PCIe tree that two devices share: 0 for different CPUs, 1 for the same CPU, more for the same bridges.
std::size_t nearness(const PciPath& a, const PciPath& b) {
  const auto shorter = std::min(a.size(), b.size());
  const auto end = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(shorter), b.begin()).first;
  return static_cast<std::size_t>(end - a.begin());
}

std::string_view nearness_name(std::size_t levels) {
  return levels == 0 ? "on another CPU" : levels == 1 ? "on the same CPU" : "on the same PCIe switch";
}

class Assigner {
 public:
  Assigner(const NcclTopology& topology, Diagnostics& diagnostics) : topology_(topology), diagnostics_(diagnostics) {}

  std::optional<NicAssignment> assign() {
    choose_fastest();
    const std::size_t gpus = topology_.gpus.size();
    const std::size_t nics = chosen_.size();
    if (gpus % nics != 0 && nics % gpus != 0) {
      diagnostics_.error(chosen_.front()->position,
                         fmt::format("{} gpus cannot be divided evenly among {} NICs", gpus, nics), "write node.nics");
      return std::nullopt;
    }
    result_.count = static_cast<std::int64_t>(std::min(gpus, nics));
    deal_out();
    take_rates(std::max<std::int64_t>(1, static_cast<std::int64_t>(nics / gpus)));
    return std::move(result_);
  }

 private:
  // A node also has slower NICs for storage and management; NCCL ignores them as long as there are faster ones.
  void choose_fastest() {
    Bandwidth fastest;
    for (const NcclNic& nic : topology_.nics) fastest = std::max(fastest, nic.rate());
    std::vector<std::string> left_out;
    for (const NcclNic& nic : topology_.nics) {
      if (nic.rate() == fastest) {
        chosen_.push_back(&nic);
      } else {
        left_out.push_back(nic.name);
      }
    }
    if (!left_out.empty()) result_.notes.push_back(fmt::format("left out: slower NICs ({})", joined(left_out, ", ")));
  }

  // Each group of consecutive gpus takes the nearest of the NICs that are left.
  void deal_out() {
    const auto groups = static_cast<std::size_t>(result_.count);
    const std::size_t gpus_per_group = topology_.gpus.size() / groups;
    const std::size_t nics_per_group = chosen_.size() / groups;
    std::vector<const NcclNic*> left = chosen_;
    for (std::size_t group = 0; group < groups; ++group) {
      const NcclGpu* gpus = &topology_.gpus[group * gpus_per_group];
      for (std::size_t k = 0; k < nics_per_group; ++k) {
        const auto nearest = std::max_element(left.begin(), left.end(), [&](const NcclNic* a, const NcclNic* b) {
          return nearness(gpus->path, a->path) < nearness(gpus->path, b->path);
        });
        for (std::size_t i = 0; i < gpus_per_group; ++i) note_farther(gpus[i], **nearest);
        left.erase(nearest);
      }
    }
  }

  void note_farther(const NcclGpu& gpu, const NcclNic& own) {
    const std::size_t levels = nearness(gpu.path, own.path);
    for (const NcclNic* nic : chosen_) {
      if (nearness(gpu.path, nic->path) <= levels) continue;
      result_.notes.push_back(fmt::format("gpu {} uses {} here, {}, though {} is nearer", gpu.dev, own.name,
                                          nearness_name(levels), nic->name));
      return;
    }
  }

  void take_rates(std::int64_t nics_as_one) {
    const NcclNic& nic = *chosen_.front();
    result_.rate = nic.rate() * nics_as_one;
    for (const NcclNic* other : chosen_) {
      for (const PciLink& link : other->pci) {
        if (link.is_known) result_.rate = std::min(result_.rate, link.rate * nics_as_one);
      }
    }
    if (result_.rate < nic.rate() * nics_as_one) {
      result_.notes.emplace_back(
          "the PCIe link of a NIC is slower than the NIC: all NICs get its rate. Virtual machines report too little; "
          "if so, "
          "write node.nics");
    }
    if (nics_as_one > 1) {
      result_.notes.push_back(fmt::format("{} NICs a gpu act as one here", nics_as_one));
      return;
    }
    const auto has_equal_ports = [&](const NcclNic* other) { return other->ports == nic.ports; };
    const bool equal_speeds = std::equal(nic.ports.begin() + 1, nic.ports.end(), nic.ports.begin());
    if (equal_speeds && std::all_of(chosen_.begin(), chosen_.end(), has_equal_ports)) {
      result_.ports = static_cast<std::int64_t>(nic.ports.size());
    }
  }

  const NcclTopology& topology_;
  Diagnostics& diagnostics_;
  NicAssignment result_;
  std::vector<const NcclNic*> chosen_;
};

}  // namespace

std::optional<NicAssignment> assign_nics(const NcclTopology& topology, Diagnostics& diagnostics) {
  return Assigner(topology, diagnostics).assign();
}

}  // namespace hdpsim
