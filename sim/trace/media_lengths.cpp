#include "sim/trace/media_lengths.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {
namespace {

/// A number of tokens (the mean of those that are joined in it) and its probability.
struct Mass {
  double tokens = 0;
  double probability = 0;
};
using Masses = std::vector<Mass>;  // ascending

/// Joins numbers of tokens that differ by less than 1/128 of them: 256 cells of one number each, and 128 for every
/// octave above.
class Cells {
 public:
  void add(double tokens, double probability) {
    const auto whole = static_cast<std::uint64_t>(std::llround(tokens));
    const std::size_t index = index_of(whole);
    if (index >= cells_.size()) cells_.resize(index + 1);
    cells_[index].tokens += tokens * probability;
    cells_[index].probability += probability;
  }

  [[nodiscard]] Masses masses() const {
    Masses masses;
    for (const Mass& sum : cells_) {
      if (sum.probability > 0) masses.push_back({sum.tokens / sum.probability, sum.probability});
    }
    return masses;
  }

 private:
  static std::size_t index_of(std::uint64_t tokens) {
    constexpr int cells_log2 = 7;
    constexpr std::uint64_t exact = std::uint64_t{2} << cells_log2;
    if (tokens < exact) return tokens;
    const int shift = static_cast<int>(std::bit_width(tokens)) - 1 - cells_log2;
    return (static_cast<std::size_t>(shift) << cells_log2) + (tokens >> shift);
  }

  Masses cells_;  // sums: tokens x probability, and probability
};

// The sum of two independent numbers.
Masses sum_of(const Masses& a, const Masses& b) {
  Cells cells;
  for (const Mass& one : a) {
    for (const Mass& other : b) cells.add(one.tokens + other.tokens, one.probability * other.probability);
  }
  return cells.masses();
}

// The sum of `count` independent numbers of one distribution.
Masses sum_of(const Masses& one, std::int64_t count) {
  if (count == 1) return one;
  const Masses half = sum_of(one, count / 2);
  const Masses even = sum_of(half, half);
  return count % 2 == 0 ? even : sum_of(even, one);
}

Masses items_of(const Masses& one, const MediaItems& items) {
  HDPSIM_CHECK(items.count >= 1 && items.share > 0 && items.share <= 1, "{} items, share {}", items.count, items.share);
  Cells cells;
  for (const Mass& mass : sum_of(one, items.count)) cells.add(mass.tokens, mass.probability * items.share);
  cells.add(0, 1 - items.share);
  return cells.masses();
}

Masses masses_of(const LengthDistribution& lengths) {
  constexpr int points = 4000;
  Cells cells;
  const std::vector<QuantilePoint> table = quantile_table(lengths, points);
  for (std::size_t i = 1; i < table.size(); ++i) {
    const double middle = (table[i - 1].quantile + table[i].quantile) / 2;
    cells.add(static_cast<double>(lengths.quantile(middle)), table[i].quantile - table[i - 1].quantile);
  }
  return cells.masses();
}

/// Equally likely numbers of a range, the middles of `count` parts; one if the range is a point.
std::vector<double> places_of(const LogUniform& range, int count) {
  HDPSIM_CHECK(range.from > 0 && range.to >= range.from, "from {} to {}", range.from, range.to);
  if (range.from == range.to) return {range.from};
  std::vector<double> places;
  places.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    places.push_back(range.from * std::pow(range.to / range.from, (i + 0.5) / count));
  }
  return places;
}

constexpr int places_of_aspect = 16;

std::vector<PixelSize> sizes_of(const MediaPixels& pixels, int count) {
  const auto side = [](double length) { return std::max<std::int64_t>(1, std::llround(length)); };
  const std::vector<double> aspects = places_of(pixels.aspect, places_of_aspect);
  std::vector<PixelSize> sizes;
  for (const double area : places_of(pixels.area, count)) {
    for (const double aspect : aspects) {
      sizes.push_back({side(std::sqrt(area * aspect)), side(std::sqrt(area / aspect))});
    }
  }
  return sizes;
}

// Media for which a function gives tokens, all as likely.
template <class Item, class Tokens>
Masses masses_of(const std::vector<Item>& items, const Tokens& tokens) {
  Cells cells;
  for (const Item& item : items) cells.add(static_cast<double>(tokens(item)), 1 / static_cast<double>(items.size()));
  return cells.masses();
}

Masses masses_of(const ImageMedia& images) {
  constexpr int sizes = 1024;
  return masses_of(sizes_of(images.pixels, sizes), [&](const PixelSize& size) {
    return images.encoder == ImageEncoder::qwen_vl
               ? qwen_vl_image_tokens(size, images.most_tokens.value_or(qwen_vl_most_tokens))
               : llava_onevision_image_tokens(size, images.most_tokens.value_or(llava_onevision_most_tokens));
  });
}

Masses masses_of(const VideoMedia& video) {
  constexpr int frames = 64;
  constexpr int durations = 256;
  std::vector<std::pair<PixelSize, double>> clips;
  const std::vector<double> seconds = places_of(video.seconds, durations);
  for (const PixelSize& frame : sizes_of(video.pixels, frames)) {
    for (const double duration : seconds) clips.emplace_back(frame, duration);
  }
  return masses_of(clips,
                   [&](const auto& clip) { return qwen_vl_video_tokens(clip.first, clip.second, video.most_tokens); });
}

Masses masses_of(const AudioMedia& audio) {
  constexpr int durations = 1024;
  return masses_of(places_of(audio.seconds, durations), [&](double seconds) {
    return audio.encoder == AudioEncoder::whisper ? whisper_positions(seconds) : qwen2_audio_tokens(seconds);
  });
}

/// Lengths of whole tokens with their probabilities.
class MassLengths : public LengthDistribution {
 public:
  explicit MassLengths(const Masses& masses) {
    double below = 0;
    for (const Mass& mass : masses) {
      below += mass.probability;
      lengths_.push_back(std::clamp<std::int64_t>(std::llround(mass.tokens), 1, longest_length));
      up_to_.push_back(below);
    }
  }

  [[nodiscard]] std::int64_t quantile(double u) const override {
    const auto found = std::lower_bound(up_to_.begin(), up_to_.end(), u * up_to_.back());
    return lengths_[static_cast<std::size_t>(std::min(found, up_to_.end() - 1) - up_to_.begin())];
  }

 private:
  std::vector<std::int64_t> lengths_;
  std::vector<double> up_to_;  // probabilities of lengths up to these
};

}  // namespace

LengthDistributionPtr with_media(const LengthDistribution& text, const Media& media) {
  Masses all = masses_of(text);
  const auto add = [&](const auto& medium) {
    if (medium) all = sum_of(all, items_of(masses_of(*medium), medium->items));
  };
  add(media.images);
  add(media.video);
  add(media.audio);
  return std::make_shared<MassLengths>(all);
}

}  // namespace hdpsim
