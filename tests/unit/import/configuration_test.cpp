#include "sim/import/configuration.h"

#include <algorithm>
#include <string>

#include "sim/import/impl/config_format.h"
#include "tests/unit/import/configuration_runs.h"

namespace hdpsim::test::configuration {
namespace {

constexpr char factory_full[] = R"(model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: full
deepspeed: ds_z3.json
cutoff_len: 32768
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
learning_rate: 1.0e-5
bf16: true
)";
constexpr char zero_3[] = R"({"bf16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto",
 "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true}}})";

// ---- LLaMA-Factory

TEST_CASE("LLaMA-Factory's full training with DeepSpeed becomes its batch, its stage and its recomputation",
          "[import]") {
  const ReadTraining made = good(read({{"train.yaml", factory_full}}, {.gpus = 16}, {{"ds_z3.json", zero_3}}));
  CHECK(made.run.framework == "LLaMA-Factory");
  CHECK(ReadTraining::text(made.run.configuration, "num_hidden_layers") == "28");
  CHECK(made.run.sequence == 32'768);
  CHECK(made.run.micro_batch == 2);
  CHECK(made.run.global_batch == 2 * 4 * 16);  // sequences of each rank in each of four micro-batches
  CHECK(made.run.framework_preset == "deepspeed-zero3");
  CHECK(made.mesh("zero") == "3");
  CHECK(made.host("optimizer") == "1");
  CHECK(made.host("parameters") == "absent");
  CHECK(made.training("recompute") == "full");  // unless it is disabled
  CHECK(made.training("early_stop") == "false");
  CHECK(made.kernels("layers") == "eager");
  CHECK(made.note(Kind::ignored, "learning_rate") == "learning_rate");
  CHECK(made.note(Kind::ignored, "pin_memory") == "zero_optimization.offload_optimizer.pin_memory");
}

TEST_CASE("a file that another one names may stand beside it on the command line", "[import]") {
  const ReadTraining given = good(read({{"train.yaml", factory_full}, {"my/ds_z3.json", zero_3}}, {.gpus = 16}));
  CHECK(given.mesh("zero") == "3");
  const std::string missing = read({{"train.yaml", factory_full}}, {.gpus = 16}).problems.text();
  CHECK_THAT(missing, Catch::Contains("train.yaml:4:12: error: 'ds_z3.json' is not there"));
  CHECK_THAT(missing, Catch::Contains("hdpsim import train.yaml .../ds_z3.json reads both"));
}

TEST_CASE("adapters of LLaMA-Factory are those of its products, on weights of as many bits as it says", "[import]") {
  const std::string text =
      "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: lora\nlora_rank: 16\n"
      "lora_target: q_proj,v_proj,lm_head\nquantization_bit: 4\ncutoff_len: 4096\npacking: true\nneat_packing: true\n"
      "per_device_train_batch_size: 1\nbf16: true\n";
  const ReadTraining made = good(read({{"train.yaml", text}}, {.gpus = 8}));
  CHECK(made.lora("rank") == "16");
  CHECK(made.lora("base") == "nf4_double");
  REQUIRE(made.run.training.find("lora")->find("targets") != nullptr);
  CHECK(made.run.training.find("lora")->find("targets")->items.size() == 2);
  CHECK_THAT(made.note(Kind::unmodelled, "adapters of lm_head"), Catch::Contains("they have none"));
  CHECK(made.plan("packing") == "llamafactory");
  CHECK(made.mesh("zero") == "0");  // no file shards anything
  CHECK(made.training("parameters") == "fp32");
  const ReadTraining all = good(read({{"train.yaml",
                                       "model_name_or_path: Qwen/Qwen3-8B\nfinetuning_type: lora\n"
                                       "lora_target: all\ncutoff_len: 4096\n"}},
                                     {.gpus = 8}));
  CHECK(all.run.training.find("lora")->find("targets") == nullptr);
  CHECK(all.run.micro_batch == 8);  // the Trainer's default
  CHECK_THAT(all.note(Kind::assumed, "default where nothing states it"), Catch::Contains("8"));
}

TEST_CASE("a preference is a pair of sequences, and the reference model is told", "[import]") {
  const std::string text =
      "model_name_or_path: Qwen/Qwen3-8B\nstage: dpo\nfinetuning_type: full\ncutoff_len: 2048\n"
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n";
  const ReadTraining made = good(read({{"train.yaml", text}}, {.gpus = 8}));
  CHECK(made.run.micro_batch == 2);
  CHECK(made.run.global_batch == 2 * 8 * 8);
  CHECK_THAT(made.note(Kind::unmodelled, "reference model"), Catch::Contains("takes longer and needs more memory"));
}

// ---- Trainer, TRL, Accelerate, DeepSpeed

constexpr char trl_sft[] = R"(model_name_or_path: Qwen/Qwen3-4B
max_length: 16384
packing: true
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
gradient_checkpointing: true
gradient_checkpointing_kwargs: {use_reentrant: false}
use_liger_kernel: true
bf16: true
)";

TEST_CASE("TRL's configuration and Accelerate's say together what is trained and how it is sharded", "[import]") {
  const std::string fsdp2 =
      "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n"
      "fsdp_config:\n  fsdp_version: 2\n  fsdp_reshard_after_forward: true\n"
      "parallelism_config:\n  parallelism_config_cp_size: 4\n";
  const Files files = {{"accelerate.yaml", fsdp2}, {"sft.yaml", trl_sft}};
  const ReadTraining made = good(read(files));
  CHECK(made.run.gpus == 16);
  CHECK(made.run.gpus_per_node == 8);
  CHECK(made.run.cp == 4);
  CHECK(made.mesh("cp_comm_type") == "all_gather");
  CHECK(made.run.global_batch == 1 * 2 * 16 / 4);
  CHECK(made.run.framework_preset == "fsdp2-huggingface");
  CHECK(made.training("early_stop") == "true");
  CHECK(made.training("loss") == "liger");
  CHECK(made.kernels("fused_norms") == "true");
  CHECK(made.plan("packing") == "trl");
}

TEST_CASE("strategies of FSDP1 become levels of sharding, and copies of it", "[import]") {
  const auto sharded = [](const std::string& keys) {
    return good(
        read({{"sft.yaml", trl_sft},
              {"fsdp.yaml", "distributed_type: FSDP\nnum_processes: 32\nnum_machines: 4\nfsdp_config:\n" + keys}}));
  };
  CHECK(sharded("  fsdp_sharding_strategy: FULL_SHARD\n").mesh("zero") == "3");
  CHECK(sharded("  fsdp_sharding_strategy: FULL_SHARD\n").training("shards") == "flat");
  CHECK(sharded("  fsdp_sharding_strategy: SHARD_GRAD_OP\n").mesh("zero") == "2");
  CHECK(sharded("  fsdp_sharding_strategy: NO_SHARD\n").mesh("zero") == "0");
  const ReadTraining hybrid = sharded("  fsdp_sharding_strategy: HYBRID_SHARD\n");
  CHECK(hybrid.mesh("zero") == "3");
  CHECK(hybrid.mesh("shard_ranks") == "8");  // of a node
  const ReadTraining offloaded = sharded("  fsdp_offload_params: true\n");
  CHECK(offloaded.host("parameters") == "true");
  CHECK(offloaded.host("updates_per_s") == std::to_string(torch_updates_per_s));
  const ReadTraining wrapped = sharded("  fsdp_auto_wrap_policy: SIZE_BASED_WRAP\n  fsdp_surprise: 1\n");
  CHECK_THAT(wrapped.note(Kind::unmodelled, "fsdp_auto_wrap_policy"), Catch::Contains("each layer is a unit"));
  CHECK(wrapped.note(Kind::unknown, "fsdp_surprise") == "fsdp_config.fsdp_surprise");
}

TEST_CASE("a DeepSpeed configuration alone says what else has to be stated, all at once", "[import]") {
  const std::string told = read({{"ds.json", zero_3}}).problems.text();
  for (const char* option : {"--gpus N", "--model NAME", "--context TOKENS"}) {
    CAPTURE(option);
    CHECK_THAT(told, Catch::Contains(option));
  }
  ImportOptions options{.gpus = 8, .context = 4096};
  options.model = hub_model("Qwen/Qwen3-8B", Catalog(HDPSIM_SOURCE_DIR));
  const std::string zero_2 =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true},
          "zero_optimization": {"stage": 2, "zero_quantized_gradients": true}, "data_types": {"grad_accum_dtype": "fp32"}})";
  const ReadTraining made = good(read({{"ds.json", zero_2}}, options));
  CHECK(made.run.sequence == 4096);
  CHECK(made.run.global_batch == 64);
  CHECK(made.run.micro_batch == 2);
  CHECK(made.mesh("zero") == "2");
  CHECK(made.training("gradients") == "fp32");
  CHECK_THAT(made.note(Kind::unmodelled, "zero_quantized_gradients"), Catch::Contains("less time"));
}

TEST_CASE("what the Trainer states without a place in a study is told with its likely effect", "[import]") {
  const std::string text = std::string(trl_sft) +
                           "group_by_length: true\nactivation_offloading: true\n"
                           "optim: adafactor\nmy_fused_lm_head: true\nmystery: 3\n";
  const ReadTraining made = good(read({{"sft.yaml", text}}, {.gpus = 8}));
  CHECK_THAT(made.note(Kind::unmodelled, "group_by_length"), Catch::Contains("takes less time"));
  CHECK_THAT(made.note(Kind::unmodelled, "activation_offloading"), Catch::Contains("needs less memory"));
  CHECK_THAT(made.note(Kind::unmodelled, "adafactor"), Catch::Contains("needs less memory"));
  CHECK_THAT(made.note(Kind::unknown, "my_fused_lm_head"), Catch::Contains("needs less memory"));
  CHECK(made.note(Kind::unknown, "mystery") == "mystery");
}

TEST_CASE("optimizers of the Trainer become types of moments", "[import]") {
  const auto moments = [](const std::string& name) {
    return good(read({{"sft.yaml", std::string(trl_sft) + "optim: " + name + "\n"}}, {.gpus = 8})).training("moments");
  };
  CHECK(moments("adamw_torch_fused") == "absent");
  CHECK(moments("adamw_bnb_8bit") == "int8");
  CHECK(moments("paged_adamw_8bit") == "int8");
  CHECK(moments("adamw_torch_4bit") == "int4");
}

TEST_CASE("a training in fp32 is refused, and without a type it is taken as bf16, which is said", "[import]") {
  const std::string wide = "model_name_or_path: Qwen/Qwen3-4B\nmax_length: 1024\nper_device_train_batch_size: 1\n";
  CHECK_THAT(read({{"sft.yaml", wide + "bf16: false\n"}}, {.gpus = 8}).problems.text(),
             Catch::Contains("sft.yaml:4:7: error: training in fp32 cannot be simulated"));
  CHECK_THAT(good(read({{"sft.yaml", wide}}, {.gpus = 8})).note(Kind::assumed, "bf16"),
             Catch::Contains("nothing states another type"));
}

// ---- axolotl

TEST_CASE("axolotl's configuration becomes adapters, packs and a ring", "[import]") {
  const std::string text =
      "base_model: NousResearch/Meta-Llama-3.1-8B\nadapter: qlora\nlora_r: 32\nlora_target_linear: true\n"
      "load_in_4bit: true\nsequence_len: 8_192\nsample_packing: true\nmicro_batch_size: 1\n"
      "gradient_accumulation_steps: 4\noptimizer: paged_adamw_8bit\nbf16: auto\ngradient_checkpointing: true\n"
      "context_parallel_size: 2\nplugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n"
      "lora_mlp_kernel: true\nspecial_tokens: {pad_token: x}\n";
  const ReadTraining made = good(read({{"a.yml", text}}, {.gpus = 8}));
  CHECK(made.run.sequence == 8192);
  CHECK(made.run.cp == 2);
  CHECK(made.mesh("cp_comm_type") == "all_gather");  // varlen_llama3, where samples are packed
  CHECK(made.run.global_batch == 1 * 4 * 8 / 2);
  CHECK(made.lora("base") == "nf4_double");
  CHECK(made.plan("packing") == "axolotl");
  CHECK(made.training("moments") == "int8");
  CHECK(made.training("loss") == "cut");
  CHECK_THAT(made.note(Kind::unmodelled, "lora_mlp_kernel"), Catch::Contains("less time and needs less memory"));
  CHECK_THAT(made.note(Kind::ignored, "special_tokens"), Catch::Contains("special_tokens"));
}

// ---- Tables and names

TEST_CASE("every key of every table is said, told with its effect, or without effect", "[import]") {
  for (const char* name : {"accelerate", "axolotl", "DeepSpeed", "LLaMA-Factory", "ms-swift", "OpenRLHF", "verl",
                           "HuggingFace's TrainingArguments"}) {
    CAPTURE(name);
    const ConfigFormat* format = config_format_named(name);
    REQUIRE(format != nullptr);
    for (const char* key : {"some_key_of_nobody", "other.key"}) CHECK(format->rule_of(key) == nullptr);
    for (const KeyRule& rule : format->table().rules()) {
      CAPTURE(rule.table, rule.key);
      const bool is_unmodelled = rule.role == KeyRule::Role::unmodelled;
      CHECK(rule.effect.is_any() == is_unmodelled);
      CHECK(rule.follows.empty() != is_unmodelled);
      CHECK(std::count_if(format->table().rules().begin(), format->table().rules().end(), [&](const KeyRule& other) {
              return other.table == rule.table && other.key == rule.key;
            }) == 1);
    }
  }
}

TEST_CASE("names of the hub are shapes, whatever a model was trained for", "[import]") {
  const Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto preset = [&](const std::string& name) {
    const auto model = hub_model(name, catalog);
    return !model ? "none" : model->value.is_null() ? "described" : ReadTraining::text(model->value, "preset");
  };
  CHECK(preset("mistralai/Mixtral-8x7B-Instruct-v0.1") == "mixtral-8x7b");
  CHECK(preset("Qwen/Qwen3-30B-A3B-Instruct-2507/") == "qwen3-30b-a3b");
  CHECK(preset("/models/gpt-oss-20b") == "gpt-oss-20b");
  CHECK(preset("Qwen/Qwen2.5-0.5B-Instruct") == "described");
  CHECK(preset("somebody/model-of-mine") == "none");
  CHECK(hub_model("Qwen/Qwen2.5-VL-7B-Instruct", catalog)->unlike.find("pictures") != std::string::npos);
  CHECK(hub_model("Qwen/Qwen2.5-7B-Instruct", catalog)->unlike.empty());
}

TEST_CASE("a name of the hub whose shape is not known asks for another one, and all problems come at once",
          "[import]") {
  const std::string text =
      "model_name_or_path: somebody/mine\nfinetuning_type: full\ncutoff_len: many\nper_device_train_batch_size: 0\n"
      "bf16: true\n";
  const std::string told = read({{"train.yaml", text}}, {.gpus = 8}).problems.text();
  CHECK_THAT(told, Catch::Contains("train.yaml:1:21: error: the shape of 'somebody/mine' is not known here"));
  CHECK_THAT(told, Catch::Contains("train.yaml:3:13: error: \"many\" is not a whole number"));
  CHECK_THAT(told, Catch::Contains("train.yaml:4:30: error: 'per_device_train_batch_size' is 0"));
  CHECK_THAT(read({{"train.yaml", "cutoff_len: 1\n"}, {"x.json", "{\"a\": 1}"}}, {.gpus = 8}).problems.text(),
             Catch::Contains("x.json: error: this is no configuration of a training that is known here"));
}

}  // namespace
}  // namespace hdpsim::test::configuration
