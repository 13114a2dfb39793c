#include "kernels/spec/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

struct Range {
  std::int64_t begin;
  std::int64_t end;
};

void require_disjoint(std::vector<Range>& ranges, const char* what) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) {
      throw UnsupportedInput(fmt::format("attention: two blocks of one launch share {} row {}", what, ranges[i].begin));
    }
  }
}

}  // namespace

std::int64_t mask_area(const AttentionBlock& block) {
  if (block.mask == Mask::full) return block.queries * block.keys;
  // Row i sees i + 1 + keys - queries keys, or none if that is negative.
  const std::int64_t last = block.keys;
  const std::int64_t first = std::max<std::int64_t>(1, block.keys - block.queries + 1);
  return last < first ? 0 : (first + last) * (last - first + 1) / 2;
}

std::int64_t mask_area(std::span<const AttentionBlock> blocks) {
  std::int64_t area = 0;
  for (const AttentionBlock& block : blocks) area += mask_area(block);
  return area;
}

void require_valid(const AttentionHeads& heads, std::span<const AttentionBlock> blocks) {
  if (heads.dim != 64 && heads.dim != 128) {
    throw UnsupportedInput(fmt::format("attention: head dimension {} is not supported; 64 and 128 are", heads.dim));
  }
  if (heads.heads < 1 || heads.kv_heads < 1 || heads.heads % heads.kv_heads != 0) {
    throw UnsupportedInput(
        fmt::format("attention: {} key-value heads do not divide {} heads", heads.kv_heads, heads.heads));
  }
  std::vector<Range> queries;
  std::vector<Range> keys;
  for (const AttentionBlock& block : blocks) {
    if (block.query_begin < 0 || block.queries < 0 || block.key_begin < 0 || block.keys < 0) {
      throw UnsupportedInput("attention: a block begins or extends below zero");
    }
    if (block.queries > 0) queries.push_back({block.query_begin, block.query_begin + block.queries});
    if (block.keys > 0) keys.push_back({block.key_begin, block.key_begin + block.keys});
  }
  require_disjoint(queries, "query");
  require_disjoint(keys, "key");
}

}  // namespace hdpsim::kernels
