#pragma once

#include <vector>

#include "sim/document/key.h"
#include "sim/study/catalog.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The shape of the `background` of a study.
[[nodiscard]] KeyShape background_shape();

/// The maximum number of background jobs: a simulation cannot distinguish more.
inline constexpr std::size_t most_background = 60;

/// Reads what runs beside the main job of a study, whose defaults have been put in:
///
///     background:
///       - name: neighbour              # a job that trains
///         nodes: every 2 from 1
///         plan: {static: {cp: 8}}      # one entry as those of `plans`
///         model: {preset: llama-13b}   # optional; by default that of the study
///         data: {context: 64Ki}        # optional, key by key; default seed: the study's + 1, + 2, ... by entry
///         mesh: {tp: 4}                # optional, key by key; as in the study, but hdp follows from the nodes
///         training: {recompute: full}  # optional, key by key
///       - name: copies                 # messages without end
///         nodes: 128-255
///         traffic: {pattern: permutation, seed: 1}
///
/// `main` is the point read from the study, with or without problems. All problems are reported, including nodes that
/// two jobs share; the result is then meaningless.
[[nodiscard]] std::vector<BackgroundSpec> read_background(const Value& study, const PointSpec& main, Catalog& catalog,
                                                          Diagnostics& diagnostics);

}  // namespace hdpsim
