#include "sim/plan/impl/group_times.h"

#include "sim/model/mixing.h"

namespace hdpsim {

GroupTimes group_times(const WorkModel& work, std::int64_t ranks_per_node) {
  // Micro-batches have many sequences: if each alone is shorter than the least time of a micro-batch, they still add
  // up.
  WorkModel model = work;
  model.least = 0;
  const auto seconds = [model, ranks_per_node](double area, std::int64_t tokens, std::int64_t degree) {
    return model.seconds(area, tokens, degree, degree <= ranks_per_node);
  };
  const auto fixed = [seconds](std::int64_t degree) { return seconds(0, 0, degree); };
  const auto of_sequence = [seconds, fixed](std::int64_t tokens, std::int64_t degree) {
    return seconds(causal_pairs(tokens), tokens, degree) - fixed(degree);
  };
  return {fixed, of_sequence};
}

}  // namespace hdpsim
