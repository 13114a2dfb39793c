#include "sim/engine/impl/loop_schedule.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <span>

#include "sim/engine/impl/waiting.h"

namespace hdpsim {
namespace {

// When the instructions of the newest iterations ended, row by row.
struct Ends {
  std::vector<Duration> rows;       // each by instruction
  std::vector<std::size_t> starts;  // of rows, by iterations before the newest

  void clear(std::int64_t iterations, std::size_t instructions) {
    rows.assign(static_cast<std::size_t>(iterations) * instructions, Duration{});
    starts.resize(static_cast<std::size_t>(iterations));
    for (std::size_t row = 0; row < starts.size(); ++row) starts[row] = row * instructions;
  }

  void begin_iteration() { std::rotate(starts.begin(), std::prev(starts.end()), starts.end()); }
  Duration& at(std::size_t iterations_back, std::size_t index) { return rows[starts[iterations_back] + index]; }
  [[nodiscard]] Duration at(std::size_t iterations_back, std::size_t index) const {
    return rows[starts[iterations_back] + index];
  }
};

// Most schedules are short: they use the memory of the one before.
Ends& memory_of_thread() {
  static thread_local Ends memory;
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
    if (runs_in_turn()) return in_turn(iterations);
    const std::int64_t passes = repeats_are_independent() ? 1 : iterations;
    farthest_back_ = passes == 1 ? 0 : farthest_back(block_);
    const bool may_be_steady = passes > farthest_back_ + 2;
    ends_.clear(std::min(passes, farthest_back_ + 2), block_.body.size());
    while (iteration_ < passes) {
      const Breakdown before = breakdown_;
      run_iteration();
      if (may_be_steady) repeat_iteration(passes, before);
      ++iteration_;
    }
    drain();
    const std::int64_t repeated = passes == 1 ? iterations : 1;
    return {free_[compute] * repeated, breakdown_.repeated(repeated)};
  }

 private:
  static constexpr auto compute = static_cast<std::size_t>(Stream::compute);
  using Delays = std::array<std::optional<Duration>, stream_count>;

  // Whether all instructions run on one stream in every iteration: none waits for another one.
  [[nodiscard]] bool runs_in_turn() const {
    const auto body = std::span(block_.body).subspan(range_.first, range_.last - range_.first);
    return std::all_of(body.begin(), body.end(), [](const Instruction& instruction) {
      return instruction.stream == Stream::compute && instruction.first_iteration == 0 && instruction.last_skipped == 0;
    });
  }

  [[nodiscard]] LoopTime in_turn(std::int64_t iterations) const {
    LoopTime once;
    for (std::size_t i = range_.first; i < range_.last; ++i) {
      const Duration time = priced_.time(block_index_, i, speed_);
      once.breakdown[activity_of(block_.body[i].opcode)] += time;
      once.total += time;
    }
    return {once.total * iterations, once.breakdown.repeated(iterations)};
  }

  [[nodiscard]] bool repeats_are_independent() const {
    return std::all_of(block_.body.begin(), block_.body.end(), [this](const Instruction& instruction) {
      const bool is_of_layer = instruction.stream == Stream::compute || instruction.stream == Stream::comm;
      return is_of_layer && !waits_for_earlier_message(instruction);
    });
  }

  [[nodiscard]] bool waits_for_earlier_message(const Instruction& instruction) const {
    for (const Dependency& needed : instruction.needed()) {
      if (needed.iterations_back > 0 && block_.body[needed.instruction].stream == Stream::comm) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_active(const Instruction& instruction) const {
    return instruction.active(iteration_, block_.iterations);
  }

  void run_iteration() {
    ends_.begin_iteration();
    for (std::size_t i = range_.first; i < range_.last; ++i) execute(i);
  }

  // Goes on to the last iteration that ends as the present one does, only later. `before`: the breakdown without it.
  void repeat_iteration(std::int64_t passes, const Breakdown& before) {
    if (iteration_ >= next_change_) find_changes();
    const std::int64_t times = std::min(passes, next_change_) - 1 - iteration_;
    if (times == 0 || iteration_ - last_change_ <= farthest_back_) return;
    const std::optional<Delays> delays = steady_delays();
    if (!delays) return;
    for (std::size_t i = range_.first; i < range_.last; ++i) {
      const auto stream = static_cast<std::size_t>(block_.body[i].stream);
      if (!is_active(block_.body[i])) continue;
      for (const std::size_t row : ends_.starts) ends_.rows[row + i] += *(*delays)[stream] * times;
      free_[stream] = ends_.at(0, i);
    }
    breakdown_ += (breakdown_ - before).repeated(times);
    iteration_ += times;
  }

  // The last and the next iteration that begins or ceases to run an instruction.
  void find_changes() {
    next_change_ = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = range_.first; i < range_.last; ++i) {
      const Instruction& instruction = block_.body[i];
      for (const std::int64_t change :
           {std::int64_t{instruction.first_iteration}, block_.iterations - std::int64_t{instruction.last_skipped}}) {
        if (change > iteration_) next_change_ = std::min(next_change_, change);
        if (change <= iteration_) last_change_ = std::max(last_change_, change);
      }
    }
  }

  // How much later than in the iteration before the instructions of each stream end, if that is the same for all of a
  // stream, has been so in as many iterations as instructions wait back, and will be so as long as the same
  // instructions run: none waits for one that falls behind faster than its own stream, which would decide on a later
  // start. One that falls behind more slowly decides on no start: that start would fall behind as slowly.
  [[nodiscard]] std::optional<Delays> steady_delays() const {
    Delays delays;
    for (std::size_t i = range_.first; i < range_.last; ++i) {
      if (!is_active(block_.body[i])) continue;
      std::optional<Duration>& delay = delays[static_cast<std::size_t>(block_.body[i].stream)];
      for (std::size_t back = 0; back + 1 < ends_.starts.size(); ++back) {
        const Duration here = ends_.at(back, i) - ends_.at(back + 1, i);
        if (delay.value_or(here) != here) return std::nullopt;
        delay = here;
      }
    }
    for (std::size_t i = range_.first; i < range_.last; ++i) {
      if (!is_active(block_.body[i])) continue;
      const std::optional<Duration>& own = delays[static_cast<std::size_t>(block_.body[i].stream)];
      for (const Dependency& needed : block_.body[i].needed()) {
        if (delays[static_cast<std::size_t>(block_.body[needed.instruction].stream)] > own) return std::nullopt;
      }
    }
    return delays;
  }

  void execute(std::size_t index) {
    const Instruction& instruction = block_.body[index];
    if (!is_active(instruction)) {
      ends_.at(0, index) = Duration{};
      return;
    }
    Duration& stream_free = free_[static_cast<std::size_t>(instruction.stream)];
    const auto [start, waited_for] = start_of(instruction, block_, stream_free, [this](const Dependency& dependency) {
      const bool is_outside = dependency.iterations_back > iteration_ || dependency.instruction < range_.first;
      return is_outside ? Duration{} : ends_.at(dependency.iterations_back, dependency.instruction);
    });
    const Duration time = duration(index);
    if (instruction.stream == Stream::compute) {
      breakdown_[waited_for] += start - stream_free;
      breakdown_[activity_of(instruction.opcode)] += time;
    }
    stream_free = start + time;
    ends_.at(0, index) = stream_free;
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
  std::int64_t last_change_ = 0;    ///< The last iteration that runs other instructions than the one before,
  std::int64_t next_change_ = 0;    ///< and the next one.
  std::int64_t farthest_back_ = 0;  ///< The number of iterations to the earliest one that an instruction waits for.
  std::array<Duration, stream_count> free_{};
  Ends& ends_ = memory_of_thread();
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
