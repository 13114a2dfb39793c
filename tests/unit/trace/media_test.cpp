#include <cmath>

#include "sim/trace/media_lengths.h"
#include "sim/trace/media_tokens.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

LengthDistributionPtr fixed(std::int64_t tokens) {
  return make_distribution(std::vector<LengthBin>{{tokens, tokens, 1}});
}

double numeric_mean(const LengthDistribution& lengths) {
  constexpr int points = 100'000;
  double sum = 0;
  for (int i = 0; i < points; ++i) sum += static_cast<double>(lengths.quantile((i + 0.5) / points));
  return sum / points;
}

constexpr LogUniform point(double value) {
  return {value, value};
}

}  // namespace

TEST_CASE("Qwen2-VL: an image has a token for each 28 x 28 pixels of its rounded sides", "[trace]") {
  // The paper: 224 x 224 pixels are 66 tokens, with one on each side that mark the image.
  CHECK(qwen_vl_image_tokens({224, 224}) == 66 - 2);
  CHECK(qwen_vl_image_tokens({420, 280}) == 15 * 10);
  CHECK(qwen_vl_image_tokens({237, 239}) == 8 * 9);  // 8.46 and 8.54
  CHECK(qwen_vl_image_tokens({70, 140}) == 2 * 5);   // 2.5 goes to the even side
  CHECK(qwen_vl_image_tokens({98, 140}) == 4 * 5);   // and so does 3.5
}

TEST_CASE("Qwen2-VL: an image stays between its limits, scaled by one factor", "[trace]") {
  CHECK(qwen_vl_image_tokens({28, 28}) == 4);
  CHECK(qwen_vl_image_tokens({128 * 28, 128 * 28}) == 16'384);
  // Twice the limit: sides shrink by sqrt(2), 256 / 1.414 = 181.02 and 128 / 1.414 = 90.5, rounded down.
  CHECK(qwen_vl_image_tokens({256 * 28, 128 * 28}) == 181 * 90);
  // sqrt(1280) = 35.8.
  CHECK(qwen_vl_image_tokens({2048, 2048}, 1280) == 35 * 35);
  for (std::int64_t width = 28; width < 20'000; width = width * 3 / 2) {
    for (std::int64_t height = 28; height < 20'000; height = height * 3 / 2) {
      CAPTURE(width, height);
      CHECK(qwen_vl_image_tokens({width, height}, 1280) <= 1280);
      CHECK(qwen_vl_image_tokens({width, height}) >= 4);
    }
  }
}

TEST_CASE("Qwen2.5-VL: pairs of two frames a second share the tokens of a video", "[trace]") {
  // 60 s are 60 pairs of 24,576 / 60 = 409.6 tokens: of 1280 x 720 = 1175.5 tokens a factor 0.5903 leaves
  // 26.98 x 15.18.
  CHECK(qwen_vl_video_tokens({1280, 720}, 60) == 60 * 26 * 15);
  // 10 s: a frame is not above 768 tokens: 36.95 x 20.79.
  CHECK(qwen_vl_video_tokens({1280, 720}, 10) == 10 * 36 * 20);
  // At least four frames, each of at least 128 tokens: 8 x 8 grow by sqrt(2) to 11.3, rounded up.
  CHECK(qwen_vl_video_tokens({224, 224}, 0.5) == 2 * 12 * 12);
  // At most 768 frames; 24,576 / 384 = 64 tokens would be too few for one: 1.05 x 128 = 134.4, a square of 11.59.
  CHECK(qwen_vl_video_tokens({448, 448}, 3600) == 384 * 11 * 11);
}

TEST_CASE("LLaVA-OneVision: an image has 729 tokens for each crop and as many for the whole", "[trace]") {
  CHECK(llava_onevision_image_tokens({384, 384}) == (1 + 1) * 729);
  CHECK(llava_onevision_image_tokens({768, 384}) == (2 + 1) * 729);
  CHECK(llava_onevision_image_tokens({384, 1000}) == (3 + 1) * 729);
  // The published longest image: nine crops, 7,290 tokens; of 6 x 6 crops each has 7290 / 37 = 197.
  CHECK(llava_onevision_image_tokens({1152, 1152}) == 7290);
  CHECK(llava_onevision_image_tokens({4000, 4000}) == 37 * 197);
}

TEST_CASE("Whisper pads audio to windows of 30 s, Qwen2-Audio gives 25 tokens a second of one window", "[trace]") {
  CHECK(whisper_positions(1) == 1500);
  CHECK(whisper_positions(30) == 1500);
  CHECK(whisper_positions(30.01) == 3000);
  CHECK(qwen2_audio_tokens(1) == 25);
  CHECK(qwen2_audio_tokens(30) == 750);
  CHECK(qwen2_audio_tokens(45) == 750);
  CHECK(qwen2_audio_tokens(0.001) == 1);
}

TEST_CASE("a sample is as long as its text and its media together", "[trace]") {
  Media media;
  media.images = ImageMedia{.pixels = {.area = point(224 * 224)}};
  CHECK(with_media(*fixed(100), media)->quantile(0) == 164);
  CHECK(with_media(*fixed(100), media)->quantile(1) == 164);
  // A quarter of the samples has three images.
  media.images->items = {.count = 3, .share = 0.25};
  const auto some = with_media(*fixed(100), media);
  CHECK(some->quantile(0.74) == 100);
  CHECK(some->quantile(0.76) == 100 + 3 * 64);
}

TEST_CASE("media are drawn independently of each other", "[trace]") {
  // Half of the clips from 15 s to 60 s is within 30 s, on the logarithm: of two, 1/4 of the samples have one window
  // each, 1/2 have three and 1/4 have four together.
  Media media;
  media.audio = AudioMedia{.encoder = AudioEncoder::whisper, .seconds = {15, 60}, .items = {.count = 2}};
  const auto lengths = with_media(*fixed(10), media);
  const std::pair<double, std::int64_t> expected[] = {{0.01, 3010}, {0.24, 3010}, {0.26, 4510},
                                                      {0.74, 4510}, {0.76, 6010}, {0.99, 6010}};
  for (const auto& [u, tokens] : expected) {
    CAPTURE(u);
    CHECK(lengths->quantile(u) == tokens);
  }
}

TEST_CASE("the mean of samples is the mean of their text and that of their media", "[trace]") {
  const auto text = make_distribution(Lognormal{.mu = 6, .sigma = 1.2});
  Media media;
  media.images =
      ImageMedia{.pixels = {.area = {256 * 1024, 4 * 1024 * 1024}, .aspect = {0.5, 2}}, .items = {.count = 4}};
  const double images = numeric_mean(*with_media(*fixed(1), media)) - 1;
  CHECK(numeric_mean(*with_media(*text, media)) == Approx(numeric_mean(*text) + images).epsilon(2e-3));
  // The mean of log-uniform pixels is (b - a) / ln(b / a); rounding of sides changes it by less than a hundredth.
  const double pixels = 15 * 256 * 1024 / std::log(16.0);
  CHECK(images == Approx(4 * pixels / (28 * 28)).epsilon(0.01));
}

TEST_CASE("lengths with media never fall as the quantile rises, and the longest is the sum of the longest", "[trace]") {
  Media media;
  media.images = ImageMedia{.encoder = ImageEncoder::llava_onevision, .pixels = {.area = {1e5, 1e7}}};
  media.video = VideoMedia{.pixels = {.area = point(1280 * 720)}, .seconds = {5, 120}, .items = {.share = 0.5}};
  const auto lengths = with_media(*fixed(500), media);
  std::int64_t before = 0;
  for (int i = 0; i <= 1000; ++i) {
    const std::int64_t length = lengths->quantile(i / 1000.0);
    CHECK(length >= before);
    before = length;
  }
  CHECK(before <= 500 + 7290 + 24'576);
  CHECK(100 * before > 97 * (500 + 7290 + 24'000));
}

}  // namespace hdpsim
