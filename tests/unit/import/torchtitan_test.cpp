#include "sim/import/frameworks.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "sim/import/impl/torchtitan_keys.h"
#include "sim/study/catalog.h"
#include "tests/support/catch.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using Kind = ImportNote::Kind;

constexpr char small_job[] = R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 4096
[activation_checkpoint]
mode = "none"
)";

struct ReadJob {
  TrainingRun run;
  Diagnostics problems;

  [[nodiscard]] std::vector<std::string> notes(Kind kind) const {
    std::vector<std::string> texts;
    for (const ImportNote& note : run.notes) {
      if (note.kind == kind) texts.push_back(note.text);
    }
    return texts;
  }
  // The note of this kind that begins with a text; empty if there is none.
  [[nodiscard]] std::string note(Kind kind, std::string_view begin) const {
    for (const ImportNote& note : run.notes) {
      if (note.kind == kind && note.text.starts_with(begin)) return note.text;
    }
    return {};
  }
  static std::string text(const Value& map, std::string_view key) {
    const Value* value = map.find(key);
    return value == nullptr ? "absent" : value->text;
  }
  [[nodiscard]] std::string mesh(std::string_view key) const { return text(run.mesh, key); }
  [[nodiscard]] std::string training(std::string_view key) const { return text(run.training, key); }
};

ReadJob read_job(const std::string& text, std::int64_t gpus = 16) {
  ReadJob read_job;
  read_job.run = read_torchtitan("run.toml", text, {.gpus = gpus}, read_job.problems);
  return read_job;
}

ReadJob good_job(const std::string& text, std::int64_t gpus = 16) {
  ReadJob result = read_job(text, gpus);
  INFO(result.problems.text());
  REQUIRE(result.problems.empty());
  return result;
}

TEST_CASE("degrees of torchtitan become a mesh, and the rest of the GPUs replicas", "[import]") {
  const ReadJob plain = good_job(small_job);
  CHECK(plain.run.global_batch == 2 * 16);  // two sequences on each of 16 ranks
  CHECK(plain.run.micro_batch == 2);
  CHECK(plain.run.sequence == 4096);
  CHECK(plain.mesh("zero") == "3");
  const ReadJob cut =
      good_job(std::string(small_job) + "[parallelism]\ntensor_parallel_degree = 2\ncontext_parallel_degree = 4\n");
  CHECK(cut.run.tp == 2);
  CHECK(cut.run.cp == 4);
  CHECK(cut.run.global_batch == 2 * 2);  // 16 / (2 x 4) replicas
  CHECK(capacity_of(cut.run) == 2 * 4096 / 4);
}

TEST_CASE("context parallelism gathers keys and values unless all-to-alls rotate them", "[import]") {
  const std::string cut = std::string(small_job) + "[parallelism]\ncontext_parallel_degree = 4\n";
  CHECK(good_job(small_job).mesh("cp_comm_type") == "absent");
  CHECK(good_job(cut).mesh("cp_comm_type") == "all_gather");
  CHECK(good_job(cut + "context_parallel_rotate_method = \"allgather\"\n").mesh("cp_comm_type") == "all_gather");
  CHECK(good_job(cut + "context_parallel_rotate_method = \"alltoall\"\n").mesh("cp_comm_type") == "absent");
  CHECK(read_job(cut + "context_parallel_rotate_method = \"ring\"\n").problems.sorted().size() == 1);
}

TEST_CASE("the GPUs are the product of the degrees where all are stated", "[import]") {
  Diagnostics problems;
  const std::string text =
      std::string(small_job) + "[parallelism]\ndata_parallel_shard_degree = 8\ntensor_parallel_degree = 4\n";
  CHECK(read_torchtitan("run.toml", text, {}, problems).gpus == 32);
  CHECK(problems.empty());
  (void)read_torchtitan("run.toml", small_job, {}, problems);
  REQUIRE(problems.sorted().size() == 1);
  CHECK(problems.sorted().front().message == "nothing states how many GPUs the job has");
  CHECK(read_job(text, 16).problems.sorted().front().message == "16 GPUs are not the product of all degrees, 32");
  const std::string odd = std::string(small_job) + "[parallelism]\ncontext_parallel_degree = 3\n";
  CHECK(read_job(odd, 16).problems.sorted().front().position.line > 0);
}

TEST_CASE("only the degree of shards may be what is left, and none is 0", "[import]") {
  for (const std::string degree : {"tensor_parallel_degree", "pipeline_parallel_degree", "context_parallel_degree",
                                   "data_parallel_replicate_degree", "data_parallel_shard_degree"}) {
    for (const std::string value : {"0", "-1"}) {
      CAPTURE(degree, value);
      const auto problems =
          read_job(std::string(small_job) + "[parallelism]\n" + degree + " = " + value + "\n", 8).problems;
      const bool takes_the_rest = degree == "data_parallel_shard_degree" && value == "-1";
      CHECK(problems.empty() == takes_the_rest);
    }
  }
}

TEST_CASE("parameters that stay behind the forward are ZeRO 2, replicas alone are ZeRO 0", "[import]") {
  const std::string mesh = std::string(small_job) + "[parallelism]\n";
  CHECK(good_job(mesh + "fsdp_reshard_after_forward = \"never\"\n").mesh("zero") == "2");
  CHECK(good_job(mesh + "pipeline_parallel_degree = 2\n").mesh("zero") == "1");
  CHECK(good_job(mesh + "pipeline_parallel_degree = 2\nfsdp_reshard_after_forward = \"always\"\n").mesh("zero") == "3");
  CHECK(good_job(mesh + "data_parallel_replicate_degree = 16\ndata_parallel_shard_degree = 1\n").mesh("zero") == "0");
  CHECK(good_job(mesh + "data_parallel_replicate_degree = 16\ndata_parallel_shard_degree = 1\n").mesh("shard_ranks") ==
        "absent");
  CHECK(good_job(mesh + "data_parallel_replicate_degree = 2\n").mesh("shard_ranks") == "8");
}

TEST_CASE("a pipeline has the schedule of its name, and as many chunks as torchtitan makes", "[import]") {
  const std::string mesh = std::string(small_job) + "[parallelism]\npipeline_parallel_degree = 2\n";
  const ReadJob plain = good_job(mesh);
  CHECK(plain.mesh("schedule") == "1f1b");
  CHECK(plain.run.micro_batch == 1);  // of pipeline_parallel_microbatch_size
  CHECK(good_job(mesh + "pipeline_parallel_schedule = \"Interleaved1F1B\"\n").mesh("virtual_stages") == "2");
  // 32 layers and two that stand for embedding and head, in stages of 5.67: 6 stages on 2 ranks
  const ReadJob chunks =
      good_job(mesh + "pipeline_parallel_schedule = \"interleaved1f1b\"\npipeline_parallel_layers_per_stage = 6\n");
  CHECK(chunks.mesh("schedule") == "interleaved");
  CHECK(chunks.mesh("virtual_stages") == "3");
  CHECK(good_job(mesh + "pipeline_parallel_schedule = \"ZBVZeroBubble\"\n").mesh("schedule") == "zb-v");
  const ReadJob other = read_job(mesh + "pipeline_parallel_schedule = \"DualPipeV\"\n");
  REQUIRE(other.problems.sorted().size() == 1);
  CHECK(other.problems.sorted().front().unsupported);
  CHECK(other.problems.sorted().front().position.line == 11);
}

TEST_CASE("embedding and head count as the layers that the first and the last stage have less", "[import]") {
  const std::string mesh = std::string(small_job) + "[parallelism]\npipeline_parallel_degree = 2\n";
  CHECK(good_job(small_job).mesh("account_for_loss") == "absent");
  CHECK(good_job(mesh).mesh("account_for_embedding") == "true");
  CHECK(good_job(mesh).mesh("account_for_loss") == "true");
  const ReadJob even = good_job(mesh + "pipeline_parallel_first_stage_less_layers = 0\n");
  CHECK(even.mesh("account_for_embedding") == "absent");
  CHECK(even.mesh("account_for_loss") == "true");
  const ReadJob two = good_job(mesh + "pipeline_parallel_last_stage_less_layers = 2\n");
  CHECK(two.notes(Kind::assumed).size() == good_job(mesh).notes(Kind::assumed).size() + 1);
}

TEST_CASE("fp8, compiled losses and asynchronous tensor parallelism are said", "[import]") {
  const ReadJob plain = good_job(small_job);
  CHECK(ReadJob::text(plain.run.kernels, "linear") == "bf16");
  CHECK(plain.training("loss") == "pytorch");
  CHECK(ReadJob::text(plain.run.kernels, "layers") == "eager");
  std::string text(small_job);
  text.insert(text.find("flavor"), "converters = [\"float8\"]\n");
  const ReadJob fast = good_job(text +
                                "[compile]\nenable = true\n[parallelism]\ntensor_parallel_degree = 2\n"
                                "enable_async_tensor_parallel = true\n");
  CHECK(ReadJob::text(fast.run.kernels, "linear") == "fp8_current");
  CHECK(fast.training("loss") == "compiled");
  CHECK(ReadJob::text(fast.run.kernels, "layers") == "compiled");
  CHECK(fast.training("tp_comm_overlap") == "true");
  CHECK(fast.training("sequence_parallel") == "true");
  CHECK(fast.note(Kind::unmodelled, "enable_async_tensor_parallel").empty());
}

TEST_CASE("converters say what layers and experts multiply", "[import]") {
  const auto linear = [](const std::string& converters) {
    std::string text(small_job);
    text.insert(text.find("flavor"), "converters = [" + converters + "]\n");
    const ReadJob result = good_job(text);
    return ReadJob::text(result.run.kernels, "linear") +
           (result.note(Kind::unmodelled, "converters").empty() ? "" : ", told");
  };
  CHECK(linear("\"quantize.linear.float8\"") == "fp8_current");
  CHECK(linear("\"quantize.linear.mx\"") == "mxfp8");
  CHECK(linear("\"quantize.linear.mx\", \"quantize.grouped_mm.mx\"") == "mxfp8");  // the model has no experts
  CHECK(linear("\"another\"") == "bf16, told");
}

TEST_CASE("what a study recomputes is told where torchtitan recomputes something else", "[import]") {
  const auto recompute = [](const std::string& keys) {
    std::string text(small_job);
    text.replace(text.find("mode = \"none\"\n"), 14, keys);
    return good_job(text);
  };
  CHECK(recompute("mode = \"full\"\n").training("recompute") == "full");
  constexpr std::string_view told = "activation_checkpoint: selective";
  CHECK(recompute("mode = \"full\"\n").note(Kind::unmodelled, told).empty());
  const ReadJob half = recompute("mode = \"selective\"\nselective_ac_option = \"2\"\n");
  CHECK(half.training("recompute") == "none");
  CHECK_FALSE(half.note(Kind::unmodelled, told).empty());
  const ReadJob operations = recompute("mode = \"selective\"\nselective_ac_option = \"op\"\n");
  CHECK(operations.training("recompute") == "per_operation");
  CHECK(operations.training("early_stop") == "false");
  CHECK(recompute("mode = \"full\"\nearly_stop = true\n").training("early_stop") == "absent");
  CHECK(operations.note(Kind::unmodelled, told).empty());
}

TEST_CASE("parameters, their gradients and moments have one type, and are gathered and reduced in another",
          "[import]") {
  const auto with = [](const std::string& dtype) {
    std::string text(small_job);
    text.insert(text.find("seq_len"), dtype);
    return good_job(text);
  };
  for (const char* dtype : {"", "dtype = \"float32\"\n"}) {
    CAPTURE(dtype);
    const ReadJob usual = with(dtype);
    CHECK(usual.training("gradients") == "fp32");
    CHECK(usual.training("moments") == "absent");
    CHECK(usual.training("master") == "absent");
    CHECK(usual.training("shards") == "parameters");
    CHECK(usual.training("parameters") == "absent");
    CHECK(usual.training("reduce") == "fp32");
    CHECK(usual.note(Kind::unmodelled, "training.dtype").empty());
  }
  const ReadJob small = with("dtype = \"bfloat16\"\n");
  CHECK(small.training("gradients") == "bf16");
  CHECK(small.training("moments") == "bf16");
  CHECK(small.training("master") == "none");
  CHECK(small.training("parameters") == "absent");
  CHECK(small.note(Kind::unmodelled, "training.dtype").empty());
  CHECK(with("mixed_precision_reduce = \"bfloat16\"\n").training("reduce") == "absent");
  // Parameters that stay behind the forward are elements beside fp32 shards.
  const std::string keeps = std::string(small_job) + "[parallelism]\nfsdp_reshard_after_forward = \"never\"\n";
  CHECK(good_job(keeps).training("parameters") == "absent");
  CHECK(good_job(keeps).training("gather") == "absent");
  CHECK(good_job(keeps).training("reduce") == "fp32");
}

TEST_CASE("compiled parts, FSDP2 and its types are said", "[import]") {
  const std::string compiled = std::string(small_job) + "[compile]\nenable = true\n";
  const ReadJob loss_alone = good_job(compiled + "components = [\"loss\"]\n");
  CHECK(ReadJob::text(loss_alone.run.kernels, "layers") == "eager");
  CHECK(loss_alone.training("loss") == "compiled");
  const ReadJob usual = good_job(small_job);
  CHECK(usual.training("shards") == "parameters");
  CHECK(usual.training("reduce") == "fp32");
  CHECK(usual.training("gather") == "absent");
  std::string text = compiled + "[float8]\nenable_fsdp_float8_all_gather = true\n";
  text.insert(text.find("flavor"), "converters = [\"float8\"]\n");
  text.insert(text.find("seq_len"), "mixed_precision_reduce = \"bfloat16\"\n");
  CHECK(good_job(text).training("reduce") == "absent");
  CHECK(good_job(text).training("gather") == "fp8");
}

TEST_CASE("offloaded shards are in host memory; where parameters stay on the device, that is told", "[import]") {
  std::string offloads(small_job);
  offloads.insert(offloads.find("seq_len"), "enable_cpu_offload = true\n");
  const ReadJob shards = good_job(offloads);
  const Value* host = shards.run.training.find("host");
  REQUIRE(host != nullptr);
  CHECK(ReadJob::text(*host, "optimizer") == "1");
  CHECK(ReadJob::text(*host, "parameters") == "true");
  CHECK_THAT(good_job(offloads + "[parallelism]\nfsdp_reshard_after_forward = \"never\"\n")
                 .note(Kind::unmodelled, "training.enable_cpu_offload"),
             Catch::EndsWith("the run likely takes longer and needs less memory"));
}

TEST_CASE("a table in a table is told key by key", "[import]") {
  const ReadJob job =
      good_job(std::string(small_job) +
               "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\nfilter_fqns = [\"output\"]\n[mine.deep]\nx = 1\n");
  CHECK_FALSE(job.note(Kind::unmodelled, "quantize.linear.float8.recipe_name = rowwise").empty());
  CHECK(job.note(Kind::unmodelled, "quantize.linear.float8.filter_fqns").empty());  // as usual
  CHECK(job.notes(Kind::unknown) == std::vector<std::string>{"mine.deep.x"});
}

TEST_CASE("what the name of an unknown key promises is told beside it", "[import]") {
  for (const char* key : {"cross_entropy_chunks = 8", "loss_chunk_size = 1024", "num_logits_chunks = 4"}) {
    CAPTURE(key);
    std::string text(small_job);
    text.insert(text.find("seq_len"), std::string(key) + "\n");
    const auto told = good_job(text).notes(Kind::unknown);
    REQUIRE(told.size() == 1);
    CHECK_THAT(told[0],
               Catch::EndsWith("the loss is computed on all logits at once; the run likely needs less memory"));
  }
}

TEST_CASE("every key of the table is said, told with its effect, or without effect", "[import]") {
  for (const KeyRule& rule : toml_rules()) {
    CAPTURE(rule.table, rule.key);
    const bool is_unmodelled = rule.role == KeyRule::Role::unmodelled;
    CHECK(rule.effect.is_any() == is_unmodelled);
    CHECK(rule.follows.empty() != is_unmodelled);
    CHECK(toml_rule(rule.table, rule.key) == &rule);
  }
}

TEST_CASE("a model that the user names stands for the file's", "[import]") {
  ImportOptions options{.gpus = 16};
  options.model = NamedModel{.value = Value::map(), .layers = 12, .has_experts = false};
  put(options.model->value, "preset", std::string("mine"));
  Diagnostics problems;
  const TrainingRun run = read_torchtitan("run.toml", "[model]\nname = \"new\"\nflavor = \"1B\"\n", options, problems);
  CHECK(problems.empty());
  CHECK(ReadJob::text(run.model, "preset") == "mine");
}

TEST_CASE("every flavor that is known has a preset", "[import]") {
  const ReadJob unknown = read_job("[model]\nname = \"llama3\"\nflavor = \"9B\"\n");
  REQUIRE(unknown.problems.sorted().size() == 1);
  const Diagnostic problem = unknown.problems.sorted().front();
  CHECK(problem.message == "no preset has the shape of 'llama3 9B'");
  CHECK(problem.position.line == 3);
  std::istringstream names(problem.help.substr(problem.help.find(": ") + 2));
  int count = 0;
  for (std::string pair; std::getline(names, pair, ',');) {
    std::istringstream words(pair);
    std::string name;
    std::string flavor;
    words >> name >> flavor;
    CAPTURE(name, flavor);
    const ReadJob each = good_job(fmt::format("[model]\nname = \"{}\"\nflavor = \"{}\"\n", name, flavor));
    Catalog catalog(HDPSIM_SOURCE_DIR);
    Diagnostics problems;
    CHECK(catalog.model(each.run.model, problems).has_value());
    ++count;
  }
  CHECK(count > 5);
}

TEST_CASE("keys that nobody knows and keys without effect are told", "[import]") {
  const ReadJob result =
      good_job(std::string(small_job) + "fancy = 3\n[mine]\nx = 1\n[optimizer]\nlr = 1e-4\n[job]\na = 1\n");
  CHECK(result.notes(Kind::unknown) == std::vector<std::string>{"activation_checkpoint.fancy", "mine.x"});
  const std::vector<std::string> idle = {"optimizer.lr", "job.a"};
  const std::vector<std::string> told = result.notes(Kind::ignored);
  CHECK(std::is_permutation(told.begin(), told.end(), idle.begin(), idle.end()));
}

TEST_CASE("errors of TOML stand at their place, and values must be of their kind", "[import]") {
  const ReadJob broken = read_job("[model\n");
  REQUIRE(broken.problems.sorted().size() == 1);
  CHECK(broken.problems.sorted().front().position.line == 1);
  std::string deep = "a";
  for (int i = 0; i < 200'000; ++i) deep += ".a";
  CHECK(read_job(deep + " = 1\n").problems.sorted().size() == 1);
  CHECK(read_job("[" + deep + "]\n").problems.sorted().size() == 1);
  CHECK_FALSE(read_job("a = " + std::string(100'000, '[') + "\n").problems.empty());
  CHECK(read_job("\"\\\"\"." + deep + " = 1\n").problems.sorted().front().message == "nested too deeply");
  std::string nested;  // each part is short, and all of them lie in each other
  for (int i = 0; i < 20; ++i) nested += "{ a.b.c.d = ";
  CHECK(read_job("x = " + nested + "\n").problems.sorted().front().message == "nested too deeply");
  CHECK(read_job("long = \"\"\"\n" + deep + "\n\"\"\"\n" + small_job).problems.empty());
  std::string names;
  for (int i = 0; i < 126; ++i) names += "\"layers." + std::to_string(i) + "\", ";
  const std::string parts = "[parallelism]\nmodule_parts = [" + names + "]  # v1.0\n";
  CHECK(read_job(std::string(small_job) + parts).problems.empty());  // dots in texts are no keys
  const ReadJob wrong = read_job("[model]\nflavor = \"8B\"\n[training]\nseq_len = \"long\"\nlocal_batch_size = 0\n");
  CHECK(wrong.problems.sorted().size() == 2);
}

}  // namespace
}  // namespace hdpsim
