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

// Operations a measurement, by size: enough that the barrier before them and the clock do not count.
int operations(std::int64_t bytes) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{4} << 20) / std::max<std::int64_t>(bytes, 1), 1, 20));
}

std::vector<float> random_numbers(std::int64_t count, int rank) {
  RandomStream stream(1, "message", static_cast<std::uint64_t>(rank));
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = static_cast<float>(stream.uniform());
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

std::vector<double> time_message(kernels::Transport& transport, const MessageSubject& message, int runs) {
  const auto count = message.bytes / static_cast<std::int64_t>(sizeof(float));
  const std::vector<float> from = random_numbers(count, transport.rank());
  std::vector<float> to = from;
  const std::function<void()> once = operation(transport, message, from, to);
  const int repeats = operations(message.bytes);
  once();
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    to = from;  // sums of sums would end at infinity
    transport.barrier();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < repeats; ++i) once();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / repeats);
  }
  return seconds;
}

}  // namespace hdpsim::calib
