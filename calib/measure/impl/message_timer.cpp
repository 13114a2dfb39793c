#include "calib/measure/impl/message_timer.h"

#include <array>
#include <chrono>
#include <functional>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

using Clock = std::chrono::steady_clock;

// A few numbers over and over: drawing a large buffer takes longer than sending it.
std::vector<float> random_numbers(std::int64_t count, int rank) {
  constexpr std::size_t drawn = 4096;
  RandomStream stream(1, "message", static_cast<std::uint64_t>(rank));
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = i < drawn ? static_cast<float>(stream.uniform()) : numbers[i - drawn];
  }
  return numbers;
}

std::function<void()> operation(kernels::Transport& transport, const MessageSubject& message,
                                const std::vector<float>& from, std::vector<float>& to) {
  const int ranks = transport.size();
  const auto bytes = static_cast<std::size_t>(message.bytes);
  const std::size_t part = bytes / static_cast<std::size_t>(ranks);
  switch (message.kind) {
    case MessageKind::send_recv:
      return [&transport, &from, &to, bytes, ranks] {
        const std::array sends = {kernels::Send{(transport.rank() + 1) % ranks, from.data(), bytes}};
        const std::array receives = {kernels::Receive{(transport.rank() + ranks - 1) % ranks, to.data(), bytes}};
        transport.wait(transport.start(sends, receives));
      };
    case MessageKind::all_reduce:
      return [&transport, &to] { transport.all_reduce(to.data(), to.size()); };
    case MessageKind::all_gather:
      return [&transport, &from, &to, part] { transport.all_gather(from.data(), to.data(), part); };
    case MessageKind::reduce_scatter:
      return [&transport, &from, &to, part] { transport.reduce_scatter(from.data(), to.data(), part / sizeof(float)); };
    case MessageKind::all_to_all:
      return [&transport, &from, &to, part] { transport.all_to_all(from.data(), to.data(), part); };
  }
  HDPSIM_CHECK(false, "no such message");
}

}  // namespace

std::vector<double> time_message(kernels::Transport& transport, const MessageSubject& message, int runs,
                                 const std::function<void()>& before_each) {
  const auto count = message.bytes / static_cast<std::int64_t>(sizeof(float));
  const std::vector<float> from = random_numbers(count, transport.rank());
  std::vector<float> to = from;
  const std::function<void()> once = operation(transport, message, from, to);
  once();
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    to = from;  // sums of sums would end at infinity
    before_each();
    transport.barrier();
    const Clock::time_point begin = Clock::now();
    once();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return seconds;
}

}  // namespace hdpsim::calib
