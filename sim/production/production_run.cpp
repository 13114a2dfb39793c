#include "sim/production/production_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace hdpsim {
namespace {

/// A device that is slow, or that is planned for as if it still were.
struct WatchedDevice {
  SlowSpell spell;
  bool is_known = false;
  bool has_recovered = false;
  std::int64_t steps = 0;  ///< Since its condition has changed.
};

std::vector<SlowDevice> slowest_of(const std::map<std::int64_t, double>& devices) {
  std::vector<SlowDevice> all;
  all.reserve(devices.size());
  for (const auto& [device, slowdown] : devices) all.push_back({device, slowdown});
  return all;
}

ProductionEventKind kind_of(LoaderEvent::Kind kind) {
  switch (kind) {
    case LoaderEvent::Kind::added:
      return ProductionEventKind::loader_added;
    case LoaderEvent::Kind::removed:
      return ProductionEventKind::loader_removed;
    case LoaderEvent::Kind::lost:
      return ProductionEventKind::loader_lost;
    case LoaderEvent::Kind::promoted:
      break;
  }
  return ProductionEventKind::loader_promoted;
}

/// The loaders of the job, which go on while it stands still.
class LoaderSupply final : public DataSupply {
 public:
  explicit LoaderSupply(const LoadingSpec& spec) : run_(spec) {}

  [[nodiscard]] Duration wait(double at_s, const TimedStep& step, std::int64_t number) override {
    stand_until(at_s);
    LoadedStep loaded{step.loading, step.time, step.loading_job};
    loaded.job.step = number;
    const Duration wait = run_.wait(loaded);
    now_s_ += (wait + step.time).seconds();
    return wait;
  }
  void begin_again(double at_s) override {
    stand_until(at_s);
    run_.begin_again();
  }
  [[nodiscard]] std::vector<LoaderEvent> take_events() override { return run_.take_events(); }

 private:
  // A failure may have cut the last step short.
  void stand_until(double at_s) {
    if (at_s <= now_s_) return;
    run_.stand_still(Duration::seconds(at_s - now_s_));
    now_s_ = at_s;
  }

  LoadedRun run_;
  double now_s_ = 0;
};

/// What has been done since the last checkpoint.
struct Pending {
  TimeSpent spent;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  double model_flops = 0;
};

class RunningJob {
 public:
  RunningJob(const ProductionJob& job, TimedSteps& times, DataSupply* supply)
      : production_(job.options), failures_(job.failures), incidents_(job.incidents), times_(times), supply_(supply) {
    if (failures_) run_.interval_s = checkpoint_interval_s(*failures_, job.nodes);
  }

  std::optional<ProductionRun> run(const std::function<bool(double)>& goes_on) {
    while (clock_s_ < production_.time_s) {
      look_at_devices();
      if (!train() || !goes_on(clock_s_)) return std::nullopt;
    }
    count_pending();
    if (supply_ != nullptr) say_of_loaders(supply_->take_events());
    return std::move(run_);
  }

 private:
  // ---- Time

  // Lets time pass for something that a failure interrupts. False if one did: the job has then been restarted.
  bool spend(double seconds, double& account) {
    const double failure_s = next_failure_s();
    if (clock_s_ + seconds <= failure_s) {
      clock_s_ += seconds;
      account += seconds;
      return true;
    }
    run_.spent.lost_s += std::max(0.0, failure_s - clock_s_);
    fail();
    return false;
  }

  [[nodiscard]] double next_failure_s() const {
    if (failure_ >= incidents_.failures.size()) return std::numeric_limits<double>::infinity();
    return incidents_.failures[failure_].at_s;
  }

  void fail() {
    const NodeFailure& failure = incidents_.failures[failure_++];
    clock_s_ = std::max(clock_s_, failure.at_s);
    run_.spent.lost_s += pending_.spent.total_s();
    run_.lost_steps += pending_.steps;
    say({.at_s = clock_s_,
         .kind = ProductionEventKind::failed,
         .step = run_.steps,
         .node = failure.node,
         .lost_steps = pending_.steps,
         .stopped_s = failures_->restart_s});
    pending_ = {};
    forget_node(failure.node);
    restart();
  }

  // A failure meanwhile begins it anew.
  void restart() {
    double ready_s = clock_s_ + failures_->restart_s;
    run_.spent.restarts_s += failures_->restart_s;
    while (next_failure_s() < ready_s) {
      const NodeFailure& failure = incidents_.failures[failure_++];
      run_.spent.restarts_s += failure.at_s - clock_s_;
      clock_s_ = failure.at_s;
      ready_s = clock_s_ + failures_->restart_s;
      forget_node(failure.node);
      say({.at_s = clock_s_,
           .kind = ProductionEventKind::failed,
           .step = run_.steps,
           .node = failure.node,
           .stopped_s = failures_->restart_s});
    }
    clock_s_ = ready_s;
    since_checkpoint_s_ = 0;
    if (supply_ != nullptr) supply_->begin_again(clock_s_);
  }

  // ---- Steps

  [[nodiscard]] std::int64_t trained() const { return run_.steps + pending_.steps; }

  // One step, and what follows it. False if the steps end.
  bool train() {
    const std::int64_t batch = trained() % times_.batches();
    const DeviceState state = state_of_devices();
    const auto step = times_.step(batch, state);
    const auto usual = state == DeviceState{} ? step : times_.step(batch, {});
    if (!step || !usual) return false;
    const double wait_s = supply_ != nullptr ? supply_->wait(clock_s_, *step, trained()).seconds() : 0;
    double took_s = 0;
    if (!spend(wait_s + step->time.seconds(), took_s)) return true;
    since_checkpoint_s_ += took_s;
    take(*step, *usual, wait_s);
    answer_what_is_known();
    if (run_.interval_s && since_checkpoint_s_ + took_s / 2 >= *run_.interval_s) write_checkpoint();
    return true;
  }

  void take(const TimedStep& step, const TimedStep& usual, double wait_s) {
    for (std::size_t i = 0; i < activity_count; ++i) pending_.spent.steps_s[i] += usual.mean[i].seconds();
    pending_.spent.steps_s[index_of(Activity::data_wait)] += wait_s;
    pending_.spent.stragglers_s += step.time.seconds() - usual.time.seconds();
    ++pending_.steps;
    pending_.tokens += step.tokens;
    pending_.model_flops += step.model_flops;
    run_.device = std::max(run_.device, step.device);
    run_.host = std::max(run_.host, step.host);
    for (WatchedDevice& each : watched_) ++each.steps;
  }

  void write_checkpoint() {
    const double begun_s = clock_s_;
    if (!spend(failures_->checkpoint_s, run_.spent.checkpoints_s)) return;
    count_pending();
    since_checkpoint_s_ = 0;
    say({.at_s = begun_s,
         .kind = ProductionEventKind::checkpoint,
         .step = run_.steps,
         .stopped_s = failures_->checkpoint_s});
  }

  void count_pending() {
    run_.spent += pending_.spent;
    run_.steps += pending_.steps;
    run_.tokens += pending_.tokens;
    run_.model_flops += pending_.model_flops;
    pending_ = {};
  }

  // ---- Devices

  void look_at_devices() {
    for (WatchedDevice& each : watched_) {
      if (each.has_recovered || each.spell.to_s > clock_s_) continue;
      each.has_recovered = true;
      each.steps = 0;
      say_of(each.spell, ProductionEventKind::recovered, std::max(each.spell.to_s, each.spell.from_s), 0);
    }
    std::erase_if(watched_, [](const WatchedDevice& each) { return each.has_recovered && !each.is_known; });
    while (spell_ < incidents_.slow.size() && incidents_.slow[spell_].from_s <= clock_s_) {
      const SlowSpell& spell = incidents_.slow[spell_++];
      if (spell.to_s <= clock_s_) continue;  // while the job stood still
      watched_.push_back({spell});
      say_of(spell, ProductionEventKind::slow, spell.from_s, 0);
    }
  }

  [[nodiscard]] DeviceState state_of_devices() const {
    std::map<std::int64_t, double> slow;
    std::map<std::int64_t, double> known;
    const auto add = [](std::map<std::int64_t, double>& devices, const SlowSpell& spell) {
      double& slowdown = devices[spell.device];
      slowdown = std::max(slowdown, spell.slowdown);
    };
    for (const WatchedDevice& each : watched_) {
      if (!each.has_recovered) add(slow, each.spell);
      if (each.is_known) add(known, each.spell);
    }
    return {slowest_of(slow), slowest_of(known)};
  }

  // Those whose changed condition is known by now.
  void answer_what_is_known() {
    if (!production_.stragglers || production_.stragglers->answer == StragglerAnswer::none) return;
    const Stragglers& rules = *production_.stragglers;
    const auto is_news = [&](const WatchedDevice& each) {
      return each.is_known == each.has_recovered && each.spell.slowdown >= rules.threshold &&
             each.steps >= rules.detect;
    };
    while (true) {
      const auto news = std::find_if(watched_.begin(), watched_.end(), is_news);
      if (news == watched_.end()) return;
      const SlowSpell spell = news->spell;
      const bool goes_on = rules.answer == StragglerAnswer::replace ? replace(spell) : replan(news);
      if (!goes_on) return;  // a failure: what is left is looked at after the next step
    }
  }

  // False, as from replace(), if a failure interrupted it.
  bool replan(std::vector<WatchedDevice>::iterator device) {
    const SlowSpell spell = device->spell;
    const std::vector<SlowDevice> before = state_of_devices().known;
    device->is_known = !device->is_known;
    if (!device->is_known) watched_.erase(device);
    return stop_for(spell, ProductionEventKind::replanned, times_.adapt(before, state_of_devices().known));
  }

  // With a checkpoint: nothing is lost.
  bool replace(const SlowSpell& spell) {
    forget_node(spell.node);
    if (!stop_for(spell, ProductionEventKind::replaced)) return false;
    count_pending();
    since_checkpoint_s_ = 0;
    if (supply_ != nullptr) supply_->begin_again(clock_s_);
    return true;
  }

  bool stop_for(const SlowSpell& spell, ProductionEventKind kind, const Adaptation& adaptation = {}) {
    const double stop_s = production_.stragglers->stop_s + adaptation.moving_s;
    say_of(spell, kind, clock_s_, stop_s);
    run_.events.back().layout = adaptation.layout;
    return spend(stop_s, run_.spent.answers_s);
  }

  // A spare has taken its place.
  void forget_node(std::int64_t node) {
    std::erase_if(watched_, [&](const WatchedDevice& each) { return each.spell.node == node; });
  }

  // ---- Events

  void say(const ProductionEvent& event) { run_.events.push_back(event); }
  void say_of(const SlowSpell& spell, ProductionEventKind kind, double at_s, double stopped_s) {
    say({.at_s = at_s,
         .kind = kind,
         .step = trained(),
         .device = spell.device,
         .node = spell.node,
         .slowdown = spell.slowdown,
         .stopped_s = stopped_s});
  }

  void say_of_loaders(const std::vector<LoaderEvent>& events) {
    for (const LoaderEvent& event : events) {
      say({.at_s = event.at_s,
           .kind = kind_of(event.kind),
           .step = event.step,
           .stopped_s = event.pause.seconds(),
           .source = event.source});
    }
  }

  const ProductionOptions& production_;
  const std::optional<FailureModel>& failures_;
  const Incidents& incidents_;
  TimedSteps& times_;
  DataSupply* supply_;
  double clock_s_ = 0;
  double since_checkpoint_s_ = 0;
  std::size_t failure_ = 0;  // the next one
  std::size_t spell_ = 0;    // the next one
  std::vector<WatchedDevice> watched_;
  Pending pending_;
  ProductionRun run_;
};

}  // namespace

double TimeSpent::steps_that_count_s() const {
  return std::accumulate(steps_s.begin(), steps_s.end(), stragglers_s);
}

double TimeSpent::total_s() const {
  return steps_that_count_s() + answers_s + checkpoints_s + lost_s + restarts_s;
}

TimeSpent& TimeSpent::operator+=(const TimeSpent& other) {
  for (std::size_t i = 0; i < activity_count; ++i) steps_s[i] += other.steps_s[i];
  stragglers_s += other.stragglers_s;
  answers_s += other.answers_s;
  checkpoints_s += other.checkpoints_s;
  lost_s += other.lost_s;
  restarts_s += other.restarts_s;
  return *this;
}

std::string_view production_event_name(ProductionEventKind kind) {
  switch (kind) {
    case ProductionEventKind::slow:
      return "slow";
    case ProductionEventKind::recovered:
      return "recovered";
    case ProductionEventKind::replanned:
      return "replanned";
    case ProductionEventKind::replaced:
      return "replaced";
    case ProductionEventKind::failed:
      return "failed";
    case ProductionEventKind::checkpoint:
      return "checkpoint";
    case ProductionEventKind::loader_added:
      return "loader_added";
    case ProductionEventKind::loader_removed:
      return "loader_removed";
    case ProductionEventKind::loader_lost:
      return "loader_lost";
    case ProductionEventKind::loader_promoted:
      break;
  }
  return "loader_promoted";
}

std::unique_ptr<DataSupply> make_data_supply(const LoadingSpec& spec) {
  return std::make_unique<LoaderSupply>(spec);
}

std::int64_t ProductionRun::count(ProductionEventKind kind) const {
  return std::count_if(events.begin(), events.end(), [&](const ProductionEvent& event) { return event.kind == kind; });
}

double ProductionRun::tokens_per_gpu_hour(std::int64_t gpus) const {
  return static_cast<double>(tokens) / (spent.total_s() / hour_s * static_cast<double>(gpus));
}

double checkpoint_interval_s(const FailureModel& failures, std::int64_t nodes) {
  const double mtbf_s = failures.node_mtbf_s / static_cast<double>(nodes);
  return failures.interval_s.value_or(daly_interval(failures.checkpoint_s, mtbf_s));
}

std::optional<ProductionRun> run_production(const ProductionJob& job, TimedSteps& times, DataSupply* supply,
                                            const std::function<bool(double seconds)>& goes_on) {
  return RunningJob(job, times, supply).run(goes_on);
}

}  // namespace hdpsim
