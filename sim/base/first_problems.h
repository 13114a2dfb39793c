#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Reports the first problems of a kind one by one and counts the others, of which a long input can have thousands.
class FirstProblems {
 public:
  static constexpr std::size_t most = 20;

  explicit FirstProblems(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void error(Position position, std::string message, std::string help = {}) {
    if (count_++ < most) diagnostics_.error(std::move(position), std::move(message), std::move(help));
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Reports how many problems were only counted, if any: "and 12 more `of_what`".
  void finish(const Position& where, std::string_view of_what) {
    if (count_ > most) diagnostics_.error(where, fmt::format("and {} more {}", count_ - most, of_what));
  }

 private:
  Diagnostics& diagnostics_;
  std::size_t count_ = 0;
};

}  // namespace hdpsim
