#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/recipe.h"
#include "sim/model/sharing_form.h"
#include "sim/plan/given_plans.h"
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

/// What the page of keys says of `mesh.cp_comm_type`.
[[nodiscard]] std::string key_exchange_sentence();

/// The first way in which groups can share the layers of a model, if there is one.
[[nodiscard]] std::optional<KeyExchange> first_that_serves(const Transformer& model, const Recipe& recipe);

/// Every choice that the point's model allows, those of one exchange together, without exchanges that nobody tries
/// unasked (SharingForm::is_tried). The cut that an exchange is made for comes first.
[[nodiscard]] std::vector<SharingChoice> allowed_sharings(const PointSpec& point);

/// Whether a cut (empty: adaptive) goes with the way in which the point's ranks share a sequence, or with the one that
/// it asks for, and with its model's layers.
[[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const PointSpec& point);

/// Reports every plan of files, at its file, that has a group of several ranks whose cut does not.
void check_cuts(const GivenPlans& plans, const PointSpec& point, Diagnostics& diagnostics);

}  // namespace hdpsim
