#include <string>

#include "sim/model/memory.h"
#include "sim/model/number_type.h"
#include "sim/model/optimizer_work.h"
#include "sim/model/parameters.h"
#include "sim/model/recipe.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

// Llama-3 8B by hand: its parameters, those of a layer (queries and projection of 4096 x 4096, keys and values of
// 4096 x 1024, an MLP of three 4096 x 14336, two norms) and those of the matrices among them.
constexpr std::int64_t all_of_llama = 8'030'261'248;
constexpr std::int64_t layer_matrices_of_llama = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14'336;
constexpr std::int64_t layer_of_llama = layer_matrices_of_llama + 2 * 4096;
constexpr std::int64_t matrices_of_llama = 32 * layer_matrices_of_llama;

MemoryParts states_of(const Recipe& recipe, std::int64_t pool) {
  const Transformer model = preset("llama3-8b");
  return DeviceMemory(model, whole_shape(model, {.pool = pool}), recipe).states();
}

Bytes parameters_of(const Recipe& recipe, std::int64_t pool) {
  return states_of(recipe, pool)[MemoryPart::parameters];
}

TEST_CASE("numbers in few bits take those bits, and their scales", "[states]") {
  CHECK(bytes_of(NumberType::fp32, 10) == 40);
  CHECK(bytes_of(NumberType::bf16, 10) == 20);
  CHECK(bytes_of(NumberType::fp8, 10) == 10);
  CHECK(bytes_of(NumberType::none, 10) == 0);
  CHECK(bytes_of(NumberType::int8, 2 * 256) == 2 * (256 + 4));
  CHECK(bytes_of(NumberType::int8, 257) == 257 + 2 * 4);
  CHECK(bytes_of(NumberType::int4, 128) == 64 + 4);
  CHECK(bytes_of(NumberType::nf4, 64) == 32 + 4);
  CHECK(bytes_of(NumberType::nf4_double, 64 * 256) == 32 * 256 + 256 + 4);
}

TEST_CASE("pure bf16 takes 8 bytes a parameter; FSDP shards them and has two layers in full", "[states]") {
  const Recipe pure{.zero = 3, .gradient_bytes = 2, .master = NumberType::none, .moments = NumberType::bf16};
  const MemoryParts states = states_of(pure, 8);
  REQUIRE(parameter_count(preset("llama3-8b")) == all_of_llama);
  CHECK(states[MemoryPart::parameters] == Bytes(2 * (all_of_llama / 8 + 2 * layer_of_llama)));  // 2.88 GB
  CHECK(states[MemoryPart::gradients] == states[MemoryPart::parameters]);
  CHECK(states[MemoryPart::optimizer] == Bytes(4 * all_of_llama / 8));  // 4.02 GB
  // On one device everything is there once.
  const MemoryParts alone = states_of(pure, 1);
  CHECK(alone[MemoryPart::parameters] + alone[MemoryPart::gradients] + alone[MemoryPart::optimizer] ==
        Bytes(8 * all_of_llama));
}

TEST_CASE("FSDP2 keeps what it gathers of the model's own group, flat shards do not", "[states]") {
  const Recipe flat{.zero = 3, .parameters = NumberType::fp32, .gathered = NumberType::bf16};
  Recipe single = flat;
  single.parameter_shards = true;
  const std::int64_t around = all_of_llama - 32 * layer_of_llama;  // both tables, and the last norm
  CHECK(parameters_of(single, 8) - parameters_of(flat, 8) == Bytes(2 * around));
  CHECK(parameters_of(single, 1) == parameters_of(flat, 1));
}

TEST_CASE("a master copy takes its bytes, besides parameters in fewer bits than fp32", "[states]") {
  const auto optimizer = [](NumberType parameters, NumberType master) {
    return states_of({.parameters = parameters, .master = master}, 1)[MemoryPart::optimizer];
  };
  CHECK(optimizer(NumberType::bf16, NumberType::fp32) == Bytes((4 + 8) * all_of_llama));
  CHECK(optimizer(NumberType::bf16, NumberType::bf16) == Bytes((2 + 8) * all_of_llama));
  CHECK(optimizer(NumberType::bf16, NumberType::none) == Bytes(8 * all_of_llama));
  CHECK(optimizer(NumberType::fp32, NumberType::fp32) == Bytes(8 * all_of_llama));
  CHECK(states_of({.moments = NumberType::int8}, 1)[MemoryPart::optimizer] ==
        Bytes(4 * all_of_llama + 2 * (all_of_llama + 4 * (all_of_llama / 256))));
}

TEST_CASE("the optimizer's kernel reads and writes what is kept", "[states]") {
  const OptimizerShare share{.held = 1024, .updated = 1024};
  const auto bytes = [&](const Recipe& recipe) { return optimizer_work(share, 2, recipe).elementwise.traffic; };
  const auto each = [](std::int64_t bytes_of_parameter) { return Bytes(1024 * bytes_of_parameter); };
  // Gradient; master read and written, parameter written; two moments read and written.
  CHECK(bytes({.master = NumberType::bf16}) == each(4 + 2 * 2 + 2 + 4 * 4));
  // The parameter read and written in place of a master.
  CHECK(bytes({.gradient_bytes = 2, .master = NumberType::none, .moments = NumberType::bf16}) ==
        each(2 + 2 * 2 + 4 * 2));
  CHECK(bytes({.zero = 3, .parameters = NumberType::fp32}) == each(4 + 2 * 4 + 4 * 4));
  CHECK(bytes({.moments = NumberType::int8}) == each(4 + 2 * 4 + 2 + 4) + Bytes(4 * 4 * 4));
  // Without a master nothing is copied to the parameters behind Adam.
  const Recipe buffer{.master = NumberType::none, .gradient_buffer = true};
  CHECK(bytes(buffer) == each(4 + 2 * 2 + 4 * 4) + each(4) + each(4 * 4));
}

TEST_CASE("fp32 shards that are gathered in bf16 have no other copy", "[states]") {
  const Recipe mixed{.zero = 3, .parameters = NumberType::fp32, .gathered = NumberType::bf16};
  CHECK_FALSE(mixed.autocast());
  const MemoryParts states = states_of(mixed, 8);
  CHECK(states[MemoryPart::parameters] == Bytes(4 * all_of_llama / 8 + 2 * 2 * layer_of_llama));
  CHECK(states[MemoryPart::optimizer] == Bytes(8 * all_of_llama / 8));
  CHECK(states[MemoryPart::workspace] == states_of({.zero = 3}, 8)[MemoryPart::workspace]);  // gradients in bf16
}

TEST_CASE("fp32 parameters take 16 bytes at every level of sharding, and products cast their weights", "[states]") {
  for (const std::int64_t zero : {0, 1, 2}) {
    CAPTURE(zero);
    const Recipe recipe{.zero = zero, .parameters = NumberType::fp32};
    CHECK(recipe.autocast());
    const MemoryParts alone = states_of(recipe, 1);
    CHECK(alone[MemoryPart::parameters] + alone[MemoryPart::gradients] + alone[MemoryPart::optimizer] ==
          Bytes(16 * all_of_llama));
    CHECK(parameters_of(recipe, 8) == Bytes(4 * all_of_llama));
  }
  // Below level 2 autograd sums gradients in fp32, whatever products can do.
  CHECK(Recipe{.zero = 1, .parameters = NumberType::fp32}.added_bytes() == 4);
  CHECK(Recipe{.zero = 1, .parameters = NumberType::fp32}.summed_bytes() == 0);
  CHECK(Recipe{.zero = 3, .parameters = NumberType::fp32}.added_bytes() == 0);
}

TEST_CASE("weights in fp8 are kept by rows and columns, their shards by rows; tables and norms are elements",
          "[states]") {
  const Recipe whole{.zero = 1, .parameters = NumberType::fp8};
  CHECK(parameters_of(whole, 8) == Bytes(2 * all_of_llama));
  const Recipe shards{.zero = 3, .parameters = NumberType::fp8};
  const std::int64_t of_shard = matrices_of_llama / 8 + 2 * (all_of_llama - matrices_of_llama) / 8;
  CHECK(parameters_of(shards, 8) == Bytes(of_shard + 2 * 2 * layer_of_llama));
}

TEST_CASE("what a host updates is in its memory, with a gradient in fp32", "[states]") {
  const Transformer model = preset("llama3-8b");
  const auto device = [&](const Recipe& recipe) {
    return DeviceMemory(model, whole_shape(model, {.pool = 8}), recipe);
  };
  const Recipe here{.zero = 2, .fragmentation = 0};
  Recipe there = here;
  there.host.optimizer = 1;
  CHECK(device(here).host_states() == Bytes{});
  CHECK(device(there).host_states() == Bytes(16 * all_of_llama / 8));
  const MemoryParts states = device(there).states();
  CHECK(states[MemoryPart::optimizer] == Bytes{});
  CHECK(states[MemoryPart::gradients] == Bytes(4 * 2 * layer_of_llama));  // its shard leaves with each reduction
  CHECK(states[MemoryPart::parameters] == Bytes(2 * all_of_llama));
  there.host.optimizer = 0.5;
  CHECK(device(there).host_states() == Bytes(16 * all_of_llama / 8 / 2));
  there.host = {.optimizer = 1, .parameters = true};
  there.zero = 3;
  CHECK(device(there).host_states() == Bytes(18 * all_of_llama / 8));
  CHECK(device(there).states()[MemoryPart::parameters] == Bytes(2 * 2 * layer_of_llama));
}

TEST_CASE("a host updates its share while the device updates the rest", "[states]") {
  const OptimizerShare share{.held = 4000, .updated = 1000};
  Recipe recipe{.zero = 1, .host = {.optimizer = 0.25, .updates_per_s = 1e9, .devices = 8}};
  const OptimizerWork work = optimizer_work(share, 2, recipe);
  CHECK(work.host.parameters == 250);
  CHECK(work.host.per_s == 1e9 / 8);
  CHECK(work.host.from_device == Bytes(250 * 4));
  CHECK(work.host.to_device == Bytes(250 * 2));
  CHECK(work.elementwise.traffic == Bytes(750 * 30));
  recipe.zero = 2;  // gradients have left with the reductions
  CHECK(optimizer_work(share, 2, recipe).host.from_device == Bytes{});
  recipe.zero = 3;
  recipe.host.parameters = true;  // parameters leave for each gather
  CHECK(optimizer_work(share, 2, recipe).host.to_device == Bytes{});
}

}  // namespace
}  // namespace hdpsim
