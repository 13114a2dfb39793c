#include "sim/tasks/task_step.h"

#include <algorithm>
#include <utility>

#include "sim/model/memory.h"
#include "sim/network/transfers.h"
#include "sim/tasks/parameter_groups.h"

namespace hdpsim {
namespace {

std::vector<double> rates_of(const ClusterLinks& links) {
  std::vector<double> rates;
  rates.reserve(links.count());
  for (std::size_t link = 0; link < links.count(); ++link) {
    rates.push_back(static_cast<double>(links.rate(LinkId(link)).bytes_per_second()));
  }
  return rates;
}

/// The times of a lane.
struct LaneTime {
  double forward = 0;
  double backward = 0;
  double messages = 0;

  [[nodiscard]] double total() const { return forward + backward + messages; }
};

/// The messages into each wave of a lane, in their order.
std::vector<std::vector<TaskMessage>> messages_of(const TaskLane& lane, const SliceData& data) {
  SliceInputs inputs(data.work());
  std::vector<std::vector<TaskMessage>> all;
  for (const TaskWave& wave : lane.waves) {
    std::vector<TaskMessage>& messages = all.emplace_back();
    for (const TaskSlice& slice : wave.slices) {
      for (const TaskSlice* input : inputs.of(slice)) data.append_messages(*input, slice, messages);
    }
    for (const TaskSlice& slice : wave.slices) inputs.add(slice);
  }
  return all;
}

void add_wave(const TaskWave& wave, const TaskStepper::SliceSeconds& seconds, LaneTime& time, double& busy) {
  double forward = 0;
  double backward = 0;
  for (const TaskSlice& slice : wave.slices) {
    const OperatorSeconds each = seconds(slice);
    const auto operators = static_cast<double>(slice.operators);
    forward = std::max(forward, operators * each.forward);
    backward = std::max(backward, operators * each.backward);
    busy += operators * each.both() * static_cast<double>(slice.devices);
  }
  time.forward += forward;
  time.backward += backward;
}

void add_memory(const TaskPlan& plan, const SliceData& data, const ParameterGroups& groups, TaskStep& step) {
  const auto devices = static_cast<std::size_t>(data.work().devices);
  std::vector<double> most(devices);
  std::vector<double> moment(devices);
  for (const TaskRound& round : plan.rounds) {
    std::vector<double> kept(devices);
    for (const TaskLane& lane : round.lanes) {
      for (const TaskWave& wave : lane.waves) {
        for (const TaskSlice& slice : wave.slices) {
          const auto own = static_cast<double>(data.kept(slice).count());
          const auto peak = static_cast<double>(
              data.memory_of(slice.run).moment(data.samples_of(slice), data.node_of(slice.run).tokens).count());
          for (const DeviceId device : slice.placed) {
            kept[device.index()] += own;
            moment[device.index()] = std::max(moment[device.index()], peak);
          }
        }
      }
    }
    for (std::size_t i = 0; i < devices; ++i) most[i] = std::max(most[i], kept[i]);
  }
  const Recipe& recipe = data.task_case().spec().recipe;
  const Bytes reserve = recipe.reserve.value_or(default_reserve(1, 1, data.work().devices));
  double fullest = 0;
  for (std::size_t i = 0; i < devices; ++i) {
    const double allocated = groups.state_bytes(DeviceId(i)) + most[i] + moment[i];
    fullest = std::max(fullest, allocated * (1 + recipe.fragmentation) + static_cast<double>(reserve.count()));
  }
  step.memory = Bytes(static_cast<std::int64_t>(fullest));
  step.fits = step.memory <= data.task_case().cluster().least_device_memory();
}

}  // namespace

TaskStepper::TaskStepper(const SliceData& data)
    : data_(data),
      message_links_(data.task_case().cluster(), message_efficiency(*data.task_case().spec().profile)),
      links_(data.task_case().cluster(), {}) {}

double TaskStepper::message_seconds(const std::vector<TaskMessage>& messages) const {
  if (messages.empty()) return 0;
  std::vector<Transfer> transfers;
  std::vector<double> latencies;
  for (const TaskMessage& message : messages) {
    const Route route = message_links_.route(message.from, message.to);
    Transfer& transfer = transfers.emplace_back();
    transfer.bytes = message.bytes;
    transfer.cap = static_cast<double>(route.alone.bytes_per_second());
    for (const RouteLink& link : route.binding_links()) {
      transfer.loads.push_back({static_cast<FairShare::Link>(link.link.index()), link.share});
    }
    latencies.push_back(route.latency.seconds());
  }
  FairShare network(rates_of(message_links_));
  const std::vector<double> ends = end_times(network, transfers);
  double last = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) last = std::max(last, ends[i] + latencies[i]);
  return last;
}

TaskStep TaskStepper::step(const TaskPlan& plan, const SliceSeconds& operator_seconds) const {
  TaskStep step;
  double busy = 0;
  for (const TaskRound& round : plan.rounds) {
    LaneTime slowest;
    for (const TaskLane& lane : round.lanes) {
      LaneTime time;
      for (const TaskWave& wave : lane.waves) add_wave(wave, operator_seconds, time, busy);
      for (std::vector<TaskMessage>& messages : messages_of(lane, data_)) {
        time.messages += message_seconds(messages);
        for (TaskMessage& message : messages) std::swap(message.from, message.to);
        time.messages += message_seconds(messages);  // gradients of what was sent
      }
      if (time.total() > slowest.total()) slowest = time;
      step.waves += std::ssize(lane.waves);
    }
    step.forward += slowest.forward;
    step.backward += slowest.backward;
    step.messages += slowest.messages;
  }
  step.idle = std::max(0.0, 1 - busy / (step.passes() * static_cast<double>(data_.work().devices)));
  const ParameterGroups groups(data_, plan);
  step.gradients = groups.sum_seconds(links_);
  step.optimizer = groups.optimizer_seconds();
  add_memory(plan, data_, groups, step);
  return step;
}

}  // namespace hdpsim
