#include "sim/plan/impl/group_times.h"

#include "sim/model/mixing.h"

namespace hdpsim {

GroupTimes group_times(const WorkModel& work, std::int64_t ranks_per_node) {
  const auto near = [=](std::int64_t degree) { return degree <= ranks_per_node; };
  const auto fixed = [&work, near](std::int64_t degree) { return work.seconds(0, 0, degree, near(degree)); };
  const auto of_sequence = [&work, near, fixed](std::int64_t tokens, std::int64_t degree) {
    return work.seconds(causal_pairs(tokens), tokens, degree, near(degree)) - fixed(degree);
  };
  return {fixed, of_sequence};
}

}  // namespace hdpsim
