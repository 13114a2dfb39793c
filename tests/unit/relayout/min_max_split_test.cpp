#include "sim/relayout/min_max_split.h"

#include <algorithm>

#include "sim/base/random.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

// The least maximum over all ways to deal items, one part after the other; empty if there is none.
std::optional<double> tried(std::int64_t total, std::span<const SplitPart> parts) {
  if (parts.empty()) return total == 0 ? std::optional(0.0) : std::nullopt;
  SplitPart rest = parts.front();
  std::optional<double> best;
  for (std::int64_t items = rest.least; items <= std::min(total, rest.most); ++items) {
    const auto others = tried(total - items, parts.subspan(1));
    if (!others) continue;
    const double maximum = std::max(*others, rest.cost * static_cast<double>(items));
    if (!best || maximum < *best) best = maximum;
  }
  return best;
}

TEST_CASE("the least maximum is that of all ways to deal items", "[relayout]") {
  tests::for_seeds("min_max_split", 3000, [](RandomStream& random) {
    std::vector<SplitPart> parts(1 + random.below(4));
    for (SplitPart& part : parts) {
      part.cost = 0.5 + static_cast<double>(random.below(8)) / 3;
      part.least = static_cast<std::int64_t>(random.below(3));
      part.most = part.least + static_cast<std::int64_t>(random.below(8));
    }
    const auto total = static_cast<std::int64_t>(random.below(20));
    const std::optional<double> best = tried(total, parts);
    const std::optional<double> found = least_maximum(total, parts);
    REQUIRE(found.has_value() == best.has_value());
    const auto items = min_max_split(total, parts);
    REQUIRE(items.has_value() == best.has_value());
    if (!best) return;
    REQUIRE(*found == Approx(*best));
    std::int64_t dealt = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      dealt += (*items)[i];
      REQUIRE(parts[i].least <= (*items)[i]);
      REQUIRE((*items)[i] <= parts[i].most);
      REQUIRE(parts[i].cost * static_cast<double>((*items)[i]) <= *best * (1 + 1e-9));
    }
    REQUIRE(dealt == total);
  });
}

TEST_CASE("parts that are alike are one that may take so many times more", "[relayout]") {
  const std::vector<SplitPart> alike = {{.cost = 3, .times = 4}, {.cost = 7}};
  const std::vector<SplitPart> each = {{.cost = 3}, {.cost = 3}, {.cost = 3}, {.cost = 3}, {.cost = 7}};
  CHECK(min_max_split(29, alike) == min_max_split(29, each));
}

}  // namespace
}  // namespace hdpsim
