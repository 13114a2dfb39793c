#include "sim/study/without.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hdpsim {
namespace {

/// Turns mechanisms off, one after the other, in a study; what it writes stands at the option's place.
class Removal {
 public:
  Removal(Value& study, Position position) : study_(study), position_(std::move(position)) {}

  void turn_off(std::string_view mechanism) {
    if (mechanism == "offload") {
      set_option("hdp-naive", "offload", "none");
      set_option("hdp-balance", "offload", "none");
    } else if (mechanism == "balance") {
      set_option("hdp-balance", "balance", "none");
    } else if (mechanism == "dynamic-groups") {
      set_option("hdp-naive", "groups", "uniform");
      set_option("hdp-balance", "groups", "uniform");
    } else if (mechanism == "contention") {
      study_.set("grain", scalar("closed_form"));
    } else if (mechanism == "recompute") {
      set_in_mesh("recompute", "none");
    } else if (mechanism == "cold-connections") {
      set_in_mesh("connections", "warm");
    } else {
      remove(mechanism);  // a section of the same name
    }
  }

 private:
  [[nodiscard]] Value scalar(std::string_view text) const { return Value::scalar(std::string(text), position_); }

  // Of every plan of this policy.
  void set_option(std::string_view policy, std::string_view option, std::string_view value) {
    Value* plans = study_.find("plans");
    if (plans == nullptr) return;
    for (Value& entry : plans->items) {
      if (entry.is_scalar() && entry.text == policy) {
        Value with_options = Value::map(entry.position);
        with_options.set(policy, Value::map(entry.position));
        entry = std::move(with_options);
      }
      Value* options = entry.find(policy);
      if (options == nullptr) continue;
      if (options->is_null()) *options = Value::map(entry.position);
      if (options->is_map()) options->set(option, scalar(value));
    }
  }

  void set_in_mesh(std::string_view key, std::string_view value) {
    Value* mesh = study_.find("mesh");
    if (mesh == nullptr) mesh = &study_.set("mesh", Value::map(position_));
    if (mesh->is_null()) *mesh = Value::map(position_);
    if (mesh->is_map()) mesh->set(key, scalar(value));
  }

  // Also from the sweep, which would put it back.
  void remove(std::string_view section) {
    const auto belongs = [&](const Value::Entry& entry) {
      return entry.key == section || entry.key.starts_with(fmt::format("{}.", section));
    };
    std::erase_if(study_.entries, belongs);
    Value* sweep = study_.find("sweep");
    if (sweep != nullptr) std::erase_if(sweep->entries, belongs);
  }

  Value& study_;
  Position position_;
};

}  // namespace

const std::vector<Mechanism>& mechanisms() {
  static const std::vector<Mechanism> all = {
      {"offload", "plans.N.hdp-balance.offload=none, of every plan that offloads"},
      {"balance", "plans.N.hdp-balance.balance=none"},
      {"dynamic-groups", "plans.N.hdp-balance.groups=uniform, of every plan that sizes groups by length"},
      {"contention", "grain=closed_form"},
      {"noise", "noise=null"},
      {"faults", "faults=null"},
      {"failures", "failures=null"},
      {"loading", "loading=null"},
      {"overheads", "overheads=null"},
      {"background", "background=null"},
      {"recompute", "mesh.recompute=none"},
      {"cold-connections", "mesh.connections=warm"},
  };
  return all;
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  for (const Mechanism& each : mechanisms()) names.emplace_back(each.name);
  return names;
}

void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics) {
  const std::vector<std::string> known = mechanism_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Position position{without_source, static_cast<int>(i) + 1, 1};
    if (std::find(known.begin(), known.end(), names[i]) == known.end()) {
      diagnostics.error(position, fmt::format("there is no mechanism '{}'", names[i]), suggestion(names[i], known));
    } else {
      Removal(study, position).turn_off(names[i]);
    }
  }
  if (!names.empty()) diagnostics.add_source(without_source, fmt::format("{}\n", fmt::join(names, "\n")));
}

}  // namespace hdpsim
