#include "sim/import/impl/trainer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

using Backend = Sharding::Backend;

constexpr std::int64_t ddp_bucket_parameters = (25 << 20) / 4;  // bucket_cap_mb of DistributedDataParallel, in fp32

/// Makes the study's words of a run.
class TrainerStudy {
 public:
  TrainerStudy(TrainerRun run, const std::string& file, const ImportOptions& options, Diagnostics& diagnostics)
      : run_(std::move(run)), made_(std::move(run_.made)), file_(file), options_(options), diagnostics_(diagnostics) {}

  TrainingRun make() {
    made_.framework = run_.framework;
    check_precision();
    take_model();
    take_degrees();
    take_batch();
    take_sharding();
    take_kernels();
    take_adapters();
    return std::move(made_);
  }

 private:
  void assume(std::string text, const Position& at = {}) {
    made_.notes.push_back({ImportNote::Kind::assumed, at, std::move(text)});
  }
  void unmodelled(std::string_view what, std::string_view follows, const LikelyEffect& effect) {
    made_.notes.push_back({ImportNote::Kind::unmodelled, {}, difference_text(what, follows, effect)});
  }
  template <class T>
  void place(const char* path, const Stated<T>& stated) {
    if (stated.value) made_.places.emplace(path, stated.position);
  }

  void check_precision() {
    if (run_.narrow.value) return;
    if (run_.wide.value) {
      diagnostics_.unsupported(run_.wide.position, "training in fp32 cannot be simulated",
                               "bf16: true or fp16: true states another type");
    } else {
      assume("mixed precision in bf16, as nothing states another type");
    }
  }

  // ---- Model

  void take_model() {
    place("model", run_.model);
    if (options_.model) return take(*options_.model);
    const std::string name = run_.model.value_or("");
    const auto known = name.empty() || !options_.model_of_hub ? std::nullopt : options_.model_of_hub(name);
    if (known) {
      assume(fmt::format("the model is that of the name '{}': --model names another one, or its config.json", name),
             run_.model.position);
      return take(*known);
    }
    const std::string help = "--model NAME names a shipped one of its shape, or its config.json";
    if (name.empty()) {
      diagnostics_.error({file_, 0, 0}, "nothing names the model", help);
    } else {
      diagnostics_.unsupported(run_.model.position, fmt::format("the shape of '{}' is not known here", name), help);
    }
  }

  void take(const NamedModel& model) {
    made_.model = model.value;
    made_.configuration = model.configuration;
    has_experts_ = model.has_experts;
    if (!model.unlike.empty()) unmodelled(run_.model.value_or(""), model.unlike, effects::slower_and_larger);
    if (has_experts_) assume("all experts get equally many tokens (moe.routing: uniform)");
  }

  // ---- Devices and batch

  std::int64_t gpus() {
    made_.gpus_per_node = run_.per_node.value;
    if (options_.gpus) return *options_.gpus;
    if (run_.gpus.value) {
      made_.places.emplace("cluster", run_.gpus.position);
      return *run_.gpus.value;
    }
    if (run_.per_node.value) {
      place("cluster", run_.per_node);
      return bounded_product({*run_.per_node.value, run_.nodes.value_or(1)});
    }
    diagnostics_.error({file_, 0, 0}, "nothing states how many GPUs the job has",
                       "--gpus N states it; so do an accelerate configuration and the launchers in a script");
    return 0;
  }

  void take_degrees() {
    made_.gpus = gpus();
    made_.tp = run_.tp.value_or(1);
    made_.pp = run_.pp.value_or(1);
    made_.cp = run_.cp.value_or(1);
    place("mesh.tp", run_.tp);
    place("mesh.pp", run_.pp);
    place("plans", run_.cp);
    if (made_.cp > 1) put(made_.mesh, "cp_comm_type", run_.cp_comm_type);
  }

  void take_batch() {
    for (const char* path : {"data.lengths", "data.context", "mesh.capacity"}) place(path, run_.sequence);
    place("data.tokens_per_step", run_.global_batch);
    place("data.tokens_per_step", run_.accumulation);
    place("data.tokens_per_step", run_.micro_batch);
    made_.sequence = options_.context.value_or(run_.sequence.value_or(0));
    if (made_.sequence == 0) {
      diagnostics_.error({file_, 0, 0}, "nothing states how long a sequence is", "--context TOKENS states it");
    }
    const std::int64_t replica = bounded_product({made_.tp, made_.pp, made_.cp});
    const std::int64_t replicas = std::max<std::int64_t>(made_.gpus / replica, 1);
    made_.micro_batch = micro_batch(replicas) * run_.sequences_of_example;
    made_.global_batch = run_.global_batch.value
                             ? *run_.global_batch.value * run_.sequences_of_example
                             : bounded_product({made_.micro_batch, run_.accumulation.value_or(1), replicas});
    if (made_.gpus == 0 || made_.sequence == 0) return;
    check_divisions(made_,
                    {.devices = at(run_.cp.value ? run_.cp.position : run_.tp.position),
                     .batch = at(run_.global_batch.value ? run_.global_batch.position : run_.micro_batch.position),
                     .context_parallel = at(run_.cp.position),
                     .degrees = "tensor x pipeline x context parallelism",
                     .micro_batch = "a micro-batch"},
                    diagnostics_);
  }

  // Of those who state the batch of a step and its parts, each has its share.
  std::int64_t micro_batch(std::int64_t replicas) {
    if (run_.micro_batch.value && run_.global_batch.value && *run_.global_batch.value % replicas == 0) {
      return std::min(*run_.micro_batch.value, *run_.global_batch.value / replicas);
    }
    if (run_.micro_batch.value) return *run_.micro_batch.value;
    if (run_.global_batch.value && run_.accumulation.value) {
      return std::max<std::int64_t>(*run_.global_batch.value / bounded_product({replicas, *run_.accumulation.value}),
                                    1);
    }
    assume(fmt::format("sequences of a micro-batch: {}, the default where nothing states it", run_.usual_micro_batch));
    return run_.usual_micro_batch;
  }

  [[nodiscard]] Position at(const Position& position) const {
    return position.line == 0 ? Position{file_, 0, 0} : position;
  }

  // ---- Sharding

  void take_sharding() {
    const Sharding sharding = run_.sharding.value_or({});
    place("mesh.zero", run_.sharding);
    place("framework", run_.sharding);
    switch (sharding.backend) {
      case Backend::ddp:
        take_replicas();
        break;
      case Backend::deepspeed:
        take_deepspeed(sharding);
        break;
      case Backend::megatron:
        framework("megatron-core-0.12");
        break;
      case Backend::fsdp1:
      case Backend::fsdp2:
        take_fsdp(sharding);
        break;
    }
    take_copies(sharding);
    take_host(sharding);
  }

  void framework(const std::string& preset) { made_.framework_preset = preset; }

  void take_replicas() {
    const bool is_alone = made_.gpus <= made_.tp * made_.pp * made_.cp;
    put(made_.mesh, "zero", std::int64_t{0});
    put(made_.overheads, "host", std::string("pytorch"));
    if (!is_alone) {
      put_truth(made_.training, "overlap_grad_reduce", true);
      put(made_.training, "bucket_parameters", ddp_bucket_parameters);
    }
    take_own_states();
    assume(is_alone ? "one replica of the model, of which nothing is sharded"
                    : "replicas of the model under DistributedDataParallel: no file names DeepSpeed or FSDP");
  }

  void take_own_states() {
    if (run_.states == TrainerRun::States::autocast && has_experts_) {
      unmodelled("experts under autocast", "parameters are bf16 beside an fp32 copy", effects::slower);
    } else if (run_.states == TrainerRun::States::autocast) {
      put(made_.training, "parameters", std::string("fp32"));
    } else {
      put(made_.training, "gradients", std::string("bf16"));
      put(made_.training, "master", std::string("none"));
      if (made_.training.find("moments") == nullptr) put(made_.training, "moments", std::string("bf16"));
    }
  }

  void take_deepspeed(const Sharding& sharding) {
    put(made_.overheads, "host", std::string("pytorch"));
    if (sharding.zero == 0) {
      put(made_.mesh, "zero", std::int64_t{0});
      put(made_.training, "gradients", std::string(sharding.fp32_gradients ? "fp32" : "bf16"));
      return;
    }
    framework(fmt::format("deepspeed-zero{}", sharding.zero));
    put(made_.mesh, "zero", sharding.zero);
    if (sharding.fp32_gradients) put(made_.training, "gradients", std::string("fp32"));
  }

  // FSDP2 of HuggingFace is the preset. FSDP1 has flat parameters: fp32 shards, gathered in bf16.
  void take_fsdp(const Sharding& sharding) {
    framework("fsdp2-huggingface");
    put(made_.mesh, "zero", sharding.zero);
    put(made_.overheads, "host", std::string("pytorch"));
    if (sharding.zero == 2) put_truth(made_.training, "overlap_param_gather", true);
    if (sharding.fp32_reduce) put(made_.training, "reduce", std::string("fp32"));
    if (sharding.zero < 3) put(made_.training, "shards", std::string("flat"));
    if (sharding.backend == Backend::fsdp1 && sharding.zero == 3 && !run_.adapters && !has_experts_) {
      put(made_.training, "shards", std::string("flat"));
      put(made_.training, "parameters", std::string("fp32"));
      put(made_.training, "gather", std::string("bf16"));
    }
  }

  void take_copies(const Sharding& sharding) {
    const std::int64_t ranks = made_.gpus / std::max<std::int64_t>(made_.tp * made_.pp, 1);
    std::int64_t shared = sharding.shard_ranks.value_or(ranks);
    if (sharding.in_nodes && !sharding.shard_ranks) {
      shared = std::min<std::int64_t>(run_.per_node.value_or(8), ranks);
      if (!run_.per_node.value) assume("a node has 8 GPUs, among which shards are dealt", run_.sharding.position);
    }
    if (sharding.zero > 0 && shared > 1 && shared < ranks) put(made_.mesh, "shard_ranks", shared);
    if (sharding.zero > 0 && shared == 1 && ranks > 1) put(made_.mesh, "zero", std::int64_t{0});
  }

  void take_host(const Sharding& sharding) {
    if (!sharding.offloads_optimizer && !sharding.offloads_parameters) return;
    Value host = Value::map();
    if (sharding.offloads_optimizer) {
      sharding.offload_ratio >= 1 ? put(host, "optimizer", std::int64_t{1})
                                  : put(host, "optimizer", fmt::format("{:g}", sharding.offload_ratio));
    }
    if (sharding.offloads_parameters && sharding.zero == 3) put_truth(host, "parameters", true);
    if (sharding.backend != Backend::deepspeed) put(host, "updates_per_s", torch_updates_per_s);
    made_.training.set("host", std::move(host));
  }

  // ---- Kernels and recomputation

  void take_kernels() {
    if (made_.training.find("recompute") == nullptr) {
      put(made_.training, "recompute", std::string(run_.recomputes ? "full" : "none"));
    }
    if (run_.sharding.value && run_.sharding.value->backend == Backend::megatron) return;
    put(made_.kernels, "layers", std::string(run_.is_compiled ? "compiled" : "eager"));
    if (run_.has_liger_layers && !run_.is_compiled) put_truth(made_.kernels, "fused_norms", true);
    if (run_.recomputes) put_truth(made_.training, "early_stop", !run_.is_reentrant);
    put(made_.training, "loss", run_.loss);
    if (run_.loss == "pytorch") assume("the loss is that of transformers since release 4.49 (training.loss)");
    if (run_.recomputes && run_.is_reentrant && run_.is_compiled)
      made_.training.set("early_stop", Value::scalar("true"));
  }

  // ---- Adapters

  // A frozen model has no copy in fp32: what autocast says is for the adapters.
  void take_adapters() {
    if (!run_.adapters) return;
    put_adapters(*run_.adapters, has_experts_, made_);
    const bool is_cast = run_.states == TrainerRun::States::autocast && made_.framework_preset.empty();
    if (is_cast && !has_experts_) put(made_.training, "parameters", std::string("fp32"));
  }

  TrainerRun run_;
  TrainingRun made_;
  const std::string& file_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  bool has_experts_ = false;
};

constexpr std::array<std::string_view, 4> attention_targets = {"q_proj", "k_proj", "v_proj", "o_proj"};

bool is_of_attention(const std::string& target) {
  return std::find(attention_targets.begin(), attention_targets.end(), target) != attention_targets.end();
}

}  // namespace

void put_adapters(const Adapters& adapters, bool has_experts, TrainingRun& run) {
  std::vector<std::string> targets = adapters.targets;
  if (has_experts) {
    const bool has_others = targets.empty() || !std::all_of(targets.begin(), targets.end(), is_of_attention);
    if (targets.empty()) targets.assign(attention_targets.begin(), attention_targets.end());
    std::erase_if(targets, [](const std::string& target) { return !is_of_attention(target); });
    if (has_others) {
      run.notes.push_back(
          {ImportNote::Kind::unmodelled,
           {},
           difference_text("adapters of experts", "only attention has adapters", effects::slower_and_larger)});
    }
  }
  Value lora = Value::map();
  put(lora, "rank", adapters.rank);
  if (!targets.empty()) {
    Value names = Value::sequence();
    for (const std::string& target : targets) names.items.push_back(Value::scalar(target));
    lora.set("targets", std::move(names));
  }
  if (adapters.has_dropout) put_truth(lora, "dropout", true);
  if (adapters.base != "bf16") put(lora, "base", adapters.base);
  run.training.set("lora", std::move(lora));
}

TrainingRun training_run_of(TrainerRun run, const std::string& file, const ImportOptions& options,
                            Diagnostics& diagnostics) {
  return TrainerStudy(std::move(run), file, options, diagnostics).make();
}

}  // namespace hdpsim
