#include "sim/analysis/glossary.h"

#include <array>

namespace hdpsim {

std::string_view activity_meaning(Activity activity) {
  constexpr std::array<std::string_view, activity_count> meanings = {
      "attention kernels and the merges of their results in a ring",
      "matrix products and the memory-bound kernels between them",
      "waiting for keys and values that are on their way (context parallelism)",
      "tensor-parallel collectives and all-to-alls of experts that nothing hides",
      "waiting for a copy to or from host memory",
      "waiting for another pipeline stage",
      "waiting for a rank that is not ready, in a ring or at the end of the step, or for the device with the most "
      "popular experts: imbalance",
      "gradient reduction and all-gather of parameters that nothing hides",
      "the optimizer step",
      "waiting for the data of a step, or in `hdpsim execute` for its plan",
      "fixed cost of a micro-batch and of a step, set-up of connections, waiting for the host to issue kernels"};
  return meanings.at(index_of(activity));
}

std::string_view evidence_meaning(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return "the profile is measured and has a sample of exactly this operation";
    case Evidence::interpolated:
      return "between the samples of a profile, or in the range of a fit; samples that others published count as this, "
             "too";
    case Evidence::extrapolated:
      return "outside of the range of samples and fits";
    case Evidence::formula:
      return "from the data sheet (roofline) or a stated constant; time that no kernel accounts for, such as waiting, "
             "counts as this, too";
  }
  return "";
}

}  // namespace hdpsim
