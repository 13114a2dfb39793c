#include "sim/plan/impl/dynamic_batches.h"

#include <algorithm>
#include <utility>

namespace hdpsim {

void DynamicBatches::add_to(PlanBuilder& builder, const Batch& batch) const {
  for (const Replicas& replicas : updates_of(batch, static_cast<std::size_t>(context_.ranks / cp_))) {
    builder.begin_update();
    const std::size_t count = micro_batches_of(batch, replicas);
    for (std::size_t i = 0; i < replicas.size(); ++i) add_replica(builder, batch, i, replicas[i], count);
  }
}

void DynamicBatches::add_replica(PlanBuilder& builder, const Batch& batch, std::size_t replica,
                                 const SequenceList& sequences, std::size_t count) const {
  std::vector<ExactWork> costs((sequences.size() + together() - 1) / together());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    costs[i / together()] += cost(batch.sequences[sequences[i]].tokens);
  }
  Replicas parts = largest_differencing(costs, std::min(count, costs.size() + 1), false);
  std::erase_if(parts, [](const SequenceList& part) { return part.empty(); });
  for (const SequenceList& part : in_order(std::move(parts), costs)) {
    SequenceList micro_batch;
    for (const std::size_t place : part) {
      const std::size_t end = std::min(sequences.size(), (place + 1) * together());
      for (std::size_t i = place * together(); i < end; ++i) micro_batch.push_back(sequences[i]);
    }
    SizedList rows = sized(batch, micro_batch);
    for (SizedSequence& row : rows) row.tokens = static_cast<std::uint32_t>(rounded(row.tokens));
    builder.add_padded(replica * static_cast<std::size_t>(cp_), {cp_}, rows);
  }
}

}  // namespace hdpsim
