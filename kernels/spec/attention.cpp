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

KeyRange seen_keys(const AttentionBlock& block, std::int64_t query) {
  if (block.mask == Mask::full) return {0, block.keys};
  const std::int64_t behind = query + 1 + block.keys - block.queries + block.lead;  // the key behind the query's own
  const std::int64_t end = std::clamp<std::int64_t>(behind, 0, block.keys);
  return {block.window > 0 ? std::clamp<std::int64_t>(behind - block.window, 0, end) : 0, end};
}

std::vector<AttentionBlock> chunked_blocks(const AttentionBlock& block, std::int64_t chunk, std::int64_t first_key) {
  if (block.mask == Mask::full || block.window > 0) {
    throw UnsupportedInput("attention: chunks are cut out of causal blocks without a window");
  }
  if (chunk < 1 || first_key < 0) {
    throw UnsupportedInput("attention: a chunk has no tokens, or a document begins before its first key");
  }
  const std::int64_t end_key = first_key + block.keys;
  const std::int64_t end_query = end_key + block.lead;
  std::vector<AttentionBlock> parts;
  for (std::int64_t query = end_query - block.queries; query < end_query;) {
    // A query before the document's first token is in a chunk of its own, and sees nothing.
    const std::int64_t begin = query < 0 ? query : query / chunk * chunk;
    const std::int64_t end = query < 0 ? 0 : begin + chunk;
    const std::int64_t next = std::min(end, end_query);
    const std::int64_t key = std::clamp(begin, first_key, end_key);
    const std::int64_t keys = query < 0 ? 0 : std::clamp(end, first_key, end_key) - key;
    parts.push_back({.query_begin = block.query_begin + query - (end_query - block.queries),
                     .queries = next - query,
                     .key_begin = block.key_begin + key - first_key,
                     .keys = keys,
                     .mask = Mask::causal,
                     .lead = keys > 0 ? next - (key + keys) : 0});
    query = next;
  }
  return parts;
}

std::int64_t mask_area(const AttentionBlock& block) {
  if (block.mask == Mask::full) return block.queries * block.keys;
  // The sum over `queries` rows of the keys before a key that moves on by one a row and ends at `last`.
  const auto keys_before = [&](std::int64_t last) {
    const auto sum_to = [&](std::int64_t row_keys) {  // of 1, 2, ... row_keys, none more than block.keys
      const std::int64_t rising = std::clamp<std::int64_t>(row_keys, 0, block.keys);
      return rising * (rising + 1) / 2 + std::max<std::int64_t>(0, row_keys - block.keys) * block.keys;
    };
    return sum_to(last) - sum_to(last - block.queries);
  };
  const std::int64_t last = block.keys + block.lead;
  return keys_before(last) - (block.window > 0 ? keys_before(last - block.window) : 0);
}

std::int64_t mask_area(std::span<const AttentionBlock> blocks) {
  std::int64_t area = 0;
  for (const AttentionBlock& block : blocks) area += mask_area(block);
  return area;
}

void require_valid(const AttentionHeads& heads, std::span<const AttentionBlock> blocks) {
  const bool equal = heads.value_width() == heads.dim;
  const bool latent = heads.dim == 192 && heads.value_dim == 128;
  if (!latent && !(equal && (heads.dim == 64 || heads.dim == 128 || heads.dim == 256))) {
    throw UnsupportedInput(
        fmt::format("attention: head dimension {}{} is not supported; 64, 128, 256, and 192 with values of 128 are",
                    heads.dim, equal ? "" : fmt::format(" with values of {}", heads.value_width())));
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
    if (block.window < 0) {
      throw UnsupportedInput(
          fmt::format("attention: a window of {} tokens; a token sees at least itself", block.window));
    }
    if (block.mask == Mask::full && (block.window != 0 || block.lead != 0)) {
      throw UnsupportedInput("attention: a full mask has no window and no lead; a causal one has");
    }
    if (block.queries > 0) queries.push_back({block.query_begin, block.query_begin + block.queries});
    if (block.keys > 0) keys.push_back({block.key_begin, block.key_begin + block.keys});
  }
  require_disjoint(queries, "query");
  require_disjoint(keys, "key");
}

}  // namespace hdpsim::kernels
