// What attention on a CPU does besides its results, which are those of laws/.

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/attention_twins.h"
#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

TestedDevice best_device() {
  return {.name = "best", .backend = make_cpu_backend(), .shapes = {}};
}

/// Tiles that forward and backward go through, counted by the progress hook.
struct Tiles {
  int forward = 0;
  int backward = 0;
};

Tiles tiles_of(const AttentionBlock& shape) {
  const TestedDevice device = best_device();
  AttentionTwins twins(device, {"", 1, 1, 64, {shape}}, 1);
  Tiles tiles;
  int* counted = &tiles.forward;
  device.backend->set_progress_hook([&] { ++*counted; });
  device.backend->run(twins.forward_op(Side::device));
  counted = &tiles.backward;
  device.backend->run(twins.backward_op(Side::device));
  device.backend->set_progress_hook({});
  device.backend->run(twins.forward_op(Side::device));  // calls nothing
  return tiles;
}

}  // namespace

TEST_CASE("the tiles of a window grow with the tokens, those of a causal mask with their square", "[attention]") {
  // From 2,000 tokens on, every further 2,000 see as many keys under a window of 200.
  const auto of = [](std::int64_t tokens, std::int64_t window) {
    return tiles_of(block(tokens, tokens, Mask::causal, window));
  };
  const Tiles short_window = of(2000, 200);
  const Tiles window = of(4000, 200);
  const Tiles long_window = of(6000, 200);
  const auto grows_linearly = [](int first, int second, int third) {
    return (third - second) - (second - first) <= (second - first) / 4;  // the edges of chunks do not repeat exactly
  };
  CHECK(grows_linearly(short_window.forward, window.forward, long_window.forward));
  CHECK(grows_linearly(short_window.backward, window.backward, long_window.backward));
  const Tiles causal = of(4000, 0);
  // Tiles are at most 192 keys wide and 144 queries high, so that a causal mask needs at least its area over theirs.
  CHECK(causal.forward >= 4000 * 4000 / 2 / (192 * 144));
  CHECK(window.forward <= causal.forward / 4);
  CHECK(window.backward <= causal.backward / 4);
}

TEST_CASE("what attention does not take is refused by name", "[attention]") {
  const TestedDevice device = best_device();
  AttentionTwins twins(device, {"", 2, 1, 64, {block(4, 4, Mask::causal)}}, 2);
  AttentionForward op = twins.forward_op(Side::device);
  op.heads.dim = 96;
  CHECK_THROWS_WITH(device.backend->run(op),
                    "attention: head dimension 96 is not supported; 64, 128, 256, and 192 with values of 128 are");
  op.heads.dim = 256;
  CHECK_THROWS_WITH(device.backend->run(op), "attention: a row of queries does not fit in its stride");
  op.heads = {1, 1, 192, 1, 128};
  op.q.stride = op.k.stride = 192;
  op.v.stride = 127;
  CHECK_THROWS_WITH(device.backend->run(op), "attention: a row of values does not fit in its stride");
  op.v.stride = 128;
  op.o.stride = 127;
  CHECK_THROWS_WITH(device.backend->run(op), "attention: a row of outputs does not fit in its stride");
  op.o.stride = 128;
  op.lse_stride = 5;
  CHECK_THROWS_WITH(device.backend->run(op), "attention: a block ends beyond the rows of LSE");
  AttentionBackward backward = twins.backward_op(Side::device);
  const float sink = 0;
  backward.sinks = &sink;
  CHECK_THROWS_WITH(device.backend->run(backward), "attention: sinks without gradients, or without values");
}

}  // namespace hdpsim::kernels
