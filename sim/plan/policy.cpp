#include "sim/plan/policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

const PolicyKind* kind_of(std::string_view name) {
  const auto found =
      std::find_if(policies().begin(), policies().end(), [&](const PolicyKind& k) { return k.name == name; });
  return found == policies().end() ? nullptr : &*found;
}

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

}  // namespace hdpsim
