#pragma once

#include <cstdint>

namespace hdpsim {

// How many tokens of the language model an image, a video or a clip of audio becomes, by the documented rules of the
// encoders. The tokens that mark where a medium begins and ends count as text. Pure functions.

/// An image or the frame of a video, in pixels; both sides are at least 1.
struct PixelSize {
  std::int64_t width = 1;
  std::int64_t height = 1;
};

/// The limits between which images of Qwen2-VL and Qwen2.5-VL are scaled: 4 and 16,384 tokens of 28 x 28 pixels.
inline constexpr std::int64_t qwen_vl_least_tokens = 4;
inline constexpr std::int64_t qwen_vl_most_tokens = 16'384;
/// The most tokens of a video of Qwen2.5-VL, in the older of its two utilities (the newer one: 115,200).
inline constexpr std::int64_t qwen_vl_most_video_tokens = 24'576;

/// Qwen2-VL, Qwen2.5-VL: (H / 28) (W / 28) of sides rounded to multiples of 28, after scaling to at least 4 and at most
/// `most` (>= 4, checked) tokens (smart_resize() of qwen_vl_utils).
[[nodiscard]] std::int64_t qwen_vl_image_tokens(const PixelSize& size, std::int64_t most = qwen_vl_most_tokens);

/// Qwen2.5-VL: pairs of frames, taken at 2 a second (an even number from 4 to 768), times (H / 28) (W / 28) of a frame,
/// which is scaled to 128 to 768 tokens and to a share of `most` (>= 4, checked) for all pairs, but not below 1.05 x
/// 128 tokens (fetch_video() of qwen_vl_utils).
[[nodiscard]] std::int64_t qwen_vl_video_tokens(const PixelSize& frame, double seconds,
                                                std::int64_t most = qwen_vl_most_video_tokens);

/// The tokens of a crop of 384 x 384 pixels in LLaVA-OneVision, and the most of an image: nine crops and the whole.
inline constexpr std::int64_t llava_onevision_crop_tokens = 729;
inline constexpr std::int64_t llava_onevision_most_tokens = 10 * llava_onevision_crop_tokens;

/// LLaVA-OneVision: (a b + 1) T, of a x b crops of T = 729 tokens and of the whole image, from 1 x 1 to 6 x 6. That
/// grid is taken which keeps most pixels of the image, and of several the one with the least area beyond them. Where
/// the sum passes `most` (>= 37, checked), T is most / (a b + 1).
[[nodiscard]] std::int64_t llava_onevision_image_tokens(const PixelSize& size,
                                                        std::int64_t most = llava_onevision_most_tokens);

/// The positions of Whisper's encoder: 1,500 for every 30 s that a clip has begun, to which it is padded.
[[nodiscard]] std::int64_t whisper_positions(double seconds);

/// Qwen2-Audio: 100 frames a second, of which a convolution and a pooling take two each: 25 tokens a second, at least 1
/// and at most 750, since a clip ends after 30 s. (Its encoder has whisper_positions() whatever the clip.)
[[nodiscard]] std::int64_t qwen2_audio_tokens(double seconds);

}  // namespace hdpsim
