#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

/// A workplace with a study whose model has all that plans, meshes and schedules divide, and not more.
struct RealWorkplace : Workplace {
  RealWorkplace() {
    write("bytes.json", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 128, "intermediate_size": 128,)"
                        R"( "num_hidden_layers": 4, "num_attention_heads": 2, "vocab_size": 256})");
    write("small.yaml",
          "name: small\ncluster: {preset: laptop-cpu}\nmodel: {hf_config: bytes.json}\nprofile: epyc-cpu\n"
          "data: {lengths: {preset: github, edges: upper}, context: 128, tokens_per_step: 256, steps: 2}\nmesh: "
          "{capacity: 64}\n"
          "plans: [static, hdp-naive, hdp-balance]\n");
  }
};

/// A workplace with a study whose steps take milliseconds.
struct FastWorkplace : Workplace {
  FastWorkplace() {
    write(
        "tiny.json",
        R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,)"
        R"( "num_attention_heads": 1, "vocab_size": 64})");
    write("fast.yaml",
          "name: fast\ncluster: {preset: laptop-cpu, gpus: 2, node: {gpus: 2}}\nmodel: {hf_config: tiny.json}\n"
          "profile: epyc-cpu\ndata: {lengths: {preset: github}, context: 64, tokens_per_step: 64, steps: 1}\n"
          "mesh: {capacity: 64}\nplans: [hdp-balance]\n");
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The second column of steps.csv.
std::vector<double> losses_of(const std::string& csv) {
  std::vector<double> losses;
  for (const std::string& line : lines_of(csv)) {
    const std::size_t begin = line.find(',') + 1;
    if (!line.starts_with("step")) losses.push_back(std::stod(line.substr(begin, line.find(',', begin) - begin)));
  }
  return losses;
}

// Every instruction of a timeline file, without its times: [0,1,2,3,4,"attention","compute"], in a pipeline with chunk
// and pass behind.
std::multiset<std::string> executed_instructions(const std::string& jsonl) {
  std::multiset<std::string> ids;
  for (const std::string& line : lines_of(jsonl)) {
    if (line[0] != '[') continue;
    nlohmann::json record = nlohmann::json::parse(line);
    record.erase(record.begin() + 7, record.begin() + 9);
    ids.insert(record.dump());
  }
  return ids;
}

// How often a text is in another one.
int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("a profile of another processor is said to be one", "[execute]") {
  const FastWorkplace here;
  std::string profile = here.read("calib/profiles/cpu-datasheet.yaml");
  const std::string head = "provenance:\n";
  profile.insert(profile.find(head) + head.size(), "  device_name: an abacus\n");
  here.write("abacus.yaml", profile);
  const auto run = [&](const std::string& of) {
    return here.hdpsim("execute fast.yaml --plan hdp-balance --set profile=" + of);
  };
  const Outcome of_another = run("abacus.yaml");
  CAPTURE(of_another.err);
  CHECK(of_another.code == 0);
  CHECK_THAT(of_another.err, Contains("the profile was measured on an abacus, this is "));
  CHECK_THAT(run("cpu-datasheet").err, !Contains("the profile was measured on"));
}

TEST_CASE("whatever shares or repeats the work changes nothing of the training, and is executed as it was predicted",
          "[execute][sharing][pp]") {
  struct Case {
    const char* before;
    const char* change;
    const char* word;  ///< Of the table or of the measured timeline.
    bool to_the_bit = false;
  };
  const RealWorkplace here;
  std::map<std::string, std::vector<double>> losses_before;
  for (const auto& [before, change, word, to_the_bit] : std::initializer_list<Case>{
           {"--plan static", "--plan hdp-naive", "bytes of 525k parameters, hdp-naive on 4 ranks"},
           {"--plan static", "--plan hdp-balance", "predicted by epyc-cpu"},
           {"--plan static --set 'model={preset: byte-hybrid}'",
            "--plan hdp-balance --set 'model={preset: byte-hybrid}'", "byte-hybrid of 5.64M parameters"},
           // Two of the four ranks trade the two key-value heads, and a ring joins both pairs.
           {"--plan static", "--plan static --set mesh.cp_comm_type=all_gather", "\"share\""},
           {"--plan static", "--plan static --set mesh.cp_comm_type=a2a", "\"share\""},
           {"--plan static", "--plan static --set mesh.cp_comm_type=all_gather --set mesh.cp_cut=per_pack",
            "\"share\""},
           {"--plan static", "--plan hdp-balance --ranks 2 --set mesh.tp=2", "tp_comm"},
           {"--plan static", "--plan hdp-balance --ranks 2 --set mesh.pp=2 --set mesh.schedule=1f1b", "bubble"},
           {"--plan static", "--plan hdp-balance --ranks 2 --set mesh.pp=2 --set mesh.schedule=gpipe", "bubble"},
           {"--plan static",
            "--plan hdp-balance --ranks 2 --set mesh.pp=2 --set mesh.schedule=interleaved --set mesh.virtual_stages=2",
            "bubble"},
           {"--plan static", "--plan hdp-balance --ranks 2 --set mesh.pp=2 --set mesh.schedule=zb-h1", "bubble"},
           {"--plan hdp-naive", "--plan hdp-naive --set training.recompute=selective", "attention", true},
           {"--plan hdp-naive", "--plan hdp-naive --set training.recompute=full", "attention", true},
           {"--plan hdp-naive", "--plan hdp-naive --set 'plans=[{hdp-naive: {offload: 0.5}}]'", "prefetch", true}}) {
    CAPTURE(before, change);
    const auto run = [&](const std::string& arguments) {
      return here.run(fmt::format("execute small.yaml {} --steps 2 --out out", arguments)).out;
    };
    if (losses_before.count(before) == 0) {
      (void)run(before);
      losses_before[before] = losses_of(here.read("out/steps.csv"));
      CHECK(losses_before[before].at(1) < losses_before[before].at(0));
    }
    const std::string table = run(change);
    const std::vector<double> losses = losses_of(here.read("out/steps.csv"));
    REQUIRE(losses.size() == 2);
    for (std::size_t step = 0; step < losses.size(); ++step) {
      const double epsilon = to_the_bit ? 0 : 1e-5;
      CHECK(losses[step] == Approx(losses_before[before][step]).epsilon(epsilon));
    }
    const std::string measured = here.read("out/measured-1.jsonl");
    CHECK(executed_instructions(here.read("out/predicted-1.jsonl")) == executed_instructions(measured));
    CHECK(executed_instructions(measured).size() > 100);
    CHECK_THAT(table + measured, Contains(word));
  }
  CHECK_THAT(here.refusal("execute small.yaml --plan hdp-naive --set training.recompute=some"),
             Contains("some") && Contains("none") && Contains("selective") && Contains("full"));
}

// What a rank's kernels took over what they had a core for, in a measured timeline.
double stretch_of_kernels(const std::string& timeline, int rank) {
  for (const std::string& line : lines_of(timeline)) {
    if (line.rfind(fmt::format("{{\"rank\": {}, ", rank), 0) != 0) continue;
    const auto parts = nlohmann::json::parse(line);
    const auto kernels = [&](const char* of) {
      return parts[of]["linear"].get<double>() + parts[of]["attention"].get<double>();
    };
    return kernels("breakdown_s") / kernels("processor_s");
  }
  return 0;
}

double predicted_seconds(const std::string& timeline) {
  return nlohmann::json::parse(lines_of(timeline).at(0))["step_time_s"].get<double>();
}

// A busy machine stretches kernels further, never less than the study says, but for stops that come a little late,
// behind the kernels that they are for.
TEST_CASE("a device at fault is slow for real, in the steps of its fault, and so it is predicted",
          "[execute][faults]") {
  const RealWorkplace here;
  const std::string run =
      "execute small.yaml --plan static --ranks 2 --steps 2 --set data.tokens_per_step=8Ki "
      "--set data.context=1Ki --set mesh.capacity=1Ki ";
  here.run(run + "--out well");
  here.run(run + "--set 'faults=[{device: 1, from_step: 1, slowdown: 4}]' --out ill");
  CHECK(losses_of(here.read("ill/steps.csv")) == losses_of(here.read("well/steps.csv")));
  const double predicted = predicted_seconds(here.read("well/predicted-1.jsonl"));
  CHECK(predicted_seconds(here.read("ill/predicted-0.jsonl")) ==
        predicted_seconds(here.read("well/predicted-0.jsonl")));
  CHECK(predicted_seconds(here.read("ill/predicted-1.jsonl")) > 2 * predicted);  // the other rank has more to do
  CHECK(stretch_of_kernels(here.read("ill/measured-1.jsonl"), 1) > 0.6 * 4);
  CHECK_THAT(here.refusal("execute small.yaml --plan static --backend cuda --set 'faults=[{device: 1, slowdown: 2}]'"),
             Contains("devices are made slow on CPUs alone"));
}

TEST_CASE("a pipeline that was executed is compared stage by stage", "[execute][pp]") {
  const RealWorkplace here;
  here.run("execute small.yaml --plan hdp-balance --ranks 2 --set mesh.pp=2 --first-step 1 --out two");
  CHECK(files_in(here.folder() / "two") == std::vector<std::string>{"measured-1.jsonl", "plan-1.json",
                                                                    "predicted-1.jsonl", "steps.csv",
                                                                    "trace-1.json.gz"});
  CHECK_THAT(here.run("compare two").out,
             Contains("1, stage 1") && Contains("attention backward") && Contains("bubble"));
}

TEST_CASE("more ranks than the study has may hold what those cannot", "[execute]") {
  const RealWorkplace here;  // four ranks of 16 tokens hold half of the context
  (void)here.refusal("study small.yaml --set mesh.capacity=16");
  CHECK_THAT(here.run("execute small.yaml --plan static --ranks 8 --set mesh.capacity=16").out,
             Contains("static on 8 ranks"));
}

TEST_CASE("a plan file is executed as its study would be, on as many ranks as it is for", "[execute]") {
  const RealWorkplace here;
  here.run("plan small.yaml --plan hdp-naive --set cluster.gpus=2 --set cluster.node.gpus=2 --out p.json");
  CHECK_THAT(here.run("execute p.json --study small.yaml --out plan").out, Contains("hdp-naive on 2 ranks"));
  here.run("execute small.yaml --plan hdp-naive --ranks 2 --out study");
  CHECK(losses_of(here.read("plan/steps.csv")) == losses_of(here.read("study/steps.csv")));

  CHECK_THAT(here.refusal("execute p.json --study small.yaml --ranks 3"),
             Contains("p.json: error: the plan is for 2 ranks, not 3"));
  CHECK_THAT(here.refusal("execute p.json --study small.yaml --set 'model={preset: llama-160m}'"),
             Contains("the plan is for a model of 4 layers, 'llama-160m' has 12"));
  CHECK_THAT(here.refusal("execute p.json"), Contains("name its study with --study"));
}

TEST_CASE("what cannot be executed is refused with a reason", "[execute]") {
  const RealWorkplace here;
  const auto refused = [&](const std::string& arguments, const std::string& reason, const std::string& before = "") {
    CAPTURE(arguments);
    CHECK_THAT(here.refusal("execute small.yaml " + arguments, before), Contains(reason));
  };
  refused("", "the study has several plans: choose one with --plan");
  refused("--plan static --set mesh.tp=2", "3 processes have been started, but a rank is 2 of them",
          "export OMPI_COMM_WORLD_SIZE=3;");
  refused("--plan static --set 'model={preset: gpt-1.7b}'", "it has biases, its MLP has no gate");
  refused("--plan static --set mesh.cp_comm_type=group_cast", "use cp_comm_type: all_gather, a2a or p2p");
  refused("--plan static --set mesh.cp_comm_type=a2a --backend cuda", "with --backend cuda use mesh.cp_comm_type: p2p");
  refused("--plan static --set mesh.cp_cut=per_pack", "choose cp_cut: per_document");
  refused("--plan static --ranks 4", "--ranks is 4, but 3 processes have been started",
          "export OMPI_COMM_WORLD_SIZE=3;");
}

TEST_CASE("ranks on GPUs: what GPUs do not run is refused, and so is a machine without one", "[execute]") {
  const RealWorkplace here;
  CHECK_THAT(here.refusal("execute small.yaml --plan static --backend cuda --ranks 2 --set mesh.pp=2"),
             Contains("pipelines are executed on CPUs alone: with --backend cuda use mesh.pp 1"));
  const Outcome alone = here.hdpsim("execute small.yaml --plan static --backend cuda --out results");
  if (alone.code == 0) {
    test::say_not_run("the refusal of a machine without a GPU: there is one here");
    CHECK_THAT(alone.out, Contains("loss"));
    return;
  }
  CHECK(alone.code == 3);
  CHECK_THAT(alone.err, Contains("built without CUDA") || Contains("there is no GPU that this program can use"));
  CHECK(!std::filesystem::exists(here.folder() / "results"));
}

TEST_CASE("launchers without MPI are told how to start; one process is no launch", "[execute]") {
  const FastWorkplace here;
  const auto refused = [&](const std::string& variables, const std::string& reason) {
    CAPTURE(variables);
    CHECK_THAT(here.refusal("execute fast.yaml", "export " + variables + ";"), Contains(reason));
  };
  refused("TORCHELASTIC_RUN_ID=1", "start them with mpirun or srun");
  refused("TORCHELASTIC_RUN_ID=1 RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "mpirun -n 2 hdpsim execute");
  refused("RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost", "started this process as one of 3");
  for (const std::string one : {"TORCHELASTIC_RUN_ID=1 RANK=0 WORLD_SIZE=1 MASTER_ADDR=a", "SLURM_STEP_NUM_TASKS=1",
                                "WORLD_SIZE=4", "RANK=0"}) {
    CAPTURE(one);
    CHECK_THAT(here.run("execute fast.yaml", "export " + one + ";").out, Contains("hdp-balance on 2 ranks"));
  }
}

TEST_CASE("a loss that is no number ends the run with one message", "[execute]") {
  const RealWorkplace here;
  const std::string outcome = here.machine_refusal("execute small.yaml --plan static --steps 9 --learning-rate 1e38");
  CHECK_THAT(outcome, Contains("error: the loss of step") && Contains("the parameters are not updated"));
  CHECK(count_of(outcome, "error: ") == 1);  // others may speak, too: a profile is of another processor
}

TEST_CASE("bytes of text are learned from", "[execute]") {
  const RealWorkplace here;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abcd";
  here.write("text", text);
  const Outcome outcome =
      here.hdpsim("execute small.yaml --plan hdp-balance --ranks 2 --steps 8 --learning-rate 0.03 --text text --out t");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::vector<double> losses = losses_of(here.read("t/steps.csv"));
  CHECK(losses.front() == Approx(std::log(256)).epsilon(0.05));
  CHECK(losses.back() < 2);
}

// By source, the samples of samples.csv: where each begins and how many bytes it has.
std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> samples_by_source(const std::string& csv) {
  std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>> samples;
  for (const std::string& line : lines_of(csv)) {
    if (line.rfind("step,", 0) == 0) continue;
    std::istringstream cells(line);
    std::string step, sequence, source, begin, bytes;
    for (std::string* cell : {&step, &sequence, &source, &begin, &bytes}) std::getline(cells, *cell, ',');
    samples[source].emplace_back(std::stoul(begin), std::stoul(bytes));
  }
  return samples;
}

TEST_CASE("loaders that die are replaced: no sample is lost or repeated, and the training is the same to the bit",
          "[execute][loading]") {
  const FastWorkplace here;
  std::string prose;
  for (int i = 0; i < 200; ++i) prose += fmt::format("{} bottles on the wall,\n", i * i);
  here.write("prose.txt", prose);
  here.write("code.txt", here.read("fast.yaml"));
  const std::string run =
      "execute fast.yaml --loaders --text code.txt --text prose.txt --set model.vocab_size=256 --set "
      "data.steps=4 --set data.tokens_per_step=512 --set 'loading={style: actors, bytes_per_token: 1 B, sources: "
      "[{name: code}, {name: prose, weight: 3}]";
  CHECK_THAT(here.run(run + "}' --steps 4 --out whole").out, Contains("from 2 sources, each once"));
  const auto samples = samples_by_source(here.read("whole/samples.csv"));
  REQUIRE(samples.size() == 2);
  CHECK(samples.at("prose").size() > samples.at("code").size());
  for (const auto& [begin, bytes] : samples.at("prose")) {
    CHECK((begin == 0 || prose.at(begin - 1) == '\n'));
  }
  for (std::size_t i = 1; i < samples.at("prose").size(); ++i) {
    const auto& [begin, bytes] = samples.at("prose")[i - 1];
    CHECK(prose.find('\n', begin + bytes - 1) + 1 == samples.at("prose")[i].first);
  }
  const std::string deaths = ", deaths: {at: [{step: 1, source: code}, {step: 2, source: prose}]";
  const std::string replaced = here.run(run + deaths + ", snapshot: 3}}' --steps 4 --out replaced").out;
  CHECK_THAT(replaced, Contains("step 1: the loader of code died") && Contains("step 2: the loader of prose died") &&
                           Contains("samples once more"));
  CHECK_THAT(here.run(run + deaths + ", shadows: 1}}' --steps 4 --out shadowed").out,
             Contains("its shadow went on after"));
  for (const std::string other : {"replaced", "shadowed"}) {
    CHECK(here.read(other + "/samples.csv") == here.read("whole/samples.csv"));
    CHECK(losses_of(here.read(other + "/steps.csv")) == losses_of(here.read("whole/steps.csv")));
  }
  here.run(run + "}' --first-step 2 --steps 2 --out later");
  CHECK_THAT(here.read("whole/samples.csv"),
             Contains(here.read("later/samples.csv").substr(sizeof "step,sequence,source,begin,bytes,hash")));
  CHECK_THAT(here.refusal(run + "}' --text prose.txt"), Contains("has 2 sources, but --text names 3 files"));
  CHECK_THAT(here.refusal("execute fast.yaml --loaders"), Contains("--loaders requires --text"));
}

TEST_CASE("a run that is told to stop ends after its step, its files whole", "[execute]") {
  const FastWorkplace here;  // a step that takes longer than a moment would not be waited for
  Background run(here, "execute fast.yaml --steps 100000 --out out");
  run.await([&] { return fs::exists(here.folder() / "out/measured-0.jsonl"); });
  run.send(SIGTERM);
  CHECK(run.wait() == 128 + SIGTERM);
  const std::vector<std::string> files = files_in(here.folder() / "out");
  for (const std::string& file : files) CHECK_FALSE(file.ends_with(".part"));
  // One plan, two timelines and a trace a step, and steps.csv with a line a step.
  CHECK(files.size() % 4 == 1);
  CHECK(losses_of(here.read("out/steps.csv")).size() == files.size() / 4);
}

TEST_CASE("the rows of steps that have ended outlive whatever ends the run", "[execute]") {
  const FastWorkplace here;
  Background run(here, "execute fast.yaml --steps 100000 --out out");
  run.await([&] { return line_count(here.read("out/steps.csv.part")) > 3; });  // the heading and some steps
  run.send(SIGKILL);
  CHECK(run.wait() == 128 + SIGKILL);
  CHECK(losses_of(here.read("out/steps.csv.part")).size() >= 3);
  here.run("execute fast.yaml --steps 2 --out out");
  CHECK(losses_of(here.read("out/steps.csv")).size() == 2);
  CHECK_FALSE(fs::exists(here.folder() / "out/steps.csv.part"));
}

// ---- Checkpoints

// The step of the last line of the table of steps.
std::int64_t last_step(const std::string& out) {
  std::int64_t step = -1;
  for (const std::string& line : lines_of(out)) {
    if (line.find("tokens/s") != std::string::npos) step = 0;
    if (step >= 0 && line.empty()) break;
    if (step >= 0 && line.find("step") == std::string::npos) step = std::stoll(line);
  }
  return step;
}

TEST_CASE("a run that is killed again and again goes on from its last checkpoint, to the bit", "[execute]") {
  const FastWorkplace here;
  const std::string endless = "execute fast.yaml --steps 100000 --checkpoint kept --checkpoint-every 1";
  const fs::path kept = here.folder() / "kept";
  std::mt19937 random(7);
  for (int kill = 0; kill < 5; ++kill) {
    const std::string before = here.read("kept");
    Background run(here, fs::exists(kept) ? endless + " --resume" : endless);
    // At any point of a step, once there is something new to go on from.
    run.await([&] { return here.read("kept") != before; });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    run.send(SIGKILL);
    REQUIRE(run.wait() == 128 + SIGKILL);
  }
  REQUIRE(fs::exists(kept));
  const std::int64_t step = last_step(here.run("execute fast.yaml --checkpoint kept --resume").out);
  CAPTURE(step);
  CHECK(step >= 5);
  here.run(fmt::format("execute fast.yaml --steps {} --checkpoint whole", step + 1));
  CHECK(here.read("kept") == here.read("whole"));
}

TEST_CASE("a checkpoint that is damaged or of another model is refused", "[execute]") {
  const FastWorkplace here;
  here.run("execute fast.yaml --checkpoint kept");
  CHECK(here.hdpsim("execute fast.yaml --checkpoint kept --resume --set 'model={preset: byte-3m}'").code == 2);
  const std::string bytes = here.read("kept");
  here.write("kept", bytes.substr(0, bytes.size() - 1));
  CHECK_THAT(
      here.refusal("execute fast.yaml --checkpoint kept --resume"),
      Contains(fmt::format("kept is no whole checkpoint: it has {} of {} bytes", bytes.size() - 1, bytes.size())));
  CHECK(here.hdpsim("execute fast.yaml --resume").code == 2);
}

// ---- Processes

TEST_CASE("processes under mpirun train to the same bits as threads", "[execute][mpi]") {
  if (is_without_mpi()) return;
  const RealWorkplace here;
  const std::string arguments =
      "execute small.yaml --plan hdp-balance --steps 2 --set cluster.gpus=3 "
      "--set cluster.node.gpus=3 --out ";
  here.run(arguments + "threads");
  here.run(arguments + "processes", mpirun("-n 3"));
  CHECK(losses_of(here.read("processes/steps.csv")) == losses_of(here.read("threads/steps.csv")));
  CHECK(executed_instructions(here.read("processes/measured-1.jsonl")) ==
        executed_instructions(here.read("threads/measured-1.jsonl")));

  for (const std::string mesh : {"tp", "pp"}) {
    CAPTURE(mesh);
    const std::string of_two =
        fmt::format("execute small.yaml --plan hdp-balance --set mesh.{0}=2 --set cluster.gpus=4 --out {0}-", mesh);
    here.run(of_two + "threads");
    here.run(of_two + "processes", mpirun("-n 4"));
    CHECK(losses_of(here.read(mesh + "-processes/steps.csv")) == losses_of(here.read(mesh + "-threads/steps.csv")));
  }

  CHECK_THAT(here.refusal(arguments + "x --ranks 4", mpirun("-n 3")),
             Contains("--ranks is 4, but 3 processes have been started"));
}

TEST_CASE("a process that dies or stands still ends the job, and the last checkpoint stays whole", "[execute][mpi]") {
  if (is_without_mpi()) return;
  const FastWorkplace here;
  // Rank 1 gets a signal once there is a checkpoint; the shell becomes hdpsim, so its number stays.
  here.write("struck",
             "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then\n"
             "  (until [ -e kept ] || ! kill -0 $$; do sleep 0.01; done; kill -$1 $$) &\n"
             "fi\nshift\nexec \"$@\"\n");
  const std::string patience =
      patience_for(std::chrono::seconds(5), [&] { CHECK(here.hdpsim("execute fast.yaml --steps 1").code == 0); });
  // Two ranks, and two stages of one.
  for (const auto& [signal, mesh] : {std::pair<std::string, std::string>{"KILL", ""}, {"STOP", " --set mesh.pp=2"}}) {
    CAPTURE(signal, mesh);
    fs::remove(here.folder() / "kept");
    const Outcome outcome = here.hdpsim(
        "execute fast.yaml --steps 1000000 --checkpoint kept --checkpoint-every 1 --patience " + patience + mesh,
        mpirun("-n 2") + " sh struck " + signal);
    CAPTURE(outcome.err);
    CHECK(outcome.code != 0);
    REQUIRE(fs::exists(here.folder() / "kept"));
    if (signal == "STOP") {
      CHECK(outcome.code == 3);
      CHECK_THAT(outcome.err, Contains("error: ") &&
                                  Contains("nothing has moved for " + patience.substr(0, patience.size() - 1) + " s") &&
                                  Contains("rank 1"));
    }
    CHECK(last_step(here.run("execute fast.yaml --checkpoint kept --resume" + mesh).out) > 0);
  }
}

}  // namespace
}  // namespace hdpsim::spec
