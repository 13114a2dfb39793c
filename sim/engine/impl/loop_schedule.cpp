#include "sim/engine/impl/loop_schedule.h"

#include <algorithm>
#include <array>

#include "sim/engine/impl/waiting.h"

namespace hdpsim {
namespace {

constexpr std::uint32_t farthest_iterations_back = 2;

// Most schedules are short: they use the memory of the one before.
std::vector<Duration>& memory_of_thread() {
  static thread_local std::vector<Duration> memory;
  return memory;
}

// A list schedule: every instruction starts when its stream and its dependencies allow. Times are relative to the
// loop's start.
class LoopSchedule {
 public:
  LoopSchedule(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
               const TransferTime& transfer)
      : priced_(priced),
        block_(priced.program.blocks[block]),
        block_index_(block),
        range_(range),
        speed_(speed),
        transfer_(transfer) {}

  LoopTime run(std::int64_t iterations) {
    const std::int64_t passes = repeats_are_independent() ? 1 : iterations;
    kept_ = std::min<std::int64_t>(passes, farthest_iterations_back + 1);
    ends_.assign(static_cast<std::size_t>(kept_) * block_.body.size(), Duration{});
    for (iteration_ = 0; iteration_ < passes; ++iteration_) {
      for (std::int64_t back = 0; back < kept_; ++back) {
        rows_[static_cast<std::size_t>(back)] =
            static_cast<std::size_t>((iteration_ + kept_ - back) % kept_) * block_.body.size();
      }
      for (std::size_t i = range_.first; i < range_.last; ++i) execute(i);
    }
    drain();
    const std::int64_t repeated = passes == 1 ? iterations : 1;
    return {free_[compute] * repeated, breakdown_.repeated(repeated)};
  }

 private:
  static constexpr auto compute = static_cast<std::size_t>(Stream::compute);

  [[nodiscard]] bool repeats_are_independent() const {
    return std::all_of(block_.body.begin(), block_.body.end(), [this](const Instruction& instruction) {
      const bool is_of_layer = instruction.stream == Stream::compute || instruction.stream == Stream::comm;
      return is_of_layer && !waits_for_earlier_message(instruction);
    });
  }

  [[nodiscard]] bool waits_for_earlier_message(const Instruction& instruction) const {
    const auto end = instruction.dependencies.begin() + instruction.dependency_count;
    return std::any_of(instruction.dependencies.begin(), end, [this](const Dependency& dependency) {
      return dependency.iterations_back > 0 && block_.body[dependency.instruction].stream == Stream::comm;
    });
  }

  // When an instruction ended, so many iterations before the present one.
  Duration& end_of(std::size_t iterations_back, std::size_t index) { return ends_[rows_[iterations_back] + index]; }

  void execute(std::size_t index) {
    const Instruction& instruction = block_.body[index];
    if (!instruction.active(iteration_, block_.iterations)) {
      end_of(0, index) = Duration{};
      return;
    }
    Duration& stream_free = free_[static_cast<std::size_t>(instruction.stream)];
    const auto [start, waited_for] = start_of(instruction, block_, stream_free, [this](const Dependency& dependency) {
      const bool is_outside = dependency.iterations_back > iteration_ || dependency.instruction < range_.first;
      return is_outside ? Duration{} : end_of(dependency.iterations_back, dependency.instruction);
    });
    const Duration time = duration(index);
    if (instruction.stream == Stream::compute) {
      breakdown_[waited_for] += start - stream_free;
      breakdown_[activity_of(instruction.opcode)] += time;
    }
    stream_free = start + time;
    end_of(0, index) = stream_free;
  }

  [[nodiscard]] Duration duration(std::size_t index) {
    const Instruction& instruction = block_.body[index];
    if (instruction.opcode != Opcode::exchange) return priced_.time(block_index_, index, speed_);
    // The steps of a ring exchange the same bytes.
    const Bytes bytes = priced_.program.bytes[instruction.work];
    if (bytes != last_exchanged_) {
      last_exchanged_ = bytes;
      last_transfer_ = transfer_(bytes);
    }
    return last_transfer_;
  }

  void drain() {
    const auto [end, waited_for] = end_of_block(free_);
    breakdown_[waited_for] += end - free_[compute];
    free_[compute] = end;
  }

  const PricedProgram& priced_;
  const Block& block_;
  std::size_t block_index_;
  BodyRange range_;
  double speed_;
  const TransferTime& transfer_;
  std::int64_t iteration_ = 0;
  std::array<Duration, stream_count> free_{};
  std::int64_t kept_ = 1;                                         ///< Number of newest iterations whose ends are kept.
  std::array<std::size_t, farthest_iterations_back + 1> rows_{};  ///< In `ends_`, by iterations before this one.
  std::vector<Duration>& ends_ = memory_of_thread();              ///< By kept iteration and instruction.
  Bytes last_exchanged_{-1};
  Duration last_transfer_;
  Breakdown breakdown_;
};

}  // namespace

LoopTime loop_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                   const TransferTime& transfer) {
  return LoopSchedule(priced, block, range, speed, transfer).run(priced.program.blocks[block].iterations);
}

LoopTime pass_time(const PricedProgram& priced, std::size_t block, BodyRange range, double speed,
                   const TransferTime& transfer) {
  return LoopSchedule(priced, block, range, speed, transfer).run(1);
}

LoopTime micro_batch_time(const PricedProgram& priced, double speed, const TransferTime& transfer) {
  LoopTime sum;
  for (std::size_t block = 0; block < priced.program.blocks.size(); ++block) {
    const BodyRange whole{0, priced.program.blocks[block].body.size()};
    const LoopTime time = loop_time(priced, block, whole, speed, transfer);
    sum.total += time.total;
    sum.breakdown += time.breakdown;
  }
  return sum;
}

}  // namespace hdpsim
