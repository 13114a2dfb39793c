#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// How the run of a training configuration likely differs from the study, which does not model all of it.
struct LikelyEffect {
  enum class Than : std::uint8_t { the_same, less, more, unclear };
  Than time = Than::the_same;
  Than memory = Than::the_same;

  [[nodiscard]] constexpr bool is_any() const { return time != Than::the_same || memory != Than::the_same; }
};

/// The effects that tables name.
namespace effects {

using Than = LikelyEffect::Than;

inline constexpr LikelyEffect faster{.time = Than::less};
inline constexpr LikelyEffect slower{.time = Than::more};
inline constexpr LikelyEffect smaller{.memory = Than::less};
inline constexpr LikelyEffect larger{.memory = Than::more};
inline constexpr LikelyEffect faster_and_smaller{.time = Than::less, .memory = Than::less};
inline constexpr LikelyEffect faster_but_larger{.time = Than::less, .memory = Than::more};
inline constexpr LikelyEffect slower_but_smaller{.time = Than::more, .memory = Than::less};
inline constexpr LikelyEffect slower_and_larger{.time = Than::more, .memory = Than::more};
inline constexpr LikelyEffect other_time{.time = Than::unclear};
inline constexpr LikelyEffect other_memory{.memory = Than::unclear};
inline constexpr LikelyEffect other_both{.time = Than::unclear, .memory = Than::unclear};

}  // namespace effects

/// "the run likely takes longer and needs less memory"; empty if there is no difference.
[[nodiscard]] std::string text_of(const LikelyEffect& effect);

/// What the study does not model, what it has instead, and how the run differs, as one line.
[[nodiscard]] std::string difference_text(std::string_view what, std::string_view follows, const LikelyEffect& effect);

/// What the name of an unknown key says about it.
struct NameHint {
  std::string_view follows;
  LikelyEffect effect;
};

/// The hint of the words of a name (`loss_chunk_size`), in any spelling; null if no word is known.
[[nodiscard]] const NameHint* hint_of_name(std::string_view name);

/// Something that a user has to know of a training configuration that became a study.
struct ImportNote {
  /// In the order in which notes are listed.
  enum class Kind : std::uint8_t {
    unmodelled,  ///< The simulator knows the argument and does not model it.
    unknown,     ///< Nobody knows the argument here.
    repeated,    ///< An argument with two values, of which the last counts.
    assumed,     ///< What the file does not say.
    ignored,     ///< The argument touches neither the time of a step nor its memory; `text` is its name.
  };
  Kind kind = Kind::assumed;
  Position position;  ///< Line 0: the note has no place in the file.
  std::string text;   ///< What it is, and what follows.
};

using ImportNotes = std::vector<ImportNote>;

/// The notes for people, kind by kind, each with `file:line:column`; ignored arguments together. Ends with a newline
/// unless there are none.
[[nodiscard]] std::string text_of(const ImportNotes& notes);

/// The letters and digits of a name, in small letters: `lm-head`, `lm_head` and `LMHead` are one name.
[[nodiscard]] inline std::string plain_letters(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

}  // namespace hdpsim
