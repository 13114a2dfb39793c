#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hdpsim {

/// How the run of a training configuration likely differs from the study, which leaves something of it out.
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

/// What is left out, what the study has in its place, and what follows for the run, as one line.
[[nodiscard]] std::string left_out_text(std::string_view what, std::string_view follows, const LikelyEffect& effect);

/// What the name of a key that nobody knows tells of it.
struct NameHint {
  std::string_view follows;
  LikelyEffect effect;
};

/// The hint of the words of a name (`loss_chunk_size`), in any spelling; null if they tell nothing.
[[nodiscard]] const NameHint* hint_of_name(std::string_view name);

}  // namespace hdpsim
