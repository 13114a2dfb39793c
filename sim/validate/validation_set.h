#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"
#include "sim/validate/published_figure.h"

namespace hdpsim {

/// One case of a set: a study of one point, and its published figures.
struct ValidationCase {
  std::string name;
  Value study;  ///< Without defaults; positions are in the set.
  /// What the set states of the job but how it is spread: its model, data and number of devices. The plans of one job
  /// can be ranked.
  std::string job;
  /// All that the set states of a job of sequences of one length but its global batch, and the micro-batches of a rank
  /// in a step that follow from it.
  std::string line;
  double micro_batches = 0;
  std::vector<PublishedFigure> published;
};

/// A table of published figures with the data needed to predict them:
///
///   name: sc21
///   about: GPT models on up to 3,072 A100
///   source: Narayanan et al., SC21, table 1
///   study: {cluster: ..., profile: ..., plans: [static]}        what all cases have in common, as in a study
///   columns: [model, tp, dp, micro_batch, global_batch, sequence, step_time_s]
///   rows:
///     - [gpt-1.7b, 1, 32, 16, 512, 2Ki, 3.584]
///
/// A column is one of
/// * `case`: the case's name; by default those of its cells that are not the same in all rows, or "the case" if it has
///   none such;
/// * a figure (published_figure.h): `step_time_s`, `tokens_per_s_per_gpu`, `memory_gb`, `speedup`, `tflops_per_gpu`,
///   `mfu`, `loader_memory_saving`; if the study has several plans, followed by one of them: `speedup hdp-naive`;
/// * a part of a job of sequences of one length: `model` (a preset), `sequence` and `global_batch` (both required),
///   `micro_batch`, `tp`, `pp`, `dp`, `cp`, `virtual_stages`, `recompute`, `sequence_parallel`, `gpus_per_node`, which
///   determine cluster.gpus, mesh and data of the study; `mbs`, `gbs`, `vpp` and `seq` are understood, too. What has no
///   column, `study` may say: mesh.tp, mesh.pp, mesh.hdp or cluster.gpus for dp, data.tokens_per_step for global_batch;
/// * any value of the study by its dotted path: `data.context`. `mesh.tp` is the same as `tp`, and so are the others.
/// Columns below `mesh` and `plans` say, as `tp` does, how a job is spread; others say what the job is.
/// An empty cell (~) means a default, or a figure that was not published.
///
/// Where speed-ups and savings are over a study and not over another plan of the same one, `speedup_over` has what is
/// unlike there:
///
///   speedup_over: {mesh.nodes.choose: gpu_packing}
///
/// `attention_flops` says what tflops_per_gpu and mfu count of attention.
///
/// If a constant of the study was fitted to some of the figures, the set names these: they are predicted but do not
/// count in the set's errors:
///
///   fitted: {speedup hdp-balance: [byted 256Ki, byted 512Ki]}                                    column: cases
struct ValidationSet {
  std::string name;
  std::string about;
  std::string source;
  CountedAttention attention_flops = CountedAttention::half;
  /// Values by dotted path, with which each case is the study that its speed-ups are over. Null: they are over the plan
  /// that the study compares to.
  Value speedup_over{};
  std::vector<ValidationCase> cases;
};

/// What the figures of a set are for.
enum class FigureUse {
  published,  ///< Every case has at least one.
  /// The cases are runs that could be measured. Each has one figure for every plan of which a column has the step time
  /// or the rate, whatever its cell says; without such a column, the step time of the study's only plan. Its value
  /// is 1.
  to_measure,
};

/// The keys of a set, which configs/validation/KEYS.md shows.
[[nodiscard]] const std::vector<KeyText>& validation_keys();

/// Reads a file. Every problem of the set itself is reported, and the result is then empty. Whether its studies can run
/// is not checked.
[[nodiscard]] std::optional<ValidationSet> load_validation_set(const std::string& path, Diagnostics& diagnostics,
                                                               FigureUse use = FigureUse::published);

/// The same for a document that has been read.
[[nodiscard]] std::optional<ValidationSet> read_validation_set(const Value& document, Diagnostics& diagnostics,
                                                               FigureUse use = FigureUse::published);

}  // namespace hdpsim
