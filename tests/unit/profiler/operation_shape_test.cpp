#include "sim/profiler/operation_shape.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr char bf16[] = "c10::BFloat16";

ProfilerEvent operation(const std::string& name, std::vector<InputDims> dims, std::vector<std::string> concrete = {},
                        const std::string& type = bf16) {
  ProfilerEvent event;
  event.name = name;
  event.types.assign(dims.size(), type);
  event.dims = std::move(dims);
  event.concrete = std::move(concrete);
  return event;
}

bool is_unknown(const ProfilerEvent& event) {
  return std::holds_alternative<std::monostate>(shape_of(event));
}

TEST_CASE("products of all names have the same m, n and k", "[profiler]") {
  const TracedProduct expected{{4096, 512, 1024}, 2};
  CHECK(std::get<TracedProduct>(shape_of(operation("aten::mm", {{4096, 1024}, {1024, 512}}))) == expected);
  CHECK(std::get<TracedProduct>(shape_of(operation("aten::addmm", {{512}, {4096, 1024}, {1024, 512}, {}, {}}))) ==
        expected);
  CHECK(std::get<TracedProduct>(shape_of(operation("aten::linear", {{2, 2048, 1024}, {512, 1024}, {512}}))) ==
        expected);
  CHECK(std::get<TracedProduct>(shape_of(operation("aten::bmm", {{1, 4096, 1024}, {1, 1024, 512}}))) == expected);
  // Transformer Engine hands over the weight, the input, and much else.
  CHECK(std::get<TracedProduct>(shape_of(operation("_Linear", {{512, 1024}, {2048, 2, 1024}, {512}, {}}))) == expected);
}

TEST_CASE("products in fp8 and in fp32 say so", "[profiler]") {
  const auto fp8 = std::get<TracedProduct>(
      shape_of(operation("aten::_scaled_mm", {{64, 32}, {32, 16}, {}, {}}, {}, "c10::Float8_e4m3fn")));
  CHECK(fp8 == TracedProduct{{64, 16, 32, ProductFormat::fp8}, 1});
  CHECK(std::get<TracedProduct>(shape_of(operation("aten::mm", {{64, 32}, {32, 16}}, {}, "float"))).element_bytes == 4);
}

TEST_CASE("inputs that leave a product open give no shape", "[profiler]") {
  CHECK(is_unknown(operation("aten::mm", {})));
  CHECK(is_unknown(operation("aten::mm", {{64, 32}, {31, 16}})));
  CHECK(is_unknown(operation("aten::mm", {{64, 32}, {32, -1}})));
  CHECK(is_unknown(operation("aten::mm", {{64, 32}, {32, 16}}, {}, "a type of tomorrow")));
  CHECK(is_unknown(operation("aten::bmm", {{8, 64, 32}, {8, 32, 16}})));               // one launch of eight products
  CHECK(is_unknown(operation("_Linear", {{512, 1024}, {64, 1024}, {32, 16, 1024}})));  // which two?
  CHECK(is_unknown(operation("aten::mm", {{std::int64_t{1} << 40, 32}, {32, 16}})));
}

TEST_CASE("attention has tokens, heads and mask, whatever the order of its sides", "[profiler]") {
  const TracedAttention expected{.queries = 4096,
                                 .keys = 4096,
                                 .count = 2,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .head_dim = 128,
                                 .mask = Mask::causal,
                                 .direction = Direction::forward};
  const InputDims q = {2, 32, 4096, 128};
  const InputDims k = {2, 8, 4096, 128};
  CHECK(std::get<TracedAttention>(shape_of(operation("aten::_scaled_dot_product_flash_attention", {q, k, k, {}, {}, {}},
                                                     {"", "", "", "0.", "True", "False"}))) == expected);
  const InputDims q2 = {2, 4096, 32, 128};
  const InputDims k2 = {2, 4096, 8, 128};
  CHECK(
      std::get<TracedAttention>(shape_of(operation("flash_attn::_flash_attn_forward", {q2, k2, k2, {}, {}, {}, {}, {}},
                                                   {"", "", "", "0.", "0.088", "True", "-1", "-1"}))) == expected);
  TracedAttention backward = expected;
  backward.direction = Direction::backward;
  CHECK(std::get<TracedAttention>(
            shape_of(operation("flash_attn::_flash_attn_backward", {q2, q2, k2, k2, q2, {}, q2, k2, k2, {}, {}, {}},
                               {"", "", "", "", "", "", "", "", "", "0.", "0.088", "True", "-1"}))) == backward);
}

TEST_CASE("one packed document is a sequence, several are unknown", "[profiler]") {
  const std::vector<std::string> concrete = {"", "", "", "", "", "4096", "4096", "0.", "0.088", "True", "-1", "-1"};
  const auto packed = [&](std::int64_t offsets) {
    const InputDims q = {4096, 32, 128};
    return operation("flash_attn::_flash_attn_varlen_forward",
                     {q, q, q, {offsets}, {offsets}, {}, {}, {}, {}, {}, {}, {}}, concrete);
  };
  CHECK(std::get<TracedAttention>(shape_of(packed(2))).queries == 4096);
  CHECK(is_unknown(packed(5)));
}

TEST_CASE("attention whose mask was not recorded, or that has a window, gives no shape", "[profiler]") {
  const InputDims q = {2, 4096, 32, 128};
  CHECK(is_unknown(operation("flash_attn::_flash_attn_forward", {q, q, q})));
  CHECK(is_unknown(
      operation("flash_attn::_flash_attn_forward", {q, q, q}, {"", "", "", "0.", "0.088", "True", "1024", "0"})));
  const InputDims k = {2, 8192, 32, 128};  // a causal mask over more keys than queries
  CHECK(is_unknown(operation("flash_attn::_flash_attn_forward", {q, k, k}, {"", "", "", "0.", "0.088", "True", "-1"})));
}

TEST_CASE("element-wise operations move their inputs and what they write", "[profiler]") {
  const InputDims x = {1000, 1000};
  const std::int64_t bytes = 2'000'000;
  CHECK(std::get<TracedTraffic>(shape_of(operation("aten::add", {x, x, {}}))) == TracedTraffic{"add", 3 * bytes});
  CHECK(std::get<TracedTraffic>(shape_of(operation("aten::silu", {x}))).bytes == 2 * bytes);
  CHECK(std::get<TracedTraffic>(shape_of(operation("aten::mul_", {x, x}))).bytes == 3 * bytes);
  CHECK(std::get<TracedTraffic>(shape_of(operation("aten::fill_", {x, {}}))).bytes == bytes);
  ProfilerEvent cast = operation("aten::copy_", {x, x, {}});
  cast.types[1] = "float";
  CHECK(std::get<TracedTraffic>(shape_of(cast)).bytes == 3 * bytes);
  CHECK(is_unknown(operation("aten::_foreach_add_", {{}, {}})));
}

}  // namespace
}  // namespace hdpsim
