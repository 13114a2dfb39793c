#include "sim/engine/impl/simulation.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/engine/impl/group_run.h"
#include "sim/plan/updates.h"

namespace hdpsim {

/// A background job or background traffic, which uses the network while the main job's step lasts.
class Neighbour {
 public:
  virtual ~Neighbour() = default;
  virtual void begin() = 0;
  virtual void handle(const Event& event) = 0;
  virtual void rate_changed(std::uint32_t key) = 0;
  /// Called when none of its events is left. A job then throws a CheckFailure that says what it waits for.
  virtual void run_out() = 0;
  /// Adds the bytes that it has sent so far, by LinkId. Call once, at the end.
  virtual void add_traffic(LinkTraffic& links) = 0;
};

namespace {

/// A step of a background job: its plan and its programs.
struct PlannedStep {
  Plan plan;
  Program program;
  UpdatePrograms updates;
  std::size_t begun = 1;  ///< Updates.
  PlannedStep(Plan made, const LoweringOptions& lowering)
      : plan(std::move(made)), program(plan, lowering), updates(program) {}
};

/// A background job that trains step after step.
class TrainingNeighbour final : public Neighbour {
 public:
  TrainingNeighbour(const BackgroundJob& job, Grain grain, JobPort& port)
      : job_(job),
        port_(port),
        step_(std::make_unique<PlannedStep>(job.plan(0), job.lowering)),
        training_({job.name, *job.machine, grain, false}, step_->program, port, job.machine->network->link_count()) {}

  void begin() override {
    training_.begin_step(step_->updates[0]);
    if (port_.queue.pending() == 0) run_out();
  }

  void handle(const Event& event) override {
    training_.handle(event);
    if (training_.step_ended()) begin_next();
  }

  void rate_changed(std::uint32_t key) override { training_.rate_changed(key); }
  void run_out() override { training_.run_out(); }

  void add_traffic(LinkTraffic& links) override { links += training_.all_traffic(); }

 private:
  void begin_next() {
    HDPSIM_CHECK(training_.step_time() > Duration{}, "step {} of '{}' takes no time", steps_, job_.name);
    if (step_->begun < step_->updates.count()) return training_.begin_update(step_->updates[step_->begun++]);
    auto next = std::make_unique<PlannedStep>(job_.plan(++steps_), job_.lowering);
    training_.begin_step(next->updates[0]);
    step_ = std::move(next);
  }

  const BackgroundJob& job_;
  JobPort& port_;
  std::int64_t steps_ = 0;
  std::unique_ptr<PlannedStep> step_;
  TrainingJob training_;
};

/// Background traffic without end.
class TrafficNeighbour final : public Neighbour {
 public:
  TrafficNeighbour(const BackgroundTraffic& traffic, const NetworkModel& network, JobPort& port) : port_(port) {
    for (const Message& message : traffic.messages) streams_.push_back({network.route(message.from, message.to)});
  }

  void begin() override {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      Stream& stream = streams_[i];
      stream.flow = port_.flows.add(stream.route, stream.route.alone, static_cast<std::uint32_t>(i));
    }
  }

  void handle(const Event&) override {}
  void run_out() override {}

  void rate_changed(std::uint32_t key) override {
    Stream& stream = streams_[key];
    count(stream);
    stream.rate = port_.flows.rate(stream.flow);
  }

  void add_traffic(LinkTraffic& links) override {
    for (Stream& stream : streams_) {
      count(stream);
      add_route_bytes(stream.route, Bytes(static_cast<std::int64_t>(stream.sent)), links);
    }
  }

 private:
  struct Stream {
    Route route;
    FlowId flow = {};
    Bandwidth rate = {};
    Instant since = {};  // begin of that rate
    double sent = 0;     // bytes sent until `since`
  };

  void count(Stream& stream) const {
    stream.sent += (port_.queue.now() - stream.since).seconds() * static_cast<double>(stream.rate.bytes_per_second());
    stream.since = port_.queue.now();
  }

  JobPort& port_;
  std::vector<Stream> streams_;
};

// Adds the timeline of an update, whose micro-batches and passes follow those of the step's earlier updates, and which
// is `later` on the clock of the step than on its own.
void append(Timeline&& update, Duration later, Timeline& step) {
  const auto moved = [&](const MicroBatchInterval& at) { return MicroBatchInterval{at.begin + later, at.end + later}; };
  const std::size_t first = step.micro_batches.size();
  for (const MicroBatchInterval& at : update.micro_batches) step.micro_batches.push_back(moved(at));
  for (const MicroBatchInterval& at : update.passes) step.passes.push_back(moved(at));
  for (InstructionRecord& record : update.instructions) {
    record.micro_batch = MicroBatchId(first + record.micro_batch.index());
    record.begin += later;
    record.end += later;
    step.instructions.push_back(record);
  }
  step.step_time += update.step_time;
  for (std::size_t w = 0; w < step.ranks.size(); ++w) step.ranks[w] += update.ranks[w];
  for (std::size_t e = 0; e < evidence_kinds; ++e) {
    const Int128 both = step.evidence[e].picoseconds() + update.evidence[e].picoseconds();
    step.evidence[e] = DurationSum::picoseconds(both);
  }
  step.events += update.events;
}

}  // namespace

UpdatePrograms::UpdatePrograms(const Program& step) {
  if (update_count(step.plan()) == 1) {
    programs_.push_back(&step);
    return;
  }
  plans_ = split_by_update(step.plan());
  for (const Plan& plan : plans_) {
    made_.push_back(std::make_unique<const Program>(plan, step.context()));
    programs_.push_back(made_.back().get());
  }
}

Simulation::Simulation(const Program& program, const Machine& machine, Grain grain, const Background& background,
                       bool queue_all, PassForms* forms)
    : updates_(program), machine_(machine), ground_(*machine.network) {
  HDPSIM_CHECK(background.empty() || grain != Grain::closed_form, "the closed form simulates the main job alone");
  const bool alone = background.empty();
  const TrainingJob::Setting setting{alone ? "" : "the main job", machine, grain, alone, queue_all, forms};
  main_ = std::make_unique<TrainingJob>(setting, program, new_port(), machine.network->link_count());
  add_neighbours(background, grain);
}

Simulation::~Simulation() = default;

void Simulation::add_neighbours(const Background& background, Grain grain) {
  for (const BackgroundJob& job : background.jobs) {
    HDPSIM_CHECK(job.machine->network == machine_.network, "the job '{}' is on another network", job.name);
    neighbours_.push_back(std::make_unique<TrainingNeighbour>(job, grain, new_port()));
  }
  for (const BackgroundTraffic& traffic : background.traffic) {
    neighbours_.push_back(std::make_unique<TrafficNeighbour>(traffic, *machine_.network, new_port()));
  }
}

JobPort& Simulation::new_port() {
  ports_.push_back(std::make_unique<JobPort>(ground_, static_cast<std::uint32_t>(ports_.size())));
  return *ports_.back();
}

Timeline Simulation::run() {
  main_->begin_step(updates_[0]);
  for (const auto& neighbour : neighbours_) neighbour->begin();
  run_update();
  Timeline timeline = main_->take_timeline();
  for (std::size_t update = 1; update < updates_.count(); ++update) {
    main_->begin_update(updates_[update]);
    const Duration later = timeline.step_time - main_->step_began().since_start();
    run_update();
    append(main_->take_timeline(), later, timeline);
  }
  timeline.links = main_->all_traffic();
  timeline.events += ground_.queue.executed();
  if (!neighbours_.empty()) timeline.other_links = LinkTraffic(machine_.network->link_count());
  for (const auto& neighbour : neighbours_) neighbour->add_traffic(timeline.other_links);
  return timeline;
}

void Simulation::run_update() {
  follow_rate_changes();
  if (ports_.front()->queue.pending() == 0) main_->run_out();
  while (!main_->step_ended()) {
    const Event event = ground_.queue.pop();
    handle(event);
    follow_rate_changes();
    check_not_stuck(JobQueue::job_of(event));
  }
}

void Simulation::handle(const Event& event) {
  const std::uint32_t job = JobQueue::job_of(event);
  const Event own = ports_[job]->queue.take(event);
  if (job == 0) return main_->handle(own);
  neighbours_[job - 1]->handle(own);
}

void Simulation::follow_rate_changes() {
  if (!ground_.any_flow) return;
  ++ground_.round;
  changed_.clear();
  ground_.network->take_changed(changed_);
  for (const FlowId flow : changed_) {
    const FlowOwner owner = ground_.owners[flow.index()];
    if (owner.job == 0) {
      main_->rate_changed(owner.key);
    } else {
      neighbours_[owner.job - 1]->rate_changed(owner.key);
    }
  }
}

// A job that waits must have a pending event; otherwise what it waits for would never come.
void Simulation::check_not_stuck(std::uint32_t job) {
  if (ports_[job]->queue.pending() > 0) return;
  if (job > 0) return neighbours_[job - 1]->run_out();
  if (!main_->step_ended()) main_->run_out();
}

Timeline simulate(const Program& program, Machine& machine, Grain grain, const Background& background,
                  PassForms* forms) {
  return Simulation(program, machine, grain, background, false, forms).run();
}

}  // namespace hdpsim
