#include "sim/program/local_attention.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/group_sharing.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"
#include "sim/program/ring_attention.h"

namespace hdpsim {
namespace {

double pairs_of(const Layer& layer, const std::vector<Span>& spans) {
  double pairs = 0;
  for (const Span& span : spans) pairs += attention_area(layer, span.tokens);
  return pairs;
}

Flops flops_of(const MicroBatch& alone, const Transformer& model) {
  Flops flops = training_linear_flops(model, alone.tokens());
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer layer = of_kind(model, run.kind);
    const double pairs = pairs_of(layer, alone.spans);
    flops += (attention_flops(layer, pairs, Direction::forward) + attention_flops(layer, pairs, Direction::backward)) *
             static_cast<double>(run.count);
  }
  return flops;
}

MicroBatch busiest_of(const MicroBatch& micro_batch, const Transformer& model) {
  HDPSIM_CHECK(!micro_batch.local.empty(), "a micro-batch without local spans");
  MicroBatch busiest;
  Flops most;
  for (const LocalSpans& local : micro_batch.local) {
    MicroBatch own = alone(micro_batch, local);
    const Flops flops = flops_of(own, model);
    if (busiest.group.empty() || flops > most) {
      most = flops;
      busiest = std::move(own);
    }
  }
  return busiest;
}

// The share of the busiest rank's amount that the mean rank has not.
double idle(double busiest, double all, std::size_t ranks) {
  return busiest > 0 ? std::max(0.0, 1 - all / (static_cast<double>(ranks) * busiest)) : 0;
}

}  // namespace

LocalWork::LocalWork(const MicroBatch& micro_batch, const Transformer& model)
    : micro_batch_(micro_batch),
      shared_tokens_(divided(micro_batch.shared_tokens(), std::ssize(micro_batch.group))),
      alone_(busiest_of(micro_batch, model)) {}

Attention LocalWork::launch(const Transformer& layer, std::int64_t tp, Direction direction) const {
  return ring_attention(alone_, layer, tp, {}, direction).own;
}

double LocalWork::idle_attention(const Transformer& layer) const {
  double all = 0;
  for (const LocalSpans& local : micro_batch_.local) all += pairs_of(layer, local.spans);
  return idle(pairs_of(layer, alone_.spans), all, micro_batch_.group.size());
}

double LocalWork::idle_dense() const {
  return idle(static_cast<double>(tokens()), static_cast<double>(micro_batch_.tokens()), micro_batch_.group.size());
}

}  // namespace hdpsim
