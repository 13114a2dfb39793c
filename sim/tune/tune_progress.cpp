#include "sim/tune/tune_progress.h"

namespace hdpsim {
namespace {

// What searches of some hundred to some thousand candidates on 32 to 512 GPUs computed: of a policy, for its places,
// and of all candidates.
constexpr std::int64_t refinements_of_policy = 90;
constexpr std::int64_t closed_forms_of_policy = 60;
constexpr double share_in_closed_form = 0.45;
constexpr std::int64_t first_steps_of_race = 80;
constexpr std::int64_t places_of_policy = 3;

}  // namespace

std::array<std::int64_t, 3> usual_steps(const TuneSize& size) {
  const double near = share_in_closed_form * static_cast<double>(size.candidates);
  const std::int64_t finished = size.places + places_of_policy * size.policies;
  return {size.candidates + refinements_of_policy * size.policies,
          static_cast<std::int64_t>(near) + closed_forms_of_policy * size.policies,
          first_steps_of_race * (1 + size.policies) + finished * size.steps};
}

}  // namespace hdpsim
