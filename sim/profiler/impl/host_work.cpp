#include "sim/profiler/impl/host_work.h"

#include <algorithm>
#include <ranges>
#include <tuple>

#include "sim/profiler/kernel_class.h"
#include "sim/profiler/operator_class.h"

namespace hdpsim {
namespace {

bool is_attention_work(DeviceActivity activity) {
  return activity == DeviceActivity::attention_forward || activity == DeviceActivity::attention_backward;
}

/// The events of one thread that have begun and not ended, the outermost first.
class CallStack {
 public:
  explicit CallStack(std::vector<Work>& work) : work_(work) {}

  void enter(HostEvent event) {
    leave_until(event.begin);
    DeviceActivity around = DeviceActivity::idle;
    if (!open_.empty()) {
      Open& caller = open_.back();
      event.end = std::min(event.end, caller.event.end);  // clocks of profilers round
      spend(caller, event.begin);
      caller.at = std::max(caller.at, event.end);
      around = caller.around;
    }
    if (event.kind != HostEvent::Kind::range) tell_callers();
    if (is_attention_work(around) && event.activity < DeviceActivity::send_recv) event.activity = around;
    if (is_attention_work(event.activity)) around = event.activity;
    open_.push_back({event, event.begin, around, false});
  }
  void leave_until(double moment) {
    while (!open_.empty() && open_.back().event.end <= moment) leave();
  }
  void leave_all() {
    while (!open_.empty()) leave();
  }

 private:
  struct Open {
    HostEvent event;
    double at;              ///< Its time is accounted for up to here.
    DeviceActivity around;  ///< Attention, if it is part of one; otherwise DeviceActivity::idle.
    bool has_called;
  };

  // Ranges call nothing themselves: whoever is around them does.
  void tell_callers() {
    for (Open& caller : std::views::reverse(open_)) {
      caller.has_called = true;
      if (caller.event.kind != HostEvent::Kind::range) return;
    }
  }

  void leave() {
    Open& last = open_.back();
    if (last.event.kind == HostEvent::Kind::frame && !last.has_called) {
      work_.push_back({last.event.begin, last.event.end, last.event.activity});
    }
    spend(last, last.event.end);
    open_.pop_back();
  }

  void spend(const Open& open, double until) {
    if (open.event.kind == HostEvent::Kind::operation && until > open.at)
      work_.push_back({open.at, until, open.event.activity});
  }

  std::vector<Work>& work_;
  std::vector<Open> open_;
};

}  // namespace

HostEvent host_event(const ProfilerEvent& operation) {
  HostEvent event{.begin = operation.begin_us,
                  .end = operation.begin_us + operation.duration_us,
                  .thread = operation.thread,
                  .activity = DeviceActivity::memory_bound};
  switch (operator_class(operation.name)) {
    case OperatorClass::attention_forward:
      event.activity = DeviceActivity::attention_forward;
      break;
    case OperatorClass::attention_backward:
      event.activity = DeviceActivity::attention_backward;
      break;
    case OperatorClass::product:
      event.activity = DeviceActivity::product;
      break;
    case OperatorClass::memory_bound:
      break;
    case OperatorClass::transfer:
      event.kind = HostEvent::Kind::transfer;
      [[fallthrough]];
    case OperatorClass::message:
      event.activity = activity_of_message(message_kind_of(operation.name));
      break;
    case OperatorClass::frame:
      event.kind = HostEvent::Kind::frame;
      break;
  }
  return event;
}

std::vector<Work> host_work(std::vector<HostEvent> events) {
  std::vector<Work> work;
  // Those that call come before what they call; two of the same times call each other in the order of the trace.
  std::stable_sort(events.begin(), events.end(), [](const HostEvent& a, const HostEvent& b) {
    return std::tuple(a.thread, a.begin, -a.end) < std::tuple(b.thread, b.begin, -b.end);
  });
  CallStack stack(work);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i > 0 && events[i].thread != events[i - 1].thread) stack.leave_all();
    if (events[i].kind == HostEvent::Kind::transfer) {
      work.push_back({events[i].begin, events[i].end, events[i].activity});
    } else {
      stack.enter(events[i]);
    }
  }
  stack.leave_all();
  return work;
}

}  // namespace hdpsim
