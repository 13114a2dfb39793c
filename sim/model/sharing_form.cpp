#include "sim/model/sharing_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/impl/sharing_forms.h"
#include "sim/model/mixing.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

constexpr std::int64_t ring_neighbours = 2;

template <class Is>
bool has_layer(const Transformer& model, Is is) {
  return is(static_cast<const Layer&>(model)) || std::any_of(model.others.begin(), model.others.end(), is);
}

}  // namespace

std::string SharingForm::problem(const Transformer& model, const Recipe& /*recipe*/) const {
  if (!has_layer(model, [](const Layer& layer) { return layer.indexer.has_value(); })) return "";
  return fmt::format("queries of {} choose among the keys of all ranks of a group, which must have gathered them",
                     model.name);
}

std::optional<CutProblem> SharingForm::cut_problem(std::optional<TokenCut> cut, const Transformer& model,
                                                   const Recipe& /*recipe*/) const {
  if (cut == TokenCut::per_document) return std::nullopt;
  if (!cut) {
    return CutProblem{"the adaptive cut is known with all keys gathered alone", "write cp_comm_type: all_gather"};
  }
  if (!has_layers_of_few_keys(model)) return std::nullopt;
  return CutProblem{
      fmt::format("{} has layers that do not see all tokens before, which are cut per document alone", model.name),
      "write cp_cut: per_document"};
}

std::string SharingForm::megatron_problem(std::int64_t, const Recipe&, std::int64_t) const {
  return "";
}

GroupSharing SharingForm::over(std::int64_t ranks, std::int64_t, const Recipe&) const {
  return {.parties = ranks};
}

std::int64_t SharingForm::hops(const GroupSharing& sharing) const {
  return sharing.parties > 1 ? sharing.ranks() : 0;
}

ExchangeCost SharingForm::cost(const GroupSharing&) const {
  return ExchangeCost::per_step;
}

std::int64_t SharingForm::probed_ranks(std::int64_t, const Recipe&, std::int64_t pool) const {
  return std::min<std::int64_t>(3, pool);
}

RingTensors SharingForm::passing(const Transformer& model, const Recipe& recipe, std::int64_t tokens,
                                 std::int64_t devices) const {
  const Bytes kv = kv_bytes(model, tokens, devices);
  return {kv, kv * recipe.dkv_bytes_per_element / model.element_bytes};
}

bool SharingForm::keeps_traded(const GroupSharing&) const {
  return false;
}

std::int64_t SharingForm::fullest_group(const GroupSharing& pool, std::int64_t, std::int64_t) const {
  return std::min(pool.ranks(), ring_neighbours);
}

const SharingForm& sharing_form(KeyExchange exchange) {
  return find_sharing_form(exchange);
}

const std::vector<KeyExchange>& all_key_exchanges() {
  static const std::vector<KeyExchange> all = [] {
    std::vector<KeyExchange> each;
    for (std::size_t i = 0; i < key_exchanges; ++i) each.push_back(static_cast<KeyExchange>(i));
    return each;
  }();
  return all;
}

std::optional<KeyExchange> exchange_of(std::optional<TokenCut> cut) {
  return cut == TokenCut::served ? std::optional(KeyExchange::servers) : std::nullopt;
}

bool passes_all(KeyExchange exchange) {
  return exchange == KeyExchange::ring || exchange == KeyExchange::query_ring || exchange == KeyExchange::all_gather ||
         exchange == KeyExchange::all_to_all;
}

bool has_layers_of_few_keys(const Transformer& model) {
  return has_layer(model, [](const Layer& layer) { return layer.linear || most_keys(layer) > 0; });
}

}  // namespace hdpsim
