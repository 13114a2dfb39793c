#include <string>

#include "sim/import/argument.h"
#include "sim/import/impl/megatron_dialects.h"
#include "sim/import/imported_study.h"
#include "tests/unit/import/configuration_runs.h"

namespace hdpsim::test::configuration {
namespace {

TEST_CASE("ms-swift's command is read with the processes of its environment", "[import]") {
  const ReadTraining made = good(launched(R"(
NPROC_PER_NODE=8 \
swift sft \
    --model Qwen/Qwen2.5-7B-Instruct --tuner_type full --torch_dtype bfloat16 --max_length 65536 --packing true \
    --per_device_train_batch_size 1 --gradient_accumulation_steps 4 --learning_rate 1e-5 --deepspeed zero3_offload \
    --sequence_parallel_size 8 --dataset 'a#500' 'b#500' --use_liger_kernel true
)"));
  CHECK(made.run.gpus == 8);
  CHECK(made.run.sequence == 65'536);
  CHECK(made.run.cp == 8);
  CHECK(made.mesh("cp_comm_type") == "a2a");
  CHECK(made.run.global_batch == 4);
  CHECK(made.run.framework_preset == "deepspeed-zero3");
  CHECK(made.host("parameters") == "true");
  CHECK(made.plan("packing") == "ms_swift");
  CHECK(made.training("recompute") == "full");  // its default
  CHECK(made.note(Kind::ignored, "dataset") == "dataset");
  const std::string seen =
      "CUDA_VISIBLE_DEVICES=0,1 swift sft --model Qwen/Qwen3-8B --max_length 2048 --per_device_train_batch_size 1";
  CHECK_THAT(launched(seen).problems.text(), Catch::Contains("one process spreads layers over 2 GPUs"));
  const ReadTraining adapters = good(launched(seen, {.gpus = 2}));
  CHECK(adapters.run.gpus == 2);
  CHECK(adapters.lora("rank") == "8");
  CHECK(made.lora("rank") == "absent");
}

TEST_CASE("a launcher's configuration and that of its program are followed", "[import]") {
  const std::map<std::string, std::string> beside = {
      {"configs/zero2.yaml", "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config: {zero_stage: 2}\n"},
      {"sft.yaml",
       "model_name_or_path: Qwen/Qwen3-4B\nmax_length: 4096\nper_device_train_batch_size: 4\nbf16: true\n"}};
  const ReadTraining made =
      good(launched("accelerate launch --config_file configs/zero2.yaml trl/scripts/sft.py --config sft.yaml "
                    "--per_device_train_batch_size 2 --gradient_accumulation_steps $((16 / 4))\n",
                    {}, beside));
  CHECK(made.run.gpus == 4);
  CHECK(made.mesh("zero") == "2");
  CHECK(made.run.micro_batch == 2);  // the command line wins
  CHECK(made.run.global_batch == 2 * 4 * 4);
  const ReadTraining factory =
      good(launched("FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=8 llamafactory-cli train a.yaml cutoff_len=8192", {},
                    {{"a.yaml",
                      "model_name_or_path: Qwen/Qwen3-8B\nfinetuning_type: full\ncutoff_len: 1024\n"
                      "per_device_train_batch_size: 1\n"}}));
  CHECK(factory.run.gpus == 16);
  CHECK(factory.run.sequence == 8192);
}

TEST_CASE("where answers are generated, a sequence is a prompt with its answer", "[import]") {
  const ReadTraining made = good(launched(
      "accelerate launch --num_processes 8 grpo.py --model_name_or_path Qwen/Qwen3-8B --max_prompt_length 1024 "
      "--max_completion_length 3072 --per_device_train_batch_size 4 --bf16\n"));
  CHECK(made.run.sequence == 4096);
  CHECK(made.run.gpus == 8);
}

TEST_CASE("of verl the updates of the actor become steps, which is said", "[import]") {
  const std::string ppo =
      "n=5\npython3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 \\\n"
      "  data.max_prompt_length=1024 data.max_response_length=3072 actor_rollout_ref.model.path=Qwen/Qwen3-8B \\\n"
      "  actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.rollout.n=$n \\\n"
      "  actor_rollout_ref.actor.fsdp_config.param_offload=True trainer.n_gpus_per_node=8 trainer.nnodes=2 \\\n";
  const ReadTraining fixed = good(launched(ppo + "  +actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4\n"));
  CHECK(fixed.run.gpus == 16);
  CHECK(fixed.run.sequence == 4096);
  CHECK(fixed.run.global_batch == 256 * 5);
  CHECK(fixed.run.micro_batch == 4);
  CHECK(fixed.run.policy == "static");
  CHECK_THAT(fixed.note(Kind::unmodelled, "reinforcement learning"),
             Catch::Contains("a step is one update of the actor") && Catch::Contains("an iteration has 4 of them"));
  CHECK_THAT(fixed.note(Kind::unmodelled, "param_offload"), Catch::Contains("takes longer"));
  const ReadTraining dynamic = good(launched(ppo + "  actor_rollout_ref.actor.use_dynamic_bsz=True "
                                                   "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 "
                                                   "actor_rollout_ref.actor.ulysses_sequence_parallel_size=2\n"));
  CHECK(dynamic.run.policy == "verl");
  CHECK(dynamic.plan("max_tokens") == "8192");
  CHECK(dynamic.run.capacity == 8192);
  CHECK(dynamic.mesh("cp_comm_type") == "a2a");
  CHECK_THAT(launched(ppo + "  actor_rollout_ref.actor.use_dynamic_bsz=True "
                            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=2048\n")
                 .problems.text(),
             Catch::Contains("2048 tokens on each of 1 ranks do not hold a sequence of 4096"));
  const ReadTraining megatron = good(launched(ppo + "  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4 "
                                                    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1\n"));
  CHECK(megatron.run.tp == 4);
  CHECK(megatron.run.framework_preset == "megatron-core-0.12");
}

TEST_CASE("OpenRLHF's arguments say the same in sections and without", "[import]") {
  const std::string before = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft ";
  const ReadTraining old =
      good(launched(before + "--pretrain meta-llama/Meta-Llama-3-8B --max_len 8192 --train_batch_size 256 "
                             "--micro_train_batch_size 2 --zero_stage 3 --bf16 --flash_attn "
                             "--gradient_checkpointing --packing_samples --ring_attn_size 2\n"));
  const ReadTraining recent = good(launched(
      "read -r -d '' training <<EOF\nopenrlhf.cli.train_sft --model.model_name_or_path meta-llama/Meta-Llama-3-8B "
      "--data.max_len 8192 --train.batch_size 256 --train.micro_batch_size 2 --ds.zero_stage 3 --ds.param_dtype bf16 "
      "--model.gradient_checkpointing_enable --ds.packing_samples --ds.ring_attn_size 2\nEOF\n"
      "deepspeed --num_gpus 8 --module $training\n"));
  for (const ReadTraining* each : {&old, &recent}) {
    CHECK(each->run.gpus == 8);
    CHECK(each->run.sequence == 8192);
    CHECK(each->run.global_batch == 256);
    CHECK(each->run.micro_batch == 2);
    CHECK(each->run.cp == 2);
    CHECK(each->run.framework_preset == "deepspeed-zero3");
    CHECK(each->training("recompute") == "full");
  }
}

TEST_CASE("values that the script does not tell are asked for, and of several trainings one is", "[import]") {
  const std::string told = launched(
                               "N=$(nproc)\nswift sft --model Qwen/Qwen3-8B --max_length $LENGTH "
                               "--per_device_train_batch_size $N\n",
                               {.gpus = 8})
                               .problems.text();
  CHECK_THAT(told, Catch::Contains("'max_length': this file does not state $LENGTH"));
  CHECK_THAT(told, Catch::Contains("--var LENGTH=VALUE gives it a value"));
  CHECK_THAT(told, Catch::Contains("--var N=VALUE gives it a value"));
  const std::string two =
      "swift sft --model Qwen/Qwen3-8B --max_length 1024\nswift sft --model Qwen/Qwen3-4B --max_length 2048\n";
  CHECK_THAT(launched(two, {.gpus = 8}).problems.text(), Catch::Contains("command 2 of 2 that train a model"));
  CHECK(good(launched(two, {.gpus = 8, .command = 2})).run.sequence == 2048);
  CHECK_THAT(launched("swift infer --model x\n").problems.text(), Catch::Contains("no command trains"));
}

TEST_CASE("a script that counts its arguments, and is given none, asks for them", "[import]") {
  const std::string script =
      "if [ \"$#\" -lt 1 ]; then echo usage; exit 1; fi\n"
      "torchrun --nproc_per_node=$1 -m verl.trainer.fsdp_sft_trainer data.max_length=2048 data.train_batch_size=64 "
      "data.micro_batch_size_per_gpu=2 model.partial_pretrain=Qwen/Qwen2.5-0.5B\n";
  Diagnostics problems;
  (void)arguments_of_script("run.sh", script, {}, {}, problems);
  CHECK_THAT(problems.text(), Catch::Contains("--args 'A B C' gives all of them"));
  CHECK(good(launched(script, {.variables = {{"1", "8"}}})).run.gpus == 8);
}

// ---- Those who pass arguments on to Megatron-Core

TEST_CASE("ms-swift's Megatron training has its own defaults and its own names", "[import]") {
  const std::string script =
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --lora_rank 16 "
      "--tensor_model_parallel_size 4 --sequence_parallel true --micro_batch_size 2 --max_length 8192 --packing true "
      "--recompute_granularity full --recompute_method uniform --recompute_num_layers 1 --lr 1e-4 --save_steps 100\n";
  Diagnostics problems;
  const ArgumentList list = arguments_of_script("run.sh", script, {}, {}, problems);
  REQUIRE(problems.empty());
  REQUIRE(list.is_of_swift);
  ReadTraining made;
  made.run = read_swift_megatron(list, "run.sh", with_hub({}, {}), made.problems);
  made = good(std::move(made));
  CHECK(made.run.gpus == 8);
  CHECK(made.run.tp == 4);
  CHECK(made.run.sequence == 8192);
  CHECK(made.run.global_batch == 16);  // its default
  CHECK(made.training("recompute") == "full");
  CHECK(made.training("sequence_parallel") == "true");
  CHECK(made.training("loss") == "fused");
  CHECK(made.mesh("zero") == "1");
  CHECK(made.lora("rank") == "16");
  CHECK(made.plan("packing") == "ms_swift");
  CHECK(made.note(Kind::ignored, "save_steps") == "save_steps");
}

TEST_CASE("NeMo's configuration says what arguments of Megatron-LM say", "[import]") {
  const std::string text =
      "trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, max_steps: 10}\nexp_manager: {name: x}\n"
      "model:\n  micro_batch_size: 1\n  global_batch_size: 32\n  tensor_model_parallel_size: 2\n"
      "  encoder_seq_length: 4096\n  max_position_embeddings: ${.encoder_seq_length}\n  num_layers: 32\n"
      "  hidden_size: 4096\n  ffn_hidden_size: 14336\n  num_attention_heads: 32\n  num_query_groups: 8\n"
      "  normalization: rmsnorm\n  activation: fast-swiglu\n  bias: false\n  position_embedding_type: rope\n"
      "  share_embeddings_and_output_weights: false\n  activations_checkpoint_granularity: selective\n"
      "  activations_checkpoint_num_layers: null\n  some_new_loss_chunk: 4\n  sequence_parallel: true\n"
      "  optim: {name: distributed_fused_adam, overlap_grad_sync: true}\n";
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ImportedStudy study = import_text("nemo.yaml", text, "mine.yaml", {.vocabulary = 128'256}, catalog);
  for (const char* line :
       {"model: {preset: llama3-8b}", "gpus: 16", "\n  tp: 2\n", "\n  zero: 1\n", "\n  overlap_grad_reduce: true\n",
        "\n  recompute: selective\n", "\n  tokens_per_step: 131072\n",
        "some_new_loss_chunk: the loss is computed on all logits"}) {
    CAPTURE(line);
    CHECK(study.text.find(line) != std::string::npos);
  }
}

TEST_CASE("arguments of the script itself that nobody gives are one problem", "[import]") {
  const std::string script =
      "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers $2 --hidden-size 1024 --num-attention-heads 8 "
      "--micro-batch-size $3 --seq-length 1024 --bf16\n";
  Catalog catalog(HDPSIM_SOURCE_DIR);
  try {
    (void)import_text("run.sh", script, "mine.yaml", {.vocabulary = 32'000}, catalog);
    FAIL("it was imported");
  } catch (const InputError& error) {
    REQUIRE(error.diagnostics().count() == 1);
    CHECK_THAT(error.what(), Catch::Contains("the script takes arguments that nobody gives: $2, $3"));
    CHECK_THAT(error.what(), Catch::Contains("--args 'A B C' gives all of them"));
  }
}

}  // namespace
}  // namespace hdpsim::test::configuration
