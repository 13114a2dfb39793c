#pragma once

#include <string>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/analysis/metrics.h"

namespace hdpsim {

// What readers of results have to know beside the figures. Notes are sentences without a full stop.

/// The values of the sweep that a run has: "data.context 256Ki, mesh.tp 2"; empty without a sweep.
[[nodiscard]] std::string point_text(const RunInfo& info);
/// A plan with its point: "static at data.context 256Ki".
[[nodiscard]] std::string plan_at_point(const Run& run);

/// The changes of an advice: "mesh.tp=4 mesh.zero=2", "cluster.links={node 1 nic 3: 0} (node 1 nic 3 out of service)".
[[nodiscard]] std::string changes_text(const Advice& advice);
/// The same with what it gives: "mesh.tp=4 (-9.2% of the time of a token)", or "mesh.tp=4 (62.1 GB a device)" where the
/// plan cannot run without it.
[[nodiscard]] std::string advice_text(const Advice& advice);
/// The first of them, "A, or B, or C"; empty of none.
[[nodiscard]] std::string best_advice(const std::vector<Advice>& all);

/// Runs whose memory is at risk (MemoryFit::at_risk), a line a plan: how many, the figures of the fullest, and what
/// would help. Empty without such a run.
[[nodiscard]] std::string risk_lines(const std::vector<Run>& runs);
/// How a run that does not fit a device likely fits it after all, by ways to train that were not tried: states in bf16
/// (no fp32 weights, moments and gradients of half the bytes), or a loss in pieces (no logits of all tokens), which is
/// not modelled. Empty if none of them would free enough.
[[nodiscard]] std::string likely_savings(const Run& run);

/// What the speed-ups of a study are over: the baseline on the study's mesh, which need not be its best, and the best
/// static mesh beside it, or a tuned one, which is named; or that the baseline does not fit. Empty without speed-ups.
[[nodiscard]] std::vector<std::string> baseline_notes(const std::vector<Run>& runs);

/// How a trace was used: which share of it was read in which order, or how often; that its halves differ; that
/// documents are longer than the context. Empty if it was read once as it stands and there is nothing to say of it.
[[nodiscard]] std::vector<std::string> trace_notes(const TraceUse& use);

}  // namespace hdpsim
