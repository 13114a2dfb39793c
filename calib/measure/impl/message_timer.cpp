#include "calib/measure/impl/message_timer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

using Clock = std::chrono::steady_clock;

// A few numbers repeated, because drawing a large buffer takes longer than sending it.
std::vector<float> random_numbers(std::int64_t count, int rank) {
  constexpr std::size_t drawn = 4096;
  RandomStream stream(1, "message", static_cast<std::uint64_t>(rank));
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i < drawn ? static_cast<float>(stream.uniform()) : numbers[i - drawn];
  }
  return numbers;
}

std::function<void()> operation(kernels::Transport& transport, const MessageSubject& message, const float* from,
                                float* to) {
  const int ranks = transport.size();
  const auto bytes = static_cast<std::size_t>(message.bytes);
  const std::size_t part = bytes / static_cast<std::size_t>(ranks);
  switch (message.kind) {
    case MessageKind::send_recv:
      return [&transport, from, to, bytes, ranks] {
        const std::array sends = {kernels::Send{(transport.rank() + 1) % ranks, from, bytes}};
        const std::array receives = {kernels::Receive{(transport.rank() + ranks - 1) % ranks, to, bytes}};
        transport.wait(transport.start(sends, receives));
      };
    case MessageKind::all_reduce:
      return [&transport, to, bytes] { transport.all_reduce(to, bytes / sizeof(float)); };
    case MessageKind::all_gather:
      return [&transport, from, to, part] { transport.all_gather(from, to, part); };
    case MessageKind::reduce_scatter:
      return [&transport, from, to, part] { transport.reduce_scatter(from, to, part / sizeof(float)); };
    case MessageKind::all_to_all:
      return [&transport, from, to, part] { transport.all_to_all(from, to, part); };
  }
  HDPSIM_CHECK(false, "no such message");
}

}  // namespace

void MessageBuffers::require(std::int64_t floats, int rank) {
  if (floats <= room_) return;
  const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
  from_ = backend_->allocate(bytes);
  to_ = backend_->allocate(bytes);
  backend_->upload(from_.get(), random_numbers(floats, rank).data(), bytes);
  room_ = floats;
}

void MessageBuffers::restore(std::int64_t floats) {
  backend_->copy(to_.get(), from_.get(), static_cast<std::size_t>(floats) * sizeof(float));
  backend_->synchronize();
}

std::vector<MessageInterval> time_message(kernels::Transport& transport, const MessageSubject& message,
                                          MessageBuffers& buffers, int runs, const std::function<void()>& before_each) {
  const auto floats = message.bytes / static_cast<std::int64_t>(sizeof(float));
  buffers.require(floats, transport.rank());
  const std::function<void()> once = operation(transport, message, buffers.from(), buffers.to());
  once();
  std::vector<MessageInterval> intervals;
  for (int run = 0; run < runs; ++run) {
    buffers.restore(floats);  // repeated sums would overflow to infinity
    before_each();
    transport.barrier();
    const Clock::time_point begin = Clock::now();
    once();
    intervals.push_back({begin, Clock::now()});
  }
  return intervals;
}

std::vector<double> durations_of(const std::vector<std::vector<MessageInterval>>& by_rank) {
  std::vector<double> seconds;
  for (std::size_t run = 0; run < by_rank.front().size(); ++run) {
    MessageInterval last = by_rank.front()[run];
    for (const std::vector<MessageInterval>& rank : by_rank) {
      last.begin = std::max(last.begin, rank[run].begin);
      last.end = std::max(last.end, rank[run].end);
    }
    seconds.push_back(std::chrono::duration<double>(last.end - last.begin).count());
  }
  return seconds;
}

}  // namespace hdpsim::calib
