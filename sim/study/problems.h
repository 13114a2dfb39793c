#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Collects the problems of many points of a sweep: the same words about the same place are reported once.
class Problems {
 public:
  explicit Problems(const Diagnostics& found) { add(found, {}); }
  /// Problems without a place get `where`.
  void add(const Diagnostics& found, const Position& where);
  [[nodiscard]] bool empty() const { return diagnostics_.empty(); }
  /// Throws InputError with the lines of all files that the problems name; `texts` has, by name, the texts that are not
  /// files, such as the `--set` options.
  void throw_if_any(const std::map<std::string, std::string>& texts) const;

 private:
  Diagnostics diagnostics_;
  bool counted_ = false;  ///< Whether one of them had more problems than are kept: those are counted once.
  std::set<std::tuple<std::string, int, int, std::string>> seen_;
};

}  // namespace hdpsim
