#include "sim/program/schedule_time.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"
#include "sim/plan/updates.h"

namespace hdpsim {
namespace {

/// Runs the passes of all workers in their order.
class ScheduleClock {
 public:
  ScheduleClock(const Pipeline& pipeline, std::span<const PassSeconds> seconds,
                std::span<const ChunkExcess> chunk_excess, std::span<const double> speeds)
      : pipeline_(pipeline),
        seconds_(seconds),
        chunk_excess_(chunk_excess),
        speeds_(speeds),
        chunks_per_stage_(static_cast<double>(pipeline.chunks()) / static_cast<double>(pipeline.stages())),
        next_(pipeline.workers()),
        free_(pipeline.workers()),
        end_(pipeline.passes()),
        missing_(pipeline.passes()) {
    if (!chunk_excess.empty()) {
      tokens_.reserve(pipeline.plan().micro_batches.size());
      for (const MicroBatch& each : pipeline.plan().micro_batches) {
        tokens_.push_back(static_cast<double>(each.tokens()) / static_cast<double>(each.group.size()));
      }
    }
    for (std::size_t p = 0; p < pipeline.passes(); ++p) {
      const PassId pass(p);
      missing_[pipeline.wave_index(pass)] += pipeline.micro_batch(pass).group.size() + (pipeline.source(pass) ? 1 : 0);
    }
  }

  double run() {
    for (std::size_t worker = 0; worker < next_.size(); ++worker) come_to_next(worker);
    std::size_t done = 0;
    while (done < ready_.size()) run_wave(ready_[done++]);  // which adds to them
    HDPSIM_CHECK(std::all_of(missing_.begin(), missing_.end(), [](std::size_t missing) { return missing == 0; }),
                 "the passes of a schedule wait for each other");
    return end_.empty() ? 0 : *std::max_element(end_.begin(), end_.end());
  }

 private:
  // Of both passes through the chunk of one of them.
  [[nodiscard]] PassSeconds seconds_of(const StagePass& at) const {
    const PassSeconds& whole = seconds_[at.micro_batch.index()];
    PassSeconds seconds{whole.forward / chunks_per_stage_, whole.backward / chunks_per_stage_};
    if (chunk_excess_.empty()) return seconds;
    const auto& [per_token, fixed] = chunk_excess_[static_cast<std::size_t>(at.chunk)];
    const double tokens = tokens_[at.micro_batch.index()];
    seconds.forward = std::max(0.0, seconds.forward + per_token.forward * tokens + fixed.forward);
    seconds.backward = std::max(0.0, seconds.backward + per_token.backward * tokens + fixed.backward);
    return seconds;
  }

  [[nodiscard]] double seconds_of(PassId pass) const {
    const StagePass at = pipeline_.pass(pass);
    const PassSeconds all = seconds_of(at);
    switch (at.kind) {
      case PassKind::whole:
        return all.forward + all.backward;
      case PassKind::forward:
        return all.forward;
      case PassKind::backward:
        return all.backward;
      case PassKind::input_gradient:
      case PassKind::weight_gradient:
        return all.backward / 2;
    }
    return 0;
  }

  // On the slowest of its workers.
  [[nodiscard]] double lasting_of(PassId pass) const {
    if (speeds_.empty()) return seconds_of(pass);
    double slowest = std::numeric_limits<double>::infinity();
    for_each_worker(pass, [&](std::size_t worker) { slowest = std::min(slowest, speeds_[worker]); });
    return seconds_of(pass) / slowest;
  }

  void arrive(PassId pass) {
    if (--missing_[pipeline_.wave_index(pass)] == 0) ready_.push_back(pass);
  }

  void come_to_next(std::size_t worker) {
    const std::vector<PassId>& order = pipeline_.orders()[worker];
    if (next_[worker] < order.size()) arrive(order[next_[worker]]);
  }

  template <class Function>
  void for_each_worker(PassId pass, const Function& function) const {
    const std::int64_t stage = pipeline_.pass(pass).stage;
    for (const HdpRank rank : pipeline_.micro_batch(pass).group) function(pipeline_.worker(rank, stage).index());
  }

  void run_wave(PassId first) {
    if (pipeline_.wave_size(first) == 1) return run_together({&first, 1});
    run_together(pipeline_.wave(first));
  }

  void run_together(std::span<const PassId> wave) {
    double begin = 0;
    double lasting = 0;
    for (const PassId pass : wave) {
      if (const auto source = pipeline_.source(pass)) begin = std::max(begin, end_[source->index()]);
      for_each_worker(pass, [&](std::size_t worker) { begin = std::max(begin, free_[worker]); });
      lasting = std::max(lasting, lasting_of(pass));
    }
    for (const PassId pass : wave) {
      end_[pass.index()] = begin + lasting;
      for_each_worker(pass, [&](std::size_t worker) {
        free_[worker] = begin + lasting;
        ++next_[worker];
        come_to_next(worker);
      });
      if (const auto target = pipeline_.target(pass)) arrive(*target);
    }
  }

  const Pipeline& pipeline_;
  std::span<const PassSeconds> seconds_;
  std::span<const ChunkExcess> chunk_excess_;
  std::span<const double> speeds_;  // by worker; may be empty
  std::vector<double> tokens_;      // of a rank, by micro-batch, for chunk_excess_
  double chunks_per_stage_;
  std::vector<std::size_t> next_;     // by worker: position in its order
  std::vector<double> free_;          // by worker: when it has ended what came before
  std::vector<double> end_;           // by pass
  std::vector<std::size_t> missing_;  // by wave: workers that have not come to it, and sources that have not ended
  std::vector<PassId> ready_;         // a pass of each wave that can run, in an order of execution
};

}  // namespace

double schedule_seconds(const Pipeline& pipeline, std::span<const PassSeconds> seconds,
                        std::span<const ChunkExcess> chunk_excess, std::span<const double> speeds) {
  HDPSIM_CHECK(seconds.size() == pipeline.plan().micro_batches.size(), "{} times of {} micro-batches", seconds.size(),
               pipeline.plan().micro_batches.size());
  HDPSIM_CHECK(chunk_excess.empty() || std::ssize(chunk_excess) == pipeline.chunks(), "{} excesses of {} chunks",
               chunk_excess.size(), pipeline.chunks());
  HDPSIM_CHECK(speeds.empty() || speeds.size() == pipeline.workers(), "{} speeds of {} workers", speeds.size(),
               pipeline.workers());
  return ScheduleClock(pipeline, seconds, chunk_excess, speeds).run();
}

double estimated_step(const Plan& plan, const WorkModel& work, std::int64_t stages, const PipelineOptions& options) {
  if (stages == 1 && plan.expert_ranks == 1) return plan_time(plan, work).step();
  if (update_count(plan) == 1) {
    return schedule_seconds(Pipeline(plan, stages, options), pass_seconds(plan, work), work.chunk_excess);
  }
  double seconds = 0;
  for (const Plan& update : split_by_update(plan)) seconds += estimated_step(update, work, stages, options);
  return seconds;
}

}  // namespace hdpsim
