#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/cluster/placement.h"
#include "sim/model/key_exchange.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// What whoever plans calls a sequence: a number or a text, which are never the same.
using SequenceName = std::variant<std::int64_t, std::string>;

/// The mesh that runs a plan, as a runtime must know it. Its world ranks are numbered as the placement says
/// (sim/cluster/placement.h): device (stage x ranks + rank) x tp + shard, or with `contiguous` (rank x pp + stage) x tp
/// + shard.
struct PlanMesh {
  std::int64_t tp = 1;                                   ///< Devices that compute each layer of a rank together.
  std::int64_t pp = 1;                                   ///< Stages of a rank's pipeline.
  std::string placement = std::string(usual_placement);  ///< Of placement_names().
  /// Layers of the model, of which Plan::layers are one pass of a rank; 0: not known.
  std::int64_t model_layers = 0;
  /// How groups share keys whose cut does not ask for a way of its own; empty: as the runtime likes.
  std::optional<KeyExchange> exchange = {};
  friend bool operator==(const PlanMesh&, const PlanMesh&) = default;
};

/// Where a plan comes from.
struct PlanOrigin {
  std::string version;  ///< Of hdpsim.
  std::string study;    ///< The name of its study.
  std::string hash;     ///< Of what the study states besides data and plans; 16 hexadecimal digits.
  friend bool operator==(const PlanOrigin&, const PlanOrigin&) = default;
};

/// A plan, and what else a runtime must know: the contents of a plan file (sim/plan/plan_file.h).
struct PlanDocument {
  Plan plan;
  std::vector<SequenceName> ids = {};  ///< By sequence, each once. Empty: they are known by their places alone.
  PlanMesh mesh = {};
  std::optional<PlanOrigin> made_by = {};
  friend bool operator==(const PlanDocument&, const PlanDocument&) = default;
};

/// The words of exchanges in plan files: those of `mesh.cp_comm_type`, and `servers`.
[[nodiscard]] std::string_view exchange_word(KeyExchange exchange);
[[nodiscard]] const std::vector<std::string>& exchange_words();

/// How the group of a micro-batch shares keys; empty in a group of one rank, and where neither the plan nor the cut
/// says it.
[[nodiscard]] std::optional<KeyExchange> exchange_in(const PlanDocument& document, const MicroBatch& micro_batch);

/// Whether all ranks can run the k-th micro-batches of their lists together, as collectives of all ranks within
/// micro-batches need it (ZeRO-3, FSDP that gathers for every pass): every rank has as many, each micro-batch has the
/// same place in the lists of all its ranks, and those of one place are of one update. O(sum of schedule lengths).
[[nodiscard]] bool runs_in_waves(const Plan& plan);

}  // namespace hdpsim
