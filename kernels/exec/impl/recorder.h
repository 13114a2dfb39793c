#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
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
  Breakdown booked;     ///< What is no wait for an exchange.
  Breakdown processor;  ///< The same less the time in which the thread did not run.
  Instant end;
};

/// Time that the calling thread has had a core.
[[nodiscard]] inline Duration thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Duration::picoseconds(std::int64_t{now.tv_sec} * 1'000'000'000'000 + std::int64_t{now.tv_nsec} * 1000);
}

/// The clock of one rank and what it writes down. Times are those of steady_clock.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  /// A new step, which began at `origin`.
  void begin_step(Clock::time_point origin) {
    origin_ = origin;
    log_ = {};
  }
  [[nodiscard]] Instant now() const { return instant(Clock::now()); }
  /// The index of the record.
  std::uint64_t add(const InstructionRecord& record) {
    log_.records.push_back(record);
    return log_.records.size() - 1;
  }
  /// When a recorded instruction ran, if that was another thread's business.
  void set(std::uint64_t record, Clock::time_point begin, Clock::time_point end) {
    log_.records[record].begin = instant(begin);
    log_.records[record].end = instant(end);
  }
  void end_exchange(std::uint64_t record, Instant waited_since) {
    const Instant end = now();
    log_.records[record].end = end;
    log_.waits.push_back({record, waited_since, end});
  }
  /// When something ran.
  struct Interval {
    Instant begin;
    Instant end;
  };
  /// Runs `work` and books how long it took.
  template <class Work>
  Interval timed(Activity activity, const Work& work) {
    const Duration thread_began = thread_time();
    const Instant begin = now();
    work();
    const Instant end = now();
    log_.booked[activity] += end - begin;
    log_.processor[activity] += thread_time() - thread_began;
    return {begin, end};
  }
  [[nodiscard]] RankLog end_step() {
    log_.end = now();
    return std::move(log_);
  }

 private:
  [[nodiscard]] Instant instant(Clock::time_point time) const {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(time - origin_);
    constexpr std::int64_t picoseconds_a_nanosecond = 1000;
    return Instant::at(Duration::picoseconds(passed.count() * picoseconds_a_nanosecond));
  }

  Clock::time_point origin_;
  RankLog log_;
};

}  // namespace hdpsim::kernels::exec
