#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hdpsim::kernels {

/// Rows [held, held + rows) of a rank are rows [begin, begin + rows) of its group.
struct RowStretch {
  std::int64_t held = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  friend bool operator==(const RowStretch&, const RowStretch&) = default;
};

/// The rows of a group of ranks, each of which holds some of them, in the order that they have in common.
struct GroupRows {
  std::vector<int> members;                   ///< Ranks of the transport, in the order of the group.
  int position = 0;                           ///< Of the calling rank among them.
  std::vector<std::vector<RowStretch>> held;  ///< By member.

  [[nodiscard]] std::int64_t rows(std::size_t member) const {
    std::int64_t sum = 0;
    for (const RowStretch& stretch : held[member]) sum += stretch.rows;
    return sum;
  }
  /// Rows of the calling rank.
  [[nodiscard]] std::int64_t own() const { return rows(static_cast<std::size_t>(position)); }
  /// The most rows of a member: what every member has of a collective, whose parts are of one size.
  [[nodiscard]] std::int64_t most() const {
    std::int64_t most = 0;
    for (std::size_t member = 0; member < held.size(); ++member) most = std::max(most, rows(member));
    return most;
  }
  /// Rows of all members.
  [[nodiscard]] std::int64_t all() const {
    std::int64_t sum = 0;
    for (std::size_t member = 0; member < held.size(); ++member) sum += rows(member);
    return sum;
  }
};

}  // namespace hdpsim::kernels
