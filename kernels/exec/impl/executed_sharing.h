#pragma once

#include <memory>
#include <string_view>

#include "kernels/exec/impl/gathered_core.h"
#include "kernels/exec/impl/ring_core.h"
#include "kernels/exec/impl/traded_core.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {

/// What the executor does of a way to share a sequence, and why not the rest: texts that go on until the colon before
/// what to write instead, empty where it does it. The first non-empty one is the answer.
struct ExecutedSharing {
  std::string_view refused = "";         ///< At all.
  std::string_view refused_cuts = "";    ///< Cuts other than per document.
  std::string_view refused_local = "";   ///< Spans that ranks hold alone.
  std::string_view refused_chunks = "";  ///< Layers whose tokens see those of their chunk, in groups of several.
  std::string_view refused_on_gpus = "";
  /// Null where it is refused at all.
  std::unique_ptr<SharedCore> (*make)(Backend& backend, Transport& pool) = nullptr;
};

template <class Core>
[[nodiscard]] std::unique_ptr<SharedCore> make_core(Backend& backend, Transport& pool) {
  return std::make_unique<Core>(backend, pool);
}

[[nodiscard]] inline ExecutedSharing executed_sharing(KeyExchange exchange) {
  constexpr std::string_view gathered_alone =
      "the plan does not cut every document over its group, which is executed with gathered keys alone: choose "
      "cp_cut: per_document, or cp_comm_type: all_gather";
  constexpr std::string_view chunks_gathered =
      "which ranks that share a sequence execute with gathered keys alone: choose cp_comm_type: all_gather";
  constexpr std::string_view cpus_alone =
      "keys are gathered, and heads traded, on CPUs alone: with --backend cuda use mesh.cp_comm_type: p2p, "
      "and hdp-balance with search: own, which keeps to it";
  switch (exchange) {
    case KeyExchange::ring:
      return {.refused_cuts = gathered_alone, .refused_chunks = chunks_gathered, .make = make_core<RingCore>};
    case KeyExchange::all_gather:
      return {.refused_on_gpus = cpus_alone, .make = make_core<GatheredCore>};
    case KeyExchange::all_to_all:
      return {.refused_cuts = gathered_alone,
              .refused_local =
                  "ranks hold sequences alone in groups that share others, which is not executed where ranks trade "
                  "heads: choose cp_comm_type: p2p, or all_gather",
              .refused_chunks = chunks_gathered,
              .refused_on_gpus = cpus_alone,
              .make = make_core<TradedCore>};
    case KeyExchange::group_cast:
      return {.refused =
                  "ranks that get the keys that their tokens see alone (cp_comm_type: group_cast) are simulated, and "
                  "not executed: use cp_comm_type: all_gather, a2a or p2p"};
    case KeyExchange::query_ring:
      return {.refused =
                  "queries that pass around a ring in backward (cp_comm_type: burst) are simulated, and not executed: "
                  "use cp_comm_type: p2p, all_gather or a2a"};
    case KeyExchange::servers:
      return {.refused =
                  "ranks attend for each other in the plan, which is simulated, and not executed: choose another plan"};
  }
  HDPSIM_CHECK(false, "it is not known whether exchange {} is executed", static_cast<int>(exchange));
}

}  // namespace hdpsim::kernels::exec
