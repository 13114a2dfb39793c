#pragma once

#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

/// One combination of a tuning's space.
struct Candidate {
  std::vector<RunInfo::Coordinate> choices;  ///< The value of every dimension with more than one value.
  std::string text;                          ///< "tp 2, pp 4, schedule zb-h1, capacity auto, hdp-balance".
  std::string plan;                          ///< Its policy: "hdp-balance", whatever its options.
  Value study;                               ///< A complete study with one plan.
};

/// The most candidates of a space.
inline constexpr std::size_t most_candidates = 20'000;

/// All candidates of a tuning. The dimensions are those of `study.tune`, and each of these that is not among them:
///
///   mesh.tp           degrees within a node that cut the model's heads and MLP evenly
///   mesh.pp           powers of two up to 16 with a layer for each stage, which divide the GPUs
///   mesh.capacity     that of the study, 8Ki, 16Ki, 32Ki, as long as a sequence needs, and auto
///   training.recompute  that of the study, [norm, activation], which is cheap to compute again, and full
///   plans             those of the study; HDP policies that leave `offload` out with none and with auto, and
///                     hdp-balance without a search (`search: none`) unless the study states one
/// Without a pipeline, a schedule and a placement that the space names mean nothing and stand once. Otherwise these,
/// how groups share a sequence and what is sharded follow later, for some of them (Refinement). `root` is the study as
/// it was written, with all paths absolute. InputError if there are too many, or if the study has a sweep.
[[nodiscard]] std::vector<Candidate> candidates_of(const Study& study, const Value& root);

}  // namespace hdpsim
