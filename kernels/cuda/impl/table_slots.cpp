#include "kernels/cuda/impl/table_slots.h"

#include <algorithm>

namespace hdpsim::kernels::cuda {

std::optional<std::size_t> TableSlots::find(std::span<const std::byte> table) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].used == 0 || !std::ranges::equal(slots_[i].table, table)) continue;
    slots_[i].used = ++uses_;
    return i;
  }
  return std::nullopt;
}

std::size_t TableSlots::oldest() const {
  return static_cast<std::size_t>(std::ranges::min_element(slots_, {}, &Slot::used) - slots_.begin());
}

void TableSlots::put(std::size_t slot, std::span<const std::byte> table) {
  slots_[slot].table.assign(table.begin(), table.end());
  slots_[slot].used = ++uses_;
}

}  // namespace hdpsim::kernels::cuda
