#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/units.h"

namespace hdpsim {

/// Something that will happen to an actor. What actor and tag mean is the affair of the simulation that scheduled it.
struct Event {
  Instant time;
  std::uint32_t actor = 0;
  std::uint32_t tag = 0;
};

/// Pending events, run by (time, order of scheduling). Time never flows back: an event may be scheduled at the current
/// time, not before it (checked). One queue is one world.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): events lie in buckets by the highest bit in which their time
/// differs from the current one. A bucket is only ever read front to back, which keeps a million pending events out of
/// the way of the cache, and two events of one time always share a bucket in the order of scheduling, which makes the
/// order of ties free. Cost: amortised O(log of the time range) sequential moves an event.
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

  /// The next event; it is now its time. Requires a pending event (checked).
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

  // Moves time to the earliest event and spreads that event's bucket over the buckets below it, all of which are empty.
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
  std::size_t next_ = 0;  // first event of bucket 0 that has not run
  std::size_t size_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t executed_ = 0;
};

}  // namespace hdpsim
