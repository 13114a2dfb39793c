#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/document/document.h"
#include "sim/import/impl/config_keys.h"
#include "sim/import/impl/key_rules.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// A flavor of torchtitan (torchtitan/models/*/__init__.py), and the preset of the same shape.
struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
  std::int64_t layers;
  bool has_experts = false;
  std::string_view unlike = {};     ///< What of the preset is not of the flavor.
  LikelyEffect unlike_effect = {};  ///< What follows from that.
};

/// All flavors whose shape a preset has.
[[nodiscard]] std::span<const Flavor> flavors();
/// The flavor of a model, by names in which letters and digits count; null if no preset has its shape.
[[nodiscard]] const Flavor* flavor_named(std::string_view model, std::string_view flavor);

/// What a study calls a schedule of PyTorch's pipelines, by its name in any case; empty if it has none like it.
[[nodiscard]] std::string_view schedule_named(std::string name);

/// The rule of a key, or of its table as a whole; null if there is none. Keys of `parallelism` may be in the tables
/// of older releases, too.
[[nodiscard]] const KeyRule* toml_rule(std::string_view table, std::string_view key);
[[nodiscard]] std::span<const KeyRule> toml_rules();

/// The tables that have keys of `parallelism`, that of the latest release first.
[[nodiscard]] std::span<const std::string_view> homes_of_degrees();

/// The keys of a file of torchtitan. A table in a table (`quantize.linear.float8`) is known by its last name.
class TorchtitanKeys : public ConfigKeys {
 public:
  TorchtitanKeys(const Value& root, std::string file, Diagnostics& diagnostics);

  /// Null if the file does not state the key.
  [[nodiscard]] const Value* find(std::string_view table, std::string_view key) const;
  /// The same for a key of `parallelism`, which older releases had elsewhere.
  [[nodiscard]] const Value* find_degree(std::string_view key) const;
  [[nodiscard]] std::int64_t degree_of(std::string_view key) const;
};

/// Parses TOML: tables become maps, arrays lists, and all else scalars with their places. Reported are syntax errors,
/// and texts beyond the limits of sim/document. `file` is the name that positions carry.
[[nodiscard]] Value parse_toml(const std::string& file, const std::string& text, Diagnostics& diagnostics);

}  // namespace hdpsim
