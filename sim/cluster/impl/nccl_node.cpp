#include "sim/cluster/impl/nccl_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/text.h"
#include "sim/cluster/device_facts.h"
#include "sim/cluster/impl/nccl_topology.h"

namespace hdpsim {
namespace {

/// The NICs of a node as the model has them: equal ones, with the gpus divided among them in their order.
struct NicAssignment {
  std::int64_t count = 0;
  Bandwidth rate;  ///< Rate of one NIC, at most that of its PCIe link.
  std::int64_t ports = 1;
  std::vector<std::string> notes;  ///< NICs that are omitted or merged, gpus whose nearest NIC is another one.
};

/// The fastest NICs of a topology, each with the gpus that are nearest to it. Empty, with the problem reported, if they
/// cannot be divided evenly.
[[nodiscard]] std::optional<NicAssignment> assign_nics(const NcclTopology& topology, Diagnostics& diagnostics);

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

std::optional<NicAssignment> assign_nics(const NcclTopology& topology, Diagnostics& diagnostics) {
  return Assigner(topology, diagnostics).assign();
}

std::string text_of(Bandwidth rate) {
  return fmt::format("{:.9g} GB/s", rate.gigabytes_per_second());
}

std::string network_text_of(Bandwidth rate) {
  return fmt::format("{:.9g} Gbit/s", rate.gigabytes_per_second() * 8);
}

Value count_value(std::int64_t count, const Position& position) {
  return Value::scalar(fmt::format("{}", count), position);
}

class NodeMaker {
 public:
  NodeMaker(const NcclTopology& topology, const Value& written, bool needs_nics, Diagnostics& diagnostics)
      : topology_(topology), written_(written), needs_nics_(needs_nics), diagnostics_(diagnostics) {}

  NcclNode make() {
    const std::int64_t capability = first().compute_capability;
    note(fmt::format("{}: {} gpus{} on {} NUMA nodes", topology_.position.file, topology_.gpus.size(),
                     capability == 0 ? "" : fmt::format(" of sm {}", capability), topology_.numa_nodes));
    if (topology_.of_device && *topology_.of_device != capability) {
      note(fmt::format("the device of the cluster is of sm {}, the gpus of the file are of sm {}", *topology_.of_device,
                       capability));
    }
    for (const std::string& assumption : topology_.assumed) note(assumption);
    if (!topology_.virtual_nics.empty()) {
      note(fmt::format("left out: virtual interfaces ({})", joined(topology_.virtual_nics, ", ")));
    }
    if (topology_.hosts > 1) {
      note(fmt::format("the gpus of {} hosts are one NVLink domain: together they are a node here", topology_.hosts));
    }
    check_equal();
    if (wants("gpus")) set("gpus", count_value(gpus(), topology_.position));
    if (wants("nvlink")) add_nvlink();
    if (wants("pcie")) add_pcie();
    if (wants("nics")) add_nics();
    return std::move(node_);
  }

 private:
  [[nodiscard]] const NcclGpu& first() const { return topology_.gpus.front(); }
  [[nodiscard]] std::int64_t gpus() const { return static_cast<std::int64_t>(topology_.gpus.size()); }
  [[nodiscard]] bool wants(std::string_view key) const { return written_.find(key) == nullptr; }
  void note(std::string_view text) { node_.notes.emplace_back(text); }
  void set(std::string_view key, Value value) { node_.keys.set(key, std::move(value)); }

  void check_equal() {
    for (const NcclGpu& gpu : topology_.gpus) {
      if (gpu.compute_capability != first().compute_capability) {
        diagnostics_.error(gpu.position, fmt::format("unequal gpus: gpu {} is of sm {}, gpu {} of sm {}", gpu.dev,
                                                     gpu.compute_capability, first().dev, first().compute_capability));
      }
      if (wants("nvlink") && gpu.nvlinks() != first().nvlinks()) {
        diagnostics_.error(gpu.position,
                           fmt::format("unequal gpus: gpu {} has {} NVLinks, gpu {} has {}", gpu.dev, gpu.nvlinks(),
                                       first().dev, first().nvlinks()),
                           "mend the machine, or write node.nvlink for all");
      }
    }
  }

  void add_nvlink() {
    const std::int64_t links = first().nvlinks();
    if (first().nvlinks_to_cpus > 0) {
      note(fmt::format("left out: {} NVLinks from every gpu to a CPU", first().nvlinks_to_cpus));
    }
    if (links == 0) {
      note("no NVLink: the gpus talk over PCIe");
      return;
    }
    const auto rate = nvlink_rate_of(static_cast<int>(first().compute_capability));
    if (!rate && first().compute_capability == 0) {
      diagnostics_.error(topology_.position, "the gpus have no 'sm', and the device of the cluster is not known",
                         "write its compute_capability in the cluster, or node.nvlink");
      return;
    }
    if (!rate) {
      diagnostics_.error(first().position,
                         fmt::format("no rate is known for the NVLinks of sm {}", first().compute_capability),
                         "known: 60, 70, 72, 75, 80, 86, 90, 100, 103; or write node.nvlink");
      return;
    }
    if (first().nvlinks_to_switches < links) check_full_mesh();
    const std::string_view over = first().nvlinks_to_switches < links ? "directly" : "over NVSwitch";
    note(fmt::format("NVLink: {} links of {} a gpu, {}", links, text_of(*rate), over));
    Value map = Value::map(first().position);
    map.set("bandwidth", Value::scalar(text_of(*rate * links), first().position));
    set("nvlink", std::move(map));
  }

  // A node of the model has a switch: direct links between gpus are similar only if all pairs have them.
  void check_full_mesh() {
    for (const NcclGpu& gpu : topology_.gpus) {
      for (const NcclGpu& other : topology_.gpus) {
        if (gpu.bus == other.bus || gpu.nvlinks_to_gpus.count(other.bus) > 0) continue;
        diagnostics_.error(gpu.position,
                           fmt::format("gpu {} has no NVLink to gpu {}: a node without NVSwitch must join all pairs",
                                       gpu.dev, other.dev),
                           "write node.nvlink with what a pair gets, or nvlink: null for PCIe alone");
        return;
      }
    }
    note("no NVSwitch: a message gets all NVLinks of its gpus here, on the machine those between the two");
  }

  void add_pcie() {
    if (std::all_of(topology_.gpus.begin(), topology_.gpus.end(), [](auto& gpu) { return gpu.chip_to_chip; })) {
      note("host memory: over NVLink-C2C, which is listed under pcie");
      set_pcie(*first().chip_to_chip, 1);
      return;
    }
    std::map<std::size_t, std::int64_t> below;  // gpus by the topmost bridge
    for (const NcclGpu& gpu : topology_.gpus) ++below[gpu.path.size() > 1 ? gpu.path[1] : gpu.path[0]];
    const std::int64_t sharing = below.begin()->second;
    const auto uneven =
        std::find_if(below.begin(), below.end(), [&](auto& uplink) { return uplink.second != sharing; });
    if (uneven != below.end()) {
      diagnostics_.error(topology_.position,
                         fmt::format("PCIe uplinks with {} and with {} gpus: a node must have the same everywhere",
                                     sharing, uneven->second),
                         "write node.pcie");
      return;
    }
    set_pcie(slowest_pci_link(), sharing);
  }

  // One rate represents the whole path from the CPU down.
  Bandwidth slowest_pci_link() {
    PciLink slowest = first().pci.front();
    bool all_equal = true;
    bool all_known = true;
    for (const NcclGpu& gpu : topology_.gpus) {
      for (const PciLink& link : gpu.pci) {
        all_equal = all_equal && link.rate == slowest.rate;
        all_known = all_known && link.is_known;
        if (link.rate < slowest.rate) slowest = link;
      }
    }
    if (!all_known) note("PCIe links without a speed: taken for Gen3, as NCCL does");
    if (!all_equal) {
      note(
          fmt::format("PCIe links to the gpus differ: the slowest, {}, represents all. Virtual machines report too "
                      "little; if so, write node.pcie",
                      text_of(slowest.rate)));
    }
    return slowest.rate;
  }

  void set_pcie(Bandwidth rate, std::int64_t sharing) {
    note(fmt::format("to host memory: {} an uplink of {} gpu{}", text_of(rate), sharing, sharing == 1 ? "" : "s"));
    Value map = Value::map(first().position);
    map.set("bandwidth", Value::scalar(text_of(rate), first().position));
    map.set("gpus_per_uplink", count_value(sharing, first().position));
    set("pcie", std::move(map));
  }

  void add_nics() {
    if (topology_.nics.empty()) {
      if (needs_nics_) {
        diagnostics_.error(topology_.position, "the topology has no NIC",
                           "NCCL lists those that it uses: dump it in a run over several nodes, or write node.nics");
      }
      return;
    }
    const auto assignment = assign_nics(topology_, diagnostics_);
    if (!assignment) return;
    for (const std::string& text : assignment->notes) note(text);
    if (topology_.assumes_speeds) note("NICs without a speed: 10 Gbit/s, as NCCL assumes; if not, write node.nics");
    const Position& position = topology_.nics.front().position;
    note(fmt::format("{} NICs of {}{}", assignment->count, network_text_of(assignment->rate),
                     assignment->ports > 1 ? fmt::format(" over {} ports", assignment->ports) : ""));
    Value map = Value::map(position);
    map.set("count", count_value(assignment->count, position));
    map.set("bandwidth", Value::scalar(network_text_of(assignment->rate), position));
    if (assignment->ports > 1) map.set("ports", count_value(assignment->ports, position));
    set("nics", std::move(map));
  }

  const NcclTopology& topology_;
  const Value& written_;
  bool needs_nics_;
  Diagnostics& diagnostics_;
  NcclNode node_;
};

}  // namespace

NcclNode node_of_topology(const NcclTopology& topology, const Value& written, bool needs_nics,
                          Diagnostics& diagnostics) {
  return NodeMaker(topology, written, needs_nics, diagnostics).make();
}

}  // namespace hdpsim
