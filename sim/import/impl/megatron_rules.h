#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/import_note.h"

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
    stated,      ///< The study states it.
    unmodelled,  ///< It changes the time of a step or its memory, and a study has no key for it.
    refused,     ///< It is of a model or of a program that the simulator does not know.
    idle,        ///< It changes neither.
  };
  std::string_view option;    ///< `disable-bias-linear`
  std::string_view key = {};  ///< `add_bias_linear`; empty: the option with underscores.
  Kind kind = Kind::value;
  Role role = Role::stated;
  std::string_view usual = {};    ///< For a value: the one that needs no note.
  std::string_view follows = {};  ///< For what is not modelled: what the study has instead.
  LikelyEffect effect = {};       ///< For what is not modelled: how the run differs.
};

/// The rule of an argument by its option or its key, with dashes or underscores; null if there is none.
[[nodiscard]] const ArgumentRule* rule_of(std::string_view name);
/// Whether an argument is of programs that generate text.
[[nodiscard]] bool is_of_inference(std::string_view name);
/// Every rule but those of idle arguments.
[[nodiscard]] std::vector<const ArgumentRule*> active_rules();
/// The key under which an argument is known: `add_bias_linear`.
[[nodiscard]] std::string key_of(const ArgumentRule& rule);
/// `name` with underscores, without leading dashes.
[[nodiscard]] std::string with_underscores(std::string_view name);

}  // namespace hdpsim
