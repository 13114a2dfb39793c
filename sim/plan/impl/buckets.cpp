#include "sim/plan/impl/buckets.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace hdpsim {
namespace {

double ring_seconds(const Ring& ring) {
  return static_cast<double>(ring.size.degree) * ring.seconds;
}

}  // namespace

Buckets::Buckets(const std::vector<Ring>& rings, std::int64_t count) : rings_(rings) {
  bucket_end_.reserve(rings.size());
  double total = 0;
  for (const Ring& ring : rings) total += ring_seconds(ring);
  double sum = 0;
  std::size_t first = 0;
  for (std::int64_t bucket = 1; first < rings.size(); ++bucket) {
    const double limit = total * static_cast<double>(bucket) / static_cast<double>(count);
    std::size_t end = first;
    do {
      left_.insert(left_.end(), end);
      sum += ring_seconds(rings[end++]);
    } while (end < rings.size() && (bucket >= count || sum + ring_seconds(rings[end]) <= limit));
    std::fill_n(std::back_inserter(bucket_end_), end - first, end);
    first = end;
  }
}

const Ring& Buckets::draw(std::int64_t targets) {
  const std::size_t longest = *left_.begin();
  const std::size_t end = bucket_end_[longest];
  const auto too_wide = [targets](const Ring& ring) { return ring.size.degree > targets; };
  const std::span<const Ring> bucket = std::span(rings_).subspan(longest, end - longest);
  const auto fitting = std::partition_point(bucket.begin(), bucket.end(), too_wide);
  auto drawn = left_.lower_bound(longest + static_cast<std::size_t>(fitting - bucket.begin()));
  if (drawn == left_.end() || *drawn >= end) drawn = left_.begin();
  const Ring& ring = rings_[*drawn];
  left_.erase(drawn);
  return ring;
}

}  // namespace hdpsim
