#pragma once

#include <memory>

#include "sim/plan/impl/shared_options.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// `hdp-naive`: ByteScale (arXiv 2502.21231), Algorithm 1. Sequences of at least C tokens get (r, D) from eq. 3,
/// shorter ones are packed to C by best fit with D = 1. The paper says only that they are then assigned to ranks. Here
/// micro-batches fill consecutive ranks wave by wave (Waves), whatever the ranks' loads are. Their order is either that
/// of the loop over the batch, in which the long sequences come first, as it meets them, and then the packs, which
/// exist only at its end; or longest first.
struct NaiveOptions {
  DealOrder order = DealOrder::data;
  /// `auto` lets no micro-batch take longer than the mean one, because nothing balances long ones. `auto` and
  /// `token-wise` also try the sizes of offloaded_tokens() for all long sequences, and no offload; the work model
  /// selects the best.
  OffloadRule offload;
};
[[nodiscard]] std::unique_ptr<Planner> make_hdp_naive(const PlanningContext& context, const NaiveOptions& options);

}  // namespace hdpsim
