#include "sim/network/collective_kind.h"

#include <array>

#include "sim/network/impl/algorithms.h"

namespace hdpsim {

std::string_view collective_name(CollectiveKind kind) {
  constexpr std::array<std::string_view, collective_kinds> names = {"all_reduce", "all_gather", "reduce_scatter",
                                                                    "broadcast",  "alltoall",   "sendrecv"};
  return names.at(static_cast<std::size_t>(kind));
}

double bus_factor(CollectiveKind kind, std::int64_t ranks) {
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * share;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return share;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      return 1;
  }
  return 1;
}

std::string_view algorithm_name(CollectiveAlgorithm algorithm) {
  return algorithms.at(static_cast<std::size_t>(algorithm)).name;
}

std::optional<CollectiveAlgorithm> find_algorithm(std::string_view name) {
  for (const AlgorithmEntry& entry : algorithms) {
    if (entry.name == name) return entry.algorithm;
  }
  return std::nullopt;
}

std::vector<CollectiveAlgorithm> choosable_algorithms() {
  std::vector<CollectiveAlgorithm> choosable;
  for (const AlgorithmEntry& entry : algorithms) {
    if (entry.algorithm != CollectiveAlgorithm::direct) choosable.push_back(entry.algorithm);
  }
  return choosable;
}

std::string_view protocol_name(Protocol protocol) {
  constexpr std::array<std::string_view, protocols> names = {"ll", "ll128", "simple"};
  return names.at(static_cast<std::size_t>(protocol));
}

std::optional<Protocol> find_protocol(std::string_view name) {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    if (protocol_name(protocol) == name) return protocol;
  }
  return std::nullopt;
}

double wire_bytes(Protocol protocol) {
  constexpr std::array<double, protocols> bytes = {2, 128.0 / 120, 1};
  return bytes.at(static_cast<std::size_t>(protocol));
}

}  // namespace hdpsim
