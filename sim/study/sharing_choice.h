#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/recipe.h"
#include "sim/plan/plan.h"
#include "sim/study/point.h"

namespace hdpsim {

/// How the ranks of a group share a sequence: by which messages, and which tokens each of them holds.
struct SharingChoice {
  KeyExchange exchange = KeyExchange::ring;
  std::optional<TokenCut> cut = TokenCut::per_document;  ///< Empty: adaptive.
  friend bool operator==(const SharingChoice&, const SharingChoice&) = default;
};

/// The words of `mesh.cp_comm_type`.
[[nodiscard]] const std::vector<std::pair<std::string, KeyExchange>>& key_exchange_words();
[[nodiscard]] std::string_view word_of(KeyExchange exchange);
/// The words of `mesh.cp_cut`; empty: adaptive.
[[nodiscard]] const std::vector<std::pair<std::string, std::optional<TokenCut>>>& cut_words();
[[nodiscard]] std::string_view word_of(std::optional<TokenCut> cut);

/// Whether queries of a model choose among keys, which all ranks of a group must then have gathered.
[[nodiscard]] bool queries_choose_keys(const Transformer& model);

/// Every choice that the point's model allows, those of one exchange together. The cut that an exchange is made for
/// comes first: chunks for `group_cast`, else parts of documents.
[[nodiscard]] std::vector<SharingChoice> allowed_sharings(const PointSpec& point);

}  // namespace hdpsim
