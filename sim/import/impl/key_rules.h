#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/import/import_note.h"

namespace hdpsim {

/// What is known of a key of a format. A table of these is where each known key of the format is declared.
struct KeyRule {
  enum class Role : std::uint8_t {
    stated,      ///< The study states it, or the reader reports why not.
    unmodelled,  ///< It changes the time of a step or its memory, and a study has no key for it.
    idle,        ///< It changes neither.
  };
  std::string_view table = {};  ///< The map that holds it; empty: the file itself.
  std::string_view key = {};
  Role role = Role::idle;
  std::string_view follows = {};  ///< For what is not modelled: what the study has instead.
  LikelyEffect effect = {};       ///< For what is not modelled: how the run differs.
  std::string_view usual = {};    ///< For what is not modelled: the value that needs no note.
};

[[nodiscard]] constexpr KeyRule unmodelled_key(std::string_view table, std::string_view key, std::string_view follows,
                                               LikelyEffect effect, std::string_view usual = {}) {
  return {.table = table,
          .key = key,
          .role = KeyRule::Role::unmodelled,
          .follows = follows,
          .effect = effect,
          .usual = usual};
}

/// Keys of one table whose rules have nothing but a role.
struct PlainKeys {
  std::string_view table;
  std::string_view keys;  ///< With blanks between them.
};

/// The words of a list with blanks between them.
[[nodiscard]] std::vector<std::string_view> words_in(std::string_view list);

/// All rules: those of single keys first, then those that `stated` and `idle` list, in their order.
[[nodiscard]] std::vector<KeyRule> rules_of(std::span<const KeyRule> unmodelled, std::span<const PlainKeys> stated,
                                            std::span<const PlainKeys> idle);

/// The rules of a format by the paths of keys, as `fsdp_config.fsdp_version`. A rule whose key ends in `*` holds for
/// all keys that begin so, and for all below them; of several rules that of the longest key counts.
class RuleTable {
 public:
  RuleTable(std::span<const KeyRule> unmodelled, std::span<const PlainKeys> stated, std::span<const PlainKeys> idle)
      : rules_(rules_of(unmodelled, stated, idle)) {}

  /// Null if there is none.
  [[nodiscard]] const KeyRule* find(std::string_view path) const;
  [[nodiscard]] std::span<const KeyRule> rules() const { return rules_; }

 private:
  std::vector<KeyRule> rules_;
};

}  // namespace hdpsim
