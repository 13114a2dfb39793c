#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/import/impl/likely_effect.h"

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

/// What is known of a key. This table is where each known key is declared.
struct TomlRule {
  enum class Role : std::uint8_t {
    said,    ///< The study says it, or the reader tells why not.
    unsaid,  ///< It touches the time of a step or its memory, and a study cannot say it.
    idle,    ///< It touches neither.
  };
  std::string_view table;
  std::string_view key;  ///< Empty: all keys of the table that have no rule of their own.
  Role role = Role::idle;
  std::string_view follows = {};  ///< For what is unsaid: what the study has instead.
  LikelyEffect effect = {};       ///< For what is unsaid: how the run differs.
  std::string_view usual = {};    ///< For what is unsaid: the value that needs no telling.
};

/// The rule of a key, or of its table as a whole; null if there is none. Keys of `parallelism` may stand in the tables
/// of older releases, too.
[[nodiscard]] const TomlRule* toml_rule(std::string_view table, std::string_view key);
[[nodiscard]] std::span<const TomlRule> toml_rules();

/// The tables in which keys of `parallelism` stand, that of the latest release first.
[[nodiscard]] std::span<const std::string_view> homes_of_degrees();

}  // namespace hdpsim
