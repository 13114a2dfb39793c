#pragma once

#include <vector>

namespace hdpsim {

/// A positive quantity known at some sizes: linear in the logarithm of the size between them, constant beyond both
/// ends.
class LogCurve {
 public:
  /// Adds a knot. Knots at (nearly) one size are merged to their mean.
  void add(double size, double value);
  [[nodiscard]] double at(double size) const;
  [[nodiscard]] bool covers(double size) const;
  [[nodiscard]] bool empty() const { return knots_.empty(); }

 private:
  struct Knot {
    double size;
    double log_size;
    double value;
    int samples;
  };
  std::vector<Knot> knots_;  // by size
};

}  // namespace hdpsim
