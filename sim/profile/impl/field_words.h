#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/reader.h"
#include "sim/profile/measured_samples.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {

inline constexpr Range positive_range{1, 1e12};
inline constexpr Range not_negative{0, 1e12};
inline constexpr Range above_zero{1e-9, 1e12};
inline constexpr Range tile_side{1, 65536};

/// The sides of a tile of a kernel, by name.
using TileSides = std::pair<const char*, const char*>;

/// A list in a file: what its items are called in messages, each and all of them.
struct ListText {
  const char* item;  ///< "an attention curve"
  const char* of;    ///< "curve"
  bool required = false;
};

/// The words of a choice in a file, and what each stands for.
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

/// The words of an enumeration whose values are 0, 1, ...
template <class Value, class Name>
Words<Value> words_of(std::size_t count, Name name) {
  Words<Value> words;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<Value>(i);
    words.emplace_back(name(value), value);
  }
  return words;
}

inline Words<bool> mask_words() {
  return {{"full", false}, {"causal", true}};
}
inline Words<bool> direction_words() {
  return {{"forward", false}, {"backward", true}};
}
inline Words<MemoryKernel> memory_kernel_words() {
  return words_of<MemoryKernel>(memory_kernels, memory_kernel_name);
}
inline Words<CopyKind> copy_words() {
  return words_of<CopyKind>(copy_kind_count, copy_kind_name);
}
inline Words<MessageKind> message_words() {
  return words_of<MessageKind>(message_kind_count, message_kind_name);
}
inline Words<LinkKind> link_words() {
  return words_of<LinkKind>(2, link_kind_name);
}
inline Words<ProfileLabel> label_words() {
  return words_of<ProfileLabel>(profile_labels, profile_label_name);
}

}  // namespace hdpsim
