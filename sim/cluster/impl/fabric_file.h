#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/document/document.h"

namespace hdpsim {

/// Switches, cables and hosts as a file lists them that a fabric's own programs write.
struct ListedFabric {
  struct Cable {
    std::string from;
    std::string to;
    std::optional<Bandwidth> rate;  ///< Empty: the file does not say it.
    std::int64_t count = 1;
  };
  struct Host {
    std::string name;
    std::vector<std::string> attached;  ///< The switch of each NIC in their order; of all NICs if there is one.
  };
  Position position;
  std::vector<std::string> switches;
  std::vector<Cable> cables;
  std::vector<Host> hosts;         ///< In the order in which they become nodes.
  std::vector<std::string> notes;  ///< What was left out or assumed, for people.
};

/// What `ibnetdiscover` prints: hosts by their names, NICs of a host by theirs. Problems are reported at their places.
[[nodiscard]] ListedFabric read_ibnetdiscover(const std::string& file, const std::string& text,
                                              Diagnostics& diagnostics);

/// Slurm's topology.conf: a tree of switches and hosts in their order, without rates.
[[nodiscard]] ListedFabric read_slurm_topology(const std::string& file, const std::string& text,
                                               Diagnostics& diagnostics);

/// The keys of `graph` for a cluster of `nodes` nodes with so many NICs of a rate. Cables without a rate carry all that
/// the NICs below them can send, which is said in the notes. What does not fit is reported.
[[nodiscard]] Value graph_of(ListedFabric& fabric, std::int64_t nodes, std::int64_t nics, Bandwidth nic,
                             Diagnostics& diagnostics);

/// Orders names as people do: node2 before node10.
[[nodiscard]] bool is_before(std::string_view a, std::string_view b);

}  // namespace hdpsim
