#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <vector>

#include "kernels/spec/backend.h"
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
  Breakdown processor;  ///< The same less the time in which the thread did not run, where it computes itself.
  Instant end;
};

/// Time that the calling thread has had a core.
[[nodiscard]] inline Duration thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Duration::picoseconds(std::int64_t{now.tv_sec} * 1'000'000'000'000 + std::int64_t{now.tv_nsec} * 1000);
}

/// The clock of one device and what it writes down. All times are of marks in the backend's queue, read when the step
/// has ended: what a device does behind the program's back is timed where it happens, and nobody waits for it.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  struct Interval {
    Mark begin;
    Mark end;
  };

  /// `backend` outlives this.
  explicit Recorder(Backend& backend) : backend_(backend) {}

  /// A new step, which began at `origin`.
  void begin_step(Clock::time_point origin) {
    origin_ = origin;
    log_ = {};
    times_.clear();
    waits_.clear();
    bookings_.clear();
  }
  [[nodiscard]] Mark now() { return backend_.mark(); }
  /// The index of the record.
  std::uint64_t add(const InstructionRecord& record, const Interval& when = {}) {
    log_.records.push_back(record);
    times_.push_back(when);
    return log_.records.size() - 1;
  }
  /// When a recorded instruction ran, if that was somebody else's business.
  void set(std::uint64_t record, const Interval& when) { times_[record] = when; }
  /// The rank has found just now that an exchange has ended.
  void end_exchange(std::uint64_t record, const Mark& waited_since) {
    times_[record].end = now();
    waits_.push_back({record, {waited_since, times_[record].end}});
  }
  /// Runs `work`, or queues it, and books how long it took.
  template <class Work>
  Interval timed(Activity activity, const Work& work) {
    const Duration thread_began = thread_time();
    const Mark begin = now();
    work();
    const Mark end = now();
    bookings_.push_back({activity, {begin, end}, thread_time() - thread_began});
    return {begin, end};
  }
  /// Waits for the device.
  [[nodiscard]] RankLog end_step() {
    const Mark end = now();
    log_.end = instant(end);
    for (std::size_t i = 0; i < times_.size(); ++i) {
      log_.records[i].begin = instant(times_[i].begin);
      log_.records[i].end = instant(times_[i].end);
    }
    for (const Wait& wait : waits_)
      log_.waits.push_back({wait.record, instant(wait.when.begin), instant(wait.when.end)});
    for (const Booking& booking : bookings_) {
      const Duration passed = instant(booking.when.end) - instant(booking.when.begin);
      log_.booked[booking.activity] += passed;
      log_.processor[booking.activity] += backend_.runs_ahead() ? passed : booking.of_thread;
    }
    return std::move(log_);
  }

 private:
  struct Wait {
    std::uint64_t record;
    Interval when;
  };
  struct Booking {
    Activity activity;
    Interval when;
    Duration of_thread;
  };
  // A mark is known to a few microseconds: one just behind the origin must not come before it.
  [[nodiscard]] Instant instant(const Mark& mark) {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(backend_.time_of(mark) - origin_);
    constexpr std::int64_t picoseconds_a_nanosecond = 1000;
    return Instant::at(Duration::picoseconds(std::max<std::int64_t>(0, passed.count()) * picoseconds_a_nanosecond));
  }

  Backend& backend_;
  Clock::time_point origin_;
  RankLog log_;
  std::vector<Interval> times_;  ///< Of each record.
  std::vector<Wait> waits_;
  std::vector<Booking> bookings_;
};

}  // namespace hdpsim::kernels::exec
