#include "sim/run/plan_documents.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "sim/base/fingerprint.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

/// The batches of a run; the number of a document is where it came.
class NumberedBatches final : public BatchSource {
 public:
  explicit NumberedBatches(const BatchSource& data) : data_(data) {}

  [[nodiscard]] Batch step(std::int64_t k) const override {
    Batch batch = data_.step(k);
    std::int64_t place = 0;
    for (Sequence& sequence : batch.sequences) sequence.document = k * places + place++;
    return batch;
  }
  static std::string name_of(const Sequence& sequence) {
    return name_of_sequence(sequence.document / places, sequence.document % places);
  }

 private:
  static constexpr std::int64_t places = std::int64_t{1} << 32;  // above the sequences of a batch

  const BatchSource& data_;
};

// The identity of a point has a line for every section of its study.
std::uint64_t hash_without_data(const StudyPoint& point) {
  std::uint64_t hash = fingerprint("");
  std::string_view rest = point.identity;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const bool is_data = line.starts_with("data:") || line.starts_with("files:");
    if (!is_data) hash = fingerprint(line, hash);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return hash;
}

}  // namespace

PlanDocument document_of(const Study& study, const StudyPoint& point, Plan plan, const std::string& version) {
  const PointSpec& spec = point.spec;
  return {.plan = std::move(plan),
          .ids = {},
          .mesh = {.tp = spec.mesh.tp,
                   .pp = spec.mesh.pp,
                   .placement = spec.placement,
                   .model_layers = static_cast<std::int64_t>(spec.model.layers),
                   .exchange = spec.recipe.key_exchange},
          .made_by = PlanOrigin{version, study.name, fmt::format("{:016x}", hash_without_data(point))}};
}

std::string name_of_sequence(std::int64_t step, std::int64_t place) {
  return fmt::format("{}/{}", step, place);
}

PlanDocument planned_document(const Study& study, const StudyPoint& point, std::size_t plan, std::int64_t step,
                              const std::string& version) {
  const NumberedBatches data(*point.batches);
  const Planner* planner = point.planners.at(plan).get();
  const BatchSourcePtr held_back = planner->held_back(data, point.spec.steps);
  const Batch batch = held_back ? held_back->step(step) : point.batches->step(step);
  PlanDocument document = document_of(study, point, make_plan(point, plan, step, batch), version);
  if (!held_back) return document;
  for (const Sequence& sequence : batch.sequences) document.ids.emplace_back(NumberedBatches::name_of(sequence));
  return document;
}

}  // namespace hdpsim
