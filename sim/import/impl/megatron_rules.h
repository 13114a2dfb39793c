#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hdpsim {

/// What is known of an argument of Megatron-LM (megatron/training/arguments.py).
struct ArgumentRule {
  enum class Kind : std::uint8_t {
    value,      ///< Has one value, or several.
    turns_on,   ///< A switch whose key in a checkpoint's `args` is then true.
    turns_off,  ///< A switch whose key is then false.
    launcher,   ///< Of torchrun; it has a value.
  };
  enum class Role : std::uint8_t {
    said,     ///< The study says it.
    unsaid,   ///< It touches the time of a step or its memory, and a study cannot say it.
    refused,  ///< It is of a model that the simulator does not know.
    idle,     ///< It does not touch the time of a step.
  };
  std::string_view option;    ///< `disable-bias-linear`
  std::string_view key = {};  ///< `add_bias_linear`; empty: the option with underscores.
  Kind kind = Kind::value;
  Role role = Role::said;
  std::string_view usual = {};    ///< For a value: what needs no telling.
  std::string_view follows = {};  ///< For what is unsaid: what the study has instead.
};

/// The rule of an argument by its option or its key, with dashes or underscores; null if there is none.
[[nodiscard]] const ArgumentRule* rule_of(std::string_view name);
/// The key under which an argument is known: `add_bias_linear`.
[[nodiscard]] std::string key_of(const ArgumentRule& rule);
/// `name` with underscores, without leading dashes.
[[nodiscard]] std::string with_underscores(std::string_view name);

}  // namespace hdpsim
