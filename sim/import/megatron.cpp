#include "sim/import/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/import/impl/megatron_arguments.h"
#include "sim/import/impl/megatron_model.h"
#include "sim/import/impl/stated_keys.h"
#include "sim/program/layer_layout.h"
#include "sim/program/schedule.h"
#include "sim/study/megatron_refusals.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

constexpr std::array<std::string_view, 3> virtual_stage_arguments = {"num_virtual_stages_per_pipeline_rank",
                                                                     "num_layers_per_virtual_pipeline_stage",
                                                                     "virtual_pipeline_model_parallel_size"};

// Programs of Megatron-LM that train something else than a language model, by the beginning of their names.
constexpr std::array<std::string_view, 7> other_programs = {"pretrain_bert",  "pretrain_t5",    "pretrain_ict",
                                                            "pretrain_realm", "pretrain_retro", "pretrain_vision",
                                                            "pretrain_vlm"};

class MegatronReader {
 public:
  MegatronReader(const ArgumentList& list, const std::string& file, const ImportOptions& options,
                 Diagnostics& diagnostics)
      : options_(options),
        diagnostics_(diagnostics),
        world_size_(list.world_size),
        job_(list.job),
        arguments_(list, file, diagnostics, run_.notes) {
    run_.framework = "Megatron-LM";
    if (list.program) check_program(*list.program);
    run_.notes.insert(run_.notes.end(), list.notes.begin(), list.notes.end());
  }

  TrainingRun read() {
    read_degrees();
    run_.gpus = devices();
    read_batch();
    read_model();
    read_pipeline();
    read_sharing();
    read_experts();
    read_megatron_recipe(arguments_, {.has_experts = has_experts_, .layers_of_stage = layers_ / (run_.pp * chunks_)},
                         run_);
    arguments_.assume(
        "framework: Megatron-Core with Transformer Engine, whose defaults are taken for what is not stated");
    run_.places = places_of(arguments_);
    return std::move(run_);
  }

 private:
  void read_model() {
    if (!options_.model) {
      run_.configuration = megatron_model(arguments_, run_.tp, options_.vocabulary);
      has_experts_ = has_experts(arguments_);
      layers_ = layers_stated();
      return;
    }
    run_.model = options_.model->value;
    run_.configuration = options_.model->configuration;
    has_experts_ = options_.model->has_experts;
    layers_ = options_.model->layers;
    arguments_.assume("the model is that of --model, whatever the arguments say of its shape");
  }

  void check_program(const ArgumentValue& program) {
    const std::string name = program.text.substr(program.text.find_last_of('/') + 1);
    if (name.starts_with("pretrain_gpt")) return;
    const auto is_of = [&](std::string_view begin) { return name.starts_with(begin); };
    const bool trains_hybrids = is_of("pretrain_mamba") || is_of("pretrain_hybrid");
    if (std::any_of(other_programs.begin(), other_programs.end(), is_of)) {
      diagnostics_.unsupported(program.position, fmt::format("{} trains another kind of model than GPT", name));
    } else if (!trains_hybrids) {
      arguments_.assume(fmt::format("{} trains the model that its arguments describe", name), program.position);
    } else if (!is_hybrid(arguments_)) {
      diagnostics_.error(program.position, fmt::format("{} trains a hybrid, and nothing states its layers", name),
                         fmt::format("write --hybrid-layer-pattern, a letter a layer: {}", hybrid_letters_known));
    }
  }

  // ---- Degrees, devices, batch

  void read_degrees() {
    run_.tp = arguments_.number("tensor_model_parallel_size", degree, 1);
    run_.pp = arguments_.number("pipeline_model_parallel_size", degree, 1);
    run_.cp = arguments_.number("context_parallel_size", degree, 1);
  }

  std::int64_t devices() {
    const bool is_needed = !options_.gpus || arguments_.is_number("nproc_per_node");
    const auto per_node = is_needed ? arguments_.number("nproc_per_node", degree) : std::nullopt;
    if (per_node) run_.gpus_per_node = *per_node;
    if (options_.gpus) return *options_.gpus;
    const bool counts_nodes = arguments_.has("nnodes") && arguments_.word("nnodes", "1").find(':') == std::string::npos;
    if (per_node && counts_nodes) return *per_node * arguments_.number("nnodes", degree, 1);
    if (const auto launched = job_.gpus(per_node)) {
      if (!per_node) run_.gpus_per_node = job_.per_node;
      return *launched;
    }
    if (per_node && !arguments_.has("nnodes")) return *per_node;
    if (const auto stated = arguments_.number("world_size", gpus)) return *stated;
    if (world_size_ && world_size_->unset.empty()) {
      const Value value = Value::scalar(world_size_->text, world_size_->position);
      return read_in<std::int64_t>(value, "WORLD_SIZE", gpus, diagnostics_).value_or(0);
    }
    if (arguments_.has("nproc_per_node") && !per_node) return 0;  // which is reported
    diagnostics_.error({arguments_.file(), 0, 0}, "nothing states how many GPUs the job has",
                       "--gpus N states it; so do torchrun, srun, mpirun, deepspeed, accelerate and #SBATCH lines");
    return 0;
  }

  void read_batch() {
    run_.sequence = options_.context ? *options_.context
                    : arguments_.has("seq_length") || !arguments_.has("encoder_seq_length")
                        ? arguments_.required("seq_length", tokens)
                        : arguments_.required("encoder_seq_length", tokens);
    run_.micro_batch = std::max<std::int64_t>(arguments_.required("micro_batch_size", sequences), 1);
    const std::int64_t replicas = std::max<std::int64_t>(run_.gpus / (run_.tp * run_.pp * run_.cp), 1);
    run_.global_batch = arguments_.number("global_batch_size", sequences, run_.micro_batch * replicas);
    if (!arguments_.has("global_batch_size")) {
      arguments_.assume(
          fmt::format("the batch is one micro-batch of {} on each of {} replicas, as no "
                      "--global-batch-size is stated",
                      run_.micro_batch, replicas));
    }
    if (run_.gpus == 0 || run_.sequence == 0) return;
    check_divisions(run_,
                    {.devices = arguments_.position("tensor_model_parallel_size"),
                     .batch = arguments_.position("global_batch_size"),
                     .context_parallel = arguments_.position("context_parallel_size"),
                     .degrees = "tensor x pipeline x context parallelism",
                     .micro_batch = "--micro-batch-size"},
                    diagnostics_);
  }

  [[nodiscard]] std::int64_t layers_stated() const {
    Diagnostics reported_before;
    const auto count = [&](std::string_view key) -> std::int64_t {
      const std::vector<std::string> words = arguments_.words(key);
      if (words.size() != 1) return 0;
      return read_in<std::int64_t>(Value::scalar(words[0]), key, layers, reported_before).value_or(0);
    };
    const std::int64_t stated = count(arguments_.has("num_layers") ? "num_layers" : "encoder_num_layers");
    return is_hybrid(arguments_) ? std::ssize(hybrid_letters(arguments_, stated)) : stated;
  }

  // ---- Pipeline

  void read_pipeline() {
    if (run_.pp > 1) read_split();
    chunks_ = virtual_stages();
    const bool combines = arguments_.is_on("overlap_moe_expert_parallel_comm");
    if (combines && chunks_ == 1) {
      arguments_.note_unmodelled("overlap_moe_expert_parallel_comm",
                                 "without virtual stages nothing hides all-to-alls of experts",
                                 effects::faster_but_larger);
    }
    if (run_.pp == 1) return;
    put(run_.mesh, "schedule", std::string(chunks_ == 1 ? "1f1b" : combines ? "combined-1f1b" : "interleaved"));
    if (chunks_ > 1) put(run_.mesh, "virtual_stages", chunks_);
    put(run_.training, "overlap_p2p_comm", std::string(arguments_.is_on("overlap_p2p_comm") ? "interleaved" : "never"));
    if (chunks_ > 1) check_interleaving();
    if (arguments_.has("microbatch_group_size_per_vp_stage") && chunks_ > 1 &&
        arguments_.number("microbatch_group_size_per_vp_stage", sequences, run_.pp) != run_.pp) {
      arguments_.note_unmodelled("microbatch_group_size_per_vp_stage", "groups are of as many as there are stages",
                                 effects::other_both);
    }
    if (arguments_.has("pipeline_model_parallel_layout") || hybrid_segments(arguments_) > 1) return;
    if (layers_ > 0 && !dealt_alike()) {
      diagnostics_.error(arguments_.position("pipeline_model_parallel_size"),
                         fmt::format("{} stages do not divide {} layers", run_.pp, layers_));
    }
  }

  void check_interleaving() {
    const std::int64_t replicas = run_.gpus / (run_.tp * run_.pp * run_.cp);
    if (replicas == 0 || run_.global_batch % (run_.micro_batch * replicas) != 0)
      return;  // reported by check_divisions()
    const std::int64_t micro_batches = run_.global_batch / (run_.micro_batch * replicas);
    const std::int64_t group = arguments_.number("microbatch_group_size_per_vp_stage", sequences, run_.pp);
    const std::string problem = interleaving_problem(micro_batches, run_.pp, std::max(group, run_.pp));
    if (problem.empty()) return;
    diagnostics_.error(arguments_.position("pipeline_model_parallel_size"),
                       fmt::format("Megatron-LM does not run {}", problem),
                       "choose another --global-batch-size, or no virtual stages");
  }

  // How many layers the first and the last stage have, and what counts as one.
  void read_split() {
    const std::string layout = arguments_.word("pipeline_model_parallel_layout", "");
    if (!layout.empty()) {
      put(run_.mesh, "layout", layout);
      const LayerLayout read = read_layout(layout);
      if (!read.problem.empty()) {
        diagnostics_.error(arguments_.position("pipeline_model_parallel_layout"),
                           fmt::format("'{}' is no layout of layers: {}", layout, read.problem));
      }
      split_.layout = read.layers;
      return;
    }
    const auto stage = [&](std::string_view argument, const char* key) {
      const std::int64_t count = arguments_.number(argument, layers, 0);
      if (count > 0) put(run_.mesh, key, count);
      return count;
    };
    split_.first_stage = stage("decoder_first_pipeline_num_layers", "first_stage_layers");
    split_.last_stage = stage("decoder_last_pipeline_num_layers", "last_stage_layers");
    split_.counts_embedding = arguments_.is_on("account_for_embedding_in_pipeline_split");
    split_.counts_loss = arguments_.is_on("account_for_loss_in_pipeline_split");
    if (split_.counts_embedding) put_truth(run_.mesh, "account_for_embedding", true);
    if (split_.counts_loss) put_truth(run_.mesh, "account_for_loss", true);
  }

  [[nodiscard]] std::int64_t counted_layers() const {
    return layers_ + (split_.counts_embedding ? 1 : 0) + (split_.counts_loss ? 1 : 0);
  }

  // Megatron-LM deals nothing that is left over: the stages that are not stated have as many layers each.
  [[nodiscard]] bool dealt_alike() const {
    const std::int64_t counted = counted_layers() - split_.first_stage - split_.last_stage;
    const std::int64_t others = run_.pp - (split_.first_stage > 0 ? 1 : 0) - (split_.last_stage > 0 ? 1 : 0);
    return others == 0 ? counted == 0 : counted > 0 && counted % others == 0;
  }

  std::int64_t virtual_stages() {
    arguments_.refuse_second_of(virtual_stage_arguments);
    if (const std::int64_t segments = hybrid_segments(arguments_); segments > 1) {
      for (const std::string_view name : virtual_stage_arguments) refuse_with_bars(name);
      return chunks_of(segments, hybrid_argument(arguments_));
    }
    if (!split_.layout.empty()) return chunks_of(std::ssize(split_.layout), "pipeline_model_parallel_layout");
    if (const auto chunks = arguments_.number("num_virtual_stages_per_pipeline_rank", degree)) return *chunks;
    if (const auto each = arguments_.number("num_layers_per_virtual_pipeline_stage", layers)) {
      const std::int64_t of_stage = counted_layers() / run_.pp;
      if (layers_ > 0 && of_stage % *each != 0) {
        diagnostics_.error(arguments_.position("num_layers_per_virtual_pipeline_stage"),
                           fmt::format("{} layers in a chunk do not divide the {} of a stage", *each, of_stage));
      }
      return std::max<std::int64_t>(of_stage / *each, 1);
    }
    return arguments_.number("virtual_pipeline_model_parallel_size", degree, 1);
  }

  void refuse_with_bars(std::string_view name) {
    if (!arguments_.has(name)) return;
    diagnostics_.error(arguments_.position(name),
                       fmt::format("'{}' says what the bars of the pattern say already", name),
                       "remove it, or the bars");
  }

  // Bars in a layout, or in a hybrid's letters, end chunks.
  std::int64_t chunks_of(std::int64_t segments, std::string_view argument) {
    if (segments % run_.pp != 0) {
      diagnostics_.error(arguments_.position(argument),
                         fmt::format("{} parts between bars are no multiple of {} stages", segments, run_.pp));
    }
    return std::max<std::int64_t>(segments / run_.pp, 1);
  }

  // ---- Context parallelism

  // One word for all layers, or one each.
  void read_sharing() {
    if (attention_variant(arguments_) == AttentionVariant::indexer) return gather_keys();
    const std::vector<std::string> words = arguments_.words("cp_comm_type");
    if (words.empty() || run_.cp == 1) return;
    const std::string& word = words.front();
    if (std::any_of(words.begin(), words.end(), [&](const std::string& other) { return other != word; })) {
      return arguments_.note_unmodelled("cp_comm_type", "in all layers keys and values go around a ring (p2p)",
                                        effects::other_time);
    }
    const std::vector<std::string> sizes = arguments_.words("hierarchical_context_parallel_sizes");
    const std::int64_t subgroup = sizes.size() == 2 ? parse_count(sizes.front()).value.value_or(0) : 0;
    if (word == "all_gather" || word == "a2a") {
      put(run_.mesh, "cp_comm_type", word);
    } else if (word == "a2a+p2p" && subgroup > 0) {
      put(run_.mesh, "cp_comm_type", std::string("a2a"));
      put(run_.mesh, "a2a_ranks", subgroup);
    } else if (word == "a2a+p2p") {
      diagnostics_.error(arguments_.position("cp_comm_type"), "a2a+p2p needs the ranks of both levels",
                         "write --hierarchical-context-parallel-sizes, as in 4 2");
    } else {
      require_exchange(word);
    }
  }

  void require_exchange(const std::string& word) {
    if (word == "p2p" || word == "all_gather" || word == "a2a" || word == "a2a+p2p") return;
    diagnostics_.error(arguments_.position("cp_comm_type"), fmt::format("'{}' is no way to share keys", word),
                       "p2p, all_gather, a2a or a2a+p2p");
  }

  void gather_keys() {
    put(run_.mesh, "cp_comm_type", std::string("all_gather"));
    for (const std::string& word : arguments_.words("cp_comm_type")) require_exchange(word);
    if (run_.cp == 1 || arguments_.word("cp_comm_type", "p2p") == "all_gather") return;
    arguments_.assume("ranks all-gather the keys among which their queries choose",
                      arguments_.has("cp_comm_type") ? arguments_.position("cp_comm_type") : Position{});
  }

  // ---- Experts

  void read_experts() {
    const std::int64_t ep = arguments_.number("expert_model_parallel_size", degree, 1);
    const std::int64_t cut = arguments_.number("expert_tensor_parallel_size", degree, run_.tp);
    if (!has_experts_) {
      if (ep > 1) {
        diagnostics_.error(arguments_.position("expert_model_parallel_size"),
                           fmt::format("'expert_model_parallel_size' is {}, but the model has no experts", ep),
                           "state --num-experts, or remove it");
      }
      return;
    }
    const ExpertDivision division = expert_division(ep, cut);
    if (ep > 1) put(run_.mesh, "ep", ep);
    if (division.etp > 1) put(run_.mesh, "etp", division.etp);
    if (run_.tp % division.devices() != 0) {
      put(run_.moe, "across", std::string("waves"));
      run_.remarks["moe.across"] = "here: all ranks have equally many micro-batches of one length";
    }
    if (arguments_.has("moe_expert_capacity_factor")) {
      run_.moe.set("capacity_factor", Value::scalar(arguments_.word("moe_expert_capacity_factor", "none"),
                                                    arguments_.position("moe_expert_capacity_factor")));
    }
    arguments_.assume("all experts get equally many tokens (moe.routing: uniform)");
    if (!arguments_.is_on("moe_grouped_gemm")) {
      arguments_.note_unmodelled("moe_grouped_gemm", "products of a device's experts are grouped without it, too",
                                 effects::slower);
    }
    if (arguments_.is_on("moe_router_padding_for_quantization") || arguments_.is_on("moe_router_padding_for_fp8")) {
      put_truth(run_.moe, "router_padding", true);
    }
    if (ep > 1) read_dispatch(division);
  }

  // Megatron-LM sends tokens once to each node where its flexible dispatcher calls DeepEP or Hybrid-EP.
  void read_dispatch(const ExpertDivision& division) {
    const std::string dispatcher = arguments_.word("moe_token_dispatcher_type", "allgather");
    const std::string backend = arguments_.word("moe_flex_dispatcher_backend", "deepep");
    const bool is_hybrid = dispatcher == "flex" && backend == "hybridep";
    const bool is_per_node = dispatcher == "flex" && (arguments_.is_on("moe_enable_deepep") || backend == "deepep");
    if ((is_hybrid || is_per_node) && division.etp > 1) {
      arguments_.note_unmodelled("moe_token_dispatcher_type",
                                 "copies for experts that are cut travel in all-to-alls, not once to each node",
                                 effects::faster);
    } else if (is_hybrid) {
      put(run_.moe, "dispatch", std::string("hybrid_ep"));
    } else if (is_per_node) {
      put(run_.moe, "dispatch", std::string("per_node"));
    } else if (dispatcher != "alltoall") {
      arguments_.note_unmodelled("moe_token_dispatcher_type",
                                 "copies of tokens travel in all-to-alls (default: allgather)",
                                 effects::slower_and_larger);
    }
  }

  // Devices that cut experts are some of those of tp.
  ExpertDivision expert_division(std::int64_t ep, std::int64_t cut) {
    if (ep == 1 && cut < run_.tp) {
      arguments_.note_unmodelled("expert_tensor_parallel_size", "without expert groups each expert is cut over tp",
                                 effects::larger);
    }
    if (cut <= run_.tp) return {ep, ep > 1 ? cut : 1};
    arguments_.note_unmodelled("expert_tensor_parallel_size",
                               fmt::format("experts are cut over the {} devices of tp, not more", run_.tp),
                               effects::other_time);
    return {ep, ep > 1 ? run_.tp : 1};
  }

  const ImportOptions& options_;
  Diagnostics& diagnostics_;
  std::optional<ArgumentValue> world_size_;
  LaunchedJob job_;
  TrainingRun run_;
  MegatronArguments arguments_;
  std::int64_t layers_ = 0;
  LayerSplit split_;
  std::int64_t chunks_ = 1;  // of layers on each stage
  bool has_experts_ = false;
};

}  // namespace

TrainingRun read_megatron(const ArgumentList& list, const std::string& file, const ImportOptions& options,
                          Diagnostics& diagnostics) {
  return MegatronReader(list, file, options, diagnostics).read();
}

}  // namespace hdpsim
