#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/study/point.h"

namespace hdpsim {
namespace {

// " x pp 4 (interleaved, 2 virtual stages)"; empty for one stage.
std::string mesh_text(const Mesh& mesh, const PipelineOptions& pipeline) {
  if (mesh.pp == 1) return "";
  const std::int64_t chunks = pipeline.virtual_stages;
  return fmt::format(" x pp {} ({}{})", mesh.pp, pipeline.schedule,
                     chunks == 1 ? "" : fmt::format(", {} virtual stages", chunks));
}

}  // namespace

std::string BackgroundSpec::what() const {
  if (job == nullptr) return traffic_pattern_names().at(static_cast<std::size_t>(traffic.pattern));
  return fmt::format("{} with {}", job->model.name, line_of(plan));
}

std::string PointSpec::setting() const {
  const std::int64_t own = mesh.devices();
  const std::string gpus =
      own == cluster.devices ? fmt::format("{}", own) : fmt::format("{} of {}", own, cluster.devices);
  std::vector<std::string> beside;
  for (const BackgroundSpec& other : background) {
    beside.push_back(fmt::format("{} ({}, {} GPUs)", other.name, other.what(), other.gpus(cluster)));
  }
  const bool one = connections.communicators == Communicators::one;
  return fmt::format("{} on {} x {}, hdp {} x tp {}{}{}{}, capacity {}{}, {} {}{} of {} tokens{}{}", model.name, gpus,
                     cluster.device, mesh.hdp, mesh.tp, mesh_text(mesh, pipeline), experts.text(),
                     one ? "" : " with a communicator for each group", count_text(capacity),
                     capacity_is_chosen ? " (auto)" : "", steps, connections.cold ? "cold " : "",
                     steps == 1 ? "step" : "steps", count_text(batch.tokens_per_step),
                     beside.empty() ? "" : ", beside ", joined(beside, ", "));
}

}  // namespace hdpsim
