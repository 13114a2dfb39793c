#include "sim/model/layer_operations.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/model/layers.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

/// Every kind of layer of every model that the project ships.
std::vector<Transformer> shipped_layers() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HDPSIM_SOURCE_DIR "/configs/models")) {
    if (entry.path().extension() == ".json") names.insert(entry.path().stem());
  }
  std::vector<Transformer> layers;
  for (const std::string& name : names) {
    for (const Transformer& kind : of_each_kind(test::preset(name))) layers.push_back(kind);
  }
  return layers;
}

double multiplications(const LinearPart& work) {
  double sum = 0;
  for (const Gemm& gemm : work.gemms) {
    sum += flops_of(gemm).count() / 2;
  }
  return sum;
}

std::set<DensePart> parts_of_layer(const LayerOperations& layer) {
  std::set<DensePart> parts;
  for (const LayerOperation& operation : layer.list) {
    if (operation.part != DensePart::mixing) parts.insert({operation.part, operation.backward_part});
  }
  return parts;
}

TEST_CASE("every weight of every shipped layer is multiplied once a row forward and twice backward", "[model]") {
  constexpr std::int64_t rows = 64;
  for (const Transformer& kind : shipped_layers()) {
    CAPTURE(kind.name);
    const LayerOperations layer = layer_operations(kind, {});
    double weights = 0;
    for (const LayerOperation& operation : layer.list) {
      // An expert's weights are those of one of `experts`, each of which has the rows.
      if (operation.is_counted) weights += static_cast<double>(operation.matrices());
    }
    DeviceRows device{.all = rows, .stream = rows};
    if (kind.moe) device.copies.assign(static_cast<std::size_t>(kind.moe->experts), rows);
    double forward = 0;
    double backward = 0;
    for (const DensePart part : parts_of_layer(layer)) {
      forward += multiplications(work_of(layer, device, {part}, Direction::forward));
      backward += multiplications(work_of(layer, device, {part}, Direction::backward));
    }
    CHECK(forward == rows * weights);
    CHECK(backward == 2 * forward);
  }
}

TEST_CASE("a tensor that several operations keep has one shape", "[model]") {
  for (const Transformer& kind : shipped_layers()) {
    CAPTURE(kind.name);
    std::map<std::string_view, std::int64_t> bytes;
    for (const KeptOperand& operand : layer_operations(kind, {}).kept) {
      const auto [place, is_new] = bytes.emplace(operand.tensor.name, operand.tensor.bytes_per_token);
      if (!is_new) CHECK(place->second == operand.tensor.bytes_per_token);
    }
  }
}

TEST_CASE("full recompute drops all that any set of modules drops", "[model]") {
  for (const Transformer& kind : shipped_layers()) {
    CAPTURE(kind.name);
    const auto kept = [&](Recompute recompute) {
      return kept_bytes(kept_tensors(kind, {.recompute = recompute}), {.tokens = 1024, .pairs = 1e6});
    };
    for (std::size_t module = 0; module < layer_modules; ++module) {
      const Bytes with = kept({static_cast<LayerModule>(module)});
      CHECK(with <= kept(Recompute::none));
      CHECK(kept(Recompute::full) <= with);
    }
  }
}

}  // namespace
}  // namespace hdpsim
