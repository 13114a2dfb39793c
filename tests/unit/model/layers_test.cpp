#include "sim/model/layers.h"

#include <string>

#include "sim/model/parameters.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

Layer dense(std::int64_t window = 0) {
  Layer layer;
  layer.heads = layer.kv_heads = 1;
  layer.head_dim = 64;
  layer.ffn_hidden = 128;
  layer.window = window;
  return layer;
}

Layer sparse() {
  Layer layer = dense();
  layer.moe = MixtureOfExperts{.experts = 4, .experts_per_token = 2, .expert_hidden = 32};
  return layer;
}

Transformer model_of(const std::vector<Layer>& layers) {
  Transformer model;
  model.name = "small";
  model.hidden = 64;
  model.vocabulary = 1000;
  set_layers(model, layers);
  return model;
}

std::string text(const std::vector<LayerRun>& runs) {
  std::string all;
  for (const LayerRun& run : runs) all += std::to_string(run.count) + "x" + std::to_string(run.kind) + " ";
  return all;
}

TEST_CASE("layers are counted by kind wherever a stage begins, the kind of its last layer last", "[layers]") {
  const Transformer model = model_of({dense(), dense(), sparse(), sparse(), dense(), sparse()});
  CHECK(has_experts(model));  // its own layer is one with experts
  CHECK(layer_kinds(model) == 2);
  CHECK(text(layer_runs(model)) == "3x1 3x0 ");
  CHECK(text(layer_runs(model, 1, 3)) == "1x1 2x0 ");
  CHECK(text(layer_runs(model, 2, 3)) == "2x0 1x1 ");
  CHECK(text(layer_runs(model, 4, 1)) == "1x1 ");
  CHECK(layer_count(layer_runs(model, 1, 4)) == 4);
  CHECK(expert_layers(model, layer_runs(model)) == 3);
}

TEST_CASE("layers that are all alike are one kind without a pattern", "[layers]") {
  const Transformer model = model_of({dense(), dense(), dense()});
  CHECK(model.others.empty());
  CHECK(model.pattern.empty());
  CHECK(text(layer_runs(model, 1, 2)) == "2x0 ");
}

TEST_CASE("what stands for a model has attention to all tokens, where some layer has", "[layers]") {
  CHECK(model_of({dense(16), dense(16), dense()}).window == 0);
  CHECK(model_of({dense(16), dense(16)}).window == 16);
}

TEST_CASE("the cost of counting layers hangs on how often their kind changes, not on their number", "[layers]") {
  const Transformer model = model_of(std::vector<Layer>(9'999, sparse()));
  CHECK(layer_runs(model, 0, 9'999).size() == 1);
  std::vector<Layer> two_runs(5'000, dense());
  two_runs.insert(two_runs.end(), 4'000, sparse());
  CHECK(model_of(two_runs).pattern.size() == 2);
}

TEST_CASE("a model is the sum of its layers, whatever their order", "[layers]") {
  const Transformer model = model_of({dense(), sparse(), dense(), sparse(), dense()});
  const std::int64_t attention = 4 * 64 * 64 + 2 * 64;  // four products, and the norms of both branches
  const std::int64_t mlp = 3 * 64 * 128;
  const std::int64_t experts = 4 * 3 * 64 * 32 + 4 * 64;
  CHECK(parameters_of_layers(model, 0, 5) == 5 * attention + 3 * mlp + 2 * experts);
  CHECK(parameters_of_layers(model, 1, 2) == 2 * attention + mlp + experts);
  CHECK(parameter_count(model) - active_parameter_count(model) == 2 * 2 * 3 * 64 * 32);  // two of four idle, twice
}

TEST_CASE("tensor parallelism cuts what every kind of layer has", "[layers]") {
  const auto has = [](const Transformer& model, bool cuts_experts, std::string_view what, std::int64_t count) {
    for (const CutPart& part : cut_parts(model, cuts_experts)) {
      if (part.what == what && part.count == count) return true;
    }
    return false;
  };
  const Transformer maverick = preset("llama4-maverick");
  CHECK(has(maverick, true, "columns of its MLP", 16'384));
  CHECK(has(maverick, true, "columns of its experts", 8192));
  CHECK_FALSE(has(maverick, false, "columns of its experts", 8192));
  CHECK(has(preset("qwen3-next-80b-a3b"), true, "heads of its linear layers", 32));
}

}  // namespace
}  // namespace hdpsim
