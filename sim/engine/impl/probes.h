#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The attention and the exchanges of a ring in one direction, in seconds: see RingPass. `step` and `between` are those
/// of all steps but the first and the last.
struct RingTimes {
  double own = 0;
  double step = 0;
  double last_step = 0;
  double first = 0;
  double between = 0;
  double beside_last = 0;
  double behind = 0;
  double shares = 0;  ///< Collectives of the group, which nothing overlaps.
};

/// The times of a probe in seconds, over all its passes and iterations.
struct Probe {
  double total = 0;    ///< All streams, waits included.
  double kernels = 0;  ///< On the compute stream, without attention.
  double own = 0;      ///< Attention to a rank's own keys.
  double forward_kernels = 0;
  double forward_own = 0;
  std::array<RingTimes, 2> directions{};  ///< Forward, also where it is recomputed, and backward.
  double copies = 0;                      ///< Copies to the host, as if no layer stayed on the device.
  double fetches = 0;                     ///< Copies back, likewise.
  double all_layers = 0;                  ///< Kernels, as if no layer skipped any.
  std::vector<PassSeconds> chunks{};      ///< `total` by chunk; empty where a pass is both forward and backward.
};

/// All probes as the plan of one step. An additional micro-batch before and one after them take the work that only the
/// first and the last micro-batch of a rank have.
class Probes {
 public:
  /// `lowering` must outlive it.
  Probes(const LoweringOptions& lowering, std::int64_t capacity);

  /// Adds a probe of `tokens` tokens per rank and returns its index in the plan. Its group is the first `degree` - 1
  /// ranks and, if `degree` is above 1, the last one.
  std::size_t add(std::int64_t tokens, std::int64_t degree, double offload = 0, bool token_wise = false);
  /// The same with the first `degree` ranks.
  std::size_t add_neighbours(std::int64_t tokens, std::int64_t degree);
  /// The same of about as many tokens on one rank, in sequences of `each` tokens.
  std::size_t add_pack(std::int64_t tokens, std::int64_t each);
  /// The times of all micro-batches of the plan, of which the probes' count. Once, behind the last probe.
  [[nodiscard]] std::vector<Probe> run(const Machine& machine);

 private:
  [[nodiscard]] std::vector<HdpRank> other_ranks(const std::vector<HdpRank>& group) const;
  std::size_t add_probe(MicroBatch probe, std::int64_t tokens);
  void add(MicroBatch micro_batch, std::int64_t tokens);

  const LoweringOptions& lowering_;
  Plan plan_;
  std::set<std::size_t> probes_;  ///< Among the micro-batches; the others run at the same time.
};

}  // namespace hdpsim
