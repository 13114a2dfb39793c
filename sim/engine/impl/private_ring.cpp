#include "sim/engine/impl/private_ring.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/engine/impl/waiting.h"

namespace hdpsim {
namespace {

// Computes starts + time by rank. Neither is negative, so that a sum that overflows the clock has its highest bit set.
// All sums are checked together after the loop, so that the compiler can vectorize it.
template <class Time>
void add_times(std::span<const Instant> starts, Time time, std::span<Instant> ends) {
  std::uint64_t all = 0;
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    const auto start = static_cast<std::uint64_t>(starts[rank].since_start().picoseconds());
    const std::uint64_t end = start + static_cast<std::uint64_t>(time(rank).picoseconds());
    all |= end;
    ends[rank] = Instant::at(Duration::picoseconds(static_cast<std::int64_t>(end)));
  }
  if (all >> 63 != 0) detail::time_overflows();
}

// The ends of the ranges of iterations in which the same instructions are active, in ascending order.
std::vector<std::int64_t> ends_of_ranges(const Block& loop) {
  std::vector<std::int64_t> ends{loop.iterations};
  for (const Instruction& instruction : loop.body) {
    for (const std::int64_t change :
         {std::int64_t{instruction.first_iteration}, loop.iterations - instruction.last_skipped}) {
      if (change > 0 && change < loop.iterations) ends.push_back(change);
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

void move_all(std::span<Instant> times, Duration by) {
  for (Instant& time : times) time += by;
}

// Adds what `times` iterations add that are like the last one.
void repeat(std::vector<Breakdown>& now, const std::vector<Breakdown>& before, std::int64_t times) {
  for (std::size_t i = 0; i < now.size(); ++i) now[i] += (now[i] - before[i]).repeated(times);
}

}  // namespace

PrivateRing::PrivateRing(const PricedProgram& priced, const std::vector<Hop>& hops, const std::vector<double>& speeds)
    : priced_(priced),
      hops_(hops),
      sharing_(priced.program.sharing),
      ranks_(speeds.size()),
      speeds_(speeds),
      starts_(ranks_),
      arrivals_(ranks_),
      transfers_(priced.program.bytes.size()) {
  std::sort(speeds_.begin(), speeds_.end());
  speeds_.erase(std::unique(speeds_.begin(), speeds_.end()), speeds_.end());
  speed_of_.reserve(ranks_);
  for (const double speed : speeds) {
    const auto place = std::lower_bound(speeds_.begin(), speeds_.end(), speed);
    speed_of_.push_back(static_cast<std::uint32_t>(place - speeds_.begin()));
  }
  course_.kernels.resize(speeds_.size());
  course_.waits.resize(ranks_);
}

PrivateRing::Outcome PrivateRing::run(const std::vector<Instant>& begins) {
  course_.free.fill(begins);
  for (std::size_t block = 0; block < priced_.program.blocks.size(); ++block) run_block(block);
  for (std::size_t rank = 0; rank < ranks_; ++rank) course_.waits[rank] += course_.kernels[speed_of_[rank]];
  return {std::move(course_.free[compute]), std::move(course_.waits), course_.events};
}

void PrivateRing::run_block(std::size_t block) {
  block_ = block;
  const Block& loop = priced_.program.blocks[block];
  kept_iterations_ = farthest_back(loop) + 1;
  ends_.resize(std::max(ends_.size(), static_cast<std::size_t>(kept_iterations_) * loop.body.size() * ranks_));
  iteration_ = 0;
  turn_ = 0;
  for (const std::int64_t end : ends_of_ranges(loop)) run_alike(end);
  end_block();
}

void PrivateRing::run_alike(std::int64_t end) {
  const Block& loop = priced_.program.blocks[block_];
  Streams busy{};
  for (const Instruction& instruction : loop.body) {
    if (instruction.active(iteration_, loop.iterations)) busy[static_cast<std::size_t>(instruction.stream)] = true;
  }
  bool knows_before = false;
  while (iteration_ < end) {
    const bool can_skip = end - iteration_ > kept_iterations_;
    if (can_skip && knows_before) {
      if (const auto move = steady_move(busy)) {
        skip(end - iteration_, *move, busy);
        return;
      }
    }
    knows_before = can_skip;
    if (knows_before) before_ = course_;
    run_iteration();
  }
}

void PrivateRing::run_iteration() {
  for (std::size_t i = 0; i < priced_.program.blocks[block_].body.size(); ++i) execute(i);
  ++iteration_;
  ++turn_;
}

// An instruction starts when its stream is free or later. What ended before all streams that still run something were
// free is therefore never waited for again: only later times have to move together.
std::optional<Duration> PrivateRing::steady_move(const Streams& busy) {
  if (iteration_ < kept_iterations_ || !busy[compute]) return std::nullopt;
  const Duration move = course_.free[compute].front() - before_.free[compute].front();
  floor_ = course_.free[compute];
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (!busy[stream]) continue;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const Instant now = course_.free[stream][rank];
      if (now - before_.free[stream][rank] != move) return std::nullopt;
      floor_[rank] = std::min(floor_[rank], now);
    }
  }
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (busy[stream]) continue;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (!has_moved(before_.free[stream][rank], course_.free[stream][rank], move, rank)) return std::nullopt;
    }
  }
  return ends_moved(move) && exchanges_moved(move) ? std::optional(move) : std::nullopt;
}

bool PrivateRing::has_moved(Instant before, Instant now, Duration move, std::size_t rank) const {
  return now - before == move || (now <= floor_[rank] && before + move <= floor_[rank]);
}

// The ends of the iterations before that later ones may wait for.
bool PrivateRing::ends_moved(Duration move) const {
  for (const Instruction& instruction : priced_.program.blocks[block_].body) {
    for (const Dependency& dependency : instruction.needed()) {
      const std::int64_t back = dependency.iterations_back;
      if (back == 0) continue;
      const std::span<const Instant> now = ends_of(back, dependency.instruction);
      const std::span<const Instant> before = ends_of(back + 1, dependency.instruction);
      for (std::size_t rank = 0; rank < ranks_; ++rank) {
        if (!has_moved(before[rank], now[rank], move, rank)) return false;
      }
    }
  }
  return true;
}

bool PrivateRing::exchanges_moved(Duration move) const {
  const std::size_t known = std::min(course_.next_exchange, remembered_exchanges);
  for (std::size_t back = 1; back <= known; ++back) {
    const Exchange& now = course_.exchanges[(course_.next_exchange - back) % remembered_exchanges];
    const bool had_one = back <= before_.next_exchange;
    const Exchange& before = before_.exchanges[(before_.next_exchange - back) % remembered_exchanges];
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const bool mattered = had_one && before.began[rank] + move > floor_[rank];
      if (now.began[rank] <= floor_[rank] && !mattered) continue;
      if (!mattered || now.began[rank] - before.began[rank] != move || now.posted[rank] - before.posted[rank] != move ||
          now.ended[rank] - before.ended[rank] != move) {
        return false;
      }
    }
  }
  return true;
}

void PrivateRing::skip(std::int64_t iterations, Duration move, const Streams& busy) {
  const Block& loop = priced_.program.blocks[block_];
  for (std::int64_t back = kept_iterations_; back >= 1; --back) {
    const Duration later = (iterations + 1 - back) * move;
    for (std::size_t i = 0; i < loop.body.size(); ++i) {
      const std::span<const Instant> last = ends_of(1, i);
      const std::span<Instant> moved = ends_of(back, i);
      if (back > 1) std::copy(last.begin(), last.end(), moved.begin());
      if (busy[static_cast<std::size_t>(loop.body[i].stream)]) move_all(moved, later);
    }
  }
  const Duration whole = iterations * move;
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (busy[stream]) move_all(course_.free[stream], whole);
  }
  for (Exchange& exchange : course_.exchanges) {
    for (Row* row : {&exchange.posted, &exchange.began, &exchange.ended}) move_all(*row, whole);
  }
  repeat(course_.kernels, before_.kernels, iterations);
  repeat(course_.waits, before_.waits, iterations);
  course_.events += static_cast<std::uint64_t>(iterations) * (course_.events - before_.events);
  iteration_ += iterations;
}

std::span<const Instant> PrivateRing::ends_of(std::int64_t iterations_back, std::size_t index) const {
  const auto slot = static_cast<std::size_t>((turn_ - iterations_back) % kept_iterations_);
  return std::span(ends_).subspan((slot * priced_.program.blocks[block_].body.size() + index) * ranks_, ranks_);
}

std::span<Instant> PrivateRing::ends_of(std::int64_t iterations_back, std::size_t index) {
  const std::span<const Instant> ends = std::as_const(*this).ends_of(iterations_back, index);
  return std::span(ends_).subspan(static_cast<std::size_t>(ends.data() - ends_.data()), ranks_);
}

PrivateRing::Exchange& PrivateRing::new_exchange() {
  Exchange& exchange = course_.exchanges[course_.next_exchange++ % remembered_exchanges];
  exchange.posted.resize(ranks_);
  exchange.began.resize(ranks_);
  exchange.ended.resize(ranks_);
  return exchange;
}

void PrivateRing::execute(std::size_t index) {
  const Block& loop = priced_.program.blocks[block_];
  const Instruction& instruction = loop.body[index];
  Row& free = course_.free[static_cast<std::size_t>(instruction.stream)];
  const std::span<Instant> ended = ends_of(0, index);
  if (!instruction.active(iteration_, loop.iterations)) {
    std::copy(free.begin(), free.end(), ended.begin());
    return;
  }
  find_starts(instruction);
  if (instruction.opcode == Opcode::exchange) {
    exchange(instruction, ended);
  } else if (instruction.opcode == Opcode::share && instruction.stream == Stream::comm) {
    meet_overlapped(index, ended);
  } else if (instruction.stream == Stream::compute) {
    run_kernel(index, ended);
  } else {
    run_on_device(index, ended);
  }
  std::copy(ended.begin(), ended.end(), free.begin());
  course_.events += ranks_;
}

void PrivateRing::find_starts(const Instruction& instruction) {
  starts_ = course_.free[static_cast<std::size_t>(instruction.stream)];
  for (const Dependency& dependency : instruction.needed()) {
    if (dependency.iterations_back > iteration_) continue;
    const std::span<const Instant> ended = ends_of(dependency.iterations_back, dependency.instruction);
    for (std::size_t rank = 0; rank < ranks_; ++rank) starts_[rank] = std::max(starts_[rank], ended[rank]);
  }
}

// The message from a rank begins when its receiver has posted its exchange too. A rank's exchange ends with the later
// of its two messages.
void PrivateRing::exchange(const Instruction& instruction, std::span<Instant> ended) {
  Exchange& now = new_exchange();
  const std::vector<Duration>& transfer = transfers(instruction.work);
  std::swap(now.posted, starts_);
  // Ranks that send to one behind them in the group are the last ones: two loops without a division.
  const auto stride = static_cast<std::size_t>(sharing_.inner);
  const std::size_t straight = ranks_ - stride;
  const auto begin = [&](std::size_t rank, std::size_t next) {
    now.began[next] = std::max(now.posted[rank], now.posted[next]);
    arrivals_[rank] = now.began[next] + transfer[rank];
  };
  for (std::size_t rank = 0; rank < straight; ++rank) begin(rank, rank + stride);
  for (std::size_t rank = straight; rank < ranks_; ++rank) begin(rank, rank - straight);
  for (std::size_t rank = 0; rank < stride; ++rank)
    now.ended[rank] = std::max(arrivals_[rank], arrivals_[rank + straight]);
  for (std::size_t rank = stride; rank < ranks_; ++rank)
    now.ended[rank] = std::max(arrivals_[rank], arrivals_[rank - stride]);
  std::copy(now.ended.begin(), now.ended.end(), ended.begin());
}

void PrivateRing::run_kernel(std::size_t index, std::span<Instant> ended) {
  const Block& loop = priced_.program.blocks[block_];
  const Instruction& instruction = loop.body[index];
  const Row& free = course_.free[compute];
  const std::optional<Activity> only = only_wait_of(instruction, loop);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (starts_[rank] > free[rank]) book_wait(rank, starts_[rank], only ? *only : waited_for(rank, instruction));
  }
  if (instruction.opcode == Opcode::share) {
    came_ = starts_;
    meet(priced_.program.shares[instruction.work]);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      course_.waits[rank][Activity::group_wait] += starts_[rank] - came_[rank];
    }
  }
  run_on_device(index, ended);
  for (std::size_t s = 0; s < speeds_.size(); ++s) {
    course_.kernels[s][activity_of(instruction.opcode)] += priced_.time(block_, index, speeds_[s]);
  }
}

void PrivateRing::meet(const SharingCollective& collective) {
  const auto subgroup = static_cast<std::size_t>(collective.party(sharing_));
  for (std::size_t first = 0; first < ranks_; first += subgroup) {
    const auto begin = starts_.begin() + static_cast<std::ptrdiff_t>(first);
    const Instant last = *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(subgroup));
    std::fill(begin, begin + static_cast<std::ptrdiff_t>(subgroup), last);
  }
}

// A collective that overlaps with kernels is waited for as an exchange is.
void PrivateRing::meet_overlapped(std::size_t index, std::span<Instant> ended) {
  Exchange& now = new_exchange();
  now.posted = starts_;
  meet(priced_.program.shares[priced_.program.blocks[block_].body[index].work]);
  now.began = starts_;
  run_on_device(index, ended);
  std::copy(ended.begin(), ended.end(), now.ended.begin());
}

void PrivateRing::run_on_device(std::size_t index, std::span<Instant> ended) {
  if (speeds_.size() == 1) {
    const Duration time = priced_.time(block_, index, speeds_.front());
    return add_times(
        starts_, [=](std::size_t) { return time; }, ended);
  }
  times_.clear();
  for (const double speed : speeds_) times_.push_back(priced_.time(block_, index, speed));
  add_times(
      starts_, [&](std::size_t rank) { return times_[speed_of_[rank]]; }, ended);
}

void PrivateRing::end_block() {
  std::array<Instant, stream_count> ends;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (std::size_t stream = 0; stream < stream_count; ++stream) ends[stream] = course_.free[stream][rank];
    const auto [end, waited_for] = end_of_block(ends);
    if (end > course_.free[compute][rank]) book_wait(rank, end, waited_for);
    for (Row& free : course_.free) free[rank] = end;
  }
}

Activity PrivateRing::waited_for(std::size_t rank, const Instruction& instruction) {
  const auto end_of = [&](const Dependency& dependency) {
    if (dependency.iterations_back > iteration_) return Instant{};
    return ends_of(dependency.iterations_back, dependency.instruction)[rank];
  };
  return start_of(instruction, priced_.program.blocks[block_], course_.free[compute][rank], end_of).waited_for;
}

// Books the idle time of a rank's compute stream until `until`: it waited for ranks that had not posted their side of
// an exchange, for messages under way, or for a copy.
void PrivateRing::book_wait(std::size_t rank, Instant until, Activity waited_for) {
  const Instant since = course_.free[compute][rank];
  const Duration for_peers = peer_wait(rank, since, until);
  course_.waits[rank][Activity::group_wait] += for_peers;
  course_.waits[rank][waited_for] += until - since - for_peers;
}

// Sums the time until the message began over the exchanges that ended between `since` and `until`, the last one first:
// what was posted earlier also began earlier, so that mostly one or two of them are looked at.
Duration PrivateRing::peer_wait(std::size_t rank, Instant since, Instant until) const {
  Duration sum;
  const std::size_t known = std::min(course_.next_exchange, remembered_exchanges);
  for (std::size_t back = 1; back <= known; ++back) {
    const Exchange& exchange = course_.exchanges[(course_.next_exchange - back) % remembered_exchanges];
    if (exchange.began[rank] <= since) break;
    const Instant waiting_since = std::max(exchange.posted[rank], since);
    if (exchange.ended[rank] <= until && exchange.began[rank] > waiting_since) {
      sum += exchange.began[rank] - waiting_since;
    }
  }
  return sum;
}

const std::vector<Duration>& PrivateRing::transfers(std::uint32_t work) {
  std::vector<Duration>& times = transfers_[work];
  if (times.empty()) {
    times.reserve(ranks_);
    for (const Hop& hop : hops_) times.push_back(hop.transfer(priced_.program.bytes[work]));
  }
  return times;
}

}  // namespace hdpsim
