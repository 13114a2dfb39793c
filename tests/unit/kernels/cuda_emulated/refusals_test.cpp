#include "tests/support/catch.h"
#include "tests/support/twin_launch.h"

namespace hdpsim::kernels {
namespace {

// Four query heads of two key-value heads, rows without gaps, no memory.
constexpr AttentionHeads heads{.heads = 4, .kv_heads = 2, .dim = 64, .scale = 0.125F};
AttentionForward forward_of_packed_rows() {
  return {
      .heads = heads, .blocks = {}, .q = {nullptr, 256}, .k = {nullptr, 128}, .v = {nullptr, 128}, .o = {nullptr, 256}};
}
AttentionBackward backward_of_packed_rows() {
  return {.heads = heads,
          .blocks = {},
          .q = {nullptr, 256},
          .k = {nullptr, 128},
          .v = {nullptr, 128},
          .d_o = {nullptr, 256},
          .d_q = {nullptr, 256},
          .d_k = {nullptr, 128},
          .d_v = {nullptr, 128}};
}

/// What the device says of the operation once `change` has changed it; nothing where it takes it.
template <class Operation, class Change>
std::string refusal(Backend& backend, Operation op, const Change& change) {
  change(op);
  try {
    backend.run(op);
  } catch (const UnsupportedInput& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("attention on a GPU refuses what no kernel takes, and rows that its copies cannot read", "[attention]") {
  const float sinks[4] = {};
  const AttentionBlock windowed[] = {{0, 4, 0, 4, Mask::causal, 2}};
  for (const TestedDevice& device : tested_devices()) {
    INFO(device.name);
    const auto forward = [&](const auto& change) { return refusal(*device.backend, forward_of_packed_rows(), change); };
    const auto backward = [&](const auto& change) {
      return refusal(*device.backend, backward_of_packed_rows(), change);
    };
    const auto nothing = [](auto&) {};
    CHECK(forward(nothing).empty());
    CHECK(backward(nothing).empty());
    const auto with_sinks = [&](auto& op) { op.sinks = sinks; };
    CHECK(forward(with_sinks) == "attention: kernels for GPUs know no sinks yet");
    CHECK(backward(with_sinks) == "attention: kernels for GPUs know no sinks yet");
    const auto narrow_values = [](auto& op) { op.heads.value_dim = 32; };
    CHECK(backward(narrow_values) ==
          "attention: kernels for GPUs know heads of 64 and 128 alone, with values as wide as keys");
    CHECK(forward([](auto& op) { op.k.stride = 132; }) == "attention: rows of k must begin at multiples of 16 bytes");
    CHECK(backward([](auto& op) { op.d_o.stride = 260; }) ==
          "attention: rows of d_o must begin at multiples of 16 bytes");
    CHECK(backward([](auto& op) { op.d_v.stride = 129; }) ==
          "attention: rows of d_v must begin at multiples of 8 bytes");
    // The maximum of scores turns round.
    CHECK(forward([](auto& op) { op.heads.scale = -1; }) == "attention: the scale of the scores must be positive");
    if (device.has_windows) continue;
    const auto with_window = [&](auto& op) { op.blocks = windowed; };
    CHECK(forward(with_window) == "attention: kernels for Hopper know no windows yet; the portable ones do");
    CHECK(backward(with_window) == "attention: kernels for Hopper know no windows yet; the portable ones do");
    CHECK(backward([](auto& op) { op.d_q.stride = 258; }) ==
          "attention: rows of d_q must begin at multiples of 16 bytes");
  }
}

}  // namespace hdpsim::kernels
