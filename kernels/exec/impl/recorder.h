#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <vector>

#include "kernels/spec/backend.h"
#include "sim/engine/timeline.h"

namespace hdpsim::kernels::exec {

/// A wait of the compute stream for a send/recv; `record` is the index of that instruction in the records.
struct ExchangeWait {
  std::uint64_t record = 0;
  Instant begin;
  Instant end;
};

/// The log of one rank for one step, in time since the start that all ranks agreed on.
struct RankLog {
  std::vector<InstructionRecord> records;
  std::vector<ExchangeWait> waits;
  Breakdown booked;     ///< Booked time other than waits for send/recv.
  Breakdown processor;  ///< The same without the time in which the thread did not run, if the thread itself computes.
  Instant end;
};

/// Time for which the calling thread has had a core.
[[nodiscard]] inline Duration thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Duration::picoseconds(std::int64_t{now.tv_sec} * 1'000'000'000'000 + std::int64_t{now.tv_nsec} * 1000);
}

/// The clock of one device and its records. All times are those of marks in the backend's queue, read when the step has
/// ended: asynchronous work is timed where it happens, and nothing waits for it.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  struct Interval {
    Mark begin;
    Mark end;
  };

  /// `backend` must outlive this.
  explicit Recorder(Backend& backend) : backend_(backend) {}

  /// Begins a new step, which started at `origin`.
  void begin_step(Clock::time_point origin) {
    origin_ = origin;
    log_ = {};
    times_.clear();
    waits_.clear();
    bookings_.clear();
  }
  [[nodiscard]] Mark now() { return backend_.mark(); }
  /// Adds a record and returns its index.
  std::uint64_t add(const InstructionRecord& record, const Interval& when = {}) {
    log_.records.push_back(record);
    times_.push_back(when);
    return log_.records.size() - 1;
  }
  /// Sets when a recorded instruction ran, if another component ran it.
  void set(std::uint64_t record, const Interval& when) { times_[record] = when; }
  /// Records that a send/recv has just been found to be over.
  void end_exchange(std::uint64_t record, const Mark& waited_since) {
    times_[record].end = now();
    waits_.push_back({record, {waited_since, times_[record].end}});
  }
  /// Runs or queues `work`, and books its time.
  template <class Work>
  Interval timed(Activity activity, const Work& work) {
    const Duration thread_began = thread_time();
    const Mark begin = now();
    work();
    const Mark end = now();
    bookings_.push_back({activity, {begin, end}, thread_time() - thread_began});
    return {begin, end};
  }
  /// The log of the step. Waits for the device.
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
  // A mark is exact to a few microseconds: one right after the origin must not come before it.
  [[nodiscard]] Instant instant(const Mark& mark) {
    const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(backend_.time_of(mark) - origin_);
    constexpr std::int64_t picoseconds_a_nanosecond = 1000;
    return Instant::at(Duration::picoseconds(std::max<std::int64_t>(0, passed.count()) * picoseconds_a_nanosecond));
  }

  Backend& backend_;
  Clock::time_point origin_;
  RankLog log_;
  std::vector<Interval> times_;  ///< By record.
  std::vector<Wait> waits_;
  std::vector<Booking> bookings_;
};

}  // namespace hdpsim::kernels::exec
