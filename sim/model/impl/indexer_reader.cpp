#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {
namespace {

using namespace model_ranges;

// Which layers score keys, by a word or a letter a layer, or by a period. The others take the choice of the layer
// before them (IndexShare, arXiv 2603.12201).
std::vector<bool> scoring_layers(ConfigMap& config, std::int64_t layers) {
  static const std::vector<std::string> words = {"shared", "full"};
  Diagnostics& problems = config.map().diagnostics();
  std::vector<bool> scoring;
  std::string_view key = "indexer_types";
  const std::string letters = config.map().optional<std::string>("index_topk_pattern", "");
  if (!config.list(key).empty()) {
    for (const Value& word : config.list(key)) {
      scoring.push_back(read_choice(word, "kind of indexer", words, problems).value_or(1) == 1);
    }
  } else if (!letters.empty()) {
    key = "index_topk_pattern";
    for (const char letter : letters) scoring.push_back(letter == 'F');
    if (letters.find_first_not_of("FS") != std::string::npos) {
      config.error_at(key, fmt::format("'{}' has letters that are neither F nor S", key),
                      "known are F (full) and S (shared)");
    }
  } else {
    key = "index_skip_topk_offset";
    const std::int64_t period = config.number_or("index_topk_freq", model_ranges::layers, 1);
    const std::int64_t offset = config.number_or("index_skip_topk_offset", {0, model_ranges::layers.most}, 2);
    for (std::int64_t i = 0; i < layers; ++i)
      scoring.push_back(std::max<std::int64_t>(i - offset + 1, 0) % period == 0);
  }
  has_enough(config, key, scoring.size(), layers);
  scoring.resize(static_cast<std::size_t>(layers), true);
  if (!scoring.empty() && !scoring.front()) {
    config.error_at(key, "the first layer takes the choice of keys of a layer before it",
                    key == "index_skip_topk_offset" ? "let it be 1 at least" : "let it be 'full'");
  }
  return scoring;
}

}  // namespace

std::vector<KeyIndexer> read_indexers(ConfigMap& config, std::int64_t count) {
  const std::int64_t keys = config.whole("index_topk", positions);
  if (keys == 0) return {};
  const std::vector<bool> scoring = scoring_layers(config, count);
  const bool is_shared = std::find(scoring.begin(), scoring.end(), false) != scoring.end();
  const KeyIndexer own{.heads = config.number({"index_n_heads"}, heads),
                       .head_dim = config.number({"index_head_dim"}, heads),
                       .keys = keys,
                       .is_shared = is_shared};
  std::vector<KeyIndexer> indexers;
  indexers.reserve(scoring.size());
  for (const bool scores : scoring) indexers.push_back(scores ? own : KeyIndexer{.keys = keys});
  return indexers;
}

}  // namespace hdpsim
