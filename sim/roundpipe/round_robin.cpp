#include "sim/roundpipe/round_robin.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "sim/base/check.h"
#include "sim/network/fair_share.h"

namespace hdpsim {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr std::int64_t staleness = 2;     // steps from an update to the first that needs it
constexpr double of_micro_batches = 1e6;  // weight of inputs and outputs beside weights and gradients
constexpr double least_left = 1e-9;       // of a copy: what rounding leaves

constexpr std::size_t copy_kinds = 4;  // of RoundRobin::Flow

/// A copy under way.
struct Copy {
  FairShare::Variable flow = 0;
  double bytes = 0;
  double left = 0;
};

/// What a GPU has done of each kind, in the order of its work, and what it does.
struct GpuState {
  std::int64_t started = 0;  ///< Micro-batches of all its stages, one after another.
  std::int64_t computed = 0;
  double end = endless;  ///< Of the one that it computes.
  std::array<std::int64_t, copy_kinds> copied{};
  std::array<std::optional<Copy>, copy_kinds> copies{};
  StreamedTime time;
};

class RoundRobin {
 public:
  enum Flow : std::uint8_t { inputs, weights, outputs, gradients };

  RoundRobin(const RoundRobinJob& job, std::int64_t steps)
      : job_(job),
        gpus_(std::ssize(job.speeds)),
        stages_(std::ssize(job.stages)),
        micro_batches_(std::ssize(job.micro_batches)),
        all_stages_(stages_ * steps),
        share_(capacities(job)),
        states_(job.speeds.size()),
        passes_(job.stages.size() * job.micro_batches.size()),
        ends_(static_cast<std::size_t>(steps)) {
    std::int64_t layers = 0;
    for (const StreamedStage& stage : job.stages) layers = std::max(layers, stage.first + stage.layers);
    updated_.resize(static_cast<std::size_t>(layers));
  }

  void run() {
    while (true) {
      while (start_all()) {
      }
      const double next = next_end();
      if (next == endless) break;
      advance(next);
    }
    HDPSIM_CHECK(is_done(), "streamed stages wait for each other at {} s", now_);
  }

  [[nodiscard]] double end_of(std::int64_t step) const { return ends_[static_cast<std::size_t>(step)]; }
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] const std::vector<StreamedPass>& passes() const { return passes_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  /// The times of all GPUs at the end of every step.
  [[nodiscard]] const std::vector<std::vector<StreamedTime>>& marks() const { return marks_; }

 private:
  static std::vector<double> capacities(const RoundRobinJob& job) {
    const auto rate = [](double stated) { return stated > 0 ? stated : endless; };
    std::vector<double> all;
    for (std::size_t gpu = 0; gpu < job.speeds.size(); ++gpu) {
      all.insert(all.end(), {rate(job.links.up), rate(job.links.down), rate(job.links.up)});
    }
    const std::size_t switches = job.speeds.size() / static_cast<std::size_t>(job.links.gpus_per_switch) + 1;
    all.insert(all.end(), 2 * switches, rate(job.links.switch_rate));
    for (double& capacity : all) capacity = std::min(capacity, no_limit);
    return all;
  }

  [[nodiscard]] const StreamedStage& stage(std::int64_t index) const {
    return job_.stages[static_cast<std::size_t>(index % stages_)];
  }
  // Stages of a GPU, by their place among its own.
  [[nodiscard]] std::int64_t stage_of(std::int64_t gpu, std::int64_t place) const { return gpu + place * gpus_; }
  [[nodiscard]] std::int64_t stages_of(std::int64_t gpu) const {
    return gpu < all_stages_ ? (all_stages_ - gpu - 1) / gpus_ + 1 : 0;
  }
  [[nodiscard]] std::int64_t work_of(std::int64_t gpu) const { return stages_of(gpu) * micro_batches_; }
  [[nodiscard]] GpuState& state(std::int64_t gpu) { return states_[static_cast<std::size_t>(gpu)]; }
  [[nodiscard]] const GpuState& state(std::int64_t gpu) const { return states_[static_cast<std::size_t>(gpu)]; }
  [[nodiscard]] const StreamedMicroBatch& micro_batch(std::int64_t work) const {
    return job_.micro_batches[static_cast<std::size_t>(work % micro_batches_)];
  }

  // The input of a piece of work is the output of the same micro-batch's former stage, if it has one.
  struct Source {
    std::int64_t gpu = 0;
    std::int64_t work = 0;
  };
  [[nodiscard]] std::optional<Source> source(std::int64_t gpu, std::int64_t work) const {
    const std::int64_t own = stage_of(gpu, work / micro_batches_);
    if (own % stages_ == 0) return std::nullopt;
    const std::int64_t former = own - 1;
    return Source{former % gpus_, former / gpus_ * micro_batches_ + work % micro_batches_};
  }
  [[nodiscard]] bool is_computed(const std::optional<Source>& of) const {
    return !of || state(of->gpu).computed > of->work;
  }
  [[nodiscard]] bool is_on_host(const std::optional<Source>& of) const {
    return !of || state(of->gpu).copied[outputs] > of->work;
  }

  // Whether the host has updated the weights of a GPU's stage as far as its step needs it.
  [[nodiscard]] bool is_updated(std::int64_t gpu, std::int64_t place) const {
    const std::int64_t index = stage_of(gpu, place);
    const std::int64_t step = index / stages_;
    if (job_.optimizer == HostOptimizer::at_end || step < staleness) return true;
    const StreamedStage& own = stage(index);
    return std::all_of(updated_.begin() + own.first, updated_.begin() + own.first + own.layers,
                       [&](std::int64_t steps) { return steps > step - staleness; });
  }

  [[nodiscard]] bool may_copy(std::int64_t gpu, Flow kind) const {
    const GpuState& own = state(gpu);
    const std::int64_t next = own.copied[kind];
    switch (kind) {
      case inputs:
        return next < work_of(gpu) && own.started >= next && is_on_host(source(gpu, next));
      case weights:
        if (next >= stages_of(gpu) || !is_updated(gpu, next)) return false;
        return next < 2 || (own.computed >= (next - 1) * micro_batches_ && own.copied[gradients] >= next - 1);
      case outputs:
        return own.computed > next;
      case gradients:
        return next < stages_of(gpu) && own.computed >= (next + 1) * micro_batches_;
    }
    return false;
  }
  [[nodiscard]] double bytes_of(std::int64_t gpu, Flow kind) const {
    const std::int64_t next = state(gpu).copied[kind];
    const bool by_stage = kind == weights || kind == gradients;
    const StreamedStage& own = stage(stage_of(gpu, by_stage ? next : next / micro_batches_));
    if (kind == weights) return own.weight_bytes;
    if (kind == gradients) return own.gradient_bytes;
    return (kind == inputs ? own.input_bytes : own.output_bytes) * micro_batch(next).bytes;
  }

  bool start_all() {
    bool any = start_update();
    for (std::int64_t gpu = 0; gpu < gpus_; ++gpu) {
      for (const Flow kind : {inputs, weights, outputs, gradients}) any = start_copy(gpu, kind) || any;
      any = start_compute(gpu) || any;
    }
    return any;
  }

  bool start_copy(std::int64_t gpu, Flow kind) {
    GpuState& own = state(gpu);
    if (own.copies[kind] || !may_copy(gpu, kind)) return false;
    const double bytes = bytes_of(gpu, kind);
    if (bytes <= 0) {
      end_copy(gpu, kind);
      return true;
    }
    const bool rises = kind == inputs || kind == weights;
    const auto base = static_cast<FairShare::Link>(3 * gpu);
    const auto of_switch =
        static_cast<FairShare::Link>(3 * gpus_ + 2 * (gpu / job_.links.gpus_per_switch) + (rises ? 0 : 1));
    std::vector<FairShare::Load> loads = {{base + (rises ? 0U : 1U), 1}, {of_switch, 1}};
    if (job_.links.down_meets_up > 0) loads.push_back({base + 2, rises ? 1 : job_.links.down_meets_up});
    const bool is_first = kind == inputs || kind == outputs;
    own.copies[kind] = Copy{share_.add_coupled(loads, no_limit, is_first ? of_micro_batches : 1), bytes, bytes};
    return true;
  }

  void end_copy(std::int64_t gpu, Flow kind) {
    GpuState& own = state(gpu);
    if (own.copies[kind]) share_.remove(own.copies[kind]->flow);
    own.copies[kind].reset();
    const std::int64_t place = own.copied[kind]++;
    ++events_;
    if (kind == gradients) updates_.push_back(stage_of(gpu, place));
  }

  bool start_compute(std::int64_t gpu) {
    GpuState& own = state(gpu);
    const std::int64_t next = own.started;
    if (own.end != endless || next >= work_of(gpu)) return false;
    if (own.copied[inputs] <= next || own.copied[weights] <= next / micro_batches_) return false;
    const std::int64_t index = stage_of(gpu, next / micro_batches_);
    own.end = now_ + stage(index).seconds * micro_batch(next).time / job_.speeds[static_cast<std::size_t>(gpu)];
    ++own.started;
    if (index < stages_) passes_[static_cast<std::size_t>(index * micro_batches_ + next % micro_batches_)].begin = now_;
    return true;
  }

  void end_compute(std::int64_t gpu) {
    GpuState& own = state(gpu);
    const std::int64_t index = stage_of(gpu, own.computed / micro_batches_);
    const std::int64_t number = own.computed % micro_batches_;
    if (index < stages_) passes_[static_cast<std::size_t>(index * micro_batches_ + number)].end = now_;
    ++own.computed;
    ++events_;
    own.end = endless;
    if (job_.optimizer == HostOptimizer::one_step_behind && index % stages_ == stages_ - 1 &&
        number == micro_batches_ - 1) {
      mark(index / stages_);
    }
  }

  void mark(std::int64_t step) {
    ends_[static_cast<std::size_t>(step)] = now_;
    std::vector<StreamedTime>& times = marks_.emplace_back();
    for (const GpuState& gpu : states_) times.push_back(gpu.time);
  }

  // Updates follow the gradients in the order in which these arrive or, at the end of a step, when all of them are
  // there.
  bool start_update() {
    if (update_end_ != endless || next_update_ >= updates_.size()) return false;
    if (job_.optimizer == HostOptimizer::at_end && std::ssize(updates_) < all_stages_) return false;
    update_end_ = now_ + stage(updates_[next_update_]).update_seconds;
    return true;
  }

  void end_update() {
    const std::int64_t index = updates_[next_update_++];
    update_end_ = endless;
    ++events_;
    const StreamedStage& own = stage(index);
    if (is_last_of_layers(index)) {
      for (std::int64_t layer = own.first; layer < own.first + own.layers; ++layer) {
        updated_[static_cast<std::size_t>(layer)] = index / stages_ + 1;
      }
    }
    if (job_.optimizer == HostOptimizer::at_end && next_update_ == updates_.size()) mark(0);
  }

  // Forward stages update nothing: their layers come again.
  [[nodiscard]] bool is_last_of_layers(std::int64_t index) const {
    const StreamedStage& own = stage(index);
    for (std::int64_t later = index % stages_ + 1; later < stages_; ++later) {
      const StreamedStage& other = job_.stages[static_cast<std::size_t>(later)];
      if (other.first < own.first + own.layers && own.first < other.first + other.layers) return false;
    }
    return true;
  }

  [[nodiscard]] double next_end() {
    double next = update_end_;
    for (GpuState& gpu : states_) {
      next = std::min(next, gpu.end);
      for (const auto& copy : gpu.copies) {
        if (copy) next = std::min(next, now_ + copy->left / share_.rate(copy->flow));
      }
    }
    return next;
  }

  void advance(double next) {
    const double passed = next - now_;
    for (std::int64_t gpu = 0; gpu < gpus_; ++gpu) book(gpu, passed);
    now_ = next;
    for (GpuState& gpu : states_) {
      for (auto& copy : gpu.copies) {
        if (!copy) continue;
        const double rate = share_.rate(copy->flow);
        copy->left -= passed * rate;
        if (copy->left <= least_left * copy->bytes || now_ + copy->left / rate <= now_) copy->left = 0;
      }
    }
    for (std::int64_t gpu = 0; gpu < gpus_; ++gpu) {
      GpuState& own = state(gpu);
      for (const Flow kind : {inputs, weights, outputs, gradients}) {
        if (own.copies[kind] && own.copies[kind]->left == 0) end_copy(gpu, kind);
      }
      if (own.end <= now_) end_compute(gpu);
    }
    if (update_end_ <= now_) end_update();
  }

  // What a GPU did in a time in which nothing changed.
  void book(std::int64_t gpu, double passed) {
    GpuState& own = state(gpu);
    const std::int64_t next = own.started;
    if (own.end != endless) {
      own.time.compute += passed;
    } else if (next >= work_of(gpu)) {
      (is_computed_by_all() ? own.time.optimizer : own.time.pipeline) += passed;
    } else if (!is_computed(source(gpu, next))) {
      own.time.pipeline += passed;
    } else if (own.copied[weights] <= next / micro_batches_ && !is_updated(gpu, own.copied[weights])) {
      own.time.optimizer += passed;
    } else {
      own.time.copies += passed;
    }
  }
  [[nodiscard]] bool is_computed_by_all() const {
    for (std::int64_t gpu = 0; gpu < gpus_; ++gpu) {
      if (state(gpu).computed < work_of(gpu)) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_done() const {
    return is_computed_by_all() && std::ssize(updates_) == all_stages_ && next_update_ == updates_.size();
  }

  static constexpr double no_limit = 1e30;  // B/s

  const RoundRobinJob& job_;
  std::int64_t gpus_;
  std::int64_t stages_;
  std::int64_t micro_batches_;
  std::int64_t all_stages_;  // of all steps
  FairShare share_;          // by GPU: to it, from it, both; by switch: up, down
  std::vector<GpuState> states_;
  std::vector<StreamedPass> passes_;
  std::vector<double> ends_;
  std::vector<std::vector<StreamedTime>> marks_;
  std::vector<std::int64_t> updates_;  // stages whose gradients are on the host
  std::size_t next_update_ = 0;
  double update_end_ = endless;
  std::vector<std::int64_t> updated_;  // by layer: steps whose updates are done
  double now_ = 0;
  std::uint64_t events_ = 0;
};

StreamedTime mean_between(const StreamedTime& from, const StreamedTime& to, double steps) {
  return {(to.compute - from.compute) / steps, (to.copies - from.copies) / steps, (to.pipeline - from.pipeline) / steps,
          (to.optimizer - from.optimizer) / steps};
}

}  // namespace

RoundRobinStep round_robin_step(const RoundRobinJob& job) {
  HDPSIM_CHECK(!job.stages.empty() && !job.micro_batches.empty() && !job.speeds.empty(),
               "{} stages, {} micro-batches, {} GPUs", job.stages.size(), job.micro_batches.size(), job.speeds.size());
  const std::int64_t gpus = std::ssize(job.speeds);
  const bool overlaps = job.optimizer == HostOptimizer::one_step_behind;
  // Steps until stages are on the same GPUs again; so many are measured, behind as many and those that fill the
  // pipeline and the optimizer's queue.
  const std::int64_t period = overlaps ? gpus / std::gcd(gpus, std::ssize(job.stages)) : 1;
  const std::int64_t before = overlaps ? period + staleness : 0;
  RoundRobin run(job, overlaps ? before + period + 1 : 1);
  run.run();
  RoundRobinStep step;
  step.passes = run.passes();
  step.events = run.events();
  const auto steps = static_cast<double>(period);
  const std::int64_t last = before + period - 1;
  step.seconds = (run.end_of(last) - (before > 0 ? run.end_of(before - 1) : 0)) / steps;
  const std::vector<StreamedTime>& end = run.marks()[static_cast<std::size_t>(last)];
  const std::vector<StreamedTime> begin =
      before > 0 ? run.marks()[static_cast<std::size_t>(before - 1)] : std::vector<StreamedTime>(end.size());
  for (std::size_t gpu = 0; gpu < end.size(); ++gpu) step.gpus.push_back(mean_between(begin[gpu], end[gpu], steps));
  return step;
}

}  // namespace hdpsim
