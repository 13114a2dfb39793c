#include "sim/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/policy.h"

namespace hdpsim {
namespace {

const PolicyKind* kind_of(std::string_view name) {
  const auto found =
      std::find_if(policies().begin(), policies().end(), [&](const PolicyKind& k) { return k.name == name; });
  return found == policies().end() ? nullptr : &*found;
}

/// A policy's plans, converted to the waves of expert groups that span several ranks. Plans of files may be in waves
/// already.
class InExpertWaves final : public Planner {
 public:
  InExpertWaves(std::unique_ptr<Planner> policy, const PlanningContext& context)
      : policy_(std::move(policy)), ranks_(context.expert_ranks), padding_(context.expert_padding) {}

  [[nodiscard]] bool may_refuse() const override { return policy_->may_refuse(); }
  [[nodiscard]] BatchSourcePtr held_back(const BatchSource& data, std::int64_t steps) const override {
    return policy_->held_back(data, steps);
  }
  [[nodiscard]] HoldingRule holding(const BatchSource& data, std::int64_t steps) const override {
    return policy_->holding(data, steps);
  }
  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    Plan made = policy_->plan(batch, step);
    return made.expert_ranks == ranks_ ? made : in_expert_waves(std::move(made), ranks_, padding_);
  }

 private:
  std::unique_ptr<Planner> policy_;
  std::int64_t ranks_;
  std::int64_t padding_;
};

}  // namespace

const std::vector<std::pair<std::string, std::vector<KeyText>>>& policy_options() {
  static const auto all = [] {
    std::vector<std::pair<std::string, std::vector<KeyText>>> options;
    for (const PolicyKind& kind : policies()) options.emplace_back(kind.name, kind.options);
    return options;
  }();
  return all;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const PolicyKind& kind : policies()) all.push_back(kind.name);
    return all;
  }();
  return names;
}

std::string_view policy_meaning(std::string_view name) {
  const PolicyKind* kind = kind_of(name);
  return kind == nullptr ? std::string_view() : std::string_view(kind->meaning);
}

bool has_option(std::string_view policy, std::string_view option) {
  const PolicyKind* kind = kind_of(policy);
  return kind != nullptr && std::any_of(kind->options.begin(), kind->options.end(),
                                        [&](const KeyText& key) { return key.name == option; });
}

KeyShape plan_shape() {
  std::vector<KeyText> names;
  for (const PolicyKind& kind : policies()) {
    KeyShape shape = either_shape({shape_of(KeyShape::Kind::nothing), map_shape(kind.options)});
    names.push_back({kind.name, std::move(shape), "", kind.meaning, {}});
  }
  KeyShape with_options = map_shape(std::move(names));
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
  if (const PolicyKind* kind = kind_of(name)) {
    policy = Policy{name, kind->read(stated, found), {}};
    policy->stated = std::move(stated);
  } else {
    diagnostics.error(has_options ? entry.entries.front().position : entry.position,
                      fmt::format("there is no policy '{}'", name), suggestion(name, policy_names()));
  }
  diagnostics.append(found);
  return found.empty() ? policy : std::nullopt;
}

std::unique_ptr<Planner> make_planner(const Policy& policy, const PlanningContext& context, Diagnostics& diagnostics) {
  HDPSIM_CHECK(context.ranks >= 1 && context.ranks_per_node >= 1 && context.capacity >= 1 && context.context >= 1 &&
                   context.layers >= 1 && context.stages >= 1,
               "{} ranks, {} a node, capacity {}, context {}, {} layers, {} stages", context.ranks,
               context.ranks_per_node, context.capacity, context.context, context.layers, context.stages);
  Diagnostics found;
  PoolFit pool(policy.stated, context, found);
  std::unique_ptr<Planner> planner = policy.options->planner(pool);
  if (!found.empty()) planner.reset();
  diagnostics.append(found);
  if (planner != nullptr && context.expert_ranks > 1) {
    planner = std::make_unique<InExpertWaves>(std::move(planner), context);
  }
  return planner;
}

}  // namespace hdpsim
