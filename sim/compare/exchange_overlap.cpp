#include "sim/compare/exchange_overlap.h"

#include <algorithm>
#include <vector>

namespace hdpsim {
namespace {

struct Interval {
  Instant begin;
  Instant end;
};

// Sorts the intervals, and joins those that touch.
void unite(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::size_t united = 0;
  for (const Interval& interval : intervals) {
    if (united > 0 && interval.begin <= intervals[united - 1].end) {
      intervals[united - 1].end = std::max(intervals[united - 1].end, interval.end);
    } else {
      intervals[united++] = interval;
    }
  }
  intervals.resize(united);
}

double total_seconds(const std::vector<Interval>& intervals) {
  Duration total;
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total.seconds();
}

// Length of the intersection of two lists of united intervals.
double common_seconds(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Duration common;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Instant begin = std::max(a[i].begin, b[j].begin);
    const Instant end = std::min(a[i].end, b[j].end);
    if (begin < end) common += end - begin;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return common.seconds();
}

}  // namespace

ExchangeOverlap exchange_overlap(std::span<const InstructionRecord> records) {
  std::vector<Interval> exchanges;
  std::vector<Interval> computing;
  for (const InstructionRecord& record : records) {
    if (record.opcode == Opcode::exchange) {
      exchanges.push_back({record.begin, record.end});
    } else if (record.stream == Stream::compute) {
      computing.push_back({record.begin, record.end});
    }
  }
  unite(exchanges);
  unite(computing);
  return {total_seconds(exchanges), common_seconds(exchanges, computing)};
}

}  // namespace hdpsim
