// The rates of bytescale-implied, derived once more from the published figures that its file names.

#include "sim/cost/cost_model.h"
#include "sim/profile/profile_file.h"
#include "sim/trace/trace_file.h"
#include "sim/validate/validation_study.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr double tokens_of_rank = 65536;  // 32Mi tokens on 512 HDP ranks of two GPUs
constexpr double layers = 32;

/// The mean length of the sequence in which a token is, where documents above the context are split.
double mean_of_tokens(const LengthDistribution& lengths, double context) {
  constexpr int points = 4'000'000;
  double tokens = 0;
  double squares = 0;
  for (int i = 0; i < points; ++i) {
    const auto length = static_cast<double>(lengths.quantile((i + 0.5) / points));
    const double whole = std::floor(length / context);
    const double rest = length - whole * context;
    tokens += length;
    squares += whole * context * context + rest * rest;
  }
  return squares / tokens;
}

struct Line {
  double constant;
  double slope;
};

/// Least squares of the relative errors of y = constant + slope x.
Line fitted(const std::vector<std::pair<double, double>>& points) {
  double ones = 0;
  double x_sum = 0;
  double xx_sum = 0;
  double y_sum = 0;
  double xy_sum = 0;
  for (const auto& [x, y] : points) {
    const double weight = 1 / (y * y);
    ones += weight;
    x_sum += weight * x;
    xx_sum += weight * x * x;
    y_sum += weight * y;
    xy_sum += weight * x * y;
  }
  const double determinant = ones * xx_sum - x_sum * x_sum;
  return {(y_sum * xx_sum - xy_sum * x_sum) / determinant, (ones * xy_sum - x_sum * y_sum) / determinant};
}

/// The balanced steps of LLaMA-7B over the mean above, in Ki tokens.
Line balanced_steps() {
  Diagnostics diagnostics;
  const auto set = load_validation_set(HDPSIM_SOURCE_DIR "/configs/validation/bytescale.yaml", diagnostics);
  REQUIRE(set);
  std::vector<std::pair<double, double>> points;
  for (const std::string data : {"github", "byted"}) {
    const auto lengths = load_preset(data, HDPSIM_SOURCE_DIR "/traces");
    for (const auto& [context, name] :
         {std::pair{0x1p18, "256Ki"}, {0x1p19, "512Ki"}, {0x1p20, "1Mi"}, {0x1p21, "2Mi"}}) {
      for (const auto& published : set->cases) {
        if (published.name != "7b " + data + " " + name) continue;
        for (const PublishedFigure& figure : published.published) {
          if (figure.plan != "hdp-balance" || figure.quantity != Quantity::tokens_per_s_per_gpu) continue;
          CHECK(figure.fitted);
          points.emplace_back(mean_of_tokens(*lengths, context) / 1024, 0x1p25 / 1024 / figure.value);
        }
      }
    }
  }
  REQUIRE(points.size() == 8);
  return fitted(points);
}

}  // namespace

TEST_CASE("the rates of bytescale-implied are those that the balanced steps of LLaMA-7B say", "[validation]") {
  const Line line = balanced_steps();
  CHECK(line.constant == Approx(23.9).epsilon(0.01));
  CHECK(line.slope == Approx(0.220).epsilon(0.01));

  Diagnostics diagnostics;
  const auto profile = load_profile("bytescale-implied", HDPSIM_SOURCE_DIR "/calib/profiles", {}, diagnostics);
  REQUIRE(profile);
  const auto cost = make_cost_model(*profile);
  // A token attends to half of its sequence: 4 x 4096 / 2 FLOPs for each token of it, 3.5 times that with backward, and
  // half of it on each GPU of a rank.
  const double flops_of_slope = tokens_of_rank * layers * 2 * 4096 * 1024 * 3.5 / 2;
  const AttentionBlock ring_step{8192, 4096, Mask::full, 1};
  const double ring_flops = 4.0 * 16 * 128 * 8192 * 4096;
  const Duration ring = cost->attention({{ring_step}, 16, 4, 128, Direction::forward}).time;
  CHECK(ring_flops / ring.seconds() == Approx(flops_of_slope / line.slope).epsilon(0.01));

  // Products of a layer at tp 2 for a micro-batch of 8,192 tokens: queries, keys and values; output; gate and up; down.
  double products = 0;
  for (const auto& [n, k] : {std::pair{3072, 4096}, {4096, 2048}, {11008, 4096}, {4096, 5504}}) {
    products += 3 * layers * cost->gemm({8192, n, k}).time.seconds();
  }
  products += 3 * cost->gemm({8192, 16000, 4096}).time.seconds();
  constexpr double messages_and_sums = 0.7;
  CHECK(products * tokens_of_rank / 8192 + messages_and_sums == Approx(line.constant).epsilon(0.03));
}

}  // namespace hdpsim
