#include "sim/decide/size_search.h"

#include <algorithm>
#include <set>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using DaysAt = std::function<std::optional<double>(std::int64_t)>;

// The least of all sizes that is enough, by asking for each.
std::optional<std::int64_t> least_of_all(const SizeRange& sizes, double days, const DaysAt& days_at) {
  for (std::int64_t size = sizes.start % sizes.unit; size <= sizes.most; size += sizes.unit) {
    if (size > 0 && days_at(size).value_or(days + 1) <= days) return size;
  }
  return std::nullopt;
}

TEST_CASE("where days fall with the size, the answer is the least of all sizes, wherever the search starts",
          "[decide]") {
  const DaysAt days_at = [](std::int64_t gpus) { return 1000.0 / static_cast<double>(gpus); };
  const double days = GENERATE(0.9, 3.0, 10.0, 62.5, 1000.0, 1e6);
  for (const std::int64_t start : {8, 24, 64, 1000}) {
    const SizeRange sizes = {start, 8, 2000};
    std::set<std::int64_t> asked;
    const SizeAnswer found = smallest_size(sizes, days, [&](std::int64_t gpus) {
      asked.insert(gpus);
      return days_at(gpus);
    });
    CAPTURE(days, start);
    CHECK(found.gpus == least_of_all(sizes, days, days_at));
    CHECK(asked.size() <= 2 * 8 + 2);  // 250 sizes: 8 doublings, then 8 halvings of what lies between two of them
    for (const std::int64_t gpus : asked) CHECK((gpus % 8 == 0 && gpus > 0 && gpus <= 2000));
  }
}

TEST_CASE("sizes at which nothing trains are too small", "[decide]") {
  const DaysAt days_at = [](std::int64_t gpus) {
    return gpus < 96 ? std::nullopt : std::optional(960.0 / static_cast<double>(gpus));
  };
  CHECK(smallest_size({8, 8, 1024}, 100, days_at).gpus == 96);
  CHECK(smallest_size({128, 8, 1024}, 5, days_at).gpus == 192);
}

TEST_CASE("the search ends where two doublings gain less than a hundredth each, and says so", "[decide]") {
  std::int64_t largest = 0;
  const DaysAt days_at = [&](std::int64_t gpus) {
    largest = std::max(largest, gpus);
    return std::max(5.0, 320.0 / static_cast<double>(gpus));  // no shorter from 64 GPUs
  };
  const SizeAnswer none = smallest_size({8, 8, 1 << 20}, 4, days_at);
  CHECK_FALSE(none.gpus);
  CHECK(largest == 256);
  CHECK(none.why == "64 GPUs take 5 days, and two doublings gain less than 1% each: steps do not get shorter any more");
  CHECK(smallest_size({8, 8, 1 << 20}, 5, days_at).gpus == 64);
}

TEST_CASE("the search ends with the largest size, which it tries, and says so", "[decide]") {
  const DaysAt days_at = [](std::int64_t gpus) { return 1000.0 / static_cast<double>(gpus); };
  const SizeAnswer none = smallest_size({8, 8, 100}, 10, days_at);
  CHECK_FALSE(none.gpus);
  CHECK(none.why == "up to 96 GPUs the least are 10.4 days, of 96 GPUs");
  CHECK(smallest_size({8, 8, 100}, 1000.0 / 96, days_at).gpus == 96);
  const SizeAnswer never = smallest_size({8, 8, 64}, 10, [](std::int64_t) { return std::optional<double>(); });
  CHECK(never.why == "it trains on no size that was tried, up to 64 GPUs");
}

TEST_CASE("days have three significant digits and no exponent above", "[decide]") {
  CHECK(days_text(0.01236) == "0.0124");
  CHECK(days_text(29.33) == "29.3");
  CHECK(days_text(999.4) == "999");
  CHECK(days_text(999.6) == "1000");
  CHECK(days_text(123'456.7) == "123457");
}

}  // namespace
}  // namespace hdpsim
