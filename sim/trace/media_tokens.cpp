#include "sim/trace/media_tokens.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr double patch = 28;  // two by two patches of 14 pixels become a token

// A side in tokens, rounded to even where two are as near, as Python rounds.
double rounded_side(double pixels) {
  return std::max(1.0, std::nearbyint(pixels / patch));
}

// smart_resize(): sides are rounded, and scaled by one factor where that leaves the limits, given in tokens.
std::int64_t scaled_tokens(const PixelSize& size, double least, double most) {
  const auto width = static_cast<double>(size.width);
  const auto height = static_cast<double>(size.height);
  double across = rounded_side(width);
  double down = rounded_side(height);
  if (across * down > most) {
    const double scale = std::sqrt(most * patch * patch / (width * height));
    across = std::max(1.0, std::floor(width * scale / patch));
    down = std::max(1.0, std::floor(height * scale / patch));
  } else if (across * down < least) {
    const double scale = std::sqrt(least * patch * patch / (width * height));
    across = std::ceil(width * scale / patch);
    down = std::ceil(height * scale / patch);
  }
  return static_cast<std::int64_t>(across * down);
}

/// How well a grid of crops suits an image.
struct Fit {
  std::int64_t crops = 1;
  std::int64_t kept = 0;    ///< Pixels of the image that its scaled form keeps.
  std::int64_t wasted = 0;  ///< Pixels of the grid beyond those.
};

Fit fit_of(const PixelSize& size, std::int64_t columns, std::int64_t rows) {
  constexpr std::int64_t side = 384;
  const std::int64_t width = columns * side;
  const std::int64_t height = rows * side;
  const double scale = std::min(static_cast<double>(width) / static_cast<double>(size.width),
                                static_cast<double>(height) / static_cast<double>(size.height));
  const auto scaled = [&](std::int64_t pixels) {
    return static_cast<std::int64_t>(static_cast<double>(pixels) * scale);
  };
  const std::int64_t kept = std::min(scaled(size.width) * scaled(size.height), size.width * size.height);
  return {columns * rows, kept, width * height - kept};
}

}  // namespace

std::int64_t qwen_vl_image_tokens(const PixelSize& size, std::int64_t most) {
  HDPSIM_CHECK(size.width >= 1 && size.height >= 1 && most >= qwen_vl_least_tokens, "{} x {}, at most {}", size.width,
               size.height, most);
  return scaled_tokens(size, qwen_vl_least_tokens, static_cast<double>(most));
}

std::int64_t qwen_vl_video_tokens(const PixelSize& frame, double seconds, std::int64_t most) {
  HDPSIM_CHECK(frame.width >= 1 && frame.height >= 1 && seconds > 0 && most >= qwen_vl_least_tokens,
               "{} x {}, {} s, at most {}", frame.width, frame.height, seconds, most);
  constexpr double frames_a_second = 2;
  constexpr double most_pairs = 384;
  constexpr double least_of_frame = 128;
  constexpr double most_of_frame = 768;
  const double pairs = std::clamp(std::floor(frames_a_second * seconds / 2), 2.0, most_pairs);
  const double share = std::max(std::min(most_of_frame, static_cast<double>(most) / pairs), 1.05 * least_of_frame);
  return static_cast<std::int64_t>(pairs) * scaled_tokens(frame, least_of_frame, share);
}

std::int64_t llava_onevision_image_tokens(const PixelSize& size, std::int64_t most) {
  constexpr std::int64_t most_of_a_side = 6;
  HDPSIM_CHECK(size.width >= 1 && size.height >= 1 && most > most_of_a_side * most_of_a_side, "{} x {}, at most {}",
               size.width, size.height, most);
  Fit best;
  for (std::int64_t columns = 1; columns <= most_of_a_side; ++columns) {
    for (std::int64_t rows = 1; rows <= most_of_a_side; ++rows) {
      const Fit fit = fit_of(size, columns, rows);
      if (fit.kept > best.kept || (fit.kept == best.kept && fit.wasted < best.wasted)) best = fit;
    }
  }
  const std::int64_t parts = best.crops + 1;
  return parts * std::min(llava_onevision_crop_tokens, most / parts);
}

std::int64_t whisper_positions(double seconds) {
  HDPSIM_CHECK(seconds > 0, "{} s", seconds);
  constexpr double window_s = 30;
  return 1500 * static_cast<std::int64_t>(std::ceil(seconds / window_s));
}

std::int64_t qwen2_audio_tokens(double seconds) {
  HDPSIM_CHECK(seconds > 0, "{} s", seconds);
  constexpr std::int64_t most_frames = 3000;
  constexpr double frames_a_second = 100;
  const auto frames = static_cast<std::int64_t>(std::min<double>(most_frames, std::ceil(frames_a_second * seconds)));
  const std::int64_t convolved = (frames - 1) / 2 + 1;
  return std::max<std::int64_t>(1, convolved / 2);
}

}  // namespace hdpsim
