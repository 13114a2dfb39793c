#include "sim/import/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/base/division.h"
#include "sim/base/text.h"
#include "sim/import/impl/megatron_model.h"
#include "sim/import/impl/stated_keys.h"
#include "sim/import/impl/torchtitan_keys.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

/// A converter of modules, and the word of `kernels.linear` for the products that it converts.
struct ProductConverter {
  std::string_view name;
  std::string_view linear;
  bool of_experts = false;
};
constexpr auto product_converters =
    std::to_array<ProductConverter>({{"float8", "fp8_current"},
                                     {"quantize.linear.float8", "fp8_current"},
                                     {"quantize.grouped_mm.float8", "fp8_current", true},
                                     {"mx", "mxfp8"},
                                     {"quantize.linear.mx", "mxfp8"},
                                     {"quantize.grouped_mm.mx", "mxfp8", true}});

class TorchtitanReader : private TorchtitanKeys {
 public:
  TorchtitanReader(const Value& root, const std::string& file, const ImportOptions& options, Diagnostics& diagnostics)
      : TorchtitanKeys(root, file, diagnostics), options_(options), diagnostics_(diagnostics) {}

  TrainingRun read() {
    run_.framework = "torchtitan";
    read_model();
    read_degrees();
    read_batch();
    read_context_parallel();
    read_pipeline();
    read_experts();
    read_sharding();
    read_kernels();
    read_recomputation();
    note_rest();
    run_.notes = take_notes();
    run_.places = places_of_torchtitan(root());
    return std::move(run_);
  }

 private:
  // ---- Model

  void read_model() {
    const Value* flavor_at = find("model", "flavor");
    const std::string name = word(find("model", "name"), "llama3");
    const std::string flavor = word(flavor_at, "debugmodel");
    if (options_.model) return take_named(*options_.model, name, flavor);
    const Flavor* found = flavor_named(name, flavor);
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const Flavor& each : flavors()) known.push_back(fmt::format("{} {}", each.model, each.flavor));
      diagnostics_.unsupported(position(flavor_at), fmt::format("no preset has the shape of '{} {}'", name, flavor),
                               fmt::format("--model NAME states another one; known: {}", joined(known, ", ")));
      return;
    }
    layers_ = found->layers;
    has_experts_ = found->has_experts;
    run_.model = Value::map();
    put(run_.model, "preset", std::string(found->preset));
    if (name == "deepseek_v3") {
      put(run_.model, "num_nextn_predict_layers", 0);
      assume("no layer predicts further tokens, as in torchtitan");
    }
    if (!found->unlike.empty()) {
      unmodelled(fmt::format("flavor = {}", flavor), flavor_at, found->unlike, found->unlike_effect);
    }
  }

  void take_named(const NamedModel& model, const std::string& name, const std::string& flavor) {
    run_.model = model.value;
    run_.configuration = model.configuration;
    layers_ = model.layers;
    has_experts_ = model.has_experts;
    assume(fmt::format("the model is that of --model, whatever the shape of '{} {}'", name, flavor));
  }

  // ---- Degrees and batch

  // The first degree that is written, from that of the shards on.
  [[nodiscard]] Position place_of_degrees() {
    for (const std::string_view key :
         {"data_parallel_shard_degree", "data_parallel_replicate_degree", "tensor_parallel_degree",
          "pipeline_parallel_degree", "context_parallel_degree"}) {
      if (const Value* degree_at = find_degree(key)) return degree_at->position;
    }
    return position(nullptr);
  }

  void read_degrees() {
    run_.tp = degree_of("tensor_parallel_degree");
    run_.pp = degree_of("pipeline_parallel_degree");
    run_.cp = degree_of("context_parallel_degree");
    replicas_ = degree_of("data_parallel_replicate_degree");
    const Value* shards_at = find_degree("data_parallel_shard_degree");
    shards_ = number(shards_at, "data_parallel_shard_degree", {-1, degree.most}, -1);
    if (shards_ == 0) {
      diagnostics_.error(position(shards_at), "a data_parallel_shard_degree of 0", "-1 takes the GPUs that are left");
    }
    const std::int64_t without_shards = bounded_product({run_.tp, run_.pp, run_.cp, replicas_});
    if (options_.gpus) {
      run_.gpus = *options_.gpus;
    } else if (shards_ > 0) {
      run_.gpus = bounded_product({without_shards, shards_});
    } else {
      diagnostics_.error(position(shards_at), "nothing states how many GPUs the job has",
                         "--gpus N states it, as data_parallel_shard_degree is -1");
    }
    if (shards_ <= 0) shards_ = std::max<std::int64_t>(run_.gpus / without_shards, 1);
    if (run_.gpus > 0 &&
        (run_.gpus != bounded_product({without_shards, shards_}) || static_cast<double>(run_.gpus) > gpus.most)) {
      diagnostics_.error(place_of_degrees(),
                         fmt::format("{} GPUs are not the product of all degrees, {}", run_.gpus,
                                     bounded_product({without_shards, shards_})),
                         "change a degree, or state with --gpus how many GPUs the job has");
      run_.gpus = 0;
    }
  }

  void read_batch() {
    const Value* local_at = find("training", "local_batch_size");
    if (local_at == nullptr) local_at = find("training", "batch_size");
    run_.sequence = options_.context.value_or(number(find("training", "seq_len"), "seq_len", tokens, 2048));
    const std::int64_t local = number(local_at, "local_batch_size", sequences, 8);
    const Value* global_at = find("training", "global_batch_size");
    const std::int64_t global = number(global_at, "global_batch_size", {-1, sequences.most}, -1);
    const Value* micro_at = find_degree("pipeline_parallel_microbatch_size");
    run_.micro_batch = run_.pp > 1 ? number(micro_at, "pipeline_parallel_microbatch_size", sequences, 1) : local;
    run_.global_batch = global > 0 ? global : local * replicas_ * shards_;
    if (local_at == nullptr)
      assume("8 sequences a rank and 2,048 tokens are torchtitan's defaults where none are stated");
    if (run_.gpus == 0) return;
    check_divisions(run_,
                    {.devices = position(find_degree("tensor_parallel_degree")),
                     .batch = position(global_at == nullptr ? local_at : global_at),
                     .context_parallel = position(find_degree("context_parallel_degree")),
                     .degrees = "tensor x pipeline x context parallelism",
                     .micro_batch = "a micro-batch"},
                    diagnostics_);
  }

  // Rotated by all-to-all, the shards of keys and values go from rank to rank, as around a ring.
  void read_context_parallel() {
    const Value* at = find_degree("context_parallel_rotate_method");
    const std::string method = word(at, "allgather");
    if (run_.cp == 1) return;
    if (method == "allgather") {
      put(run_.mesh, "cp_comm_type", std::string("all_gather"));
    } else if (method != "alltoall") {
      diagnostics_.error(position(at), fmt::format("'{}' is no way to rotate keys and values", method),
                         "known: allgather, alltoall");
    }
  }

  void read_pipeline() {
    const Value* schedule_at = find_degree("pipeline_parallel_schedule");
    const std::string name = word(schedule_at, "1F1B");
    const Value* each_at = find_degree("pipeline_parallel_layers_per_stage");
    if (run_.pp == 1) return;
    const std::string_view known = schedule_named(name);
    if (known.empty()) {
      diagnostics_.unsupported(position(schedule_at), fmt::format("the schedule '{}' cannot be simulated", name),
                               "known: 1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble");
      return;
    }
    put(run_.mesh, "schedule", std::string(known));
    read_split();
    if (known == "interleaved") put(run_.mesh, "virtual_stages", virtual_stages(each_at));
    put(run_.training, "overlap_p2p_comm", std::string("always"));
  }

  // torchtitan counts the embedding and the head as a layer each, or as more.
  void read_split() {
    const auto count = [&](const char* argument, const char* key) {
      const Value* at = find_degree(argument);
      const std::int64_t counted = number(at, argument, {0, layers.most}, 1);
      counted_ += counted;
      if (counted > 0) put_truth(run_.mesh, key, true);
      if (counted > 1) assume(fmt::format("'{}: {}' is taken as one layer less", argument, counted), at);
    };
    count("pipeline_parallel_first_stage_less_layers", "account_for_embedding");
    count("pipeline_parallel_last_stage_less_layers", "account_for_loss");
  }

  std::int64_t virtual_stages(const Value* each_at) {
    const std::int64_t each = number(each_at, "pipeline_parallel_layers_per_stage", layers, 0);
    if (each == 0 || layers_ == 0) return 2;
    const std::int64_t stages = divided(layers_ + counted_, each);
    if (stages % run_.pp != 0) {
      diagnostics_.error(position(each_at),
                         fmt::format("{} stages of {} layers are no multiple of {} ranks", stages, each, run_.pp));
    }
    return std::max<std::int64_t>(stages / run_.pp, 2);
  }

  void read_experts() {
    const Value* at = find_degree("expert_parallel_degree");
    const std::int64_t ep = number(at, "expert_parallel_degree", degree, 1);
    if (!has_experts_) return;
    if (ep > 1) put(run_.mesh, "ep", ep);
    if (ep > 1 && run_.tp % ep != 0) put(run_.moe, "across", std::string("waves"));
    assume("all experts get equally many tokens (moe.routing: uniform)");
  }

  // ---- Sharding

  void read_sharding() {
    const Value* reshard_at = find_degree("fsdp_reshard_after_forward");
    const std::string reshard = word(reshard_at, "default");
    const Value* param_at = find("training", "mixed_precision_param");
    const std::string param = word(param_at, "bfloat16");
    const bool keeps = reshard == "never" || (reshard == "default" && run_.pp > 1);
    const bool is_sharded = shards_ * run_.cp > 1;
    if (param != "bfloat16") diagnostics_.unsupported(position(param_at), "training in fp32 cannot be simulated");
    put_truth(run_.training, "repeat_keys", true);
    // The stages of a pipeline gather parameters for a step's first forward, sum gradients in full, in the type of the
    // reduction, and reduce them behind the last backward (torch/distributed/pipelining/stage.py,
    // backward_maybe_with_nosync).
    const bool once = keeps && run_.pp > 1;
    put(run_.mesh, "zero", !is_sharded ? 0 : once ? 1 : keeps ? 2 : 3);
    if (once && is_sharded) put_truth(run_.training, "overlap_param_gather", true);
    if (replicas_ > 1 && is_sharded) put(run_.mesh, "shard_ranks", shards_ * run_.cp);
    run_.remarks["mesh.zero"] = keeps ? "here: FSDP2 that keeps parameters behind the forward" : "here: FSDP2";
    read_states(is_sharded);
  }

  // The type of parameters is that of their gradients' sums and of the optimizer's moments, too. FSDP2 gathers casts of
  // its fp32 shards, which are the optimizer's copy, and reduces in reduce_dtype. Replicas without a mesh of tensors or
  // stages run under autocast (torchtitan/distributed/utils.py, maybe_enable_amp).
  void read_states(bool is_sharded) {
    const std::string reduce = word(find("training", "mixed_precision_reduce"), "float32");
    const bool is_bf16 = states_are_bf16();
    const bool has_shards_alone = run_.mesh.find("zero")->text == "3";
    put(run_.training, "gradients", std::string(is_bf16 ? "bf16" : "fp32"));
    if (is_bf16) {
      put(run_.training, "master", std::string("none"));
      put(run_.training, "moments", std::string("bf16"));
    } else if (!is_sharded && run_.tp == 1 && run_.pp == 1) {
      put(run_.training, "parameters", std::string("fp32"));
    }
    if (is_sharded) put(run_.training, "shards", std::string("parameters"));
    if (is_sharded && reduce == "float32") put(run_.training, "reduce", std::string("fp32"));
    has_shards_alone ? read_offload() : note_offload();
  }

  // FSDP2's CPUOffloadPolicy.
  void read_offload() {
    if (!truth(find("training", "enable_cpu_offload"))) return;
    Value host = Value::map();
    put(host, "optimizer", 1);
    put_truth(host, "parameters", true);
    put(host, "updates_per_s", torch_updates_per_s);
    run_.training.set("host", std::move(host));
  }

  void note_offload() {
    const Value* at = find("training", "enable_cpu_offload");
    if (!truth(at)) return;
    unmodelled("training.enable_cpu_offload", at, "parameters, gradients and states stay on the device",
               effects::slower_but_smaller);
  }

  bool states_are_bf16() { return word(find("training", "dtype"), "float32") == "bfloat16"; }

  // ---- Kernels

  void read_kernels() {
    const bool compiles = truth(find("compile", "enable")) || truth(find("training", "compile"));
    const Value* async_at = find_degree("enable_async_tensor_parallel");
    const bool overlaps = truth(async_at);
    put(run_.kernels, "attention", std::string("flash"));
    put(run_.overheads, "host", std::string("pytorch"));
    put(run_.kernels, "layers", std::string(compiles && compiles_part("model") ? "compiled" : "eager"));
    put(run_.training, "loss", std::string(compiles && compiles_part("loss") ? "compiled" : "pytorch"));
    put_truth(run_.training, "dropout", false);
    if (run_.tp > 1) {
      put_truth(run_.training, "sequence_parallel", true);
      put_truth(run_.training, "tp_comm_overlap", overlaps && compiles);
    }
    if (overlaps && !compiles) {
      unmodelled("enable_async_tensor_parallel", async_at, "it needs compile.enable, and has no effect", {});
    }
    read_converters();
  }

  bool compiles_part(std::string_view part) {
    const Value* components = find("compile", "components");
    if (components == nullptr) return true;
    return std::any_of(components->items.begin(), components->items.end(),
                       [part](const Value& item) { return item.text == part; });
  }

  // torchao takes the scale of a tensor from the tensor itself.
  void read_converters() {
    std::string_view of_layers = truth(find("float8", "enable_float8_linear")) ? "fp8_current" : "bf16";
    std::string_view of_experts = "bf16";
    const Value* converters = find("model", "converters");
    for (const Value& item : converters == nullptr ? std::vector<Value>() : converters->items) {
      const auto known = std::find_if(product_converters.begin(), product_converters.end(),
                                      [&](const ProductConverter& each) { return each.name == item.text; });
      if (known == product_converters.end()) {
        unmodelled(fmt::format("converters: {}", item.text), &item, "products are simulated in bf16", effects::faster);
      } else {
        (known->of_experts ? of_experts : of_layers) = known->linear;
      }
    }
    if (has_experts_ && of_layers != of_experts) {
      unmodelled("converters", converters,
                 fmt::format("products of layers are {}, those of experts {}: all are simulated in bf16", of_layers,
                             of_experts),
                 effects::faster);
      of_layers = "bf16";
    }
    put(run_.kernels, "linear", std::string(of_layers));
    read_float8_gather(of_layers == "fp8_current");
  }

  void read_float8_gather(bool is_fp8) {
    const Value* table = root().find("quantize");
    for (const char* step : {"linear", "float8"}) table = table == nullptr ? nullptr : table->find(step);
    if (table == nullptr) table = root().find("float8");
    const Value* gather = table == nullptr ? nullptr : table->find("enable_fsdp_float8_all_gather");
    if (!is_fp8 || !truth(gather)) return;
    const Value* zero = run_.mesh.find("zero");
    if (zero != nullptr && zero->text == "3") {
      run_.training.set("gather", Value::scalar("fp8"));
    } else {
      unmodelled("enable_fsdp_float8_all_gather", gather, "parameters are gathered in bf16", effects::faster);
    }
  }

  // ---- Recomputation

  void read_recomputation() {
    const Value* mode_at = find("activation_checkpoint", "mode");
    const Value* option_at = find("activation_checkpoint", "selective_ac_option");
    const std::string mode = word(mode_at, "selective");
    const std::string option = word(option_at, "2");
    const bool is_full = mode == "full" || (mode == "selective" && option == "1");
    put(run_.training, "recompute", std::string(is_full ? "full" : "none"));
    if (mode != "none" && !truth(find("activation_checkpoint", "early_stop"))) {
      put_truth(run_.training, "early_stop", false);
    }
    if (is_full || mode == "none") return;
    if (mode == "selective" && option == "op" && !has_experts_) {
      put(run_.training, "recompute", std::string("per_operation"));
    } else if (mode == "selective" && option == "op") {
      Value modules = Value::sequence();
      for (const char* module : {"norm", "activation"}) modules.items.push_back(Value::scalar(module));
      run_.training.set("recompute", std::move(modules));
      unmodelled("activation_checkpoint: selective, op", mode_at,
                 "norms and activations are computed again; torchtitan does so with every second product, too",
                 effects::slower_but_smaller);
    } else if (mode == "selective") {
      unmodelled(fmt::format("activation_checkpoint: selective, {}", option), mode_at,
                 fmt::format(
                     "no layer is computed again, where torchtitan does so with one of {}; training.recompute: full is "
                     "the other bound",
                     option),
                 effects::slower_but_smaller);
    } else if (mode == "memory_budget") {
      unmodelled("activation_checkpoint: memory_budget", mode_at, "nothing is computed again",
                 effects::slower_but_smaller);
    } else {
      diagnostics_.error(position(mode_at), fmt::format("there is no activation checkpoint '{}'", mode),
                         "known: none, selective, full");
    }
  }

  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  TrainingRun run_;
  std::int64_t counted_ = 0;  // layers counted for embedding and head when stages get their layers
  std::int64_t layers_ = 0;   // 0: not known, which is reported
  bool has_experts_ = false;
  std::int64_t replicas_ = 1;
  std::int64_t shards_ = 1;
};

}  // namespace

TrainingRun read_torchtitan(const std::string& file, const std::string& text, const ImportOptions& options,
                            Diagnostics& diagnostics) {
  Diagnostics syntax;
  const Value root = parse_toml(file, text, syntax);
  diagnostics.append(syntax);
  if (!syntax.empty()) return {};
  return TorchtitanReader(root, file, options, diagnostics).read();
}

}  // namespace hdpsim
