#include "sim/import/argument.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/atomic_file.h"
#include "sim/import/impl/megatron_arguments.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using Kind = ImportNote::Kind;

/// A document of arguments, as they are understood.
class Document {
 public:
  explicit Document(const std::string& text, const std::map<std::string, std::string>& variables = {})
      : list(arguments_of_document("args.yaml", text, variables, problems)),
        arguments(list, "args.yaml", problems, notes) {}

  [[nodiscard]] std::vector<std::string> told(Kind kind) const {
    std::vector<std::string> texts;
    for (const ImportNote& note : notes) {
      if (note.kind == kind) texts.push_back(note.text);
    }
    return texts;
  }

  Diagnostics problems;
  ImportNotes notes;
  ArgumentList list;
  MegatronArguments arguments;
};

TEST_CASE("keys of a document are options with underscores, and switches have truths", "[import]") {
  const Document document(
      "args:\n  num_layers: 12\n  add_bias_linear: false\n  swiglu: true\n  overlap_grad_reduce: false\n"
      "  gradient_accumulation_fusion: true\n  fp8: hybrid\n  q_lora_rank: null\n  recompute_modules: [mlp, moe]\n");
  CHECK(document.problems.empty());
  const MegatronArguments& arguments = document.arguments;
  CHECK(arguments.number("num_layers", {1, 100}) == 12);
  CHECK_FALSE(arguments.is_on("add_bias_linear"));
  CHECK(arguments.is_on("swiglu"));
  CHECK_FALSE(arguments.is_on("overlap_grad_reduce"));
  CHECK(arguments.is_on("gradient_accumulation_fusion"));
  CHECK(arguments.word("fp8", "none") == "hybrid");
  CHECK_FALSE(arguments.has("q_lora_rank"));
  CHECK(arguments.words("recompute_modules") == std::vector<std::string>{"mlp", "moe"});
}

TEST_CASE("options may stand in a document with their dashes, turned off ones, too", "[import]") {
  const Document document("MODEL_ARGS:\n  --num-layers: 12\n  --disable-bias-linear: true\n  --no-rope-fusion: true\n");
  CHECK(document.arguments.number("num_layers", {1, 100}) == 12);
  CHECK_FALSE(document.arguments.is_on("add_bias_linear"));
  CHECK(document.told(Kind::unmodelled).size() == 1);
}

TEST_CASE("sections of a configuration are read through", "[import]") {
  const Document document("language_model:\n  num_layers: 12\n  num_moe_experts: 8\nmodel_parallel:\n  bf16: True\n");
  CHECK(document.arguments.number("num_layers", {1, 100}) == 12);
  CHECK(document.arguments.number("num_experts", {1, 100}) == 8);
  CHECK(document.arguments.is_on("bf16"));
}

TEST_CASE("a switch that nothing states is as Megatron leaves it", "[import]") {
  const Document document("num_layers: 1\n");
  CHECK(document.arguments.is_on("add_bias_linear"));
  CHECK(document.arguments.is_on("gradient_accumulation_fusion"));
  CHECK_FALSE(document.arguments.is_on("swiglu"));
}

TEST_CASE("what has its usual value needs no telling", "[import]") {
  const Document usual(
      "optimizer: adam\nbias_gelu_fusion: true\nuse_sharp: false\nis_hybrid_model: false\n"
      "hybrid_mlp_ratio: 0.0\nunknown_switch: false\n");
  CHECK(usual.problems.empty());
  CHECK(usual.notes.empty());
  const Document unusual("rampup_batch_size: 16 16 1000\nbias_gelu_fusion: false\nuse_sharp: true\n");
  CHECK(unusual.told(Kind::unmodelled).size() == 3);
}

TEST_CASE("a document that is no map is refused", "[import]") {
  for (const char* text : {"", "- 1\n", "word\n"}) {
    CAPTURE(text);
    CHECK(Document(text).problems.sorted().size() == 1);
  }
}

TEST_CASE("of a key that stands twice the last counts, and both are told", "[import]") {
  const Document twice("MODEL_ARGS:\n  --num-layers: 12\n  --lr: 1\n  --lr: 2\n  --num-layers: 24\n");
  CHECK(twice.problems.empty());
  CHECK(twice.arguments.number("num_layers", {1, 100}) == 24);
  CHECK(twice.told(Kind::repeated) == std::vector<std::string>{"--num-layers 24 (before: --num-layers 12)"});
}

TEST_CASE("names in a document's values have the values that the user gives, and one without an effect is told",
          "[import]") {
  const std::string text = "num_layers: 12\ntensor_model_parallel_size: ${TP}\n";
  const Document given(text, {{"TP", "4"}, {"PP", "2"}});
  CHECK(given.arguments.number("tensor_model_parallel_size", {1, 100}) == 4);
  REQUIRE(given.list.notes.size() == 1);
  CHECK_THAT(given.list.notes[0].text, Catch::StartsWith("--var PP=VALUE has no effect"));
  const Document asked(text);
  CHECK_FALSE(asked.arguments.number("tensor_model_parallel_size", {1, 100}).has_value());
  REQUIRE(asked.problems.sorted().size() == 1);
  CHECK(asked.problems.sorted()[0].help == "--var TP=VALUE gives it a value");
}

TEST_CASE("files of other programs are named by their keys, with the nearest way in", "[import]") {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"stage: sft\ncutoff_len: 4096\nper_device_train_batch_size: 1\n", "LLaMA-Factory"},
      {R"({"gradient_accumulation_steps": 8, "zero_optimization": {"stage": 3}})", "DeepSpeed"},
      {"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nnum_processes: 8\n", "accelerate"},
      {"per_device_train_batch_size: 1\nbf16: true\n", "HuggingFace's TrainingArguments"},
      {"trainer: {num_nodes: 2}\nmodel: {num_layers: 12, seq_length: 4096}\n", "NeMo"},
      {"actor_rollout_ref: {model: {path: x}}\ntrainer: {nnodes: 1}\n", "verl"},
      {"architectures: [LlamaForCausalLM]\nhidden_size: 1024\n", "a HuggingFace configuration of a model"},
      {"plans: [static]\nmodel: {preset: llama-7b}\n", "a study of hdpsim"}};
  for (const auto& [text, name] : files) {
    CAPTURE(text);
    const auto problems = Document(text).problems.sorted();
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems[0].message, Catch::StartsWith("this looks like " + name + " ('"));
    CHECK(problems[0].position.line > 0);
    CHECK_FALSE(problems[0].help.empty());
  }
  CHECK(Document("num_layers: 12\nseq_length: 1\ngradient_checkpointing: true\n").problems.empty());
  REQUIRE(Document("apples: 3\npears: 4\n").problems.sorted().size() == 1);
  CHECK(Document("apples: 3\n").problems.sorted()[0].message == "no key of this file is an argument of Megatron-LM");
}

TEST_CASE("every argument that changes the time or the memory tells how, if it is not said", "[import]") {
  for (const ArgumentRule* rule : active_rules()) {
    CAPTURE(rule->option);
    const bool is_unmodelled = rule->role == ArgumentRule::Role::unmodelled;
    CHECK(rule->effect.is_any() == is_unmodelled);
    CHECK(rule->follows.empty() == (rule->role == ArgumentRule::Role::stated));
  }
}

TEST_CASE("every option that is known is known with dashes and with underscores", "[import]") {
  for (const char* option :
       {"num-layers", "disable-bias-linear", "lr", "wandb-project", "cp-comm-type", "is-hybrid-model"}) {
    CAPTURE(option);
    const ArgumentRule* rule = rule_of(fmt::format("--{}", option));
    REQUIRE(rule != nullptr);
    CHECK(rule_of(with_underscores(option)) == rule);
    CHECK(rule_of(key_of(*rule).empty() ? option : key_of(*rule)) == rule);
  }
  CHECK(rule_of("--never-heard-of") == nullptr);
}

TEST_CASE("notes are told kind by kind, with their places, and ignored ones by name", "[import]") {
  CHECK(text_of(ImportNotes{}).empty());
  const ImportNotes notes = {{Kind::ignored, {"a.sh", 3, 1}, "lr"},
                             {Kind::assumed, {}, "the cluster is x"},
                             {Kind::unmodelled, {"a.sh", 2, 5}, "--b: c"},
                             {Kind::ignored, {"a.sh", 4, 1}, "lr"}};
  CHECK(text_of(notes) ==
        "not modelled, and what that likely means for the run:\n  a.sh:2:5: --b: c\nassumed:\n  the cluster is x\n"
        "without effect on the time and the memory of a step:\n  lr\n");
}

/// The log of a run, with lines of other ranks and a rank before each line.
constexpr char log_text[] =
    "W1129 run.py: OMP_NUM_THREADS is 1\n"
    "[default0]:------------------------ arguments ------------------------\n"
    "[default0]:  add_bias_linear ................................. False\n"
    "[default0]:  bias_gelu_fusion ................................ False\n"
    "[default3]:NCCL version 2.21.5+cuda12.4\n"
    "[default0]:  cp_comm_type .................................... ['p2p', \"a2a\"]\n"
    "[default0]:  exp_avg_dtype ................................... torch.float32\n"
    "[default0]:  fp8 ............................................. None\n"
    "[default0]:  lr .............................................. 0.0003\n"
    "[default0]:  moe_pad_expert_input_to_capacity_and_some_letters  True\n"
    "[default0]:  num_layers ...................................... 12\n"
    "[default0]:  profile_ranks ................................... []\n"
    "[default0]:  swiglu .......................................... True\n"
    "[default0]:  world_size ...................................... 64\n"
    "[default0]:-------------------- end of arguments ---------------------\n"
    "[default0]:  num_layers ...................................... 24\n";

TEST_CASE("a log lists every argument with its final value", "[import]") {
  REQUIRE(has_argument_block(log_text));
  Diagnostics problems;
  ImportNotes notes;
  const MegatronArguments arguments(arguments_of_log("run.log", log_text), "run.log", problems, notes);
  CHECK(problems.empty());
  CHECK_FALSE(arguments.is_on("add_bias_linear"));
  CHECK(arguments.is_on("swiglu"));
  CHECK(arguments.number("num_layers", {1, 100}) == 12);
  CHECK(arguments.number("world_size", {1, 100}) == 64);
  CHECK(arguments.words("cp_comm_type") == std::vector<std::string>{"p2p", "a2a"});
  CHECK_FALSE(arguments.has("fp8"));
  CHECK_FALSE(arguments.has("profile_ranks"));
  CHECK(arguments.position("num_layers").line == 11);
  CHECK(arguments.position("num_layers").column == 1 + 11 + 2 + 49 + 1);  // the rank, blanks, name and dots
  // Defaults and derived values are not reported: fp32 moments, the fusion of a GELU that SwiGLU replaces, idle names.
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].kind == Kind::unknown);
  CHECK(notes[0].text == "moe_pad_expert_input_to_capacity_and_some_letters");
}

TEST_CASE("a log ends where its list of arguments does, whatever follows", "[import]") {
  const test::TemporaryFolder here;
  const std::string file = (here.path() / "run.log").string();
  write_file(file, log_text + std::string(3'000'000, '.') + "\n");
  Diagnostics problems;
  const auto text = read_log_head(file, problems);
  REQUIRE(text);
  CHECK(std::count(text->begin(), text->end(), '\n') == 15);
}

}  // namespace
}  // namespace hdpsim
