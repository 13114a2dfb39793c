#include <utility>

#include "sim/base/check.h"
#include "sim/engine/impl/ring_traffic.h"
#include "sim/engine/impl/simulation.h"

namespace hdpsim {
namespace {

/// A step of a background job: its plan and its program.
struct PlannedStep {
  Plan plan;
  Program program;
  PlannedStep(Plan made, const LoweringOptions& lowering) : plan(std::move(made)), program(plan, lowering) {}
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
    training_.begin_step(step_->program);
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
    auto next = std::make_unique<PlannedStep>(job_.plan(++steps_), job_.lowering);
    training_.begin_step(next->program);
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

}  // namespace

std::unique_ptr<Neighbour> make_neighbour(const BackgroundJob& job, Grain grain, JobPort& port) {
  return std::make_unique<TrainingNeighbour>(job, grain, port);
}

std::unique_ptr<Neighbour> make_neighbour(const BackgroundTraffic& traffic, const NetworkModel& network,
                                          JobPort& port) {
  return std::make_unique<TrafficNeighbour>(traffic, network, port);
}

}  // namespace hdpsim
