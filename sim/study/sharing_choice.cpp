#include "sim/study/sharing_choice.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/study/cut_rules.h"

namespace hdpsim {
namespace {

template <class Choice>
std::string_view name_of(const std::vector<std::pair<std::string, Choice>>& words, const Choice& choice) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) { return word.second == choice; });
  HDPSIM_CHECK(found != words.end(), "choice {} of {} has no word", found - words.begin(), words.size());
  return found->first;
}

bool is_allowed(const SharingChoice& sharing, PointSpec point) {
  point.recipe.key_exchange = sharing.exchange;
  const bool gathers = sharing.exchange == KeyExchange::all_gather;
  return (gathers || !queries_choose_keys(point.model)) && !cut_problem(sharing.cut, point);
}

}  // namespace

const std::vector<std::pair<std::string, KeyExchange>>& key_exchange_words() {
  static const std::vector<std::pair<std::string, KeyExchange>> words = {{"p2p", KeyExchange::ring},
                                                                         {"all_gather", KeyExchange::all_gather},
                                                                         {"a2a", KeyExchange::all_to_all},
                                                                         {"group_cast", KeyExchange::group_cast}};
  return words;
}

std::string_view word_of(KeyExchange exchange) {
  return name_of(key_exchange_words(), exchange);
}

const std::vector<std::pair<std::string, std::optional<TokenCut>>>& cut_words() {
  static const auto words = [] {
    std::vector<std::pair<std::string, std::optional<TokenCut>>> all;
    for (const TokenCut cut : {TokenCut::per_document, TokenCut::per_pack, TokenCut::dispatch}) {
      all.emplace_back(token_cut_words().at(static_cast<std::size_t>(cut)), cut);
    }
    all.emplace_back("adaptive", std::nullopt);
    return all;
  }();
  return words;
}

std::string_view word_of(std::optional<TokenCut> cut) {
  return name_of(cut_words(), cut);
}

bool queries_choose_keys(const Transformer& model) {
  const auto chooses = [](const Layer& layer) { return layer.indexer.has_value(); };
  return chooses(model) || std::any_of(model.others.begin(), model.others.end(), chooses);
}

std::vector<SharingChoice> allowed_sharings(const PointSpec& point) {
  std::vector<SharingChoice> allowed;
  for (const auto& [name, exchange] : key_exchange_words()) {
    const std::ptrdiff_t first = std::ssize(allowed);
    for (const auto& [word, cut] : cut_words()) {
      if (is_allowed({exchange, cut}, point)) allowed.push_back({exchange, cut});
    }
    if (exchange != KeyExchange::group_cast) continue;
    const auto dealt = std::find(allowed.begin() + first, allowed.end(), SharingChoice{exchange, TokenCut::dispatch});
    if (dealt != allowed.end()) std::rotate(allowed.begin() + first, dealt, dealt + 1);
  }
  return allowed;
}

}  // namespace hdpsim
