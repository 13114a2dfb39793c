#include "sim/import/import_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/printable.h"

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

using NoteKind = ImportNote::Kind;

constexpr std::size_t widest_line = 110;

constexpr std::array<std::pair<NoteKind, std::string_view>, 4> headings = {
    {{NoteKind::unmodelled, "not modelled, and what that likely means for the run:"},
     {NoteKind::unknown, "not known, and ignored:"},
     {NoteKind::repeated, "stated more than once, and the last one counts:"},
     {NoteKind::assumed, "assumed:"}}};

std::string place(const Position& position) {
  return position.line == 0 ? "" : fmt::format("{}:{}:{}: ", position.file, position.line, position.column);
}

// Names one after the other, in lines that are not too long.
std::string folded(const std::set<std::string>& names) {
  std::string text;
  std::string line = " ";
  for (const std::string& name : names) {
    if (line.size() + name.size() + 2 > widest_line) text += std::exchange(line, " ") + '\n';
    line += ' ' + name;
  }
  return text + line + '\n';
}

}  // namespace

std::string text_of(const LikelyEffect& effect) {
  if (!effect.is_any()) return {};
  std::string text = "the run likely ";
  if (effect.time != Than::the_same) text += time_text(effect.time);
  if (effect.memory == Than::the_same) return text;
  if (effect.time != Than::the_same) text += " and ";
  return text + std::string(memory_text(effect.memory));
}

std::string difference_text(std::string_view what, std::string_view follows, const LikelyEffect& effect) {
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

std::string text_of(const ImportNotes& notes) {
  std::string text;
  for (const auto& [kind, heading] : headings) {
    std::string lines;
    for (const ImportNote& note : notes) {
      if (note.kind == kind) lines += fmt::format("  {}{}\n", place(note.position), printable(note.text));
    }
    if (!lines.empty()) text += fmt::format("{}\n{}", heading, lines);
  }
  std::set<std::string> ignored;
  for (const ImportNote& note : notes) {
    if (note.kind == NoteKind::ignored) ignored.insert(printable(note.text));
  }
  if (!ignored.empty()) text += "without effect on the time and the memory of a step:\n" + folded(ignored);
  return text;
}

}  // namespace hdpsim
