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
void add_times(const std::vector<Instant>& starts, Time time, std::vector<Instant>& ends) {
  std::uint64_t all = 0;
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    const auto start = static_cast<std::uint64_t>(starts[rank].since_start().picoseconds());
    const std::uint64_t end = start + static_cast<std::uint64_t>(time(rank).picoseconds());
    all |= end;
    ends[rank] = Instant::at(Duration::picoseconds(static_cast<std::int64_t>(end)));
  }
  if (all >> 63 != 0) detail::time_overflows();
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
  for (Exchange& exchange : exchanges_) exchange = {Row(ranks_), Row(ranks_), Row(ranks_)};
  kernels_.resize(speeds_.size());
  outcome_.booked.resize(ranks_);
}

PrivateRing::Outcome PrivateRing::run(const std::vector<Instant>& begins) {
  free_.fill(begins);
  for (std::size_t block = 0; block < priced_.program.blocks.size(); ++block) run_block(block);
  for (std::size_t rank = 0; rank < ranks_; ++rank) outcome_.booked[rank] += kernels_[speed_of_[rank]];
  outcome_.ends = std::move(free_[compute]);
  return std::move(outcome_);
}

void PrivateRing::run_block(std::size_t block) {
  block_ = block;
  const Block& loop = priced_.program.blocks[block];
  kept_iterations_ = farthest_back(loop) + 1;
  ends_.resize(std::max(ends_.size(), static_cast<std::size_t>(kept_iterations_) * loop.body.size()));
  for (iteration_ = 0; iteration_ < loop.iterations; ++iteration_) {
    for (std::size_t i = 0; i < loop.body.size(); ++i) execute(i);
  }
  end_block();
}

PrivateRing::Row& PrivateRing::ends_of(std::int64_t iteration, std::size_t index) {
  const auto slot = static_cast<std::size_t>(iteration % kept_iterations_);
  return ends_[slot * priced_.program.blocks[block_].body.size() + index];
}

void PrivateRing::execute(std::size_t index) {
  const Block& loop = priced_.program.blocks[block_];
  const Instruction& instruction = loop.body[index];
  Row& ended = ends_of(iteration_, index);
  ended.resize(ranks_);
  if (!instruction.active(iteration_, loop.iterations)) {
    ended = free_[static_cast<std::size_t>(instruction.stream)];
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
  free_[static_cast<std::size_t>(instruction.stream)] = ended;
  outcome_.events += ranks_;
}

void PrivateRing::find_starts(const Instruction& instruction) {
  starts_ = free_[static_cast<std::size_t>(instruction.stream)];
  for (const Dependency& dependency : instruction.needed()) {
    const std::int64_t of = iteration_ - dependency.iterations_back;
    if (of < 0) continue;
    const Row& ended = ends_of(of, dependency.instruction);
    for (std::size_t rank = 0; rank < ranks_; ++rank) starts_[rank] = std::max(starts_[rank], ended[rank]);
  }
}

// The message from a rank begins when its receiver has posted its exchange too. A rank's exchange ends with the later
// of its two messages.
void PrivateRing::exchange(const Instruction& instruction, Row& ended) {
  Exchange& now = exchanges_[next_exchange_++ % remembered_exchanges];
  const std::vector<Duration>& transfer = transfers(instruction.work);
  std::swap(now.posted, starts_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const std::size_t next = sharing_.next(rank);
    now.began[next] = std::max(now.posted[rank], now.posted[next]);
    arrivals_[rank] = now.began[next] + transfer[rank];
  }
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    const std::size_t before = sharing_.before(rank);
    ended[rank] = std::max(arrivals_[rank], arrivals_[before]);
  }
  now.ended = ended;
}

void PrivateRing::run_kernel(std::size_t index, Row& ended) {
  const Block& loop = priced_.program.blocks[block_];
  const Instruction& instruction = loop.body[index];
  const Row& free = free_[compute];
  const std::optional<Activity> only = only_wait_of(instruction, loop);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (starts_[rank] > free[rank]) book_wait(rank, starts_[rank], only ? *only : waited_for(rank, instruction));
  }
  if (instruction.opcode == Opcode::share) {
    came_ = starts_;
    meet(priced_.program.shares[instruction.work]);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      outcome_.booked[rank][Activity::group_wait] += starts_[rank] - came_[rank];
    }
  }
  run_on_device(index, ended);
  for (std::size_t s = 0; s < speeds_.size(); ++s) {
    kernels_[s][activity_of(instruction.opcode)] += priced_.time(block_, index, speeds_[s]);
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
void PrivateRing::meet_overlapped(std::size_t index, Row& ended) {
  Exchange& now = exchanges_[next_exchange_++ % remembered_exchanges];
  now.posted = starts_;
  meet(priced_.program.shares[priced_.program.blocks[block_].body[index].work]);
  now.began = starts_;
  run_on_device(index, ended);
  now.ended = ended;
}

void PrivateRing::run_on_device(std::size_t index, Row& ended) {
  if (speeds_.size() == 1) {
    const Duration time = priced_.time(block_, index, speeds_.front());
    return add_times(
        starts_, [=](std::size_t) { return time; }, ended);
  }
  std::vector<Duration> times;
  times.reserve(speeds_.size());
  for (const double speed : speeds_) times.push_back(priced_.time(block_, index, speed));
  add_times(
      starts_, [&](std::size_t rank) { return times[speed_of_[rank]]; }, ended);
}

void PrivateRing::end_block() {
  std::array<Instant, stream_count> ends;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    for (std::size_t stream = 0; stream < stream_count; ++stream) ends[stream] = free_[stream][rank];
    const auto [end, waited_for] = end_of_block(ends);
    if (end > free_[compute][rank]) book_wait(rank, end, waited_for);
    for (Row& free : free_) free[rank] = end;
  }
}

Activity PrivateRing::waited_for(std::size_t rank, const Instruction& instruction) {
  const auto end_of = [&](const Dependency& dependency) {
    const std::int64_t of = iteration_ - dependency.iterations_back;
    return of < 0 ? Instant{} : ends_of(of, dependency.instruction)[rank];
  };
  return start_of(instruction, priced_.program.blocks[block_], free_[compute][rank], end_of).waited_for;
}

// Books the idle time of a rank's compute stream until `until`: it waited for ranks that had not posted their side of
// an exchange, for messages under way, or for a copy.
void PrivateRing::book_wait(std::size_t rank, Instant until, Activity waited_for) {
  const Instant since = free_[compute][rank];
  const Duration for_peers = peer_wait(rank, since, until);
  outcome_.booked[rank][Activity::group_wait] += for_peers;
  outcome_.booked[rank][waited_for] += until - since - for_peers;
}

// Sums the time until the message began over the exchanges that ended between `since` and `until`, the last one first:
// what was posted earlier also began earlier, so that mostly one or two of them are looked at.
Duration PrivateRing::peer_wait(std::size_t rank, Instant since, Instant until) const {
  Duration sum;
  const std::size_t known = std::min(next_exchange_, remembered_exchanges);
  for (std::size_t back = 1; back <= known; ++back) {
    const Exchange& exchange = exchanges_[(next_exchange_ - back) % remembered_exchanges];
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
