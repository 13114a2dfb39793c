#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hdpsim {

/// A flavor of torchtitan (torchtitan/models/*/__init__.py), and the preset of the same shape.
struct Flavor {
  std::string_view model;
  std::string_view flavor;
  std::string_view preset;
  std::int64_t layers;
  bool has_experts = false;
  std::string_view unlike = {};  ///< What of the preset is not of the flavor.
};

/// All flavors whose shape a preset has.
[[nodiscard]] std::span<const Flavor> flavors();

/// What a study calls a schedule of PyTorch's pipelines, by its name in any case; empty if it has none like it.
[[nodiscard]] std::string_view schedule_named(std::string name);

/// A key, by its table, and what is known of it. An empty key stands for all of a table.
struct TomlRule {
  std::string_view table;
  std::string_view key;
  std::string_view follows = {};  ///< What the study has instead; empty: the key does not touch the time of a step.
  std::string_view usual = {};    ///< The value that needs no telling.
};

/// The rule of a key, or of its table as a whole; null if there is none.
[[nodiscard]] const TomlRule* toml_rule(std::string_view table, std::string_view key);

}  // namespace hdpsim
