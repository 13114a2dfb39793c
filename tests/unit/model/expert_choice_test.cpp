#include "sim/model/experts.h"

#include <bit>
#include <cstdint>
#include <vector>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Whether the experts in `chosen`, a bit each, are what the router may choose: enough of them, in few enough groups.
bool may_choose(const MixtureOfExperts& moe, std::uint32_t groups, std::uint32_t chosen) {
  if (std::popcount(groups) != moe.groups_per_token || std::popcount(chosen) != moe.experts_per_token) return false;
  const std::int64_t of_group = moe.experts / moe.groups;
  for (std::int64_t expert = 0; expert < moe.experts; ++expert) {
    if ((chosen >> expert & 1) == 1 && (groups >> (expert / of_group) & 1) == 0) return false;
  }
  return true;
}

std::int64_t parts_of(const MixtureOfExperts& moe, std::int64_t parts, std::uint32_t chosen) {
  const std::int64_t each = moe.experts / parts;
  std::uint32_t found = 0;
  for (std::int64_t expert = 0; expert < moe.experts; ++expert) {
    if ((chosen >> expert & 1) == 1) found |= 1U << (expert / each);
  }
  return std::popcount(found);
}

// Goes through all choices of groups and of experts in them.
double counted(const MixtureOfExperts& moe, std::int64_t parts) {
  std::int64_t choices = 0;
  std::int64_t sum = 0;
  for (std::uint32_t groups = 0; groups < 1U << moe.groups; ++groups) {
    for (std::uint32_t chosen = 0; chosen < 1U << moe.experts; ++chosen) {
      if (!may_choose(moe, groups, chosen)) continue;
      ++choices;
      sum += parts_of(moe, parts, chosen);
    }
  }
  return static_cast<double>(sum) / static_cast<double>(choices);
}

TEST_CASE("the parts that have an expert of a token are as many as over all choices of the router", "[experts]") {
  for (const std::int64_t groups : {1, 2, 3, 4, 6}) {
    for (std::int64_t taken = 1; taken <= groups; ++taken) {
      for (const std::int64_t experts : {1, 2, 3}) {
        if (taken * (12 / groups) < experts) continue;
        const MixtureOfExperts moe{
            .experts = 12, .experts_per_token = experts, .groups = groups, .groups_per_token = taken};
        for (const std::int64_t parts : {1, 2, 3, 4, 6, 12}) {
          CAPTURE(groups, taken, experts, parts);
          CHECK(mean_parts(moe, parts) == Approx(counted(moe, parts)).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("a token of DeepSeek-V3 goes to no more nodes than it chooses groups, one a node", "[experts]") {
  const MixtureOfExperts limited{.experts = 256, .experts_per_token = 8, .groups = 8, .groups_per_token = 4};
  MixtureOfExperts free = limited;
  free.groups = free.groups_per_token = 1;
  CHECK(mean_parts(limited, 8) < 4);
  CHECK(mean_parts(free, 8) > 5);
  CHECK(mean_parts(limited, 1) == Approx(1));
  CHECK(mean_parts(limited, 256) == Approx(8));
}

}  // namespace
}  // namespace hdpsim
