#include "sim/cluster/impl/nccl_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <pugixml.hpp>
#include <set>
#include <string_view>

#include "sim/base/real_number.h"

namespace hdpsim {
namespace {

constexpr std::string_view how_to_dump = "dump it with NCCL_TOPO_DUMP_FILE=topo.xml, in a run over several nodes";

/// The limits of a number in the file. The upper limits lie far above any machine, and low enough for the sums and
/// products of all that a file of 2 MB can hold to fit.
struct AttributeRange {
  std::int64_t least;
  std::int64_t most;
};
constexpr AttributeRange indices = {0, 1'000'000};
constexpr AttributeRange capabilities = {1, 10'000};
constexpr AttributeRange link_counts = {0, 1'000};
constexpr AttributeRange chip_links = {1, 1'000};
constexpr AttributeRange megabytes_per_second = {1, 10'000'000};
constexpr AttributeRange megabits_per_second = {0, 10'000'000};
constexpr double most_lanes = 64;             // PCIe links have up to 32
constexpr std::size_t most_elements = 1'024;  // most gpus, and most NICs: pairs of them are compared

/// Turns the parser's offsets into lines and columns.
class Places {
 public:
  Places(std::string file, const std::string& text) : file_(std::move(file)), text_(text) {
    starts_.push_back(0);
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
      starts_.push_back(at + 1);
    }
  }

  [[nodiscard]] Position at(std::ptrdiff_t offset) const {
    const auto clamped = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset)), text_.size());
    const auto line = std::upper_bound(starts_.begin(), starts_.end(), clamped) - 1;
    return {file_, static_cast<int>(line - starts_.begin()) + 1, static_cast<int>(clamped - *line) + 1};
  }

 private:
  std::string file_;
  const std::string& text_;
  std::vector<std::size_t> starts_;
};

/// Gigatransfers per second and lane, and the share of the bits that are data: 8b/10b up to Gen2, 128b/130b (neglected,
/// as data sheets do) from Gen3 on.
struct PciGeneration {
  double transfers;
  double data_share;
};
constexpr std::array<PciGeneration, 6> pci_generations = {{{2.5, 0.8}, {5, 0.8}, {8, 1}, {16, 1}, {32, 1}, {64, 1}}};

double leading_number(std::string_view text) {
  double number = 0;
  (void)read_real_number(text.data(), text.data() + text.size(), number);
  return number;
}

// Reads texts such as "16.0 GT/s PCIe" and "16". NCCL assumes 16 lanes for none, and Gen3 for a speed that it does not
// know.
PciLink pci_link(std::string_view speed, double width) {
  const double transfers = leading_number(speed);
  const auto known = std::find_if(pci_generations.begin(), pci_generations.end(),
                                  [&](const PciGeneration& g) { return g.transfers == transfers; });
  const PciGeneration generation = known == pci_generations.end() ? pci_generations[2] : *known;
  const double lanes = width > 0 ? width : 16;
  const double bytes_per_second = generation.transfers * 1e9 / 8 * lanes * generation.data_share;
  return {Bandwidth::bytes_per_second(static_cast<std::int64_t>(bytes_per_second)), known != pci_generations.end()};
}

// Interfaces that Linux makes for containers, bridges and tunnels, which have no place in the PCIe tree.
bool is_virtual(std::string_view interface) {
  constexpr std::array<std::string_view, 14> beginnings = {"veth",  "docker", "br-",     "virbr", "vnet",
                                                           "vxlan", "cali",   "flannel", "cni",   "cilium",
                                                           "lxc",   "tun",    "tap",     "dummy"};
  return interface == "lo" || std::any_of(beginnings.begin(), beginnings.end(),
                                          [&](std::string_view begin) { return interface.starts_with(begin); });
}

/// Reads the tree in one pass.
class TopologyReader {
 public:
  TopologyReader(const Places& places, Diagnostics& diagnostics) : places_(places), diagnostics_(diagnostics) {}

  NcclTopology read(pugi::xml_node system) {
    topology_.position = place(system);
    for (const pugi::xml_node cpu : system.children("cpu")) read_cpu(cpu);
    topology_.hosts = std::max<std::int64_t>(1, static_cast<std::int64_t>(hosts_.size()));
    if (topology_.gpus.empty()) {
      diagnostics_.error(topology_.position, "the topology has no gpu", std::string(how_to_dump));
    }
    const auto by_dev = [](const auto& a, const auto& b) { return a.dev < b.dev; };
    std::stable_sort(topology_.gpus.begin(), topology_.gpus.end(), by_dev);
    std::stable_sort(topology_.nics.begin(), topology_.nics.end(), by_dev);
    return std::move(topology_);
  }

 private:
  [[nodiscard]] Position place(pugi::xml_node node) const { return places_.at(node.offset_debug()); }

  std::int64_t number(pugi::xml_node node, const char* key, const AttributeRange& range) {
    const std::string_view text = node.attribute(key).value();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= range.least && value <= range.most) {
      return value;
    }
    diagnostics_.error(place(node), text.empty() ? fmt::format("<{}> has no '{}'", node.name(), key)
                                                 : fmt::format("'{}' of <{}> is '{}', not a number from {} to {}", key,
                                                               node.name(), text, range.least, range.most));
    return range.least;
  }

  void read_cpu(pugi::xml_node cpu) {
    ++topology_.numa_nodes;
    if (const auto host = cpu.attribute("host_hash")) hosts_.insert(host.value());
    path_ = {next_number_++};
    links_.clear();
    for (const pugi::xml_node child : cpu.children()) {
      if (child.name() == std::string_view("pci")) read_pci(child);
      if (child.name() == std::string_view("nic")) read_nets_of_cpu(child);
    }
  }

  void read_pci(pugi::xml_node pci) {
    if (path_.size() > deepest) {
      diagnostics_.error(place(pci), fmt::format("more than {} PCIe bridges one below the other", deepest));
      return;
    }
    path_.push_back(next_number_++);
    links_.push_back(read_pci_link(pci));
    for (const pugi::xml_node child : pci.children()) {
      const std::string_view name = child.name();
      if (name == "pci") read_pci(child);
      if (name == "gpu") read_gpu(child, pci.attribute("busid").value());
      if (name == "nic") read_nic(child);
    }
    path_.pop_back();
    links_.pop_back();
  }

  // Whether the limit allows one more device.
  bool has_room(std::size_t taken, pugi::xml_node node) {
    if (taken < most_elements) return true;
    if (!reported_full_)
      diagnostics_.error(place(node), fmt::format("more than {} of <{}>", most_elements, node.name()));
    reported_full_ = true;
    return false;
  }

  PciLink read_pci_link(pugi::xml_node pci) {
    const std::string_view width = pci.attribute("link_width").value();
    const double lanes = leading_number(width);
    if (lanes > most_lanes) {
      diagnostics_.error(place(pci),
                         fmt::format("'link_width' of <pci> is '{}', more than {} lanes", width, most_lanes));
      return {};
    }
    return pci_link(pci.attribute("link_speed").value(), lanes);
  }

  void read_gpu(pugi::xml_node node, std::string bus) {
    if (!has_room(topology_.gpus.size(), node)) return;
    NcclGpu gpu{.position = place(node), .bus = std::move(bus), .path = path_, .pci = links_};
    gpu.dev = number(node, "dev", indices);
    if (node.attribute("sm")) gpu.compute_capability = number(node, "sm", capabilities);
    for (const pugi::xml_node link : node.children("nvlink")) read_nvlink(link, gpu);
    if (const pugi::xml_node link = node.child("c2c")) {
      constexpr std::int64_t megabyte = 1'000'000;
      gpu.chip_to_chip = Bandwidth::bytes_per_second(number(link, "bw", megabytes_per_second) *
                                                     number(link, "count", chip_links) * megabyte);
    }
    topology_.gpus.push_back(std::move(gpu));
  }

  // `tclass` is the PCI class of the device at the other end.
  void read_nvlink(pugi::xml_node link, NcclGpu& gpu) {
    const std::string_view target_class = link.attribute("tclass").value();
    const std::int64_t count = number(link, "count", link_counts);
    if (target_class == "0x068000") {
      gpu.nvlinks_to_switches += count;
    } else if (target_class == "0x068001") {
      gpu.nvlinks_to_cpus += count;
    } else if (target_class.starts_with("0x03")) {
      gpu.nvlinks_to_gpus[link.attribute("target").value()] += count;
    } else {
      diagnostics_.error(place(link), fmt::format("an NVLink to something of class '{}'", target_class),
                         "known: 0x068000 (NVSwitch), 0x0302.. (gpu), 0x068001 (cpu)");
    }
  }

  // The rate in the file is in Mbit/s. NCCL assumes 10 Gbit/s if the driver reports none.
  Bandwidth speed_of(pugi::xml_node net) {
    constexpr std::int64_t megabit = 125'000;
    const std::int64_t megabits = net.attribute("speed") ? number(net, "speed", megabits_per_second) : 0;
    if (megabits == 0) topology_.assumes_speeds = true;
    return Bandwidth::bytes_per_second((megabits > 0 ? megabits : 10'000) * megabit);
  }

  void read_nic(pugi::xml_node node) {
    if (!has_room(topology_.nics.size(), node)) return;
    NcclNic nic{.position = place(node), .path = path_, .pci = links_};
    for (const pugi::xml_node net : node.children("net")) {
      if (nic.ports.empty()) nic.dev = number(net, "dev", indices);
      if (nic.ports.empty()) nic.name = net.attribute("name").value();
      nic.ports.push_back(speed_of(net));
    }
    if (!nic.ports.empty()) topology_.nics.push_back(std::move(nic));
  }

  // Interfaces whose place in the PCIe tree NCCL does not know; it lists them below every CPU.
  void read_nets_of_cpu(pugi::xml_node node) {
    for (const pugi::xml_node net : node.children("net")) {
      if (!has_room(topology_.nics.size(), net)) return;
      const std::string name = net.attribute("name").value();
      if (is_virtual(name)) {
        auto& all = topology_.virtual_nics;
        if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
        continue;
      }
      const bool is_known = std::any_of(topology_.nics.begin(), topology_.nics.end(),
                                        [&](const NcclNic& nic) { return nic.name == name; });
      if (is_known) continue;
      topology_.nics.push_back(
          {.position = place(net), .name = name, .dev = number(net, "dev", indices), .ports = {speed_of(net)}});
    }
  }

  static constexpr std::size_t deepest = 64;

  const Places& places_;
  Diagnostics& diagnostics_;
  NcclTopology topology_;
  PciPath path_;
  std::vector<PciLink> links_;
  std::set<std::string> hosts_;
  std::size_t next_number_ = 0;
  bool reported_full_ = false;
};

// The root element, if it is NCCL's.
pugi::xml_node system_of(const pugi::xml_document& document, const Places& places, Diagnostics& diagnostics) {
  const pugi::xml_node root = document.document_element();
  if (root.name() != std::string_view("system")) {
    diagnostics.error(
        places.at(root.offset_debug()),
        fmt::format("not a topology of NCCL: the file holds <{}>, not <system version=\"1\">", root.name()),
        root.name() == std::string_view("graphs") ? "this is what NCCL_GRAPH_DUMP_FILE writes; take that "
                                                    "of NCCL_TOPO_DUMP_FILE"
                                                  : std::string(how_to_dump));
    return {};
  }
  const std::string_view version = root.attribute("version").value();
  if (version != "1") {
    diagnostics.error(places.at(root.offset_debug()),
                      fmt::format("a topology of version '{}'; NCCL writes <system version=\"1\">", version));
    return {};
  }
  return root;
}

}  // namespace

void NcclTopology::state_capability(std::int64_t tenths) {
  of_device = tenths > 0 ? std::optional(tenths) : std::nullopt;
  for (NcclGpu& gpu : gpus) {
    if (gpu.compute_capability == 0) gpu.compute_capability = tenths;
  }
}

std::int64_t NcclGpu::nvlinks() const {
  std::int64_t count = nvlinks_to_switches;
  for (const auto& [bus_of_other, links] : nvlinks_to_gpus) count += links;
  return count;
}

Bandwidth NcclNic::rate() const {
  return std::accumulate(ports.begin(), ports.end(), Bandwidth{});
}

std::optional<NcclTopology> read_nccl_topology(const std::string& file, const std::string& text,
                                               Diagnostics& diagnostics) {
  Diagnostics problems;
  problems.add_source(file, text);
  const Places places(file, text);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  std::optional<NcclTopology> topology;
  if (!parsed) {
    const bool is_no_xml_at_all = parsed.status == pugi::status_no_document_element;
    problems.error(places.at(is_no_xml_at_all ? 0 : parsed.offset), fmt::format("not XML: {}", parsed.description()),
                   std::string(how_to_dump));
  } else if (const pugi::xml_node system = system_of(document, places, problems)) {
    topology = TopologyReader(places, problems).read(system);
  }
  if (!problems.empty()) topology.reset();
  diagnostics.append(problems);
  return topology;
}

}  // namespace hdpsim
