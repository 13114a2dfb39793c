#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

#include "sim/document/document.h"
#include "sim/import/import_note.h"

namespace hdpsim {

/// A model that the user of an import names.
struct NamedModel {
  Value value;              ///< A study's `model`; null: `configuration` describes it.
  std::int64_t layers = 0;  ///< As its pipeline deals them.
  bool has_experts = false;
  Value configuration = {};  ///< A HuggingFace configuration.
  std::string unlike = {};   ///< What of the model of that name is not simulated; empty: nothing.
};

/// A file of a configuration.
struct ConfigText {
  std::string file;
  std::string text;
};

/// What the user of an import states in addition to the file.
struct ImportOptions {
  std::string cluster = {};                           ///< A preset or a file; empty: one is assumed.
  std::optional<std::int64_t> gpus = {};              ///< Of the job.
  std::optional<std::int64_t> vocabulary = {};        ///< Entries of the tokenizer, before they are padded.
  std::optional<std::int64_t> context = {};           ///< Tokens of a sequence.
  std::string model_name = {};                        ///< A preset or a file; empty: the file describes the model.
  std::optional<NamedModel> model = {};               ///< The model of `model_name`, once that is read.
  std::map<std::string, std::string> variables = {};  ///< Of a shell script.
  std::optional<int> command = {};                    ///< Of several commands that train, which one, from 1.
  /// The model of a name of a hub (`Qwen/Qwen3-8B`), if its shape is known; may be empty.
  std::function<std::optional<NamedModel>(const std::string& name)> model_of_hub = {};
  /// The text of a file that another one names, and the name to tell people; may be empty.
  std::function<std::optional<ConfigText>(const std::string& path, const std::string& named_by)> file_beside = {};
};

/// A training run in words of a study, whatever framework it was stated for.
struct TrainingRun {
  std::string framework;  ///< For people: "Megatron-LM".
  std::int64_t gpus = 0;
  std::optional<std::int64_t> gpus_per_node = {};
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t cp = 1;
  std::int64_t sequence = 0;                  ///< Tokens.
  std::int64_t micro_batch = 1;               ///< Sequences that a replica computes together.
  std::int64_t global_batch = 0;              ///< Sequences of a step.
  Value model;                                ///< A study's `model`, of a preset; null: `configuration` describes it.
  Value configuration;                        ///< A HuggingFace configuration.
  std::string framework_preset = {};          ///< A study's `framework.preset`; empty: none.
  std::string policy = "static";              ///< Of `plans`: the plan of the file.
  Value plan_options = Value::map();          ///< Of that plan, besides `cp`.
  std::optional<std::int64_t> capacity = {};  ///< Tokens of a rank; empty: those of a micro-batch.
  Value mesh = Value::map();                  ///< Keys of a study's `mesh` other than tp, pp and capacity.
  Value training = Value::map();
  Value kernels = Value::map();
  Value overheads = Value::map();
  Value moe = Value::map();
  std::map<std::string, std::string> remarks = {};  ///< By path, such as `mesh.zero`.
  std::map<std::string, Position> places = {};      ///< Where the file states a key of the study, by its path.
  ImportNotes notes = {};
};

/// Parameters that PyTorch's AdamW updates a second on a host's processors: 10 billion in 14.76 s (Ren et al. 2021,
/// arXiv 2101.06840, table 4, PT-CPU).
inline constexpr std::int64_t torch_updates_per_s = 678'000'000;

/// An entry of a map of a study: a number, a word or a truth.
void put(Value& map, std::string_view key, std::int64_t value);
void put(Value& map, std::string_view key, const std::string& value);
void put_truth(Value& map, std::string_view key, bool value);

/// A product of degrees and counts, each at least 1, up to a number far above what a cluster has.
[[nodiscard]] std::int64_t bounded_product(std::initializer_list<std::int64_t> factors);

/// The tokens of a micro-batch of one rank.
[[nodiscard]] std::int64_t capacity_of(const TrainingRun& run);

/// Checks what divides what: devices into replicas, the batch into micro-batches, a sequence among the ranks that share
/// it. Problems are reported at `where`, by the words that the framework has for degrees and batches.
struct RunWords {
  Position devices;
  Position batch;
  Position context_parallel;
  std::string_view degrees;      ///< "tensor x pipeline x context parallelism"
  std::string_view micro_batch;  ///< "--micro-batch-size"
};
void check_divisions(const TrainingRun& run, const RunWords& words, Diagnostics& diagnostics);

}  // namespace hdpsim
