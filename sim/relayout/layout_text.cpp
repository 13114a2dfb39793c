#include "sim/relayout/layout_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace hdpsim {
namespace {

std::vector<std::int64_t> layers_of(const PipelineLayout& pipeline) {
  std::vector<std::int64_t> layers;
  for (const StageLayout& stage : pipeline.stages) layers.push_back(stage.layers);
  return layers;
}

}  // namespace

std::string layout_text(const Relayout& layout, const RelayoutJob& job) {
  const Relayout usual = uniform_layout(job);
  std::vector<std::string> parts;
  std::int64_t least = job.micro_batches;
  std::int64_t most = 0;
  bool is_usual = layout.suspended.empty();
  for (std::size_t p = 0; p < layout.pipelines.size(); ++p) {
    const PipelineLayout& pipeline = layout.pipelines[p];
    is_usual = is_usual && pipeline.micro_batches == usual.pipelines[p].micro_batches;
    const std::vector<std::int64_t> layers = layers_of(pipeline);
    if (layers != layers_of(usual.pipelines[p])) {
      parts.push_back(fmt::format("{}: {} layers x {}", p, fmt::join(layers, "+"), pipeline.micro_batches));
    } else {
      least = std::min(least, pipeline.micro_batches);
      most = std::max(most, pipeline.micro_batches);
    }
  }
  if (parts.empty() && is_usual) return {};
  if (most > 0)
    parts.push_back(least == most ? fmt::format("others x {}", most) : fmt::format("others x {} to {}", least, most));
  if (!layout.suspended.empty()) parts.push_back(fmt::format("without {}", fmt::join(layout.suspended, ", ")));
  if (!layout.is_exhaustive) parts.emplace_back("of those that were tried, the best");
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace hdpsim
