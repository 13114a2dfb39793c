#include "sim/study/media_keys.h"

#include <fmt/format.h>

#include "sim/study/long_times.h"

namespace hdpsim {
namespace {

constexpr Range pixel_counts{1, 1 << 30};
constexpr Range aspects{0.005, 200};  // qwen_vl_utils refuses others
constexpr Range item_counts{1, 1024};

const KeyTable<LogUniform>& pixel_ends() {
  static const auto made = [] {
    KeyTable<LogUniform> keys("the pixels");
    keys.count("from", pixel_counts, at(&LogUniform::from), "the least", {.unit = "pixels", .required = true});
    keys.count("to", pixel_counts, at(&LogUniform::to), "the most", {.unit = "pixels", .required = true});
    return keys;
  }();
  return made;
}

const KeyTable<LogUniform>& aspect_ends() {
  static const auto made = [] {
    KeyTable<LogUniform> keys("the aspect");
    keys.number("from", aspects, at(&LogUniform::from), "the least", {.required = true});
    keys.number("to", aspects, at(&LogUniform::to), "the most", {.required = true});
    return keys;
  }();
  return made;
}

const KeyTable<LogUniform>& duration_ends() {
  static const auto made = [] {
    KeyTable<LogUniform> keys("the duration");
    add_long_time(keys, "from", false, at(&LogUniform::from), "the shortest", {.required = true});
    add_long_time(keys, "to", false, at(&LogUniform::to), "the longest", {.required = true});
    return keys;
  }();
  return made;
}

// A range that has been read is one, too, if `from` is not more than `to`.
template <class T, class Member>
void add_range(KeyTable<T>& keys, const std::string& name, const KeyTable<LogUniform>& ends, Member member,
               const std::string& sentence, KeyNotes notes) {
  keys.add(key_text(name, map_shape(ends.texts()), "", sentence + "; the logarithm is uniformly distributed", notes),
           [=, &ends](const Value& value, T& target, Diagnostics& diagnostics) {
             LogUniform& range = member(target);
             const KeyReading reading = ends.read(value, range, diagnostics);
             const Value* to = value.find("to");
             if (to == nullptr || !reading.is_right("from") || !reading.is_right("to")) return;
             if (range.from <= range.to) return;
             diagnostics.error(to->position, fmt::format("{} ends below where it begins", name),
                               "exchange 'from' and 'to'");
           });
}

template <class T>
void add_pixels(KeyTable<T>& keys, const std::string& what) {
  add_range(keys, "pixels", pixel_ends(), at(&T::pixels, &MediaPixels::area), "pixels of " + what, {.required = true});
  add_range(keys, "aspect", aspect_ends(), at(&T::pixels, &MediaPixels::aspect), "width over height of " + what,
            {.otherwise = "1"});
}

template <class T>
void add_items(KeyTable<T>& keys, const std::string& what) {
  keys.count("count", item_counts, at(&T::items, &MediaItems::count), what + " of a sample that has any");
  keys.number("share", {1e-6, 1}, at(&T::items, &MediaItems::share), "share of the samples that have any");
}

const KeyTable<ImageMedia>& image_table() {
  static const auto made = [] {
    KeyTable<ImageMedia> keys("the images");
    keys.word("encoder", "encoder of images",
              {{"qwen2.5-vl", ImageEncoder::qwen_vl},
               {"qwen2-vl", ImageEncoder::qwen_vl},
               {"llava-onevision", ImageEncoder::llava_onevision}},
              at(&ImageMedia::encoder), "the encoder whose rule makes tokens of an image", {.required = true});
    add_pixels(keys, "an image");
    keys.count("max_tokens", Range{64, qwen_vl_most_tokens}, at(&ImageMedia::most_tokens),
               "the most tokens of an image; a larger one is scaled down",
               {.unit = "tokens", .otherwise = "16,384, of LLaVA-OneVision 7,290"});
    add_items(keys, "images");
    return keys;
  }();
  return made;
}

const KeyTable<VideoMedia>& video_table() {
  static const auto made = [] {
    KeyTable<VideoMedia> keys("the video");
    keys.word("encoder", "encoder of video", {{"qwen2.5-vl", VideoEncoder::qwen_vl}}, at(&VideoMedia::encoder),
              "the encoder whose rule makes tokens of a video", {.required = true});
    add_pixels(keys, "a frame");
    add_range(keys, "duration", duration_ends(), at(&VideoMedia::seconds), "how long a video is", {.required = true});
    keys.count("max_tokens", Range{256, 1 << 20}, at(&VideoMedia::most_tokens),
               "the most tokens of a video, whose frames are scaled down for it", {.unit = "tokens"});
    add_items(keys, "videos");
    return keys;
  }();
  return made;
}

const KeyTable<AudioMedia>& audio_table() {
  static const auto made = [] {
    KeyTable<AudioMedia> keys("the audio");
    keys.word("encoder", "encoder of audio",
              {{"qwen2-audio", AudioEncoder::qwen2_audio}, {"whisper", AudioEncoder::whisper}},
              at(&AudioMedia::encoder),
              "the encoder whose rule makes tokens of a clip: `qwen2-audio`, 25 a second of at most 30; `whisper`, all "
              "1,500 positions of every 30 s to which it is padded",
              {.required = true});
    add_range(keys, "duration", duration_ends(), at(&AudioMedia::seconds), "how long a clip is", {.required = true});
    add_items(keys, "clips");
    return keys;
  }();
  return made;
}

// A medium is there if it is stated.
template <class Medium>
void add_medium(KeyTable<Media>& keys, const char* name, const KeyTable<Medium>& table,
                std::optional<Medium> Media::*medium, const char* sentence) {
  keys.add({name, map_shape(table.texts()), "", sentence, {.otherwise = "none"}},
           [&table, medium](const Value& value, Media& media, Diagnostics& diagnostics) {
             (void)table.read(value, (media.*medium).emplace(), diagnostics);
           });
}

}  // namespace

const KeyTable<Media>& media_table() {
  static const auto made = [] {
    KeyTable<Media> keys("the media");
    add_medium(keys, "images", image_table(), &Media::images, "images of a sample");
    add_medium(keys, "video", video_table(), &Media::video, "videos of a sample");
    add_medium(keys, "audio", audio_table(), &Media::audio, "clips of audio of a sample");
    return keys;
  }();
  return made;
}

}  // namespace hdpsim
