#include "sim/import/impl/likely_effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/impl/plain_letters.h"

namespace hdpsim {
namespace {

using Than = LikelyEffect::Than;

std::string_view time_text(Than than) {
  if (than == Than::less) return "takes less time";
  return than == Than::more ? "takes longer" : "takes another time";
}

std::string_view memory_text(Than than) {
  if (than == Than::less) return "needs less memory";
  return than == Than::more ? "needs more memory" : "needs other memory";
}

/// Names with both parts, of which the second may be empty, have the hint.
struct NamePattern {
  std::string_view part;
  std::string_view other_part;
  NameHint hint;
};

constexpr NameHint loss_in_pieces{"the loss is computed on all logits at once", effects::smaller};
constexpr NameHint on_the_host{"nothing lies on the host but what a plan offloads", effects::slower_but_smaller};
constexpr NameHint frozen{"all parameters are trained", effects::faster_and_smaller};
constexpr NameHint of_modalities{"the model has no encoder of pictures or sounds", effects::slower_and_larger};

constexpr auto patterns = std::to_array<NamePattern>({
    {"entropy", "chunk", loss_in_pieces},
    {"loss", "chunk", loss_in_pieces},
    {"logit", "chunk", loss_in_pieces},
    {"lmhead", "chunk", loss_in_pieces},
    {"fused", "lmhead", loss_in_pieces},
    {"fused", "entropy", loss_in_pieces},
    {"linear", "entropy", loss_in_pieces},
    {"liger", "", {"kernels and the loss are those of the framework", effects::faster_and_smaller}},
    {"offload", "", on_the_host},
    {"lora", "", frozen},
    {"peft", "", frozen},
    {"freeze", "", frozen},
    {"frozen", "", frozen},
    {"vision", "", of_modalities},
    {"image", "", of_modalities},
    {"audio", "", of_modalities},
    {"video", "", of_modalities},
    {"recompute", "", {"what is computed again is what the other keys say", effects::other_both}},
    {"checkpointing", "", {"what is computed again is what the other keys say", effects::other_both}},
    {"quantiz", "", {"products have the format that the other keys say", effects::other_both}},
    {"fp8", "", {"products have the format that the other keys say", effects::other_both}},
    {"fp4", "", {"products have the format that the other keys say", effects::other_both}},
});

}  // namespace

std::string text_of(const LikelyEffect& effect) {
  if (!effect.is_any()) return {};
  std::string text = "the run likely ";
  if (effect.time != Than::the_same) text += time_text(effect.time);
  if (effect.memory == Than::the_same) return text;
  if (effect.time != Than::the_same) text += " and ";
  return text + std::string(memory_text(effect.memory));
}

std::string left_out_text(std::string_view what, std::string_view follows, const LikelyEffect& effect) {
  std::string text = fmt::format("{}: {}", what, follows);
  return effect.is_any() ? fmt::format("{}; {}", text, text_of(effect)) : text;
}

const NameHint* hint_of_name(std::string_view name) {
  const std::string letters = plain_letters(name);
  const auto found = std::find_if(patterns.begin(), patterns.end(), [&](const NamePattern& pattern) {
    return letters.find(pattern.part) != std::string::npos && letters.find(pattern.other_part) != std::string::npos;
  });
  return found == patterns.end() ? nullptr : &found->hint;
}

}  // namespace hdpsim
