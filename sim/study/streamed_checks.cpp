#include "sim/study/streamed_checks.h"

#include <fmt/format.h>

#include "sim/model/layers.h"

namespace hdpsim {
namespace {

/// What RoundPipe serves, and what is known of it.
class StreamedChecks {
 public:
  StreamedChecks(const Value& study, const PointSpec& point, Diagnostics& diagnostics)
      : study_(study), point_(point), diagnostics_(diagnostics) {}

  void run() const {
    check_mesh();
    check_model();
    check_training();
    check_micro_batches();
  }

 private:
  [[nodiscard]] Position place(std::string_view section, std::string_view key) const {
    const Value* in = study_.find(section);
    if (in == nullptr) return study_.position;
    const Value* stated = in->is_map() ? in->find(key) : nullptr;
    return stated == nullptr ? in->position : stated->position;
  }
  void refuse(std::string_view section, std::string_view key, std::string_view why, std::string_view help) const {
    diagnostics_.unsupported(place(section, key), fmt::format("schedule '{}': {}", point_.pipeline.schedule, why),
                             std::string(help));
  }

  void check_mesh() const {
    const Mesh& mesh = point_.mesh;
    if (mesh.tp > 1) refuse("mesh", "tp", "every GPU runs whole layers", "write tp: 1");
    if (mesh.ep > 1) refuse("mesh", "ep", "every GPU runs whole layers, with all experts", "leave 'ep' out");
    if (mesh.hdp > 1) {
      refuse("mesh", "hdp", "its GPUs are one pipeline", "write hdp: 1, and all GPUs as 'pp'");
    }
    if (mesh.pp > point_.cluster.devices_per_node && point_.cluster.devices > 0) {
      refuse("mesh", "pp", fmt::format("its GPUs have one host, and a node has {}", point_.cluster.devices_per_node),
             "write 'pp' as the GPUs of a node");
    }
    if (!point_.pipeline.split.is_even()) {
      refuse("mesh", "schedule", "it cuts the layers by their times",
             "leave out layout, first_stage_layers, last_stage_layers, account_for_embedding and account_for_loss");
    }
  }

  void check_model() const {
    const Transformer& model = point_.model;
    if (model.layers == 0) return;
    if (layer_runs(model).size() > 1) {
      refuse("model", "", fmt::format("layers of several kinds, as of {}, are not known", model.name),
             "choose a model whose layers are alike");
    }
    if (model.predictions > 1) {
      refuse("model", "", fmt::format("the predictions of several tokens of {} are not known", model.name),
             "choose a model that predicts one");
    }
  }

  void check_training() const {
    const Recipe& recipe = point_.recipe;
    if (recipe.recompute != Recompute::full) {
      refuse("training", "recompute", "every stage is computed again from its input",
             "write training: {recompute: full}");
    }
    const double share = recipe.host.optimizer;
    if ((share > 0 && share < 1) || recipe.copies_in_pass()) {
      refuse("training", "host", "all states are in host memory, and copied stage by stage",
             "write zero: 1, and leave out 'optimizer' and 'parameters' of training.host");
    }
  }

  void check_micro_batches() const {
    const std::int64_t tokens = point_.batch.tokens_per_step;
    if (tokens <= 0 || point_.capacity_is_chosen || tokens / point_.capacity >= point_.mesh.pp) return;
    diagnostics_.error(
        place("mesh", "capacity"),
        fmt::format("a step of {} tokens has fewer micro-batches of {} tokens than the schedule '{}' "
                    "has GPUs, {}",
                    tokens, point_.capacity, point_.pipeline.schedule, point_.mesh.pp),
        fmt::format("write a 'capacity' of at most {}, or more tokens_per_step", tokens / point_.mesh.pp));
  }

  const Value& study_;
  const PointSpec& point_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_streamed(const Value& study, const PointSpec& point, Diagnostics& diagnostics) {
  StreamedChecks(study, point, diagnostics).run();
}

}  // namespace hdpsim
