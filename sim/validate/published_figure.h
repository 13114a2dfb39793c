#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The kind of a published figure of a run.
enum class Quantity {
  step_time,
  tokens_per_s_per_gpu,
  device_memory,  ///< All that a device has in use.
  speedup,
  tflops_per_gpu,
  mfu,
  allocated_memory,  ///< What the framework's allocator has handed out (torch.cuda.max_memory_allocated) ...
  reserved_memory,   ///< ... and what it holds, with its gaps (torch.cuda.max_memory_reserved).
  /// How many times less host memory all loaders take than in the study that speed-ups are over.
  loader_memory_saving,
};
/// The names of their columns: "step_time_s", "tokens_per_s_per_gpu", "memory_gb", "speedup", "tflops_per_gpu", "mfu",
/// "memory_allocated_gb", "memory_reserved_gb", "loader_memory_saving".
[[nodiscard]] const std::vector<std::string>& quantity_names();
/// The quantity of a column, behind which its plan may stand: "speedup hdp-naive". Empty: no figures.
[[nodiscard]] std::optional<Quantity> quantity_of(std::string_view column);
[[nodiscard]] std::string quantity_name(Quantity quantity);
[[nodiscard]] std::string quantity_unit(Quantity quantity);
/// Whether more of it is a shorter step of the same work.
[[nodiscard]] bool is_rate(Quantity quantity);

/// What a publication counts of attention in TFLOP/s and MFU. Neither counts what is computed again, so that backward
/// is twice forward.
enum class CountedAttention {
  half,  ///< The pairs that a causal mask leaves.
  full,  ///< The whole square: twice as many.
  none,  ///< 6 FLOPs a parameter and token alone.
};

/// One published figure of one case.
struct PublishedFigure {
  Quantity quantity = Quantity::step_time;
  std::string plan;  ///< The study's plan; empty: its only one.
  double value = 0;  ///< Positive, in the quantity's unit.
  /// A constant of the study was fitted to it, so that its error is not informative.
  bool fitted = false;
};

/// Reads a figure: a number in the quantity's unit, a time with its unit (`900 ms`), or an amount of memory with its
/// unit (`66.55 GiB`). Empty if it is none, or not above 0 (1e-9 to 1e15), which is reported; `column` is its name.
[[nodiscard]] std::optional<double> read_figure(Quantity quantity, std::string_view column, const Value& cell,
                                                Diagnostics& diagnostics);

}  // namespace hdpsim
