#include "sim/plan/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

std::string_view written(const Value& value) {
  return value.is_scalar() ? std::string_view(value.text) : kind_name(value.kind);
}

void read_cp(const Value& value, StaticPolicy& policy, Diagnostics& diagnostics) {
  if (value.text == "auto") return;
  policy.cp = parse_count(value.text).value;
  if (value.is_scalar() && policy.cp.value_or(0) >= 1) return;
  diagnostics.error(value.position, fmt::format("'cp' is {}, it must be auto or a number of ranks", written(value)),
                    "write cp: auto, or cp: 8");
}

OffloadRule offload_of(const Value& value, Diagnostics& diagnostics) {
  using Mode = OffloadRule::Mode;
  if (value.text == "none") return {};
  if (value.text == "auto") return {Mode::automatic, 0};
  if (value.text == "token-wise") return {Mode::token_wise, 0};
  Diagnostics not_a_number;
  const double ratio = read<double>(value, not_a_number).value_or(-1);
  if (ratio >= 0 && ratio <= 1) return {ratio > 0 ? Mode::fixed : Mode::none, ratio};
  diagnostics.error(
      value.position,
      fmt::format("'offload' is {}, it must be none, auto, token-wise or a ratio from 0 to 1", written(value)),
      "write none, auto, token-wise or a ratio such as 0.5");
  return {};
}

template <class Options>
void add_order(KeyTable<Options>& keys) {
  keys.word("order", "order", {{"data", DealOrder::data}, {"descending", DealOrder::descending}}, at(&Options::order),
            "micro-batches are dealt out as their first sequences stand in the data, or longest first");
}

template <class Options>
void add_offload(KeyTable<Options>& keys) {
  KeyShape ratio = shape_of(KeyShape::Kind::number);
  ratio.range = Range{0, 1};
  ratio.limits = range_text(*ratio.range);
  keys.add(
      {"offload",
       either_shape({word_shape({"none", "auto", "token-wise"}), ratio}),
       "none",
       "the share of activations that goes to the host; `auto`: what pays; `token-wise`: MEMO's split between host "
       "memory and recomputation",
       {.mechanism = "offload", .off = "none"}},
      [](const Value& value, Options& policy, Diagnostics& diagnostics) {
        policy.offload = offload_of(value, diagnostics);
      });
}

template <class Options>
void add_groups(KeyTable<Options>& keys) {
  keys.word("groups", "way to make groups", {{"by_length", GroupSizes::by_length}, {"uniform", GroupSizes::uniform}},
            at(&Options::groups),
            "each sequence gets the ranks that its length asks for, or those of the longest one, as in the static mesh",
            {.mechanism = "dynamic-groups", .off = "uniform"});
}

const KeyTable<StaticPolicy>& static_keys() {
  static const auto made = [] {
    KeyTable<StaticPolicy> keys("static");
    keys.add({"cp",
              either_shape({word_shape({"auto"}), shape_of(KeyShape::Kind::count)}),
              "auto",
              "the degree of context parallelism: ranks that share each sequence; `auto`: the least that holds the "
              "context",
              {}},
             read_cp);
    add_order(keys);
    return keys;
  }();
  return made;
}

const KeyTable<NaivePolicy>& naive_keys() {
  static const auto made = [] {
    KeyTable<NaivePolicy> keys("hdp-naive");
    add_order(keys);
    add_offload(keys);
    add_groups(keys);
    return keys;
  }();
  return made;
}

const KeyTable<BalancePolicy>& balance_keys() {
  static const auto made = [] {
    KeyTable<BalancePolicy> keys("hdp-balance");
    keys.count("buckets", {1, 1e6}, at(&BalancePolicy::buckets),
               "buckets of equal work into which sequences are sorted", {.unit = "buckets"});
    keys.number("delta", {1e-4, 1}, at(&BalancePolicy::delta),
                "the share of the balanced step by which loads must differ to count as different");
    add_offload(keys);
    keys.word("balance", "balance",
              {{"auto", BalanceRule::automatic},
               {"dp", BalanceRule::dp},
               {"pp", BalanceRule::pp},
               {"none", BalanceRule::none}},
              at(&BalancePolicy::balance),
              "DP-Balance, PP-Balance, or hdp-naive with the same offload (`none`); `auto`: `pp` for pipelines of more "
              "than one stage and for expert groups over several ranks",
              {.mechanism = "balance", .off = "none"});
    keys.word("placement", "placement", {{"node-first", true}, {"any", false}}, at(&BalancePolicy::node_first),
              "which ranks a group gets: whole nodes first, or the lowest");
    keys.flag("pack_groups", at(&BalancePolicy::pack_groups), "short sequences may join rings");
    keys.flag("widen", at(&BalancePolicy::widen),
              "a ring that would end late may take more ranks than its length asks for");
    keys.flag("fallback", at(&BalancePolicy::fallback),
              "the plan of hdp-naive or static is taken where it is shorter by more than the margin");
    keys.number("margin", {0, 1}, at(&BalancePolicy::margin),
                "the share by which the times of two plans must differ to count as different: the work model knows no "
                "better");
    keys.number("spread", {0, 1}, at(&BalancePolicy::spread),
                "of plans that take equally long, those are preferred whose ranks end within this share of the step of "
                "each other: what the work model misses then delays few ranks");
    add_groups(keys);
    return keys;
  }();
  return made;
}

template <class Options>
Policy read_options(const KeyTable<Options>& keys, const std::string& name, Value stated, Diagnostics& diagnostics) {
  Options options;
  (void)keys.read(stated, options, diagnostics);
  return {name, options, std::move(stated)};
}

}  // namespace

const std::vector<std::pair<std::string, std::vector<KeyText>>>& policy_options() {
  static const std::vector<std::pair<std::string, std::vector<KeyText>>> all = {
      {"static", static_keys().texts()}, {"hdp-naive", naive_keys().texts()}, {"hdp-balance", balance_keys().texts()}};
  return all;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, options] : policy_options()) all.push_back(name);
    return all;
  }();
  return names;
}

bool has_option(std::string_view policy, std::string_view option) {
  for (const auto& [name, options] : policy_options()) {
    const auto is_it = [&](const KeyText& key) { return key.name == option; };
    if (name == policy) return std::any_of(options.begin(), options.end(), is_it);
  }
  return false;
}

KeyShape plan_shape() {
  const std::array meanings = {"the static mesh: groups of `cp` consecutive ranks for the whole run",
                               "ByteScale, Algorithm 1: each sequence has the ranks that its length asks for",
                               "ByteScale, Algorithm 2: the same with loads evened out"};
  std::vector<KeyText> policies;
  for (const auto& [name, options] : policy_options()) {
    KeyShape shape = either_shape({shape_of(KeyShape::Kind::nothing), map_shape(options)});
    policies.push_back({name, std::move(shape), "", meanings.at(policies.size()), {}});
  }
  KeyShape with_options = map_shape(std::move(policies));
  with_options.single = true;
  return defined("plan", either_shape({word_shape(policy_names()), std::move(with_options)}));
}

std::optional<Policy> read_policy(const Value& entry, Diagnostics& diagnostics) {
  const bool has_options = entry.is_map() && entry.entries.size() == 1;
  if (!has_options && !entry.is_scalar()) {
    diagnostics.error(entry.position, "a plan is the name of a policy, or one name with its options",
                      "write hdp-naive, or static: {cp: 8}");
    return std::nullopt;
  }
  const std::string& name = has_options ? entry.entries.front().key : entry.text;
  const Value& written_options = has_options ? entry.entries.front().value : entry;
  const bool is_empty = !has_options || written_options.is_null();
  Value stated = is_empty ? Value::map(written_options.position) : written_options;
  Diagnostics found;
  std::optional<Policy> policy;
  if (name == "static") policy = read_options(static_keys(), name, std::move(stated), found);
  if (name == "hdp-naive") policy = read_options(naive_keys(), name, std::move(stated), found);
  if (name == "hdp-balance") policy = read_options(balance_keys(), name, std::move(stated), found);
  if (!policy) {
    diagnostics.error(has_options ? entry.entries.front().position : entry.position,
                      fmt::format("there is no policy '{}'", name), suggestion(name, policy_names()));
  }
  diagnostics.append(found);
  return found.empty() ? policy : std::nullopt;
}

}  // namespace hdpsim
