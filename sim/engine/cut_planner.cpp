#include "sim/engine/cut_planner.h"

#include <utility>
#include <vector>

#include "sim/model/layers.h"
#include "sim/program/ring_launches.h"
#include "sim/program/uneven_attention.h"

namespace hdpsim {
namespace {

// Prices the attention of a micro-batch under a cut.
class CutPrices {
 public:
  CutPrices(const LoweringOptions& job, const CostModel& cost)
      : kinds_(of_each_kind(job.model)),
        runs_(layer_runs(job.model)),
        recipe_(job.recipe),
        tp_(job.mesh.tp),
        cost_(cost) {}

  [[nodiscard]] TokenCut faster(MicroBatch micro_batch) const {
    micro_batch.cut = TokenCut::per_pack;
    if (!is_uneven(micro_batch)) return TokenCut::per_document;
    const Duration pack = time(micro_batch);
    micro_batch.cut = TokenCut::per_document;
    return pack < time(micro_batch) ? TokenCut::per_pack : TokenCut::per_document;
  }

 private:
  // Backward may compute forward's core again.
  [[nodiscard]] Duration time(const MicroBatch& micro_batch) const {
    const std::int64_t forwards = recipe_.recompute.has(LayerModule::attention) ? 2 : 1;
    return of_layers(micro_batch, Direction::forward) * forwards + of_layers(micro_batch, Direction::backward);
  }

  [[nodiscard]] Duration of_layers(const MicroBatch& micro_batch, Direction direction) const {
    std::vector<AttentionBlock> busiest;  // of unequal ranks; as many in all layers
    if (is_uneven(micro_batch)) busiest = GroupWork(micro_batch).with_all_keys().blocks;
    Duration sum;
    for (const LayerRun& run : runs_) {
      const Transformer& kind = kinds_[run.kind];
      Attention launch = empty_launch(kind, tp_, {}, direction);
      launch.dropout = recipe_.dropout;
      launch.blocks = busiest.empty() ? gathered_attention(micro_batch, kind, tp_, direction).own.blocks : busiest;
      sum += cost_.attention(launch).time * run.count;
    }
    return sum;
  }

  std::vector<Transformer> kinds_;
  std::vector<LayerRun> runs_;
  Recipe recipe_;
  std::int64_t tp_;
  const CostModel& cost_;
};

void cut_open(Plan& plan, std::optional<TokenCut> cut, const CutPrices& prices) {
  for (MicroBatch& micro_batch : plan.micro_batches) {
    const bool is_shared = micro_batch.group.size() > 1 && micro_batch.local.empty();
    const bool is_open = is_shared && micro_batch.cut == TokenCut::per_document;
    if (is_open) micro_batch.cut = cut ? *cut : prices.faster(micro_batch);
  }
}

class CutPlanner final : public Planner {
 public:
  CutPlanner(std::unique_ptr<Planner> planner, std::optional<TokenCut> cut, const LoweringOptions& job,
             std::unique_ptr<CostModel> cost)
      : planner_(std::move(planner)), cut_(cut), cost_(std::move(cost)), prices_(job, *cost_) {}

  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    Plan plan = planner_->plan(batch, step);
    cut_open(plan, cut_, prices_);
    return plan;
  }
  [[nodiscard]] bool may_refuse() const override { return planner_->may_refuse(); }
  [[nodiscard]] BatchSourcePtr held_back(const BatchSource& data, std::int64_t steps) const override {
    return planner_->held_back(data, steps);
  }
  [[nodiscard]] HoldingRule holding(const BatchSource& data, std::int64_t steps) const override {
    return planner_->holding(data, steps);
  }

 private:
  std::unique_ptr<Planner> planner_;
  std::optional<TokenCut> cut_;
  std::unique_ptr<CostModel> cost_;
  CutPrices prices_;
};

}  // namespace

void cut_plan(Plan& plan, std::optional<TokenCut> cut, const LoweringOptions& job, const CostModel& cost) {
  if (cut != TokenCut::per_document) cut_open(plan, cut, CutPrices(job, cost));
}

std::unique_ptr<Planner> with_cut(std::unique_ptr<Planner> planner, std::optional<TokenCut> cut,
                                  const LoweringOptions& job, std::unique_ptr<CostModel> cost) {
  if (planner == nullptr || cut == TokenCut::per_document) return planner;
  return std::make_unique<CutPlanner>(std::move(planner), cut, job, std::move(cost));
}

}  // namespace hdpsim
