
#include <algorithm>
#include <numeric>

#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

std::int64_t parameters_of(const std::vector<WeightMatrix>& matrices) {
  return std::accumulate(matrices.begin(), matrices.end(), std::int64_t{0},
                         [](std::int64_t sum, const WeightMatrix& matrix) { return sum + matrix.parameters(); });
}

TEST_CASE("a layer's matrices are its parameters without norms", "[model]") {
  const Transformer llama = test::preset("llama3-8b");
  CHECK(parameters_of(weight_matrices(llama, 1, 1)) == layer_parameter_count(llama) - 2 * llama.hidden);
  const Transformer mixtral = test::preset("mixtral-8x7b");
  CHECK(parameters_of(weight_matrices(mixtral, 1, 1)) == layer_parameter_count(mixtral) - 2 * mixtral.hidden);
  const Transformer deepseek = of_kind(test::preset("deepseek-v3"), 0);
  const LatentAttention& latent = deepseek.latent.value();
  CHECK(parameters_of(weight_matrices(deepseek, 1, 1)) ==
        layer_parameter_count(deepseek) - 2 * deepseek.hidden - latent.query_rank - latent.kv_rank);
}

TEST_CASE("tensor-parallel devices have parts of matrices, and expert groups whole experts", "[model]") {
  const Transformer llama = test::preset("llama3-8b");
  const std::vector<WeightMatrix> whole = weight_matrices(llama, 1, 1);
  const std::vector<WeightMatrix> parts = weight_matrices(llama, 4, 1);
  REQUIRE(parts.size() == whole.size());
  CHECK(4 * parameters_of(parts) == parameters_of(whole));
  CHECK(parts.front() == WeightMatrix{.rows = 1024, .columns = 4096});       // queries
  CHECK(parts.back() == WeightMatrix{.rows = 4096, .columns = 14'336 / 4});  // its last product
  const Transformer mixtral = test::preset("mixtral-8x7b");
  const std::vector<WeightMatrix> divided = weight_matrices(mixtral, 2, 4);
  CHECK(divided.back() == WeightMatrix{.rows = 4096, .columns = 14'336, .count = 2, .of_group = true});
  CHECK(weight_matrices(mixtral, 8, {4, 2}).back() ==
        WeightMatrix{.rows = 4096, .columns = 14'336 / 2, .count = 2, .of_group = true});
  CHECK(weight_matrices(mixtral, 2, 1).back() == WeightMatrix{.rows = 4096, .columns = 14'336 / 2, .count = 8});
}

TEST_CASE("latents and routers are whole on every device, other matrices and all vectors are divided", "[model]") {
  const Transformer model = of_kind(test::preset("deepseek-v3"), 0);
  const LatentAttention& latent = model.latent.value();
  const std::int64_t whole = (latent.query_rank + latent.kv_rank + latent.rotated + model.moe->experts) * model.hidden;
  const std::int64_t all = layer_parameter_count(model);
  CHECK(device_parameters(model, {{1, 0}}, 0, 1, 1).all() == all);
  CHECK(8 * device_parameters(model, {{1, 0}}, 0, 8, 1).common == all + 7 * whole);
  // Experts that are whole on the devices of a group of 64 are not divided over tp as well.
  const DeviceParameters held = device_parameters(model, {{2, 0}}, 8, 8, 64);
  const std::int64_t experts = model.moe->experts * expert_parameter_count(model);
  CHECK(held.experts == 2 * experts / 64);
  CHECK(device_parameters(model, {{2, 0}}, 8, 8, {64, 4}).experts == 2 * experts / 256);
  CHECK(8 * held.common == 2 * (all - experts + 7 * whole) + 8);
}

}  // namespace
}  // namespace hdpsim
