#include "sim/cluster/impl/matrix_topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <sstream>
#include <string_view>
#include <vector>

#include "sim/base/text.h"
#include "sim/cluster/device_facts.h"
#include "sim/cluster/topology_matrix.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_listed = 256;
constexpr std::int64_t most_listed_links = 100;

/// How far two devices are apart on PCIe, nearest last (the legend of nvidia-smi).
enum class Way { none, cpus, cpu, bridge, switches, switch_ };

struct Row {
  std::string name;
  Position position;
  std::vector<std::string> entries;  ///< One for each device of the header.
  std::string numa;                  ///< The NUMA nodes of its CPUs, as they stand there.
};

bool is_gpu(std::string_view name) {
  return name.starts_with("GPU") && name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}

// The number of NVLinks of an entry such as NV12; 0 of others.
std::int64_t links_of(std::string_view entry) {
  std::int64_t links = 0;
  if (!entry.starts_with("NV")) return 0;
  const auto [end, error] = std::from_chars(entry.data() + 2, entry.data() + entry.size(), links);
  return error == std::errc{} && end == entry.data() + entry.size() && links <= most_listed_links ? links : 0;
}

Way way_of(std::string_view entry) {
  constexpr std::array<std::pair<std::string_view, Way>, 5> ways = {
      {{"SYS", Way::cpus}, {"NODE", Way::cpu}, {"PHB", Way::bridge}, {"PXB", Way::switches}, {"PIX", Way::switch_}}};
  const auto found = std::find_if(ways.begin(), ways.end(), [&](const auto& each) { return each.first == entry; });
  return found == ways.end() ? Way::none : found->second;
}

/// Devices in groups, which joining any two of them unites.
class Groups {
 public:
  explicit Groups(std::size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), std::size_t{0}); }
  [[nodiscard]] std::size_t of(std::size_t device) const {
    while (parents_[device] != device) device = parents_[device];
    return device;
  }
  void join(std::size_t a, std::size_t b) { parents_[std::max(of(a), of(b))] = std::min(of(a), of(b)); }

 private:
  std::vector<std::size_t> parents_;
};

class MatrixReader {
 public:
  MatrixReader(const std::string& file, const std::string& text, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {
    std::istringstream lines(without_escapes(text));
    int number = 0;
    for (std::string line; std::getline(lines, line);) read_line(line, ++number);
    check();
  }

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] const Position& position() const { return position_; }
  /// The name that the legend gives to a NIC, or its own.
  [[nodiscard]] std::string name_of(const std::string& nic) const {
    const auto named = std::find_if(legend_.begin(), legend_.end(), [&](auto& entry) { return entry.first == nic; });
    return named == legend_.end() ? nic : named->second;
  }

 private:
  void read_line(const std::string& line, int number) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(std::move(word));
    if (words.empty()) return;
    if (devices_.empty()) return read_header(words, number);
    const bool is_row = std::find(devices_.begin(), devices_.end(), words[0]) != devices_.end() && words.size() > 1;
    if (is_row) {
      read_row(words, number);
    } else if (words.size() == 2 && words[0].ends_with(':')) {
      legend_.emplace_back(words[0].substr(0, words[0].size() - 1), words[1]);
    }
  }

  void read_header(const std::vector<std::string>& words, int number) {
    if (words[0] != "GPU0") return;  // what stands before the table
    position_ = {file_, number, 1};
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA" || devices_.size() == most_listed) break;
      if (word != "GPU") devices_.push_back(word);
    }
  }

  void read_row(const std::vector<std::string>& words, int number) {
    Row row{words[0], {file_, number, 1}, {}, {}};
    const std::size_t count = std::min(words.size() - 1, devices_.size());
    row.entries.assign(words.begin() + 1, words.begin() + 1 + static_cast<std::ptrdiff_t>(count));
    if (words.size() > devices_.size() + 2) row.numa = words[devices_.size() + 2];
    rows_.push_back(std::move(row));
  }

  void check() {
    if (rows_.size() != devices_.size()) {
      diagnostics_.error(position_, fmt::format("the table has {} devices and {} rows", devices_.size(), rows_.size()),
                         "copy the whole output of nvidia-smi topo -m");
      return;
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) check(i);
  }

  void check(std::size_t i) {
    const Row& row = rows_[i];
    if (row.name != devices_[i]) {
      diagnostics_.error(row.position, fmt::format("row {} is of {}, column {} of {}", i, row.name, i, devices_[i]));
      return;
    }
    for (std::size_t j = 0; j < devices_.size(); ++j) {
      const std::string entry = j < row.entries.size() ? row.entries[j] : "";
      const bool is_known = i == j ? entry == "X" : links_of(entry) > 0 || way_of(entry) != Way::none;
      if (!is_known) {
        diagnostics_.error(row.position, fmt::format("the way from {} to {} is '{}'", row.name, devices_[j], entry),
                           "known are NV and a number, PIX, PXB, PHB, NODE and SYS, and X on the diagonal");
        return;
      }
      if (j < i && is_gpu(row.name) && is_gpu(devices_[j]) && rows_[j].entries[i] != entry) {
        diagnostics_.error(row.position, fmt::format("the way from {} to {} is {}, and {} back", row.name, devices_[j],
                                                     entry, rows_[j].entries[i]));
        return;
      }
    }
  }

  std::string file_;
  Diagnostics& diagnostics_;
  Position position_;
  std::vector<std::string> devices_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::string>> legend_;
};

class TopologyMaker {
 public:
  TopologyMaker(const MatrixReader& matrix, int capability, const HostLinks& rates)
      : matrix_(matrix),
        capability_(capability),
        rates_(rates),
        cpus_(count()),
        switches_(count()),
        bridges_(count()) {}

  NcclTopology make() {
    group();
    NcclTopology topology{.position = matrix_.position()};
    add_gpus(topology);
    add_nics(topology);
    std::vector<std::size_t> cpus;
    for (const NcclGpu& gpu : topology.gpus) cpus.push_back(gpu.path.front());
    std::sort(cpus.begin(), cpus.end());
    topology.numa_nodes = std::unique(cpus.begin(), cpus.end()) - cpus.begin();
    assume(topology);
    return topology;
  }

 private:
  [[nodiscard]] const std::vector<Row>& rows() const { return matrix_.rows(); }
  [[nodiscard]] std::size_t count() const { return rows().size(); }

  // The way of two GPUs with NVLinks is not said: they share a CPU if their cores are of the same NUMA nodes, and a
  // switch if a NIC is behind the same one as both.
  void group() {
    for (std::size_t i = 0; i < count(); ++i) {
      for (std::size_t j = 0; j < count(); ++j) {
        if (i == j) continue;
        const Way way = way_of(rows()[i].entries[j]);
        const bool share_numa = !rows()[i].numa.empty() && rows()[i].numa != "N/A" && rows()[i].numa == rows()[j].numa;
        if (way > Way::cpus || (way == Way::none && share_numa)) cpus_.join(i, j);
        if (way >= Way::switches) switches_.join(i, j);
        if (way == Way::switch_) bridges_.join(i, j);
      }
    }
  }

  // Numbers of different levels must differ.
  [[nodiscard]] PciPath path_of(std::size_t i) const {
    return {cpus_.of(i), count() + switches_.of(i), 2 * count() + bridges_.of(i)};
  }
  [[nodiscard]] std::vector<PciLink> pci() const { return {{rates_.pcie, true}}; }

  // Where all pairs have more links than a GPU has for so many others, a switch joins them.
  void add_gpus(NcclTopology& topology) const {
    std::vector<std::size_t> gpus;
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_gpu(rows()[i].name)) gpus.push_back(i);
    }
    std::int64_t least = most_listed_links;
    for (const std::size_t i : gpus) {
      for (const std::size_t j : gpus) {
        if (i != j) least = std::min(least, links_of(rows()[i].entries[j]));
      }
    }
    const std::int64_t others = static_cast<std::int64_t>(gpus.size()) - 1;
    const bool has_switch = others > 0 && least * others > most_nvlinks_of(capability_);
    for (const std::size_t i : gpus) {
      NcclGpu gpu{.position = rows()[i].position,
                  .dev = static_cast<std::int64_t>(topology.gpus.size()),
                  .compute_capability = capability_,
                  .bus = rows()[i].name,
                  .path = path_of(i),
                  .pci = pci()};
      for (const std::size_t j : gpus) {
        const std::int64_t links = i == j ? 0 : links_of(rows()[i].entries[j]);
        if (links > 0 && !has_switch) gpu.nvlinks_to_gpus[rows()[j].name] = links;
        if (has_switch) gpu.nvlinks_to_switches = std::max(gpu.nvlinks_to_switches, links);
      }
      topology.gpus.push_back(std::move(gpu));
    }
  }

  // NICs that share a switch with a GPU; all of them if none does.
  void add_nics(NcclTopology& topology) {
    std::vector<std::size_t> near;
    std::vector<std::size_t> far;
    for (std::size_t i = 0; i < count(); ++i) {
      if (!is_gpu(rows()[i].name)) (shares_switch(i) ? near : far).push_back(i);
    }
    for (const std::size_t i : near.empty() ? far : near) {
      topology.nics.push_back({.position = rows()[i].position,
                               .name = matrix_.name_of(rows()[i].name),
                               .dev = static_cast<std::int64_t>(topology.nics.size()),
                               .ports = {rates_.nic},
                               .path = path_of(i),
                               .pci = pci()});
    }
    if (near.empty()) return;
    for (const std::size_t i : far) far_.push_back(matrix_.name_of(rows()[i].name));
  }

  [[nodiscard]] bool shares_switch(std::size_t nic) const {
    for (std::size_t i = 0; i < count(); ++i) {
      if (is_gpu(rows()[i].name) && switches_.of(i) == switches_.of(nic)) return true;
    }
    return false;
  }

  void assume(NcclTopology& topology) const {
    topology.assumed.push_back(
        fmt::format("nvidia-smi states ways and no rates. Assumed: {:.9g} GB/s of a GPU's PCIe link{}",
                    rates_.pcie.gigabytes_per_second(),
                    topology.nics.empty() ? ""
                                          : fmt::format(", and NICs of {:.9g} Gbit/s; if not, write node.nics",
                                                        rates_.nic.gigabytes_per_second() * 8)));
    if (!far_.empty()) {
      topology.assumed.push_back(
          fmt::format("left out: NICs that share no PCIe switch with a gpu ({})", joined(far_, ", ")));
    }
  }

  const MatrixReader& matrix_;
  int capability_;
  HostLinks rates_;
  Groups cpus_;
  Groups switches_;
  Groups bridges_;
  std::vector<std::string> far_;  ///< NICs that are left out.
};

}  // namespace

std::optional<NcclTopology> read_matrix_topology(const std::string& file, const std::string& text,
                                                 int compute_capability, Diagnostics& diagnostics) {
  Diagnostics problems;
  problems.add_source(file, text);
  const MatrixReader matrix(file, text, problems);
  const auto rates = host_links_of(compute_capability);
  if (!rates) {
    problems.error(matrix.position(), "nvidia-smi states no rates, and those of the cluster's device are not known",
                   "write its compute_capability in the cluster, or take what NCCL writes with NCCL_TOPO_DUMP_FILE");
  }
  std::optional<NcclTopology> topology;
  if (problems.empty()) topology = TopologyMaker(matrix, compute_capability, *rates).make();
  diagnostics.append(problems);
  return topology;
}

}  // namespace hdpsim
