#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/key_table.h"
#include "sim/plan/impl/pool_fit.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The options of a policy as stated.
class PolicyOptions {
 public:
  virtual ~PolicyOptions() = default;
  /// The policy's planner for a pool. Options that do not fit the pool are reported through `pool`; the result is then
  /// ignored.
  [[nodiscard]] virtual std::unique_ptr<Planner> planner(PoolFit& pool) const = 0;

 protected:
  PolicyOptions() = default;
  PolicyOptions(const PolicyOptions&) = default;
  PolicyOptions& operator=(const PolicyOptions&) = default;
};

/// A policy that studies can name.
struct PolicyKind {
  std::string name;
  std::string meaning;           ///< A sentence for the reference page.
  std::vector<KeyText> options;  ///< The declarations of its options.
  std::function<std::shared_ptr<const PolicyOptions>(const Value& stated, Diagnostics& diagnostics)> read;
};

/// Declares the policy whose options `keys` reads; `Options` is a PolicyOptions.
template <class Options>
[[nodiscard]] PolicyKind policy_kind(std::string name, std::string meaning, KeyTable<Options> keys) {
  const auto table = std::make_shared<const KeyTable<Options>>(std::move(keys));
  const auto read = [table](const Value& stated, Diagnostics& diagnostics) {
    auto options = std::make_shared<Options>();
    (void)table->read(stated, *options, diagnostics);
    return std::shared_ptr<const PolicyOptions>(std::move(options));
  };
  return {std::move(name), std::move(meaning), table->texts(), read};
}

}  // namespace hdpsim
