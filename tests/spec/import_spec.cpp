#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

const fs::path training = fs::path(HDPSIM_SOURCE_DIR) / "tests/support/training";
const fs::path studies = fs::path(HDPSIM_SOURCE_DIR) / "configs/studies";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// `hdpsim import FILE --out mine.yaml OPTIONS`, which has to be well, and a study that can be checked and run.
Outcome imported(const Workplace& here, const std::string& file, const std::string& options = "") {
  fs::copy_file((file == "llama3-8b.sh" ? studies : training) / file, here.folder() / file);
  Outcome made = here.hdpsim("import " + file + " --out mine.yaml " + options);
  CAPTURE(made.err);
  CHECK(made.code == 0);
  CHECK(made.out.empty());
  here.run("check mine.yaml");
  return made;
}

nlohmann::json first_run(const Workplace& here, const std::string& options = "") {
  here.run("study mine.yaml --out mine --set data.steps=1 --set compare_to=null " + options);
  return nlohmann::json::parse(here.read("mine/result.json")).at("runs").at(0);
}

TEST_CASE("a hybrid's letters, and keys that queries choose, become studies that run", "[import]") {
  const Workplace hybrids;
  (void)imported(hybrids, "hybrid.sh");
  CHECK(has(hybrids.read("mine.yaml"), "\n  virtual_stages: 2\n"));
  CHECK(has(hybrids.read("mine.model.json"), "\"hybrid_override_pattern\": \"MEM*EMEM*EMEME-M\""));
  CHECK(first_run(hybrids, "--set 'plans=[{static: {cp: 1}}]'").at("step_time_s").at("mean").get<double>() > 0);
  const Workplace sparse;
  (void)imported(sparse, "sparse_attention.sh");
  CHECK(has(sparse.read("mine.yaml"), "\n  cp_comm_type: all_gather\n"));
  CHECK(first_run(sparse, "--set 'plans=[{static: {cp: 4}}]'").at("breakdown_s").at("attention").get<double>() > 0);
}

TEST_CASE("a GPT-3 script with variables becomes its study, which says what it left out", "[import]") {
  const Workplace here;
  const Outcome made = imported(here, "gpt3-175b.sh");
  const std::string study = here.read("mine.yaml");
  // 50,257 entries padded to a multiple of 128 x 8: the published model of 51,200
  CHECK(has(study, "model: {preset: gpt-175b}"));
  CHECK(has(study, "cluster: {preset: h100-rail, gpus: 1024}"));
  for (const char* line :
       {"\n  tp: 8\n", "\n  pp: 16\n", "\n  schedule: interleaved\n", "\n  virtual_stages: 3\n",
        "\n  recompute: selective\n", "\n  zero: 0\n", "\n  gradients: bf16\n", "\n  sequence_parallel: true\n",
        "\n  dropout: true\n", "\n  capacity: 2048\n", "\n  tokens_per_step: 3145728\n"}) {
    CAPTURE(line);
    CHECK(has(study, line));
  }
  for (const char* told : {"--vendor-option 3", "--rampup-batch-size 16 16 5859375: a step with the whole batch",
                           "the cluster is h100-rail", "NODES", "SLURM_NNODES (128)", " lr ", " lr-decay-style",
                           "all sequences are 2048 tokens long"}) {
    CAPTURE(told);
    CHECK(has(made.err, told));
    CHECK(has(study, told));
  }
  const nlohmann::json run = first_run(here, "--set data.tokens_per_step=256Ki --set plans=[static]");
  CHECK(run.at("gpus") == 1024);
  CHECK(run.at("step_time_s").at("mean").get<double>() > 0);
}

TEST_CASE("a Llama-3 script with arrays becomes its study, on another cluster and size, too", "[import]") {
  const Workplace here;
  imported(here, "llama3-8b.sh", "--cluster a100-rail-3tier --gpus 64");
  const std::string study = here.read("mine.yaml");
  CHECK(has(study, "model: {preset: llama3-8b}"));
  CHECK(has(study, "cluster: {preset: a100-rail-3tier, gpus: 64}"));
  CHECK(has(study, "profile: a100-sxm-published"));
  CHECK(has(study, "plans: [{static: {cp: 2}}, hdp-balance]"));
  CHECK(has(study, "\n  capacity: 4096\n"));  // 8Ki tokens over two ranks
  CHECK(has(study, "\n  overlap_grad_reduce: true\n"));
  CHECK(has(study, "\n  cp_comm_type: a2a\n"));
  CHECK(first_run(here).at("gpus") == 64);
}

TEST_CASE("a script without a vocabulary names the option that states it", "[import]") {
  const Workplace here;
  fs::copy_file(training / "mixtral-8x7b.sh", here.folder() / "run.sh");
  const std::string refused = here.refusal("import run.sh --out mine.yaml");
  CHECK(has(refused, "nothing states the vocabulary of the Llama2Tokenizer"));
  CHECK(has(refused, "--vocab-size N"));
  CHECK_FALSE(fs::exists(here.folder() / "mine.yaml"));
}

TEST_CASE("the args of a checkpoint of DeepSeek-V3 become a study", "[import]") {
  const Workplace here;
  const Outcome made = imported(here, "deepseek-v3.yaml");
  const std::string study = here.read("mine.yaml");
  CHECK(has(study, "preset: deepseek-"));
  CHECK(has(study, "\n  ep: 64\n"));
  CHECK(has(study, "dispatch: per_node"));
  CHECK(has(study, "\n  recompute: [qkv, activation, norm]\n"));
  CHECK(has(made.err, "deepseek-v3.yaml:59:3: some_fork_of_mine 7"));
  CHECK(has(study, "\n  last_stage_layers: 1\n"));
  CHECK(has(made.err, "consumed-train-samples"));
}

TEST_CASE("torchtitan's files become studies", "[import]") {
  const Workplace small;
  const Outcome made = imported(small, "llama3_8b.toml", "--gpus 64");
  CHECK(has(small.read("mine.yaml"), "model: {preset: llama3-8b}"));
  CHECK(has(small.read("mine.yaml"), "\n  zero: 3\n"));
  CHECK(has(made.err, "optimizer.lr"));
  CHECK(has(small.read("mine.yaml"), "recompute: per_operation"));
  CHECK(first_run(small).at("gpus") == 64);

  const Workplace large;
  imported(large, "llama3_405b.toml");
  const std::string study = large.read("mine.yaml");
  CHECK(has(study, "model: {preset: llama3.1-405b}"));
  CHECK(has(study, "gpus: 512"));
  CHECK(has(study, "\n  tp_comm_overlap: true\n"));
  CHECK(has(study, "linear: fp8"));
  CHECK(has(study, "\n  context: 16384\n"));  // two sequences a micro-batch
  CHECK(first_run(large).at("gpus") == 512);
}

TEST_CASE("a model of no preset is written beside the study", "[import]") {
  const Workplace here;
  here.write("run.sh",
             "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 12 --hidden-size 1536 "
             "--num-attention-heads 12 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
             "--global-batch-size 16 --bf16\n");
  CHECK(has(here.run("import run.sh --out mine.yaml").err, "wrote mine.yaml and mine.model.json"));
  CHECK(has(here.read("mine.yaml"), "model: {hf_config: mine.model.json}"));
  CHECK(nlohmann::json::parse(here.read("mine.model.json")).at("n_embd") == 1536);
  CHECK(first_run(here).at("gpus") == 8);

  const std::string again = here.refusal("import run.sh --out mine.yaml");
  CHECK(has(again, "--force replaces it"));
  here.run("import run.sh --out mine.yaml --force");
  CHECK(here.hdpsim("import run.sh --out run.sh --force").code == 2);
}

TEST_CASE("a run that cannot be simulated leaves nothing behind", "[import]") {
  const Workplace here;
  here.write("run.sh",
             "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 12 --hidden-size 1536 "
             "--num-attention-heads 12 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
             "--global-batch-size 16 --bf16 --tensor-model-parallel-size 8\n");  // 8 does not divide 12 heads
  const std::string refused = here.refusal("import run.sh --out mine.yaml");
  CHECK(has(refused, "'tp' is 8, which does not divide the 12 heads"));
  CHECK(has(refused, "run.sh:1:"));  // where the argument stands, and no line of the study
  CHECK_FALSE(has(refused, "mine.yaml:"));
  for (const char* file : {"mine.yaml", "mine.model.json"}) CHECK_FALSE(fs::exists(here.folder() / file));
  CHECK(here.hdpsim("import run.sh --out mine.yaml --var x").code == 2);
  CHECK(here.hdpsim("import none.sh --out mine.yaml").code == 2);
}

TEST_CASE("all problems of a script are told at once, with their places", "[import]") {
  const Workplace here;
  here.write("run.sh",
             "N=many\ntorchrun --nproc_per_node 8 pretrain_gpt.py \\\n  --num-layers $N --hidden-size 0 \\\n"
             "  --seq-length $SEQ --num-attention-heads 8 --bf16\n");
  const std::string refused = here.refusal("import run.sh --out mine.yaml");
  for (const char* told :
       {"run.sh:1:3: error: ", "run.sh:3:33: error: ", "--var SEQ=VALUE", "--micro-batch-size is missing"}) {
    CAPTURE(told);
    CHECK(has(refused, told));
  }
}

TEST_CASE("configurations that belong together become a study that runs, with what they do not say", "[import]") {
  const Workplace here;
  here.write("train.yaml",
             "model_name_or_path: Qwen/Qwen2.5-0.5B-Instruct\nstage: sft\nfinetuning_type: full\n"
             "deepspeed: ds/zero3.json\ncutoff_len: 8192\npacking: true\nneat_packing: true\n"
             "per_device_train_batch_size: 1\ngradient_accumulation_steps: 2\nlearning_rate: 1.0e-5\nbf16: true\n"
             "use_badam: true\nsurprise: 1\n");
  here.write("zero3.json", R"({"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}})");
  CHECK(has(here.refusal("import train.yaml --out mine.yaml"), "nothing states how many GPUs the job has"));
  const Outcome made = here.run("import train.yaml --out mine.yaml --gpus 8");
  const std::string study = here.read("mine.yaml");
  for (const char* line : {"framework: {preset: deepspeed-zero3}", "\n  zero: 3\n", "\n  recompute: full\n",
                           "static: {cp: 1, packing: llamafactory}", "model: {hf_config: mine.model.json}",
                           "\n  tokens_per_step: 131072\n"}) {
    CAPTURE(line);
    CHECK(has(study, line));
  }
  for (const char* told :
       {"train.yaml:12:12: use_badam = true: all parameters are trained", "train.yaml:13:1: surprise", "learning_rate",
        "the model is that of the name 'Qwen/Qwen2.5-0.5B-Instruct'"}) {
    CAPTURE(told);
    CHECK(has(made.err, told));
  }
  here.run("check mine.yaml");
  CHECK(first_run(here).at("gpus") == 8);

  here.write("fsdp.yaml",
             "distributed_type: FSDP\nnum_processes: 16\nmixed_precision: bf16\nfsdp_config: {fsdp_version: 2}\n");
  here.write("run.sh",
             "accelerate launch --config_file fsdp.yaml sft.py --model_name_or_path meta-llama/Llama-3.1-8B \\\n"
             "  --max_length 4096 --per_device_train_batch_size 1 --gradient_checkpointing --bf16\n");
  here.run("import run.sh --out mine.yaml --force");
  CHECK(has(here.read("mine.yaml"), "model: {preset: llama3-8b}"));
  CHECK(has(here.read("mine.yaml"), "gpus: 16"));
  CHECK(first_run(here).at("gpus") == 16);
}

TEST_CASE("a part of a training asks for the rest, and other files are not mixed", "[import]") {
  const Workplace here;
  here.write("ds.json", R"({"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 1})");
  const std::string refused = here.refusal("import ds.json --out mine.yaml");
  for (const char* option : {"--gpus N", "--model NAME", "--context TOKENS"}) {
    CAPTURE(option);
    CHECK(has(refused, option));
  }
  here.run("import ds.json --out mine.yaml --gpus 8 --model llama3-8b --context 4096");
  CHECK(has(here.read("mine.yaml"), "framework: {preset: deepspeed-zero2}"));
  here.write("job.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n");
  CHECK(has(here.refusal("import job.toml ds.json --out other.yaml"), "job.toml is not read with other files"));
}

}  // namespace
}  // namespace hdpsim::spec
