#include <algorithm>

#include "sim/model/mixing.h"
#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::round_device;
using testing::shipped_profile;

constexpr std::int64_t shortest = 64 << 10;
constexpr std::int64_t longest = 1 << 20;

Layer attending(std::int64_t window, std::int64_t chunk = 0) {
  Layer layer;
  layer.heads = 16;
  layer.kv_heads = 4;
  layer.head_dim = 128;
  layer.window = window;
  layer.attention_chunk = chunk;
  return layer;
}

double attention_seconds(const CostModel& cost, const Layer& layer, std::int64_t tokens, Direction direction) {
  return cost.attention({attention_blocks(layer, tokens), layer.heads, layer.kv_heads, layer.head_dim, direction})
      .time.seconds();
}

// Qwen3-Next's gated delta net on one device.
double mixing_seconds(const CostModel& cost, std::int64_t tokens) {
  const LinearMixing mixing{
      .heads = 32, .key_heads = 16, .key_dim = 128, .value_dim = 128, .chunk = 64, .delta_rule = true};
  double seconds = 0;
  for (const Gemm& product : mixing_products(mixing, tokens, 1)) seconds += cost.gemm(product).time.seconds();
  return seconds;
}

/// The dearest token over the cheapest of sequences that double in length.
template <class Price>
double spread(const Price& price) {
  double least = price(shortest) / shortest;
  double most = least;
  for (std::int64_t tokens = shortest; tokens <= longest; tokens *= 2) {
    const double each = price(tokens) / static_cast<double>(tokens);
    least = std::min(least, each);
    most = std::max(most, each);
  }
  return most / least;
}

const char* const profiles[] = {"bytescale-implied", "h100-published", "h200-published", "b200-published"};

}  // namespace

TEST_CASE("a token costs as much in a long sequence as in a short one under a window or in chunks", "[cost]") {
  constexpr std::int64_t reach = 1024;
  // A window's first tokens see fewer keys: its area lacks reach (reach - 1) / 2 pairs of tokens x reach, and the one
  // launch weighs most on the shortest sequence. Chunks are all alike.
  const auto cost = make_cost_model(round_device());
  const double missing = (reach - 1.0) / 2 / shortest;
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const auto windowed = [&](std::int64_t tokens) {
      return attention_seconds(*cost, attending(reach), tokens, direction);
    };
    const double launch = 10e-6 / windowed(shortest);
    CHECK(spread(windowed) <= 1 / (1 - missing) + launch);
    CHECK(spread([&](std::int64_t tokens) {
            return attention_seconds(*cost, attending(0, reach), tokens, direction);
          }) <= 1 + 2 * launch);  // half the area of a window
  }
  // The kernels of real devices fill the last round of their processors better, the longer the sequence.
  for (const char* name : profiles) {
    const auto device = make_cost_model(shipped_profile(name));
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      INFO(name << (direction == Direction::forward ? ", forward" : ", backward"));
      CHECK(spread([&](std::int64_t tokens) {
              return attention_seconds(*device, attending(reach), tokens, direction);
            }) <= 1.03);
      CHECK(spread([&](std::int64_t tokens) {
              return attention_seconds(*device, attending(0, reach), tokens, direction);
            }) <= 1.03);
    }
  }
}

TEST_CASE("a token of a layer that sees all tokens costs as many times more as the sequence is longer", "[cost]") {
  const auto cost = make_cost_model(round_device());
  const auto full = [&](std::int64_t tokens) {
    return attention_seconds(*cost, attending(0), tokens, Direction::forward);
  };
  // tokens (tokens + 1) / 2 pairs; the launch of 10 us is less than a thousandth of either.
  constexpr double longer = static_cast<double>(longest + 1) / (shortest + 1);
  CHECK(spread(full) == Approx(longer).epsilon(1e-3));
}

TEST_CASE("a token of a linear layer costs as much in a long sequence as in a short one", "[cost]") {
  const auto cost = make_cost_model(round_device());
  // Nine products, with a launch of 10 us each.
  const double launches = 9 * 10e-6 / mixing_seconds(*cost, shortest);
  CHECK(spread([&](std::int64_t tokens) { return mixing_seconds(*cost, tokens); }) <= 1 + 2 * launches);
  for (const char* name : profiles) {
    INFO(name);
    const auto device = make_cost_model(shipped_profile(name));
    CHECK(spread([&](std::int64_t tokens) { return mixing_seconds(*device, tokens); }) <= 1.03);
  }
}

}  // namespace hdpsim
