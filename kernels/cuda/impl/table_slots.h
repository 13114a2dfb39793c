#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hdpsim::kernels::cuda {

/// Keeps small tables in a few slots. The same table is requested repeatedly (the layers of a model share the tiles of
/// a batch, and so do the runs of a measurement), so it stays until its slot is the least recently used one.
class TableSlots {
 public:
  explicit TableSlots(std::size_t slots) : slots_(slots) {}

  /// The slot that holds exactly these bytes; becomes the most recently used.
  [[nodiscard]] std::optional<std::size_t> find(std::span<const std::byte> table);
  /// The slot that was used longest ago.
  [[nodiscard]] std::size_t oldest() const;
  /// Records that the slot holds the table; it becomes the most recently used.
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
