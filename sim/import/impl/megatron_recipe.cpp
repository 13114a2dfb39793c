#include "sim/import/impl/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hdpsim {
namespace {

using namespace megatron_ranges;

// Modules of --recompute-modules and what a study calls them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> recomputed_modules = {
    {{"core_attn", "attention"},
     {"layernorm", "norm"},
     {"mlp", "mlp"},
     {"moe", "experts"},
     {"moe_act", "activation"},
     {"mla_up_proj", "qkv"}}};

class RecipeReader {
 public:
  RecipeReader(const MegatronArguments& arguments, const TrainedLayers& model, TrainingRun& run)
      : arguments_(arguments), model_(model), run_(run) {}

  void read() {
    read_sharding();
    read_tensor_parallelism();
    read_kernels();
    read_recomputation();
  }

 private:
  // ---- Sharding and gradients

  void read_sharding() {
    const std::int64_t zero = zero_level();
    const bool reduces = arguments_.is_on("overlap_grad_reduce");
    const bool gathers = arguments_.is_on("overlap_param_gather");
    const bool in_fp32 = sums_in_fp32();
    const bool fuses = arguments_.is_on("gradient_accumulation_fusion");
    put(run_.mesh, "zero", zero);
    read_shard_groups(zero);
    put(run_.training, "gradients", std::string(in_fp32 ? "fp32" : "bf16"));
    put_truth(run_.training, "gradient_accumulation_fusion", fuses);
    put_truth(run_.training, "overlap_grad_reduce", reduces && zero < 2);
    put_truth(run_.training, "overlap_param_gather", gathers && zero == 1);
    const std::int64_t bucket = arguments_.number("ddp_bucket_size", buckets, 0);
    if (bucket > 0) put(run_.training, "bucket_parameters", bucket);
    read_moments();
    read_host();
    if (zero < 2) put_truth(run_.training, "gradient_buffer", true);
    read_optimizer(zero);
    put(run_.training, "loss", std::string(arguments_.is_on("cross_entropy_loss_fusion") ? "fused" : "fp32"));
  }

  void read_shard_groups(std::int64_t zero) {
    const std::int64_t pool = run_.gpus / (run_.tp * run_.pp);
    const std::int64_t groups = arguments_.number("num_distributed_optimizer_instances", degree, 1);
    if (zero == 0 || groups == 1 || pool == 0) return;
    if (pool % groups != 0 || pool == groups) {
      arguments_.diagnostics().error(arguments_.position("num_distributed_optimizer_instances"),
                                     fmt::format("{} ranks are not {} groups of at least 2", pool, groups));
      return;
    }
    put(run_.mesh, "shard_ranks", pool / groups);
  }

  void read_moments() {
    const std::string first = arguments_.word("exp_avg_dtype", "fp32");
    const std::string second = arguments_.word("exp_avg_sq_dtype", "fp32");
    const bool is_known = first == "fp32" || first == "fp16" || first == "bf16" || first == "fp8";
    if (!is_known || first != second) {
      arguments_.note_unmodelled(first == "fp32" ? "exp_avg_sq_dtype" : "exp_avg_dtype", "both moments are fp32",
                                 effects::smaller);
    } else if (first != "fp32") {
      put(run_.training, "moments", std::string(first == "fp8" ? "fp8" : "bf16"));
    }
  }

  // Its optimizer on the host is PyTorch's AdamW (core/optimizer/__init__.py, CPUAdam).
  void read_host() {
    if (arguments_.word("main_params_dtype", "fp32") != "fp32") put(run_.training, "master", std::string("bf16"));
    if (!arguments_.is_on("optimizer_cpu_offload")) return;
    Value host = Value::map();
    put(host, "optimizer", fmt::format("{}", arguments_.fraction("optimizer_offload_fraction", 1.0)));
    put_truth(host, "overlap", arguments_.is_on("overlap_cpu_optimizer_d2h_h2d"));
    put(host, "updates_per_s", torch_updates_per_s);
    run_.training.set("host", std::move(host));
  }

  // Its distributed Muon deals whole matrices to ranks: the optimizer is sharded.
  void read_optimizer(std::int64_t zero) {
    const std::string name = arguments_.word("optimizer", "adam");
    const bool is_muon = name == "muon" || name == "dist_muon";
    if (is_muon && zero < 2) {
      put(run_.training, "optimizer", std::string("muon"));
    } else if (name == "lamb") {
      put(run_.training, "optimizer", name);
    } else if (name != "adam") {
      arguments_.note_unmodelled("optimizer", "Adam with fp32 states on the device is simulated", effects::other_both);
    }
  }

  std::int64_t zero_level() {
    if (arguments_.is_on("use_torch_fsdp2")) return arguments_.is_on("torch_fsdp2_reshard_after_forward") ? 3 : 2;
    if (arguments_.is_on("use_megatron_fsdp") || arguments_.is_on("use_custom_fsdp")) {
      const std::string strategy = arguments_.word("data_parallel_sharding_strategy", "no_shard");
      if (strategy == "optim_grads_params") return 3;
      if (strategy == "optim_grads") return 2;
      return strategy == "optim" ? 1 : 0;
    }
    const bool deals_matrices = arguments_.word("optimizer", "adam") == "dist_muon";
    return deals_matrices || arguments_.is_on("use_distributed_optimizer") ? 1 : 0;
  }

  // bf16 sums in fp32 unless a switch says otherwise; fp16 the other way round.
  [[nodiscard]] bool sums_in_fp32() const {
    if (arguments_.is_on("bf16")) return !arguments_.is_on("grad_reduce_in_bf16");
    return arguments_.is_on("accumulate_allreduce_grads_in_fp32");
  }

  // ---- Tensor parallelism and kernels

  void read_tensor_parallelism() {
    if (arguments_.is_on("use_tp_pp_dp_mapping") && run_.pp > 1) put(run_.mesh, "placement", std::string("contiguous"));
    const bool is_parallel = arguments_.is_on("sequence_parallel");
    const bool overlaps = arguments_.is_on("tp_comm_overlap");
    if (run_.tp == 1) return;
    if (overlaps && !is_parallel) {
      arguments_.diagnostics().error(
          arguments_.position("tp_comm_overlap"),
          fmt::format("{} needs --sequence-parallel", arguments_.written("tp_comm_overlap")));
    }
    if (model_.has_experts) {
      put_truth(run_.training, "router_fusion", arguments_.is_on("moe_router_fusion"));
      if (!is_parallel) {
        arguments_.note_unmodelled("sequence_parallel", "with experts norms and residuals are of 1 / tp of the tokens",
                                   effects::slower_and_larger);
      }
    } else {
      put_truth(run_.training, "sequence_parallel", is_parallel);
    }
    put_truth(run_.training, "tp_comm_overlap", overlaps);
    put_truth(run_.training, "tp_gradient_overlap", arguments_.is_on("async_tensor_model_parallel_allreduce"));
  }

  void read_kernels() {
    read_precision();
    read_dropout();
    put(run_.kernels, "attention", std::string(attention()));
    const std::string graphs = arguments_.word("cuda_graph_impl", "none");
    const bool has_graphs =
        graphs != "none" || arguments_.is_on("enable_cuda_graph") || arguments_.is_on("external_cuda_graph");
    put(run_.kernels, "launch", std::string(has_graphs ? "graphs" : "eager"));
    put(run_.overheads, "host", std::string(is_plain() ? "megatron-core-2024" : "megatron-core-2025"));
  }

  // Its layers are those without Transformer Engine.
  bool is_plain() {
    return arguments_.word("transformer_impl", "transformer_engine") == "local" ||
           arguments_.is_on("use_legacy_models");
  }

  void read_precision() {
    const bool is_half = arguments_.is_on("fp16");
    if (!arguments_.is_on("bf16") && !is_half) {
      arguments_.diagnostics().unsupported({arguments_.file(), 0, 0}, "training in fp32 cannot be simulated",
                                           "--bf16 or --fp16 states another type");
    }
    if (is_half) arguments_.assume("fp16 is simulated as bf16, which costs the same", arguments_.position("fp16"));
    const bool is_fp8 = arguments_.has("fp8") || arguments_.is_on("fp8_hybrid") || arguments_.is_on("fp8_e4m3");
    if (arguments_.has("fp4")) {
      put(run_.kernels, "linear", std::string("nvfp4"));
    } else {
      put(run_.kernels, "linear", std::string(is_fp8 ? fp8_format() : "bf16"));
    }
    if (arguments_.is_on("fp8_param_gather")) read_fp8_parameters();
    if (arguments_.is_on("activation_func_fp8_input_store")) {
      put(run_.training, "activation_input", std::string("fp8"));
    }
  }

  void read_fp8_parameters() {
    const Value* linear = run_.kernels.find("linear");
    const bool has_one_scale = linear->text == "fp8" || linear->text == "fp8_current" || linear->text == "fp8_blocks";
    if (has_one_scale && !model_.has_experts) {
      put(run_.training, "parameters", std::string("fp8"));
    } else {
      arguments_.note_unmodelled("fp8_param_gather", "parameters are gathered in bf16", effects::faster_and_smaller);
    }
  }

  std::string_view fp8_format() {
    constexpr auto formats = std::to_array<std::pair<std::string_view, std::string_view>>(
        {{"delayed", "fp8"}, {"tensorwise", "fp8_current"}, {"blockwise", "fp8_blocks"}, {"mxfp8", "mxfp8"}});
    const std::string recipe = arguments_.word("fp8_recipe", "delayed");
    for (const auto& [name, format] : formats) {
      if (recipe == name) return format;
    }
    arguments_.note_unmodelled("fp8_recipe", "casts are those of one scale a tensor, known beforehand",
                               effects::slower);
    return "fp8";
  }

  void read_dropout() {
    const double attention = arguments_.fraction("attention_dropout", 0.1);
    const double hidden = arguments_.fraction("hidden_dropout", 0.1);
    put_truth(run_.training, "dropout", attention > 0 || hidden > 0);
    if ((attention > 0) != (hidden > 0)) {
      arguments_.assume("dropout is simulated in attention and behind branches, though one of them has none");
    }
  }

  std::string_view attention() {
    const std::string backend = arguments_.word("attention_backend", "auto");
    if (backend == "unfused" || backend == "local") return "unfused";
    if (backend == "fused")
      arguments_.note_unmodelled("attention_backend",
                                 "the profile's flash attention (kernels.attention: cudnn, where it has that)",
                                 effects::other_time);
    if (is_plain() && backend == "auto") return arguments_.is_on("use_flash_attn") ? "flash" : "unfused";
    return "flash";
  }

  // ---- Recomputation

  void read_recomputation() {
    const std::string granularity =
        arguments_.word("recompute_granularity", arguments_.is_on("recompute_activations") ? "selective" : "none");
    if (granularity == "full") {
      put(run_.training, "recompute", std::string("full"));
      tell_partial();
    } else if (granularity == "selective") {
      run_.training.set("recompute", modules());
    } else if (granularity == "none") {
      put(run_.training, "recompute", std::string("none"));
    } else {
      arguments_.diagnostics().error(arguments_.position("recompute_granularity"),
                                     fmt::format("there is no recomputation '{}'", granularity),
                                     "known: full, selective");
    }
  }

  // Layers are computed again all or none.
  void tell_partial() {
    const std::string method = arguments_.word("recompute_method", "uniform");
    const std::int64_t count = arguments_.number("recompute_num_layers", layers, 1);
    const std::int64_t of_stage = model_.layers_of_stage;
    if (method == "block" && count < of_stage) {
      arguments_.note_unmodelled("recompute_num_layers",
                                 fmt::format("{} of the {} layers of a stage are computed again, here all of them; "
                                             "training.recompute: none is the other bound",
                                             count, of_stage),
                                 effects::faster_but_larger);
    } else if (method == "uniform" && count > 1) {
      arguments_.note_unmodelled("recompute_num_layers",
                                 "each layer keeps what it begins with, not each group of layers", effects::smaller);
    }
  }

  Value modules() {
    const std::vector<std::string> words = arguments_.words("recompute_modules");
    if (words.empty() || words == std::vector<std::string>{"core_attn"}) return Value::scalar("selective");
    Value list = Value::sequence();
    for (const std::string& word : words) {
      const auto known = std::find_if(recomputed_modules.begin(), recomputed_modules.end(),
                                      [&](const auto& module) { return module.first == word; });
      if (known != recomputed_modules.end()) {
        list.items.push_back(Value::scalar(std::string(known->second), arguments_.position("recompute_modules")));
      } else {
        arguments_.note_unmodelled("recompute_modules", fmt::format("'{}' is not computed again", word),
                                   effects::slower_but_smaller);
      }
    }
    return list.items.empty() ? Value::scalar("none") : list;
  }

  const MegatronArguments& arguments_;
  TrainedLayers model_;
  TrainingRun& run_;
};

}  // namespace

void read_megatron_recipe(const MegatronArguments& arguments, const TrainedLayers& model, TrainingRun& run) {
  RecipeReader(arguments, model, run).read();
}

}  // namespace hdpsim
