#include "sim/program/activations_in_flight.h"

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

std::int64_t counted(const Schedule& schedule, std::int64_t stage, std::int64_t micro_batches) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const SlotPass& pass : schedule.order(stage, micro_batches)) {
    if (keeps_activations(pass.kind)) ++held;
    most = std::max(most, held);
    if (releases_activations(pass.kind)) --held;
  }
  return most;
}

// After this number of micro-batches a schedule that holds a bounded number has begun to release them on every stage.
std::int64_t enough_micro_batches(const Schedule& schedule) {
  return 2 * schedule.stages();
}

/// The counts of all stages. Along the stages a count is a line with a few kinks, as every schedule makes all stages
/// but some alike or shifts each against the one before it. So only the ends of a range and three stages inside it are
/// counted; where these are on one line, so are all others.
class CountsByStage {
 public:
  CountsByStage(const Schedule& schedule, std::int64_t micro_batches)
      : schedule_(schedule),
        micro_batches_(micro_batches),
        most_(static_cast<std::size_t>(schedule.stages()), unknown) {
    between(0, schedule.stages() - 1);
  }

  [[nodiscard]] const std::vector<std::int64_t>& most() const { return most_; }

 private:
  static constexpr std::int64_t unknown = -1;
  static constexpr std::int64_t counted_one_by_one = 8;  ///< A range of so many stages has no room for a test.

  std::int64_t at(std::int64_t stage) {
    std::int64_t& most = most_[static_cast<std::size_t>(stage)];
    if (most == unknown) most = counted(schedule_, stage, micro_batches_);
    return most;
  }

  void between(std::int64_t first, std::int64_t last) {
    if (last - first < counted_one_by_one) {
      for (std::int64_t stage = first; stage <= last; ++stage) (void)at(stage);
    } else if (is_line(first, last)) {
      for (std::int64_t stage = first; stage <= last; ++stage) {
        most_[static_cast<std::size_t>(stage)] = on_line(first, last, stage);
      }
    } else {
      const std::int64_t middle = first + (last - first) / 2;
      between(first, middle);
      between(middle, last);
    }
  }

  bool is_line(std::int64_t first, std::int64_t last) {
    if ((at(last) - at(first)) % (last - first) != 0) return false;
    const std::int64_t quarter = (last - first) / 4;
    const std::array inside = {first + quarter, first + 2 * quarter, last - quarter};
    return std::all_of(inside.begin(), inside.end(),
                       [&](std::int64_t stage) { return at(stage) == on_line(first, last, stage); });
  }

  std::int64_t on_line(std::int64_t first, std::int64_t last, std::int64_t stage) {
    return at(first) + (at(last) - at(first)) / (last - first) * (stage - first);
  }

  const Schedule& schedule_;
  std::int64_t micro_batches_;
  std::vector<std::int64_t> most_;  ///< By stage.
};

}  // namespace

std::vector<std::int64_t> most_chunks_in_flight(const Schedule& schedule, std::int64_t micro_batches) {
  const std::int64_t enough = enough_micro_batches(schedule);
  const std::int64_t counts = std::min(micro_batches, enough);
  const bool grows = micro_batches > enough && holds_all_micro_batches(schedule);
  std::vector<std::int64_t> most = CountsByStage(schedule, counts).most();
  for (std::int64_t& held : most) {
    if (grows) held = held / counts * micro_batches;  // all chunks of each micro-batch
  }
  return most;
}

bool holds_all_micro_batches(const Schedule& schedule) {
  const std::int64_t enough = enough_micro_batches(schedule);
  return schedule.stages() > 1 && counted(schedule, 0, 2 * enough) > counted(schedule, 0, enough);
}

}  // namespace hdpsim
