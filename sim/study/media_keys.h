#pragma once

#include "sim/document/key_table.h"
#include "sim/trace/media_lengths.h"

namespace hdpsim {

/// The keys of the media that a sample has beside its text (data.lengths.media):
///   images: {encoder: qwen2.5-vl, pixels: {from: 256Ki, to: 4Mi}, aspect: {from: 0.5, to: 2}, count: 1, share: 1,
///            max_tokens: 16384}
///   video: {encoder: qwen2.5-vl, pixels: ..., aspect: ..., duration: {from: 5 s, to: 2 min}, count: 1, share: 1,
///           max_tokens: 24Ki}
///   audio: {encoder: qwen2-audio, duration: {from: 1 s, to: 30 s}, count: 1, share: 1}
[[nodiscard]] const KeyTable<Media>& media_table();

}  // namespace hdpsim
