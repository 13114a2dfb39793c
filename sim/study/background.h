#pragma once

#include <vector>

#include "sim/document/key.h"
#include "sim/study/catalog.h"
#include "sim/study/point.h"

namespace hdpsim {

/// What the background of a study looks like.
[[nodiscard]] KeyShape background_shape();

/// More jobs beside the main one cannot be told apart in a simulation.
inline constexpr std::size_t most_background = 60;

/// Reads what runs beside the main job of a study that has its defaults:
///
///     background:
///       - name: neighbour              # a job that trains
///         nodes: every 2 from 1
///         plan: {static: {cp: 8}}      # one entry as those of `plans`
///         model: {preset: llama-13b}   # optional; what is left out is as in the study, but the seed of the data
///         data: {context: 64Ki}        # optional, key by key: the study's plus 1 for the first entry, plus 2 ...
///         mesh: {tp: 4}                # optional, key by key, but hdp, which the nodes give
///       - name: copies                 # messages without end
///         nodes: 128-255
///         traffic: {pattern: permutation, seed: 1}
///
/// `main` is what was read of the study, problems or not. All problems are reported, also nodes that two of the jobs
/// have; the result then means nothing.
[[nodiscard]] std::vector<BackgroundSpec> read_background(const Value& study, const PointSpec& main, Catalog& catalog,
                                                          Diagnostics& diagnostics);

}  // namespace hdpsim
