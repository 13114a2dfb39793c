#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"

namespace hdpsim::kernels::exec {

/// While the compute stream stood still for an exchange: the instruction waited for, by its place in the records.
struct ExchangeWait {
  std::uint64_t record = 0;
  Instant begin;
  Instant end;
};

/// What one rank saw of one step, in time since the start that all ranks agreed on.
struct RankLog {
  std::vector<InstructionRecord> records;
  std::vector<ExchangeWait> waits;
  Breakdown booked;  ///< What is no wait for an exchange.
  Instant end;
};

/// The clock of one rank and what it writes down. Times are those of steady_clock.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  /// A new step, which began at `origin`.
  void begin_step(Clock::time_point origin) {
    origin_ = origin;
    log_ = {};
  }
  [[nodiscard]] Instant now() const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - origin_);
    constexpr std::int64_t picoseconds_a_nanosecond = 1000;
    return Instant::at(Duration::picoseconds(passed.count() * picoseconds_a_nanosecond));
  }
  /// The index of the record.
  std::uint64_t add(const InstructionRecord& record) {
    log_.records.push_back(record);
    return log_.records.size() - 1;
  }
  void end_exchange(std::uint64_t record, Instant waited_since) {
    const Instant end = now();
    log_.records[record].end = end;
    log_.waits.push_back({record, waited_since, end});
  }
  void book(Activity activity, Duration time) { log_.booked[activity] += time; }
  /// Runs `work` and books how long it took.
  template <class Work>
  void timed(Activity activity, const Work& work) {
    const Instant begin = now();
    work();
    book(activity, now() - begin);
  }
  [[nodiscard]] RankLog end_step() {
    log_.end = now();
    return std::move(log_);
  }

 private:
  Clock::time_point origin_;
  RankLog log_;
};

}  // namespace hdpsim::kernels::exec
