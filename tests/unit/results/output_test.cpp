#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/quantity_text.h"
#include "sim/document/values.h"
#include "sim/results/csv.h"
#include "sim/results/notes.h"
#include "sim/results/result_files.h"
#include "sim/results/table.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Run a_run(const std::string& plan, Duration time, std::size_t point = 0, const std::string& context = "1Mi") {
  Run run;
  run.info.plan = plan;
  run.info.point = point;
  run.info.coordinates = {{"data.context", Value::scalar(context)}};
  run.info.setting = "small on 2 x A100";
  run.info.profile = "paper (published)";
  run.info.gpus = 2;
  run.info.peak = 1_TFLOPs;
  run.info.device_memory = Bytes(80'000'000'000);
  StepResult step;
  step.sequences = 3;
  step.tokens = 1000;
  step.micro_batches = 4;
  step.model_flops = 5e11;
  step.time = time;
  step.bound = 500_ms;
  step.mean[Activity::attention] = time - 250_ms;
  step.mean[Activity::group_wait] = 250_ms;
  step.busy = {time - 500_ms, time - 250_ms, time, 125_ms};
  step.memory.device = Bytes(1'500'000'000);
  step.connections = {.peers = 6, .groups = 5};
  step.events = 7;
  run.result.steps = {step};
  run.result.ranks = {step.mean, step.mean};
  run.result.links = {{"node 0 nic 3 out", 25_GBps, Bytes(50'000'000'000), 0.5, Bytes(30'000'000'000), 0.3}};
  return run;
}

std::vector<Run> two_runs() {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp, wide", 1_s)};
  evaluate(runs, "static");
  return runs;
}

std::string line_number(const std::string& text, int number) {
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i <= number; ++i) std::getline(lines, line);
  return line;
}

TEST_CASE("a CSV field is quoted only when it has to be", "[csv]") {
  CHECK(csv_field("static") == "static");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"x\"") == "\"say \"\"x\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
}

// A run of a plan whose policy refused step 2.
Run a_refused_run(const std::string& plan, std::size_t point = 0, const std::string& context = "1Mi") {
  Run run = a_run(plan, 1_s, point, context);
  run.info.place = {"study.yaml", 11, 5};
  run.result = {};
  run.result.refusal = Refusal{2, "too many tokens, by far", "use more ranks"};
  return run;
}

TEST_CASE("a refused run has empty cells, and a column for what its policy says", "[csv]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_refused_run("verl")};
  evaluate(runs, "static");
  const std::string text = table_csv(ResultTable::runs, runs);
  CHECK(line_number(text, 0).starts_with("point,data.context,plan,gpus,refusal,steps,sequences_per_step,"));
  CHECK(line_number(text, 1).starts_with("0,1Mi,static,2,,1,3,"));
  const std::string row = line_number(text, 2);
  const std::string said = "0,1Mi,verl,2,\"study.yaml:11:5: too many tokens, by far (step 2)\"";
  CHECK(row.substr(0, said.size()) == said);
  CHECK(row.find_first_not_of(',', said.size()) == std::string::npos);
  const auto cells = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  CHECK(cells(row) == cells(line_number(text, 0)) + 1);  // the policy's words have one
  CHECK(line_number(table_csv(ResultTable::timing, runs), 2) == "0,1Mi,verl,,,,,");
  CHECK(line_number(table_csv(ResultTable::steps, runs), 2).empty());
}

TEST_CASE("result.json says why a run was refused, in place of its figures", "[json]") {
  std::vector<Run> runs = {a_refused_run("verl"), a_run("static", 4_s)};
  evaluate(runs, "static");
  const auto result = nlohmann::json::parse(result_json(Value::map(), "1", runs));
  const auto& refused = result.at("runs").at(0);
  CHECK(refused.at("refusal") == "study.yaml:11:5: too many tokens, by far (step 2)");
  CHECK(refused.size() == 6);  // point, plan, profile, gpus, background, refusal
  CHECK_FALSE(result.at("runs").at(1).contains("refusal"));
  const auto schema = nlohmann::json::parse(result_schema()).at("properties").at("runs").at("items");
  for (const auto& name : schema.at("required")) CHECK(refused.contains(name.get<std::string>()));
  for (const auto& name : schema.at("else").at("required")) {
    CHECK(result.at("runs").at(1).contains(name.get<std::string>()));
  }
}

TEST_CASE("the table marks refused plans, and states speed-ups where the baseline was not refused", "[table]") {
  std::vector<Run> runs = {a_refused_run("verl"), a_run("static", 4_s), a_run("verl", 2_s, 1, "2Mi"),
                           a_run("static", 4_s, 1, "2Mi")};
  evaluate(runs, "verl");
  const std::string table = result_table("small", runs);
  CHECK_THAT(table, Catch::Contains("refused: too many tokens, by far (step 2)\n"));
  CHECK_THAT(table, Catch::Contains("verl is refused at 1 of 2 points: study.yaml:11:5: too many tokens, by far (step "
                                    "2); use more ranks\n"));
  CHECK_THAT(table, Catch::Contains("there are no speed-ups at 1 of 2 points: verl, which they would be over, is "
                                    "refused\n"));
  CHECK_THAT(table, Catch::Contains("0.50x"));
}

TEST_CASE("runs.csv has a row a run with the values of its point", "[csv]") {
  const std::string text = table_csv(ResultTable::runs, two_runs());
  CHECK(line_number(text, 0) ==
        "point,data.context,plan,gpus,steps,sequences_per_step,tokens_per_step,step_time_mean_s,step_time_p5_s,"
        "step_time_p50_s,step_time_p95_s,tokens_per_s,tokens_per_s_per_gpu,mfu,bound_s,over_bound,versus,"
        "speedup_mean,speedup_p5,speedup_p95,best_static_sharing,best_static_cut,best_static_cp,"
        "best_static_step_time_s,over_best_static_mean,over_best_static_p5,over_best_static_p95,attention_s,linear_s,"
        "cp_comm_s,tp_comm_s,offload_stall_s,bubble_s,group_"
        "wait_s,grad_sync_s,optimizer_s,data_wait_s,overhead_s,busy_min_s,busy_mean_s,"
        "busy_max_s,busy_std_s,device_peak_gb,host_peak_gb,device_at_most_gb,fits,verdict,measured_share,"
        "interpolated_share,extrapolated_share,formula_share,events,peers,groups,connections_gb");
  CHECK(line_number(text, 2) ==
        "0,1Mi,\"hdp, "
        "wide\",2,1,3,1000,1,1,1,1,1000,500,0.25,0.5,2,static,4,4,4,,,,,,,,0.75,0,0,0,0,0,0.25,0,0,0,0,0.5,0.75,1,0."
        "125,1.5,0,1.5,true,fits,"
        "0,0,0,1,7,6,5,");
}

TEST_CASE("a run says how many sequences and tokens its steps have on average", "[csv]") {
  std::vector<Run> runs = {a_run("static", 4_s)};
  runs[0].result.steps.push_back(runs[0].result.steps[0]);
  runs[0].result.steps[1].sequences = 6;  // after 3
  runs[0].result.steps[1].tokens = 1001;  // after 1000
  evaluate(runs, std::nullopt);
  CHECK_THAT(line_number(table_csv(ResultTable::runs, runs), 1), Catch::StartsWith("0,1Mi,static,2,2,4.5,1000.5,4,"));
  const auto run = nlohmann::json::parse(result_json(Value::map(), "0.1.0", runs))["runs"][0];
  CHECK(run["sequences_per_step"] == 4.5);
  CHECK(run["tokens_per_step"] == 1000.5);
}

TEST_CASE("steps.csv has a row a step and ranks.csv a row a rank", "[csv]") {
  const std::string steps = table_csv(ResultTable::steps, two_runs());
  CHECK(line_number(steps, 1) ==
        "0,1Mi,static,0,3,1000,4,4,3.75,0,0,0,0,0,0.25,0,0,0,0,3.5,3.75,4,0.125,1.5,0,1.5,7,6,5,");
  const std::string ranks = table_csv(ResultTable::ranks, two_runs());
  CHECK(line_number(ranks, 0) ==
        "point,data.context,plan,rank,busy_s,attention_s,linear_s,cp_comm_s,tp_comm_s,offload_stall_s,bubble_s,group_"
        "wait_s,"
        "grad_sync_s,optimizer_s,data_wait_s,overhead_s");
  CHECK(line_number(ranks, 2) == "0,1Mi,static,1,3.75,3.75,0,0,0,0,0,0.25,0,0,0,0");
  CHECK(std::count(ranks.begin(), ranks.end(), '\n') == 1 + 2 * 2);
}

TEST_CASE("tables have the memory of connections where it is known", "[csv]") {
  std::vector<Run> runs = {a_run("static", 4_s)};
  runs[0].result.steps.push_back(runs[0].result.steps[0]);
  runs[0].result.steps[0].memory.connections = Bytes(250'000'000);
  runs[0].result.steps[1].memory.connections = Bytes(125'000'000);
  runs[0].result.steps[1].connections = {.peers = 7, .groups = 4};
  evaluate(runs, std::nullopt);
  CHECK_THAT(table_csv(ResultTable::steps, runs), Catch::Contains(",6,5,0.25\n") && Catch::Contains(",7,4,0.125\n"));
  CHECK_THAT(table_csv(ResultTable::runs, runs), Catch::EndsWith(",7,5,0.25\n"));  // the most of any step
}

TEST_CASE("links.csv has a row a link", "[csv]") {
  const std::string links = table_csv(ResultTable::links, two_runs());
  CHECK(line_number(links, 0) == "point,data.context,plan,link,gb_per_s,gb,utilisation,other_gb,other_utilisation");
  CHECK(line_number(links, 1) == "0,1Mi,static,node 0 nic 3 out,25,50,0.5,30,0.3");
}

TEST_CASE("memory.csv has a row a sample of each rank of the fullest step", "[csv]") {
  std::vector<Run> runs = two_runs();
  runs[1].result.memory = {
      3,
      {{HdpRank(5), {{0_ms, Bytes(1'000'000'000), {}}, {250_ms, Bytes(2'000'000'000), Bytes(500'000'000)}}},
       {HdpRank(6), {{0_ms, Bytes(1'000'000'000), {}}}}}};
  const std::string memory = table_csv(ResultTable::memory, runs);
  CHECK(line_number(memory, 0) == "point,data.context,plan,step,rank,time_s,device_gb,host_gb");
  CHECK(line_number(memory, 1) == "0,1Mi,\"hdp, wide\",3,5,0,1,0");
  CHECK(line_number(memory, 2) == "0,1Mi,\"hdp, wide\",3,5,0.25,2,0.5");
  CHECK(std::count(memory.begin(), memory.end(), '\n') == 1 + 3);
}

TEST_CASE("a run that does not fit says what fills the device, and what was found to help", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s)};
  MemoryUse& memory = runs[0].result.steps[0].memory;
  memory.parts[MemoryPart::parameters] = Bytes(20'000'000'000);
  memory.parts[MemoryPart::activations] = Bytes(70'000'000'000);
  memory.device = memory.parts.total();
  evaluate(runs, std::nullopt);
  CHECK(runs_in_need(runs) == std::vector<std::size_t>{0});
  const std::string line =
      "\nstatic at data.context 1Mi does not fit: 90.0 GB of 80.0 GB on a device, of it activations 70.0 GB, "
      "parameters 20.0 GB";
  CHECK_THAT(result_table("mine", runs), Catch::Contains(line + "\n"));  // nothing was tried
  const Advice larger{.changes = {"mesh.tp=4"}, .device = Bytes(62'000'000'000)};
  const Advice both{.changes = {"mesh.zero=3", "training.recompute=full"}, .device = Bytes(70'000'000'000)};
  CHECK_THAT(
      result_table("mine", runs, {{0, {larger, both}}}),
      Catch::Contains(line + "; it fits with mesh.tp=4 (62.0 GB a device), or mesh.zero=3 training.recompute=full "
                             "(70.0 GB a device)\n"));
  CHECK_THAT(result_table("mine", runs, {{0, {}}}),
             Catch::Contains(line + "; no change that was tried makes it fit\n"));
}

TEST_CASE("a run that would likely fit with states in bf16 or a loss in pieces says so", "[table]") {
  const auto line_with = [](double head_gb, double optimizer_gb) {
    std::vector<Run> runs = {a_run("static", 4_s)};
    MemoryUse& memory = runs[0].result.steps[0].memory;
    memory.parts[MemoryPart::parameters] = Bytes(70'000'000'000);
    memory.parts[MemoryPart::head] = Bytes(std::llround(head_gb * 1e9));
    memory.parts[MemoryPart::optimizer] = Bytes(std::llround(optimizer_gb * 1e9));
    memory.device = memory.parts.total();
    evaluate(runs, std::nullopt);
    return result_table("mine", runs);
  };
  CHECK_THAT(line_with(11, 0), Catch::Contains("; it may fit with a loss in pieces, which is not modelled\n"));
  CHECK_THAT(line_with(0, 29), Catch::Contains("; it may fit with states in bf16 (training.master=none"));  // 19.3
  CHECK_THAT(line_with(0, 31), !Catch::Contains("it may fit"));  // 20.7 of 21
  CHECK_THAT(line_with(20, 24),
             Catch::Contains("training.gradients=bf16) and a loss in pieces, which is not modelled\n"));
}

TEST_CASE("a run whose memory is at risk says so in its row, below the table and in files", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("static", 4_s, 1, "2Mi"), a_run("hdp", 1_s, 1, "2Mi")};
  for (Run* run : {&runs[1], &runs[2]}) {
    MemoryUse& memory = run->result.steps[0].memory;
    memory.parts[MemoryPart::activations] = Bytes(76'000'000'000);
    memory.parts[MemoryPart::fragmentation] = memory.parts[MemoryPart::activations].scaled(0.047);
    memory.device = memory.parts.total();
  }
  evaluate(runs, "static");
  const std::string table = result_table("mine", runs);
  CHECK_THAT(table, Catch::Contains("memory at risk; attention"));
  CHECK_THAT(table, Catch::Contains("4.00x"));  // it may well run
  const std::string figures =
      "79.6 GB of 80.0 GB on a device, 83.1 GB where the allocator leaves gaps of 9.3 % and not of 4.7 %; a smaller "
      "mesh.capacity leaves room\n";
  CHECK_THAT(table, Catch::Contains("\nthe memory of static is at risk at 1 of 2 points: up to " + figures));
  CHECK_THAT(table, Catch::Contains("\nthe memory of hdp is at risk: " + figures));
  const auto memory = nlohmann::json::parse(result_json(Value::map(), "0.1.0", runs))["runs"][2]["memory_gb"];
  CHECK(memory["fits"] == true);
  CHECK(memory["verdict"] == "at risk");
  CHECK(memory["device_at_most"].get<double>() == Approx(76 * 1.093));
}

TEST_CASE("a run whose plan gives a rank more tokens than the capacity does not fit", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("verl", 1_s)};
  runs[1].info.capacity = 100;
  runs[1].result.steps[0].tokens_held = 120;
  evaluate(runs, "static");
  CHECK_FALSE(runs[1].metrics.fits);
  CHECK_THAT(result_table("mine", runs),
             Catch::Contains("\nverl at data.context 1Mi does not fit: 120 of 100 tokens on a rank\n"));
}

TEST_CASE("result.json names what runs beside the main job", "[json]") {
  std::vector<Run> runs = two_runs();
  runs[1].info.background = {{"neighbour", "small with static", 4}};
  const auto json = nlohmann::json::parse(result_json(Value::map(), "0.1.0", runs));
  CHECK(json["runs"][0]["background"].empty());
  CHECK(json["runs"][1]["background"][0]["name"] == "neighbour");
  CHECK(json["runs"][1]["background"][0]["what"] == "small with static");
  CHECK(json["runs"][1]["background"][0]["gpus"] == 4);
}

TEST_CASE("result.json holds the study, the point as numbers and parts that sum to the step time", "[json]") {
  Value study = Value::map();
  study.set("name", Value::scalar("x"));
  const auto json = nlohmann::json::parse(result_json(study, "0.1.0", two_runs()));
  CHECK(json["schema"] == "hdpsim.result/1");
  CHECK(json["study"]["name"] == "x");
  const auto& run = json["runs"][1];
  CHECK(run["point"]["data.context"] == 1048576);
  CHECK(run["plan"] == "hdp, wide");
  CHECK(run["speedup"]["mean"] == 4.0);
  double sum = 0;
  for (const auto& part : run["breakdown_s"]) sum += part.get<double>();
  CHECK(sum == run["step_time_s"]["mean"].get<double>());
  CHECK_FALSE(run.contains("planner_s"));
}

TEST_CASE("a study without comparison has no speed-up", "[json]") {
  std::vector<Run> runs = two_runs();
  evaluate(runs, std::nullopt);
  const auto json = nlohmann::json::parse(result_json(Value::map(), "0.1.0", runs));
  CHECK(json["runs"][0]["speedup"].is_null());
}

TEST_CASE("values become JSON of their own type", "[json]") {
  const auto json = [](const std::string& text) { return json_of(Value::scalar(text)).dump(); };
  CHECK(json("256Ki") == "262144");
  CHECK(json("0.5") == "0.5");
  CHECK(json("true") == "true");
  CHECK(json("80 GB") == "\"80 GB\"");
  Value quoted = Value::scalar("1");
  quoted.quoted = true;
  CHECK(json_of(quoted).dump() == "\"1\"");
}

TEST_CASE("the table has a block a point and a row a plan", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp", 1_s), a_run("static", 8_s, 1, "2Mi"),
                           a_run("hdp", 1_s, 1, "2Mi")};
  runs[3].result.steps[0].memory.device = Bytes(90'000'000'000);
  evaluate(runs, "static");
  CHECK(result_table("mine", runs) ==
        "mine: small on 2 x A100\n"
        "\n"
        "  plan    step time  tokens/s  speed-up      MFU  where the time goes\n"
        "data.context 1Mi\n"
        "  static     4.00 s       250     1.00x     6.2%  attention 94%, group_wait 6%\n"
        "  hdp        1.00 s     1.00k     4.00x    25.0%  attention 75%, group_wait 25%\n"
        "\n"
        "data.context 2Mi\n"
        "  static     8.00 s       125     1.00x     3.1%  attention 97%, group_wait 3%\n"
        "  hdp      (1.00 s)   (1.00k)         -  (25.0%)  does not fit: 90.0 GB of 80.0 GB on a device; attention "
        "75%, group_wait 25%\n"
        "\n"
        "hdp does not fit at 1 of 2 points: up to 90.0 GB of 80.0 GB on a device\n"
        "speed-ups are over static on this mesh, which need not be its best: hdpsim tune finds that, compare_to: "
        "{static: tuned} compares with it\n"
        "costs: paper (published)\n"
        "evidence for the step time: formula 100%\n");
}

TEST_CASE("runs of a plan that do not fit for the same reason are told in one line, by the fullest of them",
          "[table]") {
  std::vector<Run> runs;
  for (std::size_t point = 0; point < 18; ++point) {
    runs.push_back(a_run("static", 4_s, point));
    runs.push_back(a_run("hdp", 1_s, point));
    MemoryUse& memory = runs.back().result.steps[0].memory;
    memory.parts[MemoryPart::activations] = Bytes(90'000'000'000 + static_cast<std::int64_t>(point) * 1'000'000'000);
    memory.device = memory.parts.total();
  }
  evaluate(runs, "static");
  const std::string table = result_table("mine", runs);
  const std::string line = "\nhdp does not fit at 18 of 18 points: up to 107 GB of 80.0 GB on a device, of it ";
  CHECK_THAT(table, Catch::Contains(line));
  std::size_t lines = 0;
  for (std::size_t at = table.find("\nhdp does not fit"); at != std::string::npos; ++lines) {
    at = table.find("\nhdp does not fit", at + 1);
  }
  CHECK(lines == 1);
  CHECK_THAT(table, !Catch::Contains("which does not fit"));
}

TEST_CASE("speed-ups over a plan that does not fit say so", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp", 1_s), a_run("static", 8_s, 1, "2Mi"),
                           a_run("hdp", 1_s, 1, "2Mi")};
  runs[2].result.steps[0].memory.device = Bytes(90'000'000'000);
  evaluate(runs, "static");
  CHECK_THAT(result_table("mine", runs), Catch::Contains("\nspeed-ups at 1 of 2 points are over static, which does not "
                                                         "fit: they compare with what cannot run\n"));
}

TEST_CASE("a tuned baseline has a row below the plans of its point, and is named below the table", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp", 1_s)};
  evaluate(runs, "static");
  auto baseline = std::make_shared<Run>(a_run("static (tuned)", 3_s));
  baseline->info.tuned = "tp 4, capacity 64Ki, static";
  baseline->metrics = metrics_of(baseline->info, baseline->result);
  baseline->metrics.speedup = speedup_over(baseline->info.plan, baseline->result, baseline->result);
  compare_with({baseline}, runs);
  CHECK(runs[1].metrics.speedup->mean == 3);  // 3 s over 1 s, no longer 4 s over 1 s
  const std::string table = result_table("mine", runs);
  CHECK_THAT(table, Catch::Contains("\n  static (tuned)     3.00 s       333     1.00x"));
  CHECK_THAT(table, Catch::Contains("\nstatic (tuned) at data.context 1Mi: tp 4, capacity 64Ki, static\n"));
  CHECK_THAT(table, !Catch::Contains("need not be its best"));
  const auto speedup = nlohmann::json::parse(result_json(Value{}, "1", runs))["runs"][1]["speedup"];
  CHECK(speedup["versus"] == "static (tuned)");
  CHECK(speedup["tuned_baseline"]["choices"] == "tp 4, capacity 64Ki, static");
  CHECK(speedup["tuned_baseline"]["step_time_s"]["mean"] == 3);
}

// Runs of 4 s and 1 s at two points, whose best static mesh takes 2 s at the first and is the stated one at the second.
std::vector<Run> over_best_static() {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp", 1_s), a_run("static", 4_s, 1, "2Mi"),
                           a_run("hdp", 1_s, 1, "2Mi")};
  for (Run& run : runs) run.info.sharing = "p2p";
  for (Run& run : runs) run.info.cut = "per_document";
  evaluate(runs, "static");
  Run best = a_run("static (a2a)", 2_s);
  best.info.sharing = "a2a";
  best.info.cut = "per_document";
  best.metrics = metrics_of(best.info, best.result);
  best.metrics.speedup = speedup_over("static", runs[0].result, best.result);
  best.metrics.over_best_static = {speedup_over(best.info.plan, best.result, best.result), "a2a", "per_document", 8, 2};
  const BestStatic another{std::make_shared<const Run>(best), 8};
  const BestStatic stated{std::make_shared<const Run>(runs[2]), 16};
  for (std::size_t run = 0; run < runs.size(); ++run) compare_with(run < 2 ? another : stated, runs[run]);
  return runs;
}

TEST_CASE("the speed-up over the best static mesh stands beside the stated one, and that mesh below its plans",
          "[table]") {
  const std::vector<Run> runs = over_best_static();
  CHECK(
      result_table("mine", runs) ==
      "mine: small on 2 x A100\n"
      "\n"
      "  plan          step time  tokens/s  speed-up  over best    MFU  where the time goes\n"
      "data.context 1Mi\n"
      "  static           4.00 s       250     1.00x      0.50x   6.2%  attention 94%, group_wait 6%\n"
      "  hdp              1.00 s     1.00k     4.00x      2.00x  25.0%  attention 75%, group_wait 25%\n"
      "  static (a2a)     2.00 s       500     2.00x      1.00x  12.5%  attention 88%, group_wait 12%\n"
      "\n"
      "data.context 2Mi\n"
      "  static           4.00 s       250     1.00x      1.00x   6.2%  attention 94%, group_wait 6%\n"
      "  hdp              1.00 s     1.00k     4.00x      4.00x  25.0%  attention 75%, group_wait 25%\n"
      "\n"
      "speed-ups are over static (p2p) as stated; over best: over static with the fastest sharing on the same tp and "
      "pp, which is named in brackets; hdpsim tune finds the best mesh, compare_to: {static: tuned} compares with it\n"
      "costs: paper (published)\n"
      "evidence for the step time: formula 100%\n");
  // Where the stated way is the fastest at all points, that is said.
  const std::vector<Run> second(runs.begin() + 2, runs.end());
  CHECK_THAT(result_table("mine", second),
             Catch::Contains("\nspeed-ups are over static (p2p), the fastest sharing on its tp and pp; hdpsim tune "));
}

TEST_CASE("JSON and columns have the speed-up over the best static mesh with its sharing", "[json][csv]") {
  const std::vector<Run> runs = over_best_static();
  const auto json = nlohmann::json::parse(result_json(Value{}, "1", runs))["runs"];
  const auto over = json[1]["speedup_over_best_static"];
  CHECK(over["sharing"] == "a2a");
  CHECK(over["cut"] == "per_document");
  CHECK(over["cp"] == 8);
  CHECK(over["step_time_s"] == 2);
  CHECK(over["mean"] == 2);
  CHECK(over["p5"] == 2);
  CHECK(over["p95"] == 2);
  CHECK(json[3]["speedup_over_best_static"]["sharing"] == "p2p");
  CHECK(nlohmann::json::parse(result_json(Value{}, "1", two_runs()))["runs"][1]["speedup_over_best_static"].is_null());
}

TEST_CASE("a trace that is read again and documents that are split are told below the table, each once", "[table]") {
  std::vector<Run> runs = {a_run("static", 4_s), a_run("hdp", 1_s)};
  const TraceUse use{.documents = 20'000,
                     .times_read = 4.31,
                     .context = 256 * 1024,
                     .overlong = 16,
                     .overlong_documents = 0.0008,
                     .overlong_tokens = 0.14};
  for (Run& run : runs) run.info.trace = use;
  evaluate(runs, std::nullopt);
  const std::string table = result_table("mine", runs);
  CHECK_THAT(table,
             Catch::Contains("\nthe 20000 documents of the trace are read 4.31 times\n"
                             "16 of the 20000 documents of the trace (0.08%), with 14% of its tokens, are longer "
                             "than the context of 256Ki and are split\n"
                             "costs: "));
  const auto written = nlohmann::json::parse(result_json(Value{}, "1", runs));
  CHECK(written["runs"][0]["trace"]["times_read"] == 4.31);
  CHECK(written["runs"][0]["trace"]["overlong"] == "split");
  CHECK_THAT(
      table_csv(ResultTable::runs, runs),
      Catch::Contains("trace_times_read,overlong_documents,overlong_tokens") && Catch::Contains(",4.31,0.0008,0.14"));
  CHECK(trace_notes({.documents = 5, .times_read = 1}).empty());
}

TEST_CASE("ranks that wait because they have too few micro-batches are told so, once", "[table]") {
  const auto table_of = [](std::int64_t tokens, const RunAdvice& advice = {}) {
    std::vector<Run> runs = {a_run("static", 500_ms), a_run("hdp", 500_ms), a_run("quick", 4_s)};  // half, half, 6 %
    for (Run& run : runs) {
      run.info.capacity = 100;
      run.result.steps[0].tokens = tokens;  // of two ranks
    }
    evaluate(runs, std::nullopt);
    return result_table("mine", runs, advice);
  };
  CHECK_THAT(table_of(300), Catch::Contains("\nhdp, static: group_wait is more than 25% where a step has as little as "
                                            "1.5 micro-batches for each rank"));
  CHECK_THAT(table_of(800), !Catch::Contains("micro-batches for each rank"));
  CHECK_THAT(table_of(300), !Catch::Contains("what helps"));  // nothing was tried
  const Advice slower{.changes = {"data.tokens_per_step=4Ki"}, .gain = 0.25};
  CHECK_THAT(table_of(300, {{1, {slower}}}),
             Catch::Contains("\nwhat helps hdp at data.context 1Mi: data.tokens_per_step=4Ki (-25.0% of the time of a "
                             "token)\n"));
}

TEST_CASE("small activities are added up", "[table]") {
  Breakdown breakdown;
  breakdown[Activity::attention] = 60_ms;
  breakdown[Activity::linear] = 20_ms;
  breakdown[Activity::cp_comm] = 10_ms;
  breakdown[Activity::overhead] = 6_ms;
  breakdown[Activity::optimizer] = 3_ms;
  breakdown[Activity::grad_sync] = 1_ms;
  CHECK(largest_shares(breakdown) == "attention 60%, linear 20%, cp_comm 10%, overhead 6%, other 4%");
}

TEST_CASE("short numbers have three digits and a power of a thousand", "[table]") {
  CHECK(short_number(0) == "0.00");
  CHECK(short_number(547'123) == "547k");
  CHECK(short_number(999.4) == "999");
  CHECK(short_number(999.6) == "1.00k");
  CHECK(short_number(1.234e6) == "1.23M");
  CHECK(short_number(12.34) == "12.3");
}

}  // namespace
}  // namespace hdpsim
