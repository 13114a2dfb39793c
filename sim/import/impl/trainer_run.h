#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/import/impl/config_keys.h"
#include "sim/import/training_run.h"

namespace hdpsim {

/// Limits of what files state.
namespace trainer_ranges {

inline constexpr Range degree{1, 65'536};
inline constexpr Range gpus{1, 1 << 24};
inline constexpr Range tokens{1, 1 << 30};
inline constexpr Range sequences{1, 1 << 24};

}  // namespace trainer_ranges

/// What a file states, and where; the first that states it counts.
template <class T>
struct Stated {
  std::optional<T> value = {};
  Position position = {};

  void set(T stated, Position at) {
    if (value) return;
    value = std::move(stated);
    position = std::move(at);
  }
  [[nodiscard]] T value_or(T otherwise) const { return value.value_or(std::move(otherwise)); }
};

/// How data-parallel ranks share what they hold.
struct Sharding {
  enum class Backend : std::uint8_t { ddp, deepspeed, fsdp1, fsdp2, megatron };
  Backend backend = Backend::ddp;
  std::int64_t zero = 0;                         ///< As of a study's `mesh.zero`.
  bool in_nodes = false;                         ///< Shards are those of a node; nodes have copies.
  std::optional<std::int64_t> shard_ranks = {};  ///< Ranks that share; empty: all, or those of a node.
  bool offloads_optimizer = false;
  bool offloads_parameters = false;
  double offload_ratio = 1;
  bool fp32_gradients = false;  ///< Of DeepSpeed: sums over micro-batches.
  bool fp32_reduce = false;     ///< Of FSDP: `reduce_dtype`.
};

/// Adapters of a frozen model.
struct Adapters {
  std::int64_t rank = 0;
  std::vector<std::string> targets = {};  ///< Empty: all products.
  bool has_dropout = false;
  std::string base = "bf16";  ///< As of a study's `training.lora.base`.
};

/// A training run as the files of PyTorch's trainers around HuggingFace's models state it, whichever file says what.
struct TrainerRun {
  enum class States : std::uint8_t { autocast, bf16 };  ///< fp32 parameters, or all in bf16, where nothing is sharded.

  std::string framework;  ///< For people, of the first file.
  std::string program;    ///< What a command starts: `trl dpo`; may be empty.
  Stated<std::string> model;
  Stated<std::int64_t> gpus;   ///< Of the job.
  Stated<std::int64_t> nodes;  ///< A job of several has `per_node` GPUs in each.
  Stated<std::int64_t> per_node;
  Stated<std::int64_t> sequence;      ///< Tokens.
  Stated<std::int64_t> micro_batch;   ///< Sequences of a rank.
  Stated<std::int64_t> accumulation;  ///< Micro-batches of a step.
  Stated<std::int64_t> global_batch;  ///< Sequences of a step.
  std::int64_t usual_micro_batch = 1;
  std::int64_t sequences_of_example = 1;  ///< Two where pairs are compared.
  Stated<std::int64_t> tp;
  Stated<std::int64_t> pp;
  Stated<std::int64_t> cp;
  std::string cp_comm_type = "all_gather";
  Stated<Sharding> sharding;
  Stated<bool> narrow;  ///< It trains in bf16 or fp16 ...
  Stated<bool> wide;    ///< ... or it states that it does not.
  std::optional<Adapters> adapters;
  States states = States::autocast;
  bool is_compiled = false;
  bool recomputes = false;
  bool is_reentrant = true;
  std::string loss = "pytorch";
  bool has_liger_layers = false;
  TrainingRun made;  ///< What goes into the study as it stands, with notes and places.
};

/// What is trained for, by a part of its name: `sft`, `dpo`, `grpo`.
struct TrainingStage {
  std::string_view part;
  std::int64_t sequences = 1;     ///< Of an example.
  std::string_view follows = {};  ///< What a study does not have of it; empty: nothing is missing.
  LikelyEffect effect = {};
};
/// The stage whose part a word holds; null if it holds none.
[[nodiscard]] const TrainingStage* training_stage(std::string_view word);

/// Adapters in words of a study. Experts have none, which is told.
void put_adapters(const Adapters& adapters, bool has_experts, TrainingRun& run);

/// The study's words for a run. Reported is what no file states and what does not divide.
[[nodiscard]] TrainingRun training_run_of(TrainerRun run, const std::string& file, const ImportOptions& options,
                                          Diagnostics& diagnostics);

// ---- What several formats say in the same words

/// The number at one of the paths of a file, if it is there.
void take_number(const ConfigKeys& keys, std::initializer_list<std::string_view> paths, Range range,
                 Stated<std::int64_t>& stated);

/// The length of a prompt, by this key, with its answer (`max_completion_length`), where answers are generated.
void take_answers(const ConfigKeys& keys, std::string_view prompt, TrainerRun& run);

/// How packs are filled, as a plan's `packing`.
void take_packing(TrainerRun& run, std::string_view packer, const Value* at);

/// The optimizers of HuggingFace's Trainer by name.
void take_optimizer(ConfigKeys& keys, const Value* name, TrainerRun& run);
/// The adapters' targets: a list of names, or one word with commas between them; `all-linear`, `all` and `all_linear`
/// are all products. Names that no product of a study has are told.
[[nodiscard]] std::vector<std::string> targets_of_adapters(ConfigKeys& keys, const Value* value);
/// The implementation of attention (`flash_attention_2`, `sdpa`, `eager`).
void take_attention(ConfigKeys& keys, const Value* name, TrainerRun& run);
/// `bf16: true` and the like; false says that it is fp32 unless something else is stated.
void take_precision(ConfigKeys& keys, const Value* is_narrow, TrainerRun& run);
/// Liger's kernels for all that they know.
void take_liger(ConfigKeys& keys, const Value* at, TrainerRun& run);
/// What is trained for, by a word that holds its name. Told is what a study does not have of it.
void take_stage(ConfigKeys& keys, TrainerRun& run, std::string_view word, const Value* at);

}  // namespace hdpsim
