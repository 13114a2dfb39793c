#include "sim/production/simulated_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "sim/base/duration_sum.h"
#include "sim/base/fingerprint.h"
#include "sim/document/record.h"
#include "sim/production/known_study.h"
#include "sim/production/relaid_steps.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"

namespace hdpsim {

template <SameAs<LoadingJob> Self, class Visit>
void each_member(Self& job, const Visit& visit) {
  visit("ranks", job.ranks);
  visit("devices_per_rank", job.devices_per_rank);
  visit("nodes", job.nodes);
  visit("tokens", job.tokens);
  visit("largest_share", job.largest_share);
  visit("samples", job.samples);
  visit("step", job.step);
}

template <SameAs<TimedStep> Self, class Visit>
void each_member(Self& step, const Visit& visit) {
  visit("time", step.time);
  visit("mean", step.mean);
  visit("loading", step.loading);
  visit("loading_job", step.loading_job);
  visit("tokens", step.tokens);
  visit("model_flops", step.model_flops);
  visit("device", step.device);
  visit("host", step.host);
}

namespace {

// Steps are asked for one after the other: so many batches are simulated with the one that is asked for. The last ones
// of a state may not be needed.
constexpr std::int64_t ahead_of_a_thread = 4;
// Plans that are kept of one state of knowledge; each may hold millions of pieces.
constexpr std::size_t most_plans = 64;

std::string text_of(const std::vector<SlowDevice>& devices) {
  std::string text;
  for (const SlowDevice& each : devices) text += fmt::format(" {}x{}", each.device, each.slowdown);
  return text;
}

// What decides how long the steps of a plan take. How the job fails does not.
std::uint64_t fingerprint_of(const StudyPoint& point, const StudyPlan& plan) {
  Diagnostics none;
  Value identity = parse_document("identity", point.identity, none);
  std::erase_if(identity.entries, [](const Value::Entry& entry) { return entry.key == "failures"; });
  return fingerprint(plan.identity(), fingerprint(to_yaml(identity)));
}

TimedStep timed(const StepResult& result) {
  TimedStep step{.time = result.time,
                 .loading = result.loading,
                 .loading_job = result.loading_job,
                 .tokens = result.tokens,
                 .model_flops = result.model_flops,
                 .device = result.memory.device,
                 .host = result.memory.host};
  for (const Activity activity : all_activities) step.mean[index_of(activity)] = result.mean[activity];
  return step;
}

/// The plans that are made where some slow devices are known.
class Knowledge {
 public:
  /// Nothing is known: `point` must outlive it.
  Knowledge(const StudyPoint& point, std::size_t plan) : point_(&point), plan_(plan) {}
  /// The only plan of the only point of a study that states what is known.
  explicit Knowledge(Study study)
      : study_(std::make_unique<Study>(std::move(study))), point_(&study_->points.front()) {}

  [[nodiscard]] const StudyPoint& point() const { return *point_; }

  /// Safe from several threads.
  [[nodiscard]] std::shared_ptr<const PointStep> planned(std::int64_t batch) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = plans_.find(batch);
      if (found != plans_.end()) return found->second;
    }
    Batch drawn = point_->batches_of(plan_).step(batch);
    Plan plan = make_plan(*point_, plan_, batch, drawn);
    auto made = std::make_shared<const PointStep>(PointStep{*point_, std::move(drawn), std::move(plan)});
    const std::lock_guard lock(mutex_);
    if (plans_.size() < most_plans) plans_.emplace(batch, made);
    return made;
  }

 private:
  std::unique_ptr<Study> study_;  // null: of somebody else
  const StudyPoint* point_;
  std::size_t plan_ = 0;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const PointStep>> plans_;
};

class SimulatedTimes final : public TimedSteps {
 public:
  SimulatedTimes(const Study& study, const StudyPoint& point, std::size_t plan, Catalog& catalog, SimulatedSteps& known,
                 const TimedStepsOptions& options)
      : study_(study),
        point_(point),
        plan_(plan),
        catalog_(catalog),
        simulated_(known),
        options_(options),
        identity_(fingerprint_of(point, study.plans[plan])),
        unaware_(point, plan) {
    if (answer() == StragglerAnswer::relayout) relaid_.emplace(ProducedPlan{study, point, plan}, *unaware_.planned(0));
  }

  [[nodiscard]] std::int64_t batches() const override { return point_.spec.steps; }

  [[nodiscard]] std::optional<TimedStep> step(std::int64_t batch, const DeviceState& state) override {
    if (answer() == StragglerAnswer::relayout && !state.known.empty()) return relaid(batch, state);
    if (state == DeviceState{} || samples() == batches()) return simulated(batch, state);
    std::optional<TimedStep> step = simulated(batch, {});
    const std::optional<double> longer = step ? times_longer(state) : std::nullopt;
    if (!longer) return std::nullopt;
    step->time = step->time.scaled(*longer);
    return step;
  }

  [[nodiscard]] Adaptation adapt(const std::vector<SlowDevice>& before, const std::vector<SlowDevice>& now) override {
    return relaid_ ? relaid_->adapt(before, now) : Adaptation{};
  }

 private:
  [[nodiscard]] StragglerAnswer answer() const {
    return study_.production->stragglers ? study_.production->stragglers->answer : StragglerAnswer::none;
  }

  [[nodiscard]] std::optional<TimedStep> relaid(std::int64_t batch, const DeviceState& state) {
    std::optional<TimedStep> step = simulated(batch, {});
    if (step) step->time = Duration::seconds(step->time.seconds() + relaid_->more_seconds(state));
    return step;
  }

  [[nodiscard]] std::int64_t samples() const {
    const auto& stragglers = study_.production->stragglers;
    return std::min(batches(), stragglers && stragglers->batches ? *stragglers->batches : batches());
  }

  // How many times longer the sampled batches take than on usual devices; empty if it was stopped.
  [[nodiscard]] std::optional<double> times_longer(const DeviceState& state) {
    const auto found = longer_.find(state);
    if (found != longer_.end()) return found->second;
    std::vector<std::int64_t> sample;
    for (std::int64_t i = 0; i < samples(); ++i) sample.push_back(i * batches() / samples());
    if (!simulate(sample, state) || !simulate(sample, {})) return std::nullopt;
    DurationSum in_state;
    DurationSum usual;
    for (const std::int64_t batch : sample) {
      in_state += known(batch, state)->time;
      usual += known(batch, {})->time;
    }
    return longer_.emplace(state, in_state.seconds() / usual.seconds()).first->second;
  }

  // With those after it, which are asked for next. Empty if it was stopped.
  [[nodiscard]] std::optional<TimedStep> simulated(std::int64_t batch, const DeviceState& state) {
    if (auto found = known(batch, state)) return found;
    const auto most = std::min<std::int64_t>(batches(), ahead_of_a_thread * static_cast<std::int64_t>(options_.jobs));
    std::vector<std::int64_t> next;
    for (std::int64_t i = 0; i < most; ++i) next.push_back((batch + i) % batches());
    return simulate(next, state) ? known(batch, state) : std::nullopt;
  }

  [[nodiscard]] std::string key_of(std::int64_t batch, const DeviceState& state) const {
    const char* known = answer() == StragglerAnswer::drop ? "without" : "known";
    return fmt::format("{:016x} batch {} slow{} {}{}", identity_, batch, text_of(state.slow), known,
                       text_of(state.known));
  }

  [[nodiscard]] std::optional<TimedStep> known(std::int64_t batch, const DeviceState& state) const {
    return simulated_.find(key_of(batch, state));
  }

  // Those of these batches that are not known. False if it was stopped.
  bool simulate(std::vector<std::int64_t> batches, const DeviceState& state) {
    std::erase_if(batches, [&](std::int64_t batch) { return known(batch, state).has_value(); });
    if (batches.empty()) return true;
    Knowledge& knowledge = knowledge_of(state.known);
    DeviceConditions conditions = point_.spec.conditions;
    for (const Fault& fault : faults_of(state.slow)) conditions.faults.push_back(fault);
    const auto make_worker = [&] {
      return [&, world = taken_world(knowledge)](std::int64_t number) {
        const auto planned = knowledge.planned(batches[static_cast<std::size_t>(number)]);
        return timed(simulate_step(*planned, *world, {.devices = &conditions}).result);
      };
    };
    const auto take = [&](std::int64_t number, TimedStep&& step) {
      simulated_.keep(key_of(batches[static_cast<std::size_t>(number)], state), step);
      options_.report();
    };
    return run_in_order({0, std::ssize(batches), options_.jobs, options_.stop}, make_worker, take);
  }

  Knowledge& knowledge_of(const std::vector<SlowDevice>& known) {
    if (known.empty()) return unaware_;
    if (!aware_ || aware_of_ != known) {
      aware_.reset();
      const ProducedPlan own{study_, point_, plan_};
      aware_.emplace(answer() == StragglerAnswer::drop ? study_without_nodes(own, known, catalog_)
                                                       : study_that_knows(own, known, catalog_));
      aware_of_ = known;
    }
    return *aware_;
  }

  // Worlds of usual steps serve where the same devices train.
  std::shared_ptr<World> taken_world(const Knowledge& knowledge) {
    if (answer() == StragglerAnswer::drop && &knowledge != &unaware_) return knowledge.point().make_world();
    const std::lock_guard lock(mutex_);
    std::unique_ptr<World> world;
    if (idle_.empty()) {
      world = point_.make_world();
    } else {
      world = std::move(idle_.back());
      idle_.pop_back();
    }
    return {world.release(), [this](World* used) { put_back(used); }};
  }

  void put_back(World* used) {
    const std::lock_guard lock(mutex_);
    idle_.emplace_back(used);
  }

  const Study& study_;
  const StudyPoint& point_;
  std::size_t plan_;
  Catalog& catalog_;
  SimulatedSteps& simulated_;
  TimedStepsOptions options_;
  std::uint64_t identity_;
  Knowledge unaware_;
  std::optional<RelaidSteps> relaid_;  // with that answer
  std::optional<Knowledge> aware_;     // of the state that was asked for last
  std::vector<SlowDevice> aware_of_;
  std::map<DeviceState, double> longer_;  // of sampled states
  std::mutex mutex_;
  std::vector<std::unique_ptr<World>> idle_;
};

}  // namespace

SimulatedSteps::SimulatedSteps(Journal journal) : journal_(std::move(journal)) {}
SimulatedSteps::~SimulatedSteps() = default;

std::optional<TimedStep> SimulatedSteps::find(const std::string& key) const {
  const auto found = steps_.find(key);
  if (found != steps_.end()) return found->second;
  const auto text = journal_.kept(key);
  return text ? record_of_text<TimedStep>(*text) : std::nullopt;
}

void SimulatedSteps::keep(const std::string& key, const TimedStep& step) {
  journal_.add(key, record_text(step));
  steps_.insert_or_assign(key, step);
}

std::unique_ptr<TimedSteps> make_simulated_times(const Study& study, const StudyPoint& point, std::size_t plan,
                                                 Catalog& catalog, SimulatedSteps& known,
                                                 const TimedStepsOptions& options) {
  return std::make_unique<SimulatedTimes>(study, point, plan, catalog, known, options);
}

}  // namespace hdpsim
