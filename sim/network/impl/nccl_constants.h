#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/network/collective_kind.h"

namespace hdpsim {

/// The constants of NCCL's model of itself: configs/nccl/2.25.yaml, as of the build of the program. A figure is named
/// by its path in the file, as `step.network.ring`; a path that does not exist or holds no such quantity is a bug
/// (checked). Callers read a figure once and keep it.
namespace nccl {

using ByProtocol = std::array<double, protocols>;  ///< LL, LL128, Simple.

[[nodiscard]] double number(std::string_view path);
[[nodiscard]] double microseconds(std::string_view path);
[[nodiscard]] ByProtocol microseconds_by_protocol(std::string_view path);
[[nodiscard]] std::vector<double> numbers(std::string_view path);
/// Bytes per second.
[[nodiscard]] std::vector<double> rates(std::string_view path);

/// A figure by compute capability: that of the last entry not above it. Entries are {from: 9.0, KEY: figure}.
class ByCapability {
 public:
  static ByCapability numbers(std::string_view path, std::string_view key);
  static ByCapability rates(std::string_view path, std::string_view key);
  /// `capability` is in tenths: 90 for 9.0.
  [[nodiscard]] double at(int capability) const;

 private:
  struct Entry {
    int from;
    double figure;
  };
  std::vector<Entry> entries_;
};

}  // namespace nccl
}  // namespace hdpsim
