#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// What was published of a run.
enum class Quantity { step_time, tokens_per_s_per_gpu, device_memory, speedup };
/// "step_time_s", "tokens_per_s_per_gpu", "memory_gb", "speedup": what columns are called.
[[nodiscard]] const std::vector<std::string>& quantity_names();
[[nodiscard]] std::string quantity_unit(Quantity quantity);

/// One published figure of one case.
struct PublishedFigure {
  Quantity quantity = Quantity::step_time;
  std::string plan;     ///< Of the study; empty: its only one.
  double value = 0;     ///< Positive.
  bool fitted = false;  ///< A constant of the study was taken from it, so that its error says nothing.
};

/// One case of a set: a study of one point, and what was published of it.
struct ValidationCase {
  std::string name;
  Value study;      ///< Without defaults; positions are those of the set.
  std::string job;  ///< What is trained on how many devices, whatever the plan; empty if the set does not say.
  std::vector<PublishedFigure> published;
};

/// A table of published figures with what is needed to predict them:
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
/// * `case`: the case's name; by default its cells that are not the same in all rows;
/// * a figure: `step_time_s`, `tokens_per_s_per_gpu`, `memory_gb`, `speedup`; where the study has several plans
///   followed by one of them: `speedup hdp-naive`;
/// * a part of a job of sequences of one length: `model` (a preset), `sequence` and `global_batch` (both needed),
///   `micro_batch`, `tp`, `pp`, `dp`, `cp`, `virtual_stages`, `recompute`, `sequence_parallel`, `gpus_per_node`, from
///   which cluster.gpus, mesh and data of the study follow;
/// * any value of the study by its dotted path: `data.context`.
/// An empty cell (~) says nothing: a default, or a figure that was not published.
///
/// A set whose study has a constant that was taken from some of its figures names them, and they are predicted but are
/// no part of the set's errors:
///
///   fitted: {speedup hdp-balance: [byted 256Ki, byted 512Ki]}                                    column: cases
struct ValidationSet {
  std::string name;
  std::string about;
  std::string source;
  std::vector<ValidationCase> cases;
};

/// Reads a file. Every problem of the set itself is reported, and then nothing returned; whether its studies can be run
/// is not looked at.
[[nodiscard]] std::optional<ValidationSet> load_validation_set(const std::string& path, Diagnostics& diagnostics);

}  // namespace hdpsim
