#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace hdpsim {

/// A future event of an actor. The simulation that schedules it decides what actor and tag mean.
struct Event {
  Instant time;
  std::uint32_t actor = 0;
  std::uint32_t tag = 0;
};

/// Pending events, executed in the order of (time, order of scheduling). Time never goes back: an event may be
/// scheduled at the current time but not before it (checked). Every simulation has its own queue.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): the bucket of an event is the highest bit in which its time
/// differs from the current time. A bucket is only read front to back, so that a million pending events cost few cache
/// misses. Two events of the same time always share a bucket, in the order of scheduling, so that ties cost nothing.
/// Cost: amortised O(log of the time range) sequential moves per event.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Instant now() const { return Instant::at(Duration::picoseconds(static_cast<std::int64_t>(now_))); }
  [[nodiscard]] std::uint64_t executed() const { return executed_; }

  void schedule(Instant time, std::uint32_t actor, std::uint32_t tag) {
    const auto key = static_cast<std::uint64_t>(time.since_start().picoseconds());
    HDPSIM_CHECK(time.since_start() >= Duration{} && key >= now_, "an event at {} ps, it is {} ps already",
                 time.since_start().picoseconds(), now_);
    put({time, actor, tag}, key);
    ++size_;
  }

  void schedule_after(Duration delay, std::uint32_t actor, std::uint32_t tag) { schedule(now() + delay, actor, tag); }

  /// Removes and returns the next event, whose time becomes the current time. Requires a pending event (checked).
  Event pop() {
    HDPSIM_CHECK(size_ > 0, "no event is pending at {} ps", now_);
    if (next_ == buckets_[0].size()) refill();
    --size_;
    ++executed_;
    return buckets_[0][next_++];
  }

 private:
  static constexpr std::size_t bucket_count = 65;

  void put(const Event& event, std::uint64_t key) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(key ^ now_));
    buckets_[bucket].push_back(event);
  }

  // Sets the current time to the earliest event and distributes that event's bucket over the lower buckets, all of
  // which are empty.
  void refill() {
    buckets_[0].clear();
    next_ = 0;
    std::size_t lowest = 1;
    while (buckets_[lowest].empty()) ++lowest;
    std::vector<Event>& bucket = buckets_[lowest];
    Instant earliest = bucket.front().time;
    for (const Event& event : bucket) earliest = event.time < earliest ? event.time : earliest;
    now_ = static_cast<std::uint64_t>(earliest.since_start().picoseconds());
    for (const Event& event : bucket) put(event, static_cast<std::uint64_t>(event.time.since_start().picoseconds()));
    bucket.clear();
  }

  std::array<std::vector<Event>, bucket_count> buckets_;
  std::size_t next_ = 0;  // first event of bucket 0 that has not been executed
  std::size_t size_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace hdpsim
