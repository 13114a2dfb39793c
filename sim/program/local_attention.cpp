#include "sim/program/local_attention.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/group_sharing.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

double area_of(const Layer& layer, const std::vector<Span>& spans) {
  double pairs = 0;
  for (const Span& span : spans) pairs += attention_area(layer, span.tokens);
  return pairs;
}

// FLOPs of what a rank holds alone, in all layers.
class FlopsAlone {
 public:
  explicit FlopsAlone(const Transformer& model) : of_token_(training_linear_flops(model, 1)), runs_(layer_runs(model)) {
    for (const LayerRun& run : runs_) layers_.push_back(of_kind(model, run.kind));
  }

  [[nodiscard]] Flops of(const std::vector<Span>& spans) const {
    std::int64_t tokens = 0;
    for (const Span& span : spans) tokens += span.tokens;
    Flops flops = of_token_ * static_cast<double>(tokens);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const double pairs = area_of(layers_[i], spans);
      flops += (of_attention(layers_[i], pairs, spans, Direction::forward) +
                of_attention(layers_[i], pairs, spans, Direction::backward)) *
               static_cast<double>(runs_[i].count);
    }
    return flops;
  }

 private:
  static Flops of_attention(const Layer& layer, double pairs, const std::vector<Span>& spans, Direction direction) {
    Flops flops = attention_flops(layer, pairs, direction);
    for (const Span& span : spans) flops += indexer_flops(layer, span.tokens, direction);
    return flops;
  }

  Flops of_token_;
  std::vector<LayerRun> runs_;
  std::vector<Transformer> layers_;  // of each run
};

MicroBatch busiest_of(const MicroBatch& micro_batch, const Transformer& model) {
  HDPSIM_CHECK(!micro_batch.local.empty(), "a micro-batch without local spans");
  const FlopsAlone flops(model);
  const LocalSpans* busiest = &micro_batch.local.front();
  Flops most;
  for (const LocalSpans& local : micro_batch.local) {
    const Flops own = flops.of(local.spans);
    if (own <= most) continue;
    busiest = &local;
    most = own;
  }
  return alone(micro_batch, *busiest);
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

RingAttention LocalWork::attention(const Transformer& layer, std::int64_t tp, Direction direction) const {
  return ring_attention(alone_, layer, tp, {}, direction);
}

double LocalWork::idle_attention(const Transformer& layer) const {
  double all = 0;
  for (const LocalSpans& local : micro_batch_.local) all += area_of(layer, local.spans);
  return idle(area_of(layer, alone_.spans), all, micro_batch_.group.size());
}

double LocalWork::idle_dense() const {
  return idle(static_cast<double>(tokens()), static_cast<double>(micro_batch_.tokens()), micro_batch_.group.size());
}

}  // namespace hdpsim
