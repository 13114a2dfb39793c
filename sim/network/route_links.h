#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "sim/base/id.h"

namespace hdpsim {

/// A link of a route, and the share of the message that crosses it: below 1 where switches spread the message over
/// several ways.
struct RouteLink {
  LinkId link;
  double share = 1;
  friend bool operator==(const RouteLink&, const RouteLink&) = default;
};

/// The links of a route. Most routes have few: they are held without a memory allocation.
class RouteLinks {
 public:
  void append(const RouteLink& next) {
    if (count_ < few_.size()) {
      few_[count_++] = next;
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back(next);
    ++count_;
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] std::span<const RouteLink> view() const& {
    return {many_.empty() ? few_.data() : many_.data(), count_};
  }
  std::span<const RouteLink> view() const&& = delete;  ///< They would be gone with the list.

 private:
  std::array<RouteLink, 10> few_{};
  std::vector<RouteLink> many_;  ///< All of them, once there are more.
  std::size_t count_ = 0;
};

}  // namespace hdpsim
