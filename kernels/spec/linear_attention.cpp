#include "kernels/spec/linear_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

bool has_kernel(std::int64_t dim) {
  return dim >= 32 && dim <= 256 && dim % 32 == 0;
}

}  // namespace

std::int64_t linear_chunks(std::span<const Document> documents) {
  std::int64_t chunks = 0;
  for (const Document& document : documents) chunks += (document.tokens + linear_chunk - 1) / linear_chunk;
  return chunks;
}

void require_valid(const LinearHeads& heads, std::span<const Document> documents) {
  if (!has_kernel(heads.key_dim) || !has_kernel(heads.value_dim)) {
    throw UnsupportedInput(
        fmt::format("linear attention: states of {} x {} are not supported; multiples of 32 up to 256 are",
                    heads.key_dim, heads.value_dim));
  }
  if (heads.heads < 1 || heads.key_heads < 1 || heads.heads % heads.key_heads != 0) {
    throw UnsupportedInput(
        fmt::format("linear attention: {} heads of keys do not divide {} heads", heads.key_heads, heads.heads));
  }
  std::vector<Document> sorted(documents.begin(), documents.end());
  std::erase_if(sorted, [](const Document& document) { return document.tokens == 0; });
  std::sort(sorted.begin(), sorted.end(), [](const Document& a, const Document& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i].begin < 0 || sorted[i].tokens < 0) {
      throw UnsupportedInput("linear attention: a document begins or extends below zero");
    }
    if (i > 0 && sorted[i].begin < sorted[i - 1].begin + sorted[i - 1].tokens) {
      throw UnsupportedInput(fmt::format("linear attention: two documents share row {}", sorted[i].begin));
    }
  }
}

}  // namespace hdpsim::kernels
