#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/units.h"

namespace hdpsim {

/// The place of a device in the PCIe tree: the CPU (NUMA node), then the PCIe bridges down to it, each by its number in
/// the file.
using PciPath = std::vector<std::size_t>;

/// A PCIe link of the file, at its line rate.
struct PciLink {
  Bandwidth rate;
  bool is_known = true;  ///< False if the file gives no speed: then Gen3, as NCCL assumes.
};

struct NcclGpu {
  Position position = {};
  std::int64_t dev = 0;
  std::int64_t compute_capability = 0;  ///< `sm`: 80, 90, 100; 0: the file does not say it.
  std::string bus = {};
  std::int64_t nvlinks_to_switches = 0;
  std::map<std::string, std::int64_t> nvlinks_to_gpus = {};  ///< By the GPUs' bus ids.
  std::int64_t nvlinks_to_cpus = 0;
  std::optional<Bandwidth> chip_to_chip = {};  ///< NVLink-C2C to its CPU.
  PciPath path = {};
  std::vector<PciLink> pci = {};  ///< Links from the CPU down.

  /// The number of NVLinks that lead to other GPUs.
  [[nodiscard]] std::int64_t nvlinks() const;
};

struct NcclNic {
  Position position = {};
  std::string name = {};
  std::int64_t dev = 0;
  std::vector<Bandwidth> ports = {};
  PciPath path = {};
  std::vector<PciLink> pci = {};

  [[nodiscard]] Bandwidth rate() const;
};

/// NCCL's description of a node: the file that it writes to the path in NCCL_TOPO_DUMP_FILE (src/graph/xml.cc and
/// topo.cc of NCCL).
struct NcclTopology {
  Position position = {};
  std::vector<NcclGpu> gpus = {};  ///< In the order of `dev`.
  std::vector<NcclNic> nics = {};  ///< In the order of `dev`.
  std::int64_t numa_nodes = 0;
  std::int64_t hosts = 1;                      ///< More than one where NVLink joins several.
  bool assumes_speeds = false;                 ///< Some NICs have no speed, and NCCL's for such.
  std::vector<std::string> virtual_nics = {};  ///< Interfaces that are no NICs, which are omitted.
  std::vector<std::string> assumed = {};       ///< What the file does not say, for people.
  std::optional<std::int64_t> of_device = {};  ///< The compute capability of the device that the user names.

  /// Takes the compute capability of a device, in tenths, for that of GPUs that the file does not describe; 0: it is
  /// not known.
  void state_capability(std::int64_t tenths);
};

/// Reads a topology. Empty, with the problem reported at its place, if the text is not XML, not NCCL's, or
/// contradictory.
[[nodiscard]] std::optional<NcclTopology> read_nccl_topology(const std::string& file, const std::string& text,
                                                             Diagnostics& diagnostics);

}  // namespace hdpsim
