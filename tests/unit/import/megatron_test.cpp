#include "sim/import/frameworks.h"

#include <algorithm>
#include <filesystem>

#include "sim/import/imported_study.h"
#include "sim/model/parameters.h"
#include "tests/support/file_text.h"
#include "tests/support/model_presets.h"
#include "tests/support/study_file.h"
#include "tests/unit/import/megatron_runs.h"

namespace hdpsim::test::megatron {
namespace {

using Kind = ImportNote::Kind;

const std::filesystem::path sources(HDPSIM_SOURCE_DIR);
const std::filesystem::path llama_script = sources / "configs/studies/llama3-8b.sh";
const std::filesystem::path training = sources / "tests/support/training";

TEST_CASE("a program that trains another kind of model is unsupported", "[import]") {
  std::string script(small);
  script.replace(script.find("pretrain_gpt.py"), 15, "x/pretrain_t5.py");
  CHECK(problems(script) ==
        std::vector<std::string>{"1:40: unsupported: pretrain_t5.py trains another kind of model than GPT"});
  script.replace(script.find("x/pretrain_t5.py"), 16, "my_training.py");
  CHECK(problems(script).empty());
  script.replace(script.find("my_training.py"), 14, "pretrain_mamba.py");
  REQUIRE(problems(script).size() == 1);
  CHECK_THAT(problems(script)[0], Catch::Contains("trains a hybrid, and nothing states its layers"));
  CHECK(problems(script + "--disable-bias-linear --hybrid-layer-pattern M*-M*-M*-M*-").empty());
}

TEST_CASE("programs that generate text train nothing, whatever the shape of their model", "[import]") {
  std::string script(small);
  script.replace(script.find("pretrain_gpt.py"), 15, "tools/generate_samples.py");
  CHECK(problems(script) == std::vector<std::string>{"1:40: unsupported: 'tools/generate_samples.py' is of a program "
                                                     "that uses a model and does not train it"});
  const auto by_argument = problems(std::string(small) + "--top-p 0.9");
  REQUIRE(by_argument.size() == 1);
  CHECK_THAT(by_argument[0], Catch::Contains("'--top-p' is of a program"));
  CHECK(problems(script + "\n" + small).empty());  // the one that trains is taken
}

TEST_CASE("a program whose name says nothing trains what its arguments describe, which is told", "[import]") {
  std::string script(small);
  script.replace(script.find("pretrain_gpt.py"), 15, "pretrain_qwen.py");
  const auto told = good(script).notes(Kind::assumed);
  CHECK(std::count(told.begin(), told.end(), "pretrain_qwen.py trains the model that its arguments describe") == 1);
}

TEST_CASE("the batch, the degrees and the devices become tokens and a mesh", "[import]") {
  const Read result = good(std::string(small) + "--tensor-model-parallel-size 2 --context-parallel-size 2 ");
  CHECK(result.run.gpus == 8);
  CHECK(result.run.tp == 2);
  CHECK(result.run.cp == 2);
  CHECK(result.run.global_batch == 64);
  CHECK(capacity_of(result.run) == 2048 / 2);
  // without a batch: one micro-batch on each of 8 / 2 replicas
  std::string script = std::string(small) + "--tensor-model-parallel-size 2 ";
  script.replace(script.find("--global-batch-size 64"), 22, "");
  CHECK(good(script).run.global_batch == 4);
  CHECK(good(script, {.gpus = 16}).run.global_batch == 8);
}

TEST_CASE("how ranks share keys and values is said where context parallelism has several", "[import]") {
  const std::string base = std::string(small) + "--context-parallel-size 4 ";
  CHECK(good(base).mesh("cp_comm_type") == "absent");
  CHECK(good(base + "--cp-comm-type p2p").mesh("cp_comm_type") == "absent");
  CHECK(good(base + "--cp-comm-type all_gather").mesh("cp_comm_type") == "all_gather");
  CHECK(good(std::string(small) + "--cp-comm-type a2a").mesh("cp_comm_type") == "absent");
  const Read both = good(base + "--cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2");
  CHECK(both.mesh("cp_comm_type") == "a2a");
  CHECK(both.mesh("a2a_ranks") == "2");
  const Read mixed = good(base + "--cp-comm-type a2a p2p");
  CHECK(mixed.mesh("cp_comm_type") == "absent");
  CHECK(mixed.notes(Kind::unmodelled).size() == 1);
  CHECK(problems(base + "--cp-comm-type a2a+p2p").size() == 1);
  CHECK(problems(base + "--cp-comm-type broadcast").size() == 1);
}

TEST_CASE("how many devices there are comes from the launcher, from WORLD_SIZE, or from the user", "[import]") {
  const std::string arguments = std::string(small).substr(std::string(small).find("pretrain_gpt.py"));
  CHECK(good("python " + arguments, {.gpus = 32}).run.gpus == 32);
  CHECK(good("WORLD_SIZE=$((8*2))\npython " + arguments).run.gpus == 16);
  CHECK(good("torchrun --nproc_per_node 4 --nnodes=3 " + arguments + "--global-batch-size 12").run.gpus == 12);
  // what starts the program says it, too
  CHECK(good("srun -N 2 --ntasks-per-node=8 python " + arguments).run.gpus == 2 * 8);
  CHECK(good("#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8\nsrun python " + arguments).run.gpus == 2 * 8);
  CHECK(good("srun --nodes 2 torchrun --nproc_per_node 8 " + arguments).run.gpus == 2 * 8);
  CHECK(good("mpirun -np 16 -npernode 8 python " + arguments).run.gpus == 16);
  CHECK(good("mpirun --map-by ppr:8:node -np 16 python " + arguments).run.gpus_per_node == 8);
  CHECK(good("deepspeed --num_nodes 2 --num_gpus 8 " + arguments).run.gpus == 2 * 8);
  CHECK(good("accelerate launch --num_processes 16 --num_machines 2 " + arguments).run.gpus == 16);
  CHECK(good("torchrun --nproc_per_node $(nproc) --nnodes 2 " + arguments, {.gpus = 32}).run.gpus == 32);
  CHECK(problems("python " + arguments) == std::vector<std::string>{"0:0: nothing states how many GPUs the job has"});
}

TEST_CASE("a value that the script does not tell is asked for where it stands, by the name that holds it", "[import]") {
  const std::string arguments = std::string(small).substr(std::string(small).find("pretrain_gpt.py"));
  const auto first =
      read("TP=$1\nC=\"torchrun --nproc_per_node 8 " + arguments + "--tensor-model-parallel-size $TP\"\neval $C")
          .problems.sorted();
  REQUIRE(first.size() == 1);
  CHECK(first[0].position.line == 1);
  CHECK(first[0].position.column == 4);
  CHECK(first[0].help == "--var 1=VALUE gives it a value");
  const auto counted = read("N=$(nproc)\ntorchrun --nproc_per_node $N " + arguments).problems.sorted();
  REQUIRE(counted.size() == 1);
  CHECK(counted[0].message == "--nproc_per_node: this file does not state $(nproc)");
  CHECK(counted[0].help == "--var N=VALUE gives it a value");
}

TEST_CASE("what does not divide is told as Megatron-LM would", "[import]") {
  const auto told = problems(
      std::string(small) + "--tensor-model-parallel-size 3 --pipeline-model-parallel-size 5 --context-parallel-size 1");
  REQUIRE(told.size() == 2);
  CHECK(told[0].find("8 GPUs are no multiple of 15 = 3 x 5 x 1") != std::string::npos);
  CHECK(told[1].find("5 stages do not divide 12 layers") != std::string::npos);
  CHECK(problems(std::string(small) + "--global-batch-size 12")
            .at(0)
            .find("a batch of 12 sequences is no multiple of 8") != std::string::npos);
}

TEST_CASE("stages have the layers that the arguments give to the first and the last one", "[import]") {
  const std::string base = std::string(small) + "--pipeline-model-parallel-size 8 --global-batch-size 64 ";
  CHECK(problems(base) == std::vector<std::string>{"1:288: 8 stages do not divide 12 layers"});
  const Read counted = good(std::string(small) +
                            "--pipeline-model-parallel-size 2 --num-layers 14 "
                            "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
  CHECK(counted.mesh("account_for_embedding") == "true");
  CHECK(counted.mesh("account_for_loss") == "true");
  CHECK(counted.notes(Kind::unmodelled).empty());
  const Read stated = good(std::string(small) +
                           "--pipeline-model-parallel-size 4 --num-layers 13 "
                           "--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 1");
  const Read drawn = good(std::string(small) +
                          "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Ett|(ttt|)*2ttttL'");
  CHECK(drawn.mesh("layout") == "Ett|(ttt|)*2ttttL");
  CHECK(drawn.mesh("virtual_stages") == "2");
  CHECK(stated.mesh("first_stage_layers") == "2");
  CHECK(stated.mesh("last_stage_layers") == "1");
  CHECK(
      problems(std::string(small) + "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2").size() ==
      1);
}

TEST_CASE("what is sharded and overlapped is what the arguments turn on", "[import]") {
  const Read plain = good(small);
  CHECK(plain.mesh("zero") == "0");
  CHECK(plain.training("gradients") == "fp32");
  CHECK(plain.training("gradient_buffer") == "true");
  CHECK(plain.training("gradient_accumulation_fusion") == "true");
  CHECK(plain.training("overlap_grad_reduce") == "false");
  CHECK(plain.training("sequence_parallel") == "absent");  // without tensor parallelism there is none
  CHECK(plain.training("dropout") == "false");
  CHECK(plain.training("loss") == "fp32");
  CHECK(Read::text(plain.run.kernels, "attention") == "flash");
  CHECK(Read::text(plain.run.kernels, "linear") == "bf16");

  const Read all =
      good(std::string(small) +
           "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --grad-reduce-in-bf16 "
           "--no-gradient-accumulation-fusion --cross-entropy-loss-fusion --tensor-model-parallel-size 2 "
           "--sequence-parallel --tp-comm-overlap --fp8-format hybrid --hidden-dropout 0.1 "
           "--attention-dropout 0.1 --cuda-graph-impl local");
  CHECK(all.mesh("zero") == "1");
  CHECK(all.training("gradients") == "bf16");
  CHECK(all.training("gradient_accumulation_fusion") == "false");
  CHECK(all.training("overlap_grad_reduce") == "true");
  CHECK(all.training("overlap_param_gather") == "true");
  CHECK(all.training("sequence_parallel") == "true");
  CHECK(all.training("tp_comm_overlap") == "true");
  CHECK(all.training("tp_gradient_overlap") == "true");
  CHECK(all.training("dropout") == "true");
  CHECK(all.training("loss") == "fused");
  CHECK(Read::text(all.run.kernels, "linear") == "fp8");
  CHECK(Read::text(all.run.kernels, "launch") == "graphs");

  CHECK(plain.training("optimizer") == "absent");
  const Read dealt = good(std::string(small) + "--optimizer dist_muon");
  CHECK(dealt.training("optimizer") == "muon");
  CHECK(dealt.mesh("zero") == "1");
  CHECK(good(std::string(small) + "--optimizer muon").mesh("zero") == "0");
  CHECK(good(std::string(small) + "--optimizer sgd").training("optimizer") == "absent");  // which is told

  CHECK(good(std::string(small) + "--use-torch-fsdp2").mesh("zero") == "3");
  CHECK(good(std::string(small) + "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads").mesh("zero") ==
        "2");
  CHECK(good(std::string(small) + "--transformer-impl local").run.kernels.find("attention")->text == "unfused");
}

TEST_CASE("dropout is there unless it is turned off, and fp16 sums in fp16 unless it is told", "[import]") {
  std::string script(small);
  script.replace(script.find("--hidden-dropout 0 --attention-dropout 0"), 40, "");
  CHECK(good(script).training("dropout") == "true");
  script.replace(script.find("--bf16"), 6, "--fp16");
  CHECK(good(script).training("gradients") == "bf16");
  CHECK(good(script + "--accumulate-allreduce-grads-in-fp32").training("gradients") == "fp32");
  script.replace(script.find("--fp16"), 6, "");
  CHECK(problems(script) == std::vector<std::string>{"0:0: unsupported: training in fp32 cannot be simulated"});
}

TEST_CASE("layers in a chunk become chunks of a stage", "[import]") {
  const std::string script = std::string(small) + "--pipeline-model-parallel-size 2 ";
  const Read plain = good(script);
  CHECK(plain.mesh("schedule") == "1f1b");
  CHECK(plain.mesh("virtual_stages") == "absent");
  CHECK(plain.training("overlap_p2p_comm") == "interleaved");
  const Read interleaved = good(script + "--num-layers-per-virtual-pipeline-stage 2 --no-overlap-p2p-communication");
  CHECK(interleaved.mesh("schedule") == "interleaved");
  CHECK(interleaved.mesh("virtual_stages") == "3");  // 12 layers / 2 stages / 2 layers
  CHECK(interleaved.training("overlap_p2p_comm") == "never");
  CHECK(good(script + "--num-virtual-stages-per-pipeline-rank 6").mesh("virtual_stages") == "6");
  CHECK(problems(script + "--num-layers-per-virtual-pipeline-stage 4").size() == 1);
}

TEST_CASE("micro-batches that the interleaved schedule refuses are an error, in their groups, too", "[import]") {
  std::string script =
      std::string(small) + "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 3 ";
  CHECK(good(script).mesh("virtual_stages") == "3");  // 64 sequences on two replicas: 32 micro-batches
  script.replace(script.find("--global-batch-size 64"), 22, "--global-batch-size 12");
  CHECK(problems(script) ==
        std::vector<std::string>{"1:288: Megatron-LM does not run 6 micro-batches of a replica under the interleaved "
                                 "schedule, which must be a multiple of the 4 stages"});
  CHECK(problems(script + "--microbatch-group-size-per-virtual-pipeline-stage 6").empty());
  CHECK(problems(std::string(small) + "--pipeline-model-parallel-size 4").empty());
}

TEST_CASE("what is computed again is all, the attention core, or modules", "[import]") {
  CHECK(good(small).training("recompute") == "none");
  CHECK(good(std::string(small) + "--recompute-activations").training("recompute") == "selective");
  CHECK(good(std::string(small) + "--recompute-granularity selective --recompute-modules layernorm mlp")
            .training("recompute") == "norm mlp");
  const std::string full = std::string(small) + "--recompute-granularity full --recompute-method ";
  CHECK(good(full + "uniform --recompute-num-layers 1").notes(Kind::unmodelled).empty());
  CHECK(good(full + "block --recompute-num-layers 12").notes(Kind::unmodelled).empty());
  const Read partial = good(full + "block --recompute-num-layers 4");
  CHECK(partial.training("recompute") == "full");
  CHECK(partial.notes(Kind::unmodelled) ==
        std::vector<std::string>{
            "--recompute-num-layers 4: 4 of the 12 layers of a stage are computed again, here all of "
            "them; training.recompute: none is the other bound; the run likely takes less time and needs more memory"});
}

TEST_CASE("experts are divided as the arguments say, and sharded as all else", "[import]") {
  const std::string experts =
      std::string(small) + llama + "--num-experts 8 --use-distributed-optimizer --moe-grouped-gemm ";
  CHECK(good(experts).mesh("ep") == "absent");
  const auto one_by_one =
      good(std::string(small) + llama + "--num-experts 8 --use-distributed-optimizer").notes(Kind::unmodelled);
  REQUIRE(one_by_one.size() == 1);
  CHECK_THAT(one_by_one[0],
             Catch::StartsWith("--moe-grouped-gemm: ") && Catch::EndsWith("the run likely takes longer"));
  const Read divided = good(experts + "--expert-model-parallel-size 4 --moe-token-dispatcher-type alltoall");
  CHECK(divided.mesh("ep") == "4");
  CHECK(Read::text(divided.run.moe, "across") == "waves");
  CHECK(divided.notes(Kind::unmodelled).empty());
  // Unless something else is said, as many devices cut experts as other layers.
  const std::string both =
      experts + "--expert-model-parallel-size 2 --tensor-model-parallel-size 4 --sequence-parallel ";
  const Read cut = good(both + "--moe-token-dispatcher-type alltoall");
  CHECK(cut.mesh("ep") == "2");
  CHECK(cut.mesh("etp") == "4");
  CHECK(Read::text(cut.run.moe, "across") == "waves");
  CHECK(cut.notes(Kind::unmodelled).empty());
  const Read half = good(both + "--moe-token-dispatcher-type alltoall --expert-tensor-parallel-size 2");
  CHECK(half.mesh("etp") == "2");
  CHECK(half.run.moe.find("across") == nullptr);
  const Read whole = good(both + "--moe-token-dispatcher-type alltoall --expert-tensor-parallel-size 1");
  CHECK(whole.mesh("etp") == "absent");
  // DeepEP sends tokens to each device that cuts an expert.
  CHECK(good(both + "--moe-token-dispatcher-type flex").notes(Kind::unmodelled).size() == 1);
  const Read overlapped = good(experts + "--overlap-grad-reduce --fp8-format e4m3 --fp8-recipe blockwise");
  CHECK(Read::text(overlapped.run.kernels, "linear") == "fp8_blocks");
  CHECK(overlapped.training("overlap_grad_reduce") == "true");
  CHECK(overlapped.notes(Kind::unmodelled).empty());
}

TEST_CASE("an optimizer on the host, weights of two bytes and parameters in fp8 are said", "[import]") {
  const std::string sharded = std::string(small) + "--use-distributed-optimizer ";
  const Read hosted = good(sharded +
                           "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 "
                           "--overlap-cpu-optimizer-d2h-h2d --main-params-dtype fp16");
  const Value* host = hosted.run.training.find("host");
  REQUIRE(host != nullptr);
  CHECK(Read::text(*host, "optimizer") == "0.5");
  CHECK(Read::text(*host, "overlap") == "true");
  CHECK(hosted.training("master") == "bf16");
  CHECK(hosted.notes(Kind::unmodelled).empty());
  CHECK(good(sharded).run.training.find("host") == nullptr);
  const std::string gathers = sharded + "--fp8-param-gather --fp8-format hybrid ";
  CHECK(good(gathers).training("parameters") == "fp8");
  CHECK(good(gathers + "--fp8-recipe mxfp8").training("parameters") == "absent");
  CHECK(good(gathers + "--fp8-recipe mxfp8").notes(Kind::unmodelled).size() == 1);
}

TEST_CASE("optimizers in groups, moments in bf16 and formats in fp8 are said", "[import]") {
  const std::string sharded = std::string(small) + "--use-distributed-optimizer ";
  const std::int64_t pool = 8;
  REQUIRE(good(sharded).run.gpus == pool);
  const Read in_groups = good(sharded +
                              "--num-distributed-optimizer-instances 2 --exp-avg-dtype bf16 "
                              "--exp-avg-sq-dtype bf16 --activation-func-fp8-input-store");
  CHECK(in_groups.mesh("shard_ranks") == std::to_string(pool / 2));
  CHECK(in_groups.training("moments") == "bf16");
  CHECK(in_groups.training("activation_input") == "fp8");
  CHECK(in_groups.notes(Kind::unmodelled).empty());
  CHECK(good(sharded + "--exp-avg-dtype bf16").notes(Kind::unmodelled) ==
        std::vector<std::string>{"--exp-avg-dtype bf16: both moments are fp32; the run likely needs less memory"});
  CHECK(read(sharded + "--num-distributed-optimizer-instances 3").problems.sorted().front().message ==
        "8 ranks are not 3 groups of at least 2");
  const auto linear = [&](const std::string& recipe) {
    return Read::text(good(sharded + "--fp8-format hybrid" + recipe).run.kernels, "linear");
  };
  CHECK(linear("") == "fp8");
  CHECK(linear(" --fp8-recipe tensorwise") == "fp8_current");
  CHECK(linear(" --fp8-recipe blockwise") == "fp8_blocks");
  CHECK(linear(" --fp8-recipe mxfp8") == "mxfp8");
  CHECK(linear(" --fp8-recipe custom") == "fp8");
  CHECK(Read::text(good(sharded + "--fp4-format e2m1 --fp4-recipe nvfp4").run.kernels, "linear") == "nvfp4");
}

TEST_CASE("arguments are told that nobody knows, that nothing follows from, and that are repeated", "[import]") {
  const Read result = good(std::string(small) +
                           "--lr 1e-4 --save x --fancy-thing 3 --cp-comm-type a2a --num-layers 24 "
                           "--wandb-project mine --cp-comm-type p2p --seed 1 $EXTRA");
  CHECK(result.notes(Kind::unknown) == std::vector<std::string>{"--fancy-thing 3"});
  CHECK(result.notes(Kind::ignored) == std::vector<std::string>{"lr", "save", "seed", "wandb-project"});
  CHECK(result.notes(Kind::repeated) == std::vector<std::string>{"--cp-comm-type p2p (before: --cp-comm-type a2a)",
                                                                 "--num-layers 24 (before: --num-layers 12)"});
  CHECK(result.notes(Kind::unmodelled).empty());  // the last one counts
  CHECK(Read::text(result.run.configuration, "n_layer") == "24");
}

TEST_CASE("a value that the script does not know is an error with the option that gives it", "[import]") {
  const Read result = read(
      "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers $LAYERS --hidden-size 1024 "
      "--num-attention-heads x --seq-length --micro-batch-size 1 --bf16");
  std::vector<std::string> told;
  for (const Diagnostic& each : result.problems.sorted()) told.push_back(each.message + "; " + each.help);
  const auto has = [&](const std::string& text) {
    return std::any_of(told.begin(), told.end(), [&](const std::string& each) { return each.find(text) == 0; });
  };
  CHECK(has("--num-layers: this file does not state $LAYERS; --var LAYERS=VALUE gives it a value"));
  CHECK(has("--seq-length has no value"));
  CHECK(told.size() >= 3);  // all at once
}

TEST_CASE("of several commands that train one has to be chosen", "[import]") {
  std::string second(small);
  second.replace(second.find("--num-layers 12"), 15, "--num-layers 24");
  const std::string script = std::string(small) + "\n" + second;
  CHECK(problems(script) ==
        std::vector<std::string>{"1:1: command 1 of 2 that train a model", "2:1: command 2 of 2 that train a model"});
  CHECK(model(script, {.command = 2}).layers == 24);
  CHECK(problems("echo hello") == std::vector<std::string>{"0:0: no command of this file trains a model"});
}

TEST_CASE("a command for another shell and a plain list of arguments are read, too", "[import]") {
  std::string quoted(small);
  CHECK(model("srun bash -c \"" + quoted + "\"").layers == 12);
  std::string list;
  std::istringstream words(quoted.substr(quoted.find("--num-layers")));
  for (std::string word; words >> word;) list += (word.starts_with("--") ? "\n" : " ") + word;
  CHECK(model(list, {.gpus = 8}).layers == 12);
}

// ---- Whole files

std::string imported(const std::filesystem::path& file, const ImportOptions& options = {}) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return import_study({file.string()}, "mine.yaml", options, catalog).text;
}

TEST_CASE("the shape of a shipped model becomes its preset, another one a configuration", "[import]") {
  CHECK(imported(llama_script).find("model: {preset: llama3-8b}") != std::string::npos);
  CHECK(imported(training / "mixtral-8x7b.sh", {.vocabulary = 32'000}).find("model: {preset: mixtral-8x7b}") !=
        std::string::npos);
  // padded to a multiple of 128: 32,128
  CHECK(imported(training / "mixtral-8x7b.sh", {.vocabulary = 32'001})
            .find("model: {preset: mixtral-8x7b, vocab_size: 32128}") != std::string::npos);
  CHECK(imported(training / "deepseek-v3.yaml").find("model: {preset: deepseek-") != std::string::npos);
  test::TemporaryFolder folder;
  std::string text = test::text_of(llama_script);
  text.replace(text.find("--num-layers 32"), 15, "--num-layers 30");
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const ImportedStudy other = import_text("run.sh", text, folder.path() / "mine.yaml", {}, catalog);
  REQUIRE(other.model.has_value());
  CHECK(other.model_file == folder.path() / "mine.model.json");
  std::ofstream(other.model_file) << *other.model;
  Diagnostics problems;
  const auto described = load_model(other.model_file.string(), problems);
  REQUIRE(described.has_value());
  CHECK(described->layers == 30);
  const Transformer whole = test::preset("llama3-8b");
  CHECK(parameter_count(*described) == parameter_count(whole) - 2 * layer_parameter_count(whole));
}

TEST_CASE("arguments that say one thing twice, or are of experts that a model has not, are refused", "[import]") {
  const auto problems = [](const std::string& arguments) {
    return read(std::string(small) + llama + arguments).problems.text();
  };
  CHECK_THAT(problems("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
                      "--virtual-pipeline-model-parallel-size 3"),
             Catch::Contains("'virtual_pipeline_model_parallel_size' says what "
                             "'num_layers_per_virtual_pipeline_stage' says already"));
  CHECK_THAT(problems("--expert-model-parallel-size 8"), Catch::Contains("is 8, but the model has no experts"));
}

TEST_CASE("a file that is no text is refused", "[import]") {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  CHECK_THROWS_AS(import_text("run.sh", std::string("a\0b", 3), "mine.yaml", {}, catalog), InputError);
  for (const char* name : {"run.sh", "run.yaml", "run.toml"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(import_text(name, "", "mine.yaml", {}, catalog), InputError);
    CHECK_THROWS_AS(import_text(name, "= [ }", "mine.yaml", {}, catalog), InputError);
  }
}

}  // namespace
}  // namespace hdpsim::test::megatron
