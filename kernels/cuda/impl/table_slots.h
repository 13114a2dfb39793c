#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hdpsim::kernels::cuda {

/// Which small tables lie in which of a few places. The same table is asked for again and again (the layers of a model
/// share the tiles of a batch, and so do the runs of a measurement), so it stays where it is until its place is the one
/// that was used longest ago.
class TableSlots {
 public:
  explicit TableSlots(std::size_t slots) : slots_(slots) {}

  /// The slot that holds these very bytes; becomes the one used last.
  [[nodiscard]] std::optional<std::size_t> find(std::span<const std::byte> table);
  /// The slot that was used longest ago.
  [[nodiscard]] std::size_t oldest() const;
  /// The slot holds the table from now on; becomes the one used last.
  void put(std::size_t slot, std::span<const std::byte> table);

 private:
  struct Slot {
    std::vector<std::byte> table;
    std::uint64_t used = 0;
  };
  std::vector<Slot> slots_;
  std::uint64_t uses_ = 0;
};

}  // namespace hdpsim::kernels::cuda
