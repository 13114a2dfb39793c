#include "sim/import/impl/megatron_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace hdpsim {
namespace {

using Kind = ArgumentRule::Kind;
using Role = ArgumentRule::Role;

// What a study states of a training run: arguments with values, by the parts shape, batch, mesh and recipe ...
constexpr std::string_view stated_values = R"(
  num-layers encoder-num-layers hidden-size ffn-hidden-size num-attention-heads kv-channels num-query-groups
  max-position-embeddings position-embedding-type make-vocab-size-divisible-by vocab-size padded-vocab-size
  tokenizer-type normalization activation-func window-size window-attn-skip-freq mtp-num-layers q-lora-rank
  kv-lora-rank qk-head-dim qk-pos-emb-head-dim v-head-dim hybrid-layer-pattern hybrid-override-pattern
  hybrid-attention-ratio hybrid-mlp-ratio mtp-hybrid-override-pattern mamba-state-dim mamba-head-dim mamba-num-groups
  mamba-num-heads moe-latent-size experimental-attention-variant linear-attention-freq linear-conv-kernel-dim
  linear-key-head-dim linear-value-head-dim linear-num-key-heads linear-num-value-heads dsa-indexer-n-heads
  dsa-indexer-head-dim dsa-indexer-topk dsa-indexer-topk-freq dsa-indexer-skip-topk-offset dsa-indexer-loss-coeff
  num-experts moe-layer-freq moe-ffn-hidden-size moe-shared-expert-intermediate-size moe-router-topk
  moe-router-num-groups moe-router-group-topk moe-expert-capacity-factor moe-token-dispatcher-type
  moe-flex-dispatcher-backend
  micro-batch-size global-batch-size seq-length encoder-seq-length world-size
  tensor-model-parallel-size pipeline-model-parallel-size context-parallel-size cp-comm-type
  hierarchical-context-parallel-sizes expert-model-parallel-size expert-tensor-parallel-size
  num-layers-per-virtual-pipeline-stage num-virtual-stages-per-pipeline-rank virtual-pipeline-model-parallel-size
  decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers pipeline-model-parallel-layout
  main-params-dtype optimizer-offload-fraction
  fp8-recipe exp-avg-dtype exp-avg-sq-dtype num-distributed-optimizer-instances ddp-bucket-size recompute-granularity
  recompute-method recompute-num-layers recompute-modules optimizer attention-dropout hidden-dropout attention-backend
  transformer-impl cuda-graph-impl data-parallel-sharding-strategy
)";

// ... switches that turn something on ...
constexpr std::string_view stated_switches = R"(
  group-query-attention use-rotary-position-embeddings swiglu quick-geglu squared-relu gated-linear-unit
  untie-embeddings-and-output-weights add-qkv-bias qk-layernorm multi-latent-attention is-hybrid-model
  attention-output-gate dsa-indexer-use-sparse-loss moe-shared-expert-gate moe-enable-deepep moe-grouped-gemm
  moe-router-padding-for-quantization moe-router-padding-for-fp8 moe-router-fusion overlap-moe-expert-parallel-comm
  account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split
  bf16 fp16 activation-func-fp8-input-store fp8-hybrid fp8-e4m3 recompute-activations sequence-parallel
  use-distributed-optimizer overlap-grad-reduce overlap-param-gather tp-comm-overlap
  accumulate-allreduce-grads-in-fp32 grad-reduce-in-bf16 cross-entropy-loss-fusion use-flash-attn use-legacy-models
  optimizer-cpu-offload overlap-cpu-optimizer-d2h-h2d fp8-param-gather
  enable-cuda-graph external-cuda-graph use-torch-fsdp2 use-megatron-fsdp use-custom-fsdp use-tp-pp-dp-mapping
)";

// ... and those of another kind, or whose key has another name.
constexpr auto other_stated = std::to_array<ArgumentRule>({
    {.option = "nproc-per-node", .kind = Kind::launcher},
    {.option = "nnodes", .kind = Kind::launcher},
    {.option = "disable-bias-linear", .key = "add_bias_linear", .kind = Kind::turns_off},
    {.option = "num-moe-experts", .key = "num_experts"},
    {.option = "microbatch-group-size-per-virtual-pipeline-stage", .key = "microbatch_group_size_per_vp_stage"},
    {.option = "no-overlap-p2p-communication", .key = "overlap_p2p_comm", .kind = Kind::turns_off},
    {.option = "fp8-format", .key = "fp8"},
    {.option = "fp4-format", .key = "fp4"},
    {.option = "no-async-tensor-model-parallel-allreduce",
     .key = "async_tensor_model_parallel_allreduce",
     .kind = Kind::turns_off},
    {.option = "no-gradient-accumulation-fusion", .key = "gradient_accumulation_fusion", .kind = Kind::turns_off},
    {.option = "torch-fsdp2-no-reshard-after-forward",
     .key = "torch_fsdp2_reshard_after_forward",
     .kind = Kind::turns_off},
});

constexpr ArgumentRule unmodelled(std::string_view option, std::string_view follows, LikelyEffect effect,
                                  std::string_view usual = {}) {
  return {.option = option, .role = Role::unmodelled, .usual = usual, .follows = follows, .effect = effect};
}

constexpr ArgumentRule unmodelled_on(std::string_view option, std::string_view follows, LikelyEffect effect,
                                     std::string_view key = {}) {
  return {.option = option,
          .key = key,
          .kind = Kind::turns_on,
          .role = Role::unmodelled,
          .follows = follows,
          .effect = effect};
}

constexpr ArgumentRule unmodelled_off(std::string_view option, std::string_view key, std::string_view follows,
                                      LikelyEffect effect) {
  return {.option = option,
          .key = key,
          .kind = Kind::turns_off,
          .role = Role::unmodelled,
          .follows = follows,
          .effect = effect};
}

constexpr std::string_view as_one_kernel = "the kernels of such a chain are taken as one";
constexpr std::string_view plain_adam = "Adam with fp32 states on the device is simulated";
constexpr std::string_view each_alone = "what hides all-to-alls of experts is not simulated";
constexpr std::string_view in_own_precision = "layers all have the same products";
constexpr std::string_view one_document = "each sequence is one document, whose tokens all see those before them";
constexpr std::string_view stays = "activations stay on the device; a plan's offload is something else";
constexpr std::string_view fast_kernels = "kernels are the fast ones";
constexpr std::string_view gradients_follow = "weights' gradients follow those of inputs";
constexpr std::string_view all_trained = "all parameters are trained";
constexpr std::string_view pictures = "the encoder of pictures and its tokens are not simulated";

constexpr std::array unmodelled_arguments = std::to_array<ArgumentRule>({
    unmodelled("rampup-batch-size", "a step with the whole batch is simulated", effects::faster),
    unmodelled("softmax-type", "the softmax is the usual one", effects::other_time, "vanilla"),
    unmodelled("spec", "layers are those that the other arguments describe", effects::other_both),
    unmodelled("main-grads-dtype", plain_adam, effects::smaller, "fp32"),
    unmodelled("cpu-offloading-num-layers", stays, effects::slower_but_smaller, "0"),
    unmodelled_on("fine-grained-activation-offloading", stays, effects::slower_but_smaller),
    unmodelled("offload-modules", stays, effects::slower_but_smaller),
    unmodelled("min-offloaded-tensor-size", stays, effects::other_both, "1048576"),
    unmodelled_on("distribute-saved-activations", "each device keeps what layers begin with whole",
                  effects::slower_but_smaller),
    unmodelled_on("moe-shared-expert-overlap", each_alone, effects::faster),
    unmodelled_on("moe-pad-expert-input-to-capacity", "experts are not padded", effects::slower_and_larger),
    unmodelled_on("moe-permute-fusion", "tokens are permuted by kernels of their own", effects::faster),
    unmodelled("moe-deepep-num-sms", "all of the device computes while messages are sent", effects::other_time, "20"),
    unmodelled_on("moe-layer-recompute", "what is computed again is what --recompute-granularity says",
                  effects::slower_but_smaller),
    unmodelled_on("moe-extended-tp", "experts are cut or divided as the mesh says", effects::other_both),
    unmodelled_on("delay-wgrad-compute", gradients_follow, effects::faster_but_larger),
    unmodelled_on("defer-embedding-wgrad-compute", gradients_follow, effects::faster_but_larger),
    unmodelled_on("overlap-param-gather-with-optimizer-step",
                  "the optimizer's step ends before parameters are gathered", effects::faster),
    unmodelled_off("no-fp8-wgrad", "fp8_wgrad", "weights' gradients are products in fp8, too", effects::slower),
    unmodelled_on("first-last-layers-bf16", in_own_precision, effects::slower),
    unmodelled_on("keep-fp8-transpose-cache", "casts of weights stay once", effects::faster_but_larger),
    unmodelled_on("reuse-grad-buf-for-mxfp8-param-ag", "gathered parameters have memory of their own",
                  effects::smaller),
    unmodelled_on("enable-full-sharding-in-hsdp", "replicas of shards hold the same states", effects::smaller),
    unmodelled("cuda-graph-scope", "graphs hold whole passes", effects::other_time, "full"),
    unmodelled("high-priority-stream-groups", "all communicators have the same priority", effects::other_time),
    unmodelled("nccl-communicator-config-path", "communicators are those that NCCL makes by itself",
               effects::other_time),
    unmodelled_on("fsdp-double-buffer", "parameters that FSDP gathers have no second buffer", effects::larger),
    unmodelled_on("fp32-residual-connection", "the residual stream is bf16", effects::slower_and_larger),
    unmodelled_on("fp16-lm-cross-entropy", "the loss is computed on fp32 logits, unless it is fused", effects::smaller),
    unmodelled_on("memory-efficient-layer-norm", "norms keep what they read", effects::smaller),
    unmodelled_on("disable-mamba-mem-eff-path", "Mamba layers keep what the fused kernels keep",
                  effects::slower_and_larger),
    unmodelled_off("no-bias-gelu-fusion", "bias_gelu_fusion", as_one_kernel, effects::slower_and_larger),
    unmodelled_off("no-bias-swiglu-fusion", "bias_swiglu_fusion", as_one_kernel, effects::slower_and_larger),
    unmodelled_off("no-bias-dropout-fusion", "bias_dropout_fusion", as_one_kernel, effects::slower_and_larger),
    unmodelled_off("no-rope-fusion", "apply_rope_fusion", as_one_kernel, effects::slower_and_larger),
    unmodelled_off("no-masked-softmax-fusion", "masked_softmax_fusion", as_one_kernel, effects::slower_and_larger),
    unmodelled_off("no-scatter-gather-tensors-in-pipeline", "scatter_gather_tensors_in_pipeline",
                   "each device sends its part of what goes to the next stage", effects::slower),
    unmodelled_on("ddp-reduce-scatter-with-fp32-accumulation", "gradients are reduced in their own type",
                  effects::slower_and_larger),
    unmodelled_on("use-sharp", "the network does not reduce", effects::faster),
    unmodelled_on("use-nccl-ub", "collectives are those without registered buffers", effects::faster_but_larger,
                  "nccl_ub"),
    unmodelled_on("overlap-p2p-communication-warmup-flush", "messages of the first and last passes are waited for",
                  effects::faster, "overlap_p2p_comm_warmup_flush"),
    unmodelled_on("deterministic-mode", fast_kernels, effects::slower),
    unmodelled_on("batch-invariant-mode", fast_kernels, effects::slower),
    unmodelled("empty-unused-memory-level", "the allocator's cache stays", effects::slower_but_smaller, "0"),
    unmodelled_on("apply-residual-connection-post-layernorm", "norms precede branches", effects::other_memory),
    unmodelled_on("reset-attention-mask", one_document, effects::faster),
    unmodelled_on("sft", one_document, effects::faster),
    unmodelled_on("hybrid-context-parallel", "add the plan megatron-hybrid-cp, and your lengths", effects::other_both),
    unmodelled_on("dynamic-context-parallel", "add the plan megatron-dynamic-cp, and your lengths",
                  effects::other_both),
    unmodelled("max-seqlen-per-dp-cp-rank",
               "mesh.capacity is a micro-batch over the ranks that share it; with a plan by length it is this value",
               effects::other_both),
    unmodelled("sequence-packing-scheduler", "add the plan that packs so, and your lengths", effects::other_both),
    unmodelled("dsa-kernel-backend", "scores and attention to chosen keys are fused kernels", effects::slower,
               "tilelang"),
    unmodelled("manual-gc-interval", "garbage collection is not simulated", effects::slower, "0"),
    unmodelled("check-weight-hash-across-dp-replicas-interval", "the check is not simulated", effects::slower),
    unmodelled("freeze-LM", all_trained, effects::faster_and_smaller),
    unmodelled("freeze-ViT", all_trained, effects::faster_and_smaller),
    unmodelled("vision-model-type", pictures, effects::slower_and_larger),
    unmodelled("language-model-type", "the model is what the other arguments describe", effects::other_both),
    unmodelled_on("perform-rl-step", "a step of training is simulated, without what generates its samples",
                  effects::slower),
});

constexpr ArgumentRule refused(std::string_view option, Kind kind, std::string_view what, std::string_view usual = {}) {
  return {.option = option, .kind = kind, .role = Role::refused, .usual = usual, .follows = what};
}

constexpr std::string_view of_inference = "of a program that generates text: what is imported trains";

constexpr std::array other_models = std::to_array<ArgumentRule>({
    refused("decoder-num-layers", Kind::value, "of a model with an encoder and a decoder"),
    refused("decoder-seq-length", Kind::value, "of a model with an encoder and a decoder"),
    refused("heterogeneous-layers-config-path", Kind::value, "of a model whose layers all differ"),
    refused("heterogeneous-layers-config-encoded-json", Kind::value, "of a model whose layers all differ"),
    refused("retro-add-retriever", Kind::turns_on, "of a model with a retriever"),
    refused("batch-size", Kind::value, "an argument that Megatron-LM no longer has: write --micro-batch-size"),
    refused("model-parallel-size", Kind::value,
            "an argument that Megatron-LM no longer has: write --tensor-model-parallel-size"),
    refused("checkpoint-activations", Kind::turns_on,
            "an argument that Megatron-LM no longer has: write --recompute-granularity"),
    refused("model-provider", Kind::value, "of a program whose model is in its code, not in its arguments"),
    refused("sample-input-file", Kind::value, of_inference),
    refused("sample-output-file", Kind::value, of_inference),
    refused("genfile", Kind::value, of_inference),
    refused("out-seq-length", Kind::value, of_inference),
    refused("num-tokens-to-generate", Kind::value, of_inference),
    refused("max-tokens-to-generate", Kind::value, of_inference),
    refused("max-new-tokens", Kind::value, of_inference),
    refused("prompts", Kind::value, of_inference),
    refused("prompt-file", Kind::value, of_inference),
    refused("temperature", Kind::value, of_inference),
    refused("top-k", Kind::value, of_inference),
    refused("top-p", Kind::value, of_inference),
    refused("greedy", Kind::turns_on, of_inference),
});

// Known arguments that decide neither the kernels of a step nor its messages nor its memory, and keys of a checkpoint's
// `args` that follow from others.
constexpr std::string_view idle_names = R"(
  lr min-lr decoupled-lr decoupled-min-lr warmup override-opt-param-scheduler use-checkpoint-opt-param-scheduler
  override-opt_param-scheduler use-checkpoint-opt_param-scheduler
  weight-decay start-weight-decay end-weight-decay weight-decay-incr-style clip-grad sgd-momentum
  loss-scale initial-loss-scale min-loss-scale loss-scale-window hysteresis
  train-iters train-samples skip-train exit-interval exit-duration-in-mins exit-signal-handler exit-on-missing-checkpoint
  iterations-to-skip result-rejected-tracker-filename decrease-batch-size-if-needed train-sync-interval
  seed data-parallel-random-init init-method-std embedding-init-method-std init-method-xavier-uniform init-method
  output-layer-init-method perform-initialization no-initialization use-cpu-initialization
  init-model-with-meta-device
  save save-interval save-retain-interval persistent-save-interval no-save-optim no-save-rng load no-load-optim
  no-load-rng load-main-params-from-ckpt finetune pretrained-checkpoint use-checkpoint-args async-save
  use-mp-args-from-checkpoint-args use-tokenizer-model-from-checkpoint-args no-use-tokenizer-model-from-checkpoint-args
  use-dist-ckpt use-persistent-ckpt-worker auto-detect-ckpt-format strict-fsdp-dtensor-load
  no-strict-fsdp-dtensor-load no-ckpt-fully-parallel-save distrib-optim-fully-reshardable-mem-efficient
  data-path split train-data-path valid-data-path test-data-path data-args-path per-split-data-args-path
  data-cache-path mock-data mmap-bin-files no-mmap-bin-files num-workers dataloader-type reset-position-ids eod-mask-loss
  create-attention-mask-in-dataloader no-create-attention-mask-in-dataloader num-dataset-builder-threads
  object-storage-cache-path mid-level-dataset-surplus allow-ambiguous-pad-tokens sample-rate mask-prob short-seq-prob
  retriever-seq-length full-validation multiple-validation-sets test-mode
  vocab-file merge-file vocab-extra-ids tokenizer-model tokenizer-metadata legacy-tokenizer trust-remote-code
  tokenizer-prompt-format
  rotary-base rotary-percent rotary-interleaved rotary-seq-len-interpolation-factor rotary-scaling-factor
  use-rope-scaling rope-scaling-factor rope-type no-rope-freq mrope-section mscale mscale-all-dim
  add-position-embedding no-position-embedding relative-attention-num-buckets relative-attention-max-distance
  norm-epsilon layernorm-epsilon apply-layernorm-1p layernorm-zero-centered-gamma openai-gelu onnx-safe
  activation-func-clamp-value glu-linear-offset no-persist-layer-norm persist-layer-norm
  apply-query-key-layer-scaling attention-softmax-in-fp32
  disable-bf16-reduced-precision-matmul cross-entropy-fusion-impl
  fp8-margin fp8-interval fp8-amax-history-len fp8-amax-compute-algo fp8-quantizer-factory fp4-recipe
  fp4-quantizer-factory num-layers-at-start-in-bf16 num-layers-at-end-in-bf16 te-rng-tracker inference-rng-tracker
  use-te-activation-func
  moe-use-legacy-grouped-gemm moe-router-load-balancing-type moe-router-dtype
  moe-router-score-function moe-router-pre-softmax moe-router-topk-scaling-factor
  moe-router-enable-expert-bias moe-router-bias-update-rate moe-router-force-load-balancing
  moe-aux-loss-coeff moe-z-loss-coeff moe-input-jitter-eps moe-per-layer-logging
  moe-token-drop-policy moe-apply-probs-on-input moe-use-upcycling moe-upcycling-granularity
  moe-token-dropping mtp-loss-scaling-factor cache-mla-latents use-fused-weighted-squared-relu
  dsa-indexer-rope-interleaved dsa-indexer-rotate-activation dsa-indexer-scoring-relu
  dsa-indexer-k-norm-epsilon dsa-indexer-k-norm-fp32
  distributed-backend distributed-timeout-minutes distributed-timeout-seconds-after-init local-rank lazy-mpu-init
  pipeline-model-parallel-comm-backend
  bias-activation-fusion tp-comm-atomic-ag tp-comm-atomic-rs batch-p2p-comm batch-p2p-sync
  deallocate-pipeline-outputs cpu-offloading cpu-offloading-weights cpu-offloading-activations
  enable-gloo-process-groups disable-gloo-process-groups tp-comm-bootstrap-backend tp-comm-overlap-cfg
  tp-comm-overlap-ag tp-comm-overlap-rs tp-comm-overlap-rs-dgrad tp-comm-bulk-dgrad tp-comm-bulk-wgrad
  tp-comm-split-ag tp-comm-split-rs disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-bulk-dgrad
  disable-tp-comm-bulk-wgrad disable-tp-comm-split-ag disable-tp-comm-split-rs
  ddp-num-buckets ddp-pad-buckets-for-high-nccl-busbw ddp-average-in-collective align-grad-reduce
  no-align-grad-reduce align-param-gather no-align-param-gather gradient-reduce-div-fusion
  no-gradient-reduce-div-fusion suggested-communication-unit-size
  disable-symmetric-registration sharp-enabled-group use-ring-exchange-p2p
  wgrad-deferral-limit
  use-mcore-models deprecated-use-mcore-models clone-scatter-output-in-embedding no-clone-scatter-output-in-embedding
  check-for-nan-in-loss-and-grad no-check-for-nan-in-loss-and-grad check-for-spiky-loss check-for-large-grads
  calculate-per-token-loss manual-gc manual-gc-eval no-manual-gc-eval timing-log-level timing-log-option
  barrier-with-L1-time no-barrier-with-level-1-timing logging-level tensorboard wandb enable-one-logger
  app-tag-run-name app-tag-run-version enable-experimental yaml-cfg enable-msc disable-msc
  record-memory-history memory-snapshot-path use-pytorch-profiler no-log-loss-scale-to-tensorboard
  enable-ft-package calc-ft-timeouts error-injection-rate error-injection-type rerun-mode
  use-precision-aware-optimizer use-torch-optimizer-for-cpu-offload pin-cpu-grads
  pin-cpu-params no-pin-cpu-grads no-pin-cpu-params dump-param-to-param-group-map
  replication replication-jump replication-factor disable-straggler-on-startup run-workload-inspector-server
  adlr-autoresume adlr-autoresume-interval config-logger-dir test-data flash-decode symmetric-ar-type
  max-tokens-to-oom use-legacy-static-engine decode-only-cuda-graphs disable-chunked-prefill mlp-chunks-for-prefill
  nccl-all-reduce-for-prefill output-bert-embeddings cuda-graph-warmup-steps
  langrl-external-server langrl-inference-server-type langrl-inference-server-conversation-template
  rank data-parallel-size transformer-pipeline-model-parallel-size params-dtype iteration variable-seq-lengths
  do-train do-valid do-test padded-vocab-size-logged model-type encoder-tensor-model-parallel-size
  encoder-pipeline-model-parallel-size pipeline-model-parallel-split-rank hidden-act
  node-rank master-addr master-port rdzv-id rdzv-backend rdzv-endpoint rdzv-conf max-restarts monitor-interval
  start-method role module no-python run-path log-dir redirects tee local-addr standalone use-env
)";

// Beginnings of the names of whole families of such arguments.
constexpr std::array<std::string_view, 31> idle_families = {
    "adam-",    "muon-",    "lr-",        "log-",       "wandb-",          "tensorboard-", "one-logger-",
    "eval-",    "profile",  "ckpt-",      "dist-ckpt-", "non-persistent-", "tiktoken-",    "sft-",
    "rl-",      "grpo-",    "inference-", "retro-",     "bert-",           "biencoder-",   "ict-",
    "vision-",  "dino-",    "swin-",      "straggler-", "inprocess-",      "ft-",          "consumed-",
    "kitchen-", "indexer-", "rerun-"};

const ArgumentRule idle_rule{.option = "", .role = Role::idle};

// Every rule, those of idle arguments last.
const std::vector<ArgumentRule>& all_rules() {
  static const std::vector<ArgumentRule> rules = [] {
    std::vector<ArgumentRule> made;
    const auto add = [&made](const auto& table) { made.insert(made.end(), table.begin(), table.end()); };
    // A rule for each of the names, as `like` in all but the name.
    const auto add_named = [&made](std::string_view names, ArgumentRule like) {
      for (std::size_t end = 0, at = 0; (at = names.find_first_not_of(" \n", end)) != std::string_view::npos;) {
        end = names.find_first_of(" \n", at);
        like.option = names.substr(at, end - at);
        made.push_back(like);
      }
    };
    add_named(stated_values, {});
    add_named(stated_switches, {.option = {}, .kind = Kind::turns_on});
    add(other_stated);
    add(unmodelled_arguments);
    add(other_models);
    add_named(idle_names, idle_rule);
    return made;
  }();
  return rules;
}

using RulesByName = std::map<std::string, const ArgumentRule*, std::less<>>;

// By option and by key.
const RulesByName& rules_by_name() {
  static const RulesByName rules = [] {
    RulesByName made;
    for (const ArgumentRule& rule : all_rules()) {
      made.emplace(with_underscores(rule.option), &rule);
      made.emplace(key_of(rule), &rule);
    }
    return made;
  }();
  return rules;
}

}  // namespace

std::string with_underscores(std::string_view name) {
  while (name.starts_with('-')) name.remove_prefix(1);
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string key_of(const ArgumentRule& rule) {
  return rule.key.empty() ? with_underscores(rule.option) : std::string(rule.key);
}

std::vector<const ArgumentRule*> active_rules() {
  std::vector<const ArgumentRule*> all;
  for (const ArgumentRule& rule : all_rules()) {
    if (rule.role != Role::idle) all.push_back(&rule);
  }
  return all;
}

bool is_of_inference(std::string_view name) {
  const ArgumentRule* rule = rule_of(name);
  return rule != nullptr && rule->role == Role::refused && rule->follows == of_inference;
}

const ArgumentRule* rule_of(std::string_view name) {
  const std::string plain = with_underscores(name);
  const auto found = rules_by_name().find(plain);
  if (found != rules_by_name().end()) return found->second;
  const bool is_idle = std::any_of(idle_families.begin(), idle_families.end(), [&](std::string_view family) {
    return plain.starts_with(with_underscores(family));
  });
  return is_idle ? &idle_rule : nullptr;
}

}  // namespace hdpsim
