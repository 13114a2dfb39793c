#pragma once

#include <cstdint>
#include <optional>

#include "sim/trace/length_distribution.h"
#include "sim/trace/media_tokens.h"

namespace hdpsim {

/// A positive number whose logarithm is uniformly distributed from `from` to `to` (>= from).
struct LogUniform {
  double from = 1;
  double to = 1;
};

/// How many items of a medium a sample has, all drawn independently of each other.
struct MediaItems {
  std::int64_t count = 1;  ///< At least 1.
  double share = 1;        ///< The share of the samples that have them, in (0, 1]; the others have none.
};

/// Sizes of images or frames.
struct MediaPixels {
  LogUniform area{};    ///< Pixels.
  LogUniform aspect{};  ///< Width over height; 1: squares.
};

enum class ImageEncoder : std::uint8_t { qwen_vl, llava_onevision };
enum class VideoEncoder : std::uint8_t { qwen_vl };
enum class AudioEncoder : std::uint8_t { qwen2_audio, whisper };

struct ImageMedia {
  ImageEncoder encoder = ImageEncoder::qwen_vl;
  MediaPixels pixels{};
  std::optional<std::int64_t> most_tokens{};  ///< Of an image; by default the encoder's own limit.
  MediaItems items{};
};

struct VideoMedia {
  VideoEncoder encoder = VideoEncoder::qwen_vl;
  MediaPixels pixels{};  ///< Of a frame.
  LogUniform seconds{};
  std::int64_t most_tokens = qwen_vl_most_video_tokens;  ///< Of a video.
  MediaItems items{};
};

struct AudioMedia {
  AudioEncoder encoder = AudioEncoder::qwen2_audio;
  LogUniform seconds{};
  MediaItems items{};
};

/// The media of a sample beside its text.
struct Media {
  std::optional<ImageMedia> images{};
  std::optional<VideoMedia> video{};
  std::optional<AudioMedia> audio{};

  [[nodiscard]] bool any() const { return images || video || audio; }
};

/// The lengths of samples of text and media, which are independent of each other: the tokens of the text and those that
/// media_tokens.h makes of the media. The distribution of the sum is computed, not sampled: lengths of up to 256 tokens
/// are exact, longer ones within 0.8 %, and the mean is that of the parts.
[[nodiscard]] LengthDistributionPtr with_media(const LengthDistribution& text, const Media& media);

}  // namespace hdpsim
