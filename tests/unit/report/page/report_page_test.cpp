#include "sim/report/page/report_page.h"

#include <set>

#include "sim/report/page/busy_map.h"
#include "sim/report/page/page_data.h"
#include "tests/support/catch.h"
#include "tests/support/page_text.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

Bytes gigabytes(std::int64_t count) {
  return Bytes(count * 1'000'000'000);
}

using Catch::Matchers::Contains;
using test::count;
using test::page_data;

Breakdown busy_for(std::int64_t seconds, std::int64_t waiting) {
  Breakdown rank;
  rank[Activity::attention] = seconds * 1_s;
  rank[Activity::group_wait] = waiting * 1_s;
  return rank;
}

Run a_run_of(std::size_t ranks) {
  Run run;
  run.info.plan = "static";
  run.info.gpus = static_cast<std::int64_t>(ranks);
  run.info.peak = 1_TFLOPs;
  StepResult step;
  step.time = 4_s;
  step.tokens = 1000;
  step.mean = busy_for(3, 1);
  run.result.steps = {step};
  run.result.ranks.assign(ranks, step.mean);
  run.result.links = {{"node 0 nic 3 out", 25_GBps, Bytes(50'000'000'000), 0.5}};
  return run;
}

std::vector<Run> one_run(std::size_t ranks = 2) {
  std::vector<Run> runs = {a_run_of(ranks)};
  evaluate(runs, std::nullopt);
  return runs;
}

Value study_named(const std::string& name) {
  Value study = Value::map();
  study.set("name", Value::scalar(name));
  return study;
}

nlohmann::json data_of(const std::vector<Run>& runs) {
  return page_data(report_page({"1", study_named("s"), runs, {}, {}, {}}));
}

TEST_CASE("cells of a map are means of equally many consecutive ranks", "[report_page]") {
  std::vector<Breakdown> ranks;
  for (int rank = 0; rank < 7; ++rank) ranks.push_back(busy_for(rank, 10 - rank));
  const BusyMap all = busy_map(ranks, 100);
  CHECK(all.ranks_per_cell == 1);
  CHECK(all.cells == std::vector<double>{0, 1, 2, 3, 4, 5, 6});
  const BusyMap few = busy_map(ranks, 3);
  CHECK(few.ranks_per_cell == 3);
  CHECK(few.cells == std::vector<double>{1, 4, 6});  // the last one has one rank left
}

TEST_CASE("a histogram counts every rank once, the busiest in its last bin", "[report_page]") {
  std::vector<Breakdown> ranks;
  for (int rank = 0; rank <= 8; ++rank) ranks.push_back(busy_for(rank, 10 - rank));
  const BusyHistogram histogram = busy_histogram(ranks, 4);
  CHECK(histogram.least == 0);
  CHECK(histogram.most == 8);
  CHECK(histogram.counts == std::vector<std::int64_t>{2, 2, 2, 3});
  CHECK(busy_histogram(std::vector(5, busy_for(2, 2)), 4).counts == std::vector<std::int64_t>{5});
  CHECK(busy_histogram({}, 4).counts.empty());
}

TEST_CASE("what a page shows of a step is who shared how much, and the lanes of a few ranks", "[report_page]") {
  const Plan plan = test::plan_of(3, 2, {{{0, 1}, 100}, {{2}, 50}, {{0, 1}, 60}, {{0, 1, 2}, 90}});
  const LoweringOptions lowering{test::one_head_model(2), Mesh{.hdp = 3}};
  Timeline timeline;
  timeline.step_time = 5_s;
  timeline.ranks.resize(3);
  timeline.micro_batches.assign(4, {Instant::at(1_s), Instant::at(2_s)});
  const ShownStep shown = shown_step(Program(plan, lowering), timeline);
  CHECK(shown.time == 5_s);
  CHECK(shown.group_sizes == std::vector<ShownStep::GroupSize>{{1, 1, 50}, {2, 2, 160}, {3, 1, 90}});
  REQUIRE(shown.lanes.size() == 3);
  CHECK(shown.lanes[0].pieces.size() == 3);
  CHECK(shown.lanes[0].pieces[0].tokens == 100);
  CHECK(shown.lanes[2].pieces[1].ranks == 3);
}

TEST_CASE("a lane is cut at its bound, and says how much is missing", "[report_page]") {
  const std::size_t more = ShownStep::most_pieces + 3;
  const Plan plan = test::plan_of(1, 2, std::vector(more, std::pair(std::vector<std::size_t>{0}, std::int64_t{10})));
  Timeline timeline;
  timeline.ranks.resize(1);
  timeline.micro_batches.assign(more, {});
  const LoweringOptions lowering{test::one_head_model(2), Mesh{.hdp = 1}};
  const ShownStep shown = shown_step(Program(plan, lowering), timeline);
  CHECK(shown.lanes.at(0).pieces.size() == ShownStep::most_pieces);
  CHECK(shown.lanes.at(0).left_out == 3);
}

TEST_CASE("of a pipeline a page shows every stage of as many ranks as there is room for", "[report_page]") {
  constexpr std::int64_t stages = 4;
  const Plan plan = test::plan_of(3, stages, {{{0, 1}, 100}, {{2}, 50}, {{0, 1, 2}, 90}});
  const LoweringOptions lowering{test::one_head_model(stages), Mesh{.hdp = 3, .pp = stages}};
  const Program program(plan, lowering);
  Timeline timeline;
  timeline.step_time = 5_s;
  timeline.ranks.assign(3 * stages, busy_for(2, 3));
  timeline.passes.assign(program.pipeline().passes(), {Instant::at(1_s), Instant::at(2_s)});
  const ShownStep shown = shown_step(program, timeline);
  REQUIRE(shown.lanes.size() == ShownStep::most_lanes);  // two ranks of four stages
  for (std::size_t i = 0; i < shown.lanes.size(); ++i) CHECK(shown.lanes[i].stage == static_cast<std::int64_t>(i) % 4);
  CHECK(shown.lanes[0].pieces.size() == 2 * 2);  // forward and backward of two micro-batches
  CHECK(shown.lanes[0].pieces[0].kind == PassKind::forward);
  CHECK(shown.lanes[0].breakdown.total() == 5_s);
}

TEST_CASE("names out of files stay text, whatever is in them", "[report_page]") {
  const std::string hostile = "</script><script>alert(1)</script><!-- \"'&\n{{data}} \xff";
  std::vector<Run> runs = one_run();
  runs[0].info.plan = hostile;
  runs[0].info.setting = hostile;
  runs[0].result.links[0].name = hostile;
  runs[0].info.coordinates = {{hostile, Value::scalar(hostile)}};
  const std::string page = report_page({"1", study_named(hostile), runs, {}, {}, {hostile}});
  CHECK(count(page, "<script>alert") == 0);
  CHECK(count(page, "<script") == count(report_page({"1", study_named("plain"), one_run(), {}, {}, {}}), "<script"));
  CHECK_THAT(page, Contains("<title>&lt;/script&gt;&lt;script&gt;alert(1)"));
  const auto data = page_data(page);
  const std::string replaced = hostile.substr(0, hostile.size() - 1) + "\xEF\xBF\xBD";  // no UTF-8: U+FFFD
  CHECK(data.at("name") == replaced);
  CHECK(data.at("runs").at(0).at("plan") == replaced);
  CHECK(data.at("runs").at(0).at("timeline") == replaced);
  CHECK(data.at("runs").at(0).at("links").at(0).at(0) == replaced);
  CHECK(data.at("points").at(0).at("coordinates").at(0) == nlohmann::json::array({replaced, replaced}));
}

TEST_CASE("a page holds the figures of its runs", "[report_page]") {
  const auto run = data_of(one_run()).at("runs").at(0);
  CHECK(run.at("step_time_s").at("mean") == 4);
  CHECK(run.at("breakdown_s").at("attention") == 3);
  CHECK(run.at("tokens_per_s") == 250);
  CHECK(run.at("busy_map").at("cells") == nlohmann::json::array({3.0, 3.0}));
  CHECK(run.at("speedup").is_null());
  CHECK(run.at("shown_step").is_null());
  CHECK(run.at("timeline").is_null());
}

TEST_CASE("a page has the best static mesh of a point with both speed-ups", "[report_page]") {
  std::vector<Run> runs = {a_run_of(2)};
  evaluate(runs, "static");
  auto best = std::make_shared<Run>(a_run_of(2));
  best->info.plan = "static (a2a)";
  best->result.steps[0].time = 2_s;
  best->metrics = metrics_of(best->info, best->result);
  best->metrics.speedup = speedup_over("static", runs[0].result, best->result);
  compare_with(BestStatic{best, 2}, runs[0]);
  const auto data = data_of(runs);
  CHECK(data.at("runs").at(0).at("speedup_over_best_static").at("mean") == 0.5);
  const auto& beside = data.at("points").at(0).at("best_static");
  CHECK(beside.at("plan") == "static (a2a)");
  CHECK(beside.at("speedup").at("mean") == 2);
  CHECK(data_of(one_run()).at("points").at(0).at("best_static").is_null());
}

TEST_CASE("a page has the intervals of a run that is resampled, and what would narrow them", "[report_page]") {
  std::vector<Run> runs = one_run();
  CHECK_FALSE(data_of(runs).at("runs").at(0).contains("uncertainty"));
  Uncertainty found;
  found.samples = 200;
  found.step_time_s = {4, 3.5, 4.1, 4.75};
  found.speedup = Percentiles{1, 0.9, 1.01, 1.2};
  found.shares = {{"attention_forward", 0.75, 0.1}, {"batches", 0.25, 0.05}};
  found.unknown = {"gemm"};
  found.advice = "calibrate gemm";
  runs[0].metrics.uncertainty = found;
  const auto shown = data_of(runs).at("runs").at(0).at("uncertainty");
  CHECK(shown.at("samples") == 200);
  CHECK(shown.at("step_time_s").at("p95") == 4.75);
  CHECK(shown.at("speedup").at("p5") == 0.9);
  CHECK(shown.at("variance").at(0).at("share") == 0.75);
  CHECK(shown.at("unknown") == nlohmann::json{"gemm"});
  CHECK(shown.at("advice") == "calibrate gemm");
}

TEST_CASE("the stages of a pipeline have means of their own on a page", "[report_page]") {
  std::vector<Run> runs = one_run(4);
  runs[0].info.stages = 2;
  runs[0].result.ranks = {busy_for(1, 3), busy_for(2, 2), busy_for(3, 1), busy_for(4, 0)};  // rank 0, rank 1
  const auto run = data_of(runs).at("runs").at(0);
  CHECK(run.at("ranks") == 2);
  CHECK(run.at("stage_breakdowns").size() == 2);
  CHECK(run.at("stage_breakdowns").at(0).at("attention") == 2);  // the mean of 1 and 3 s
  CHECK(run.at("stage_breakdowns").at(1).at("attention") == 3);
}

TEST_CASE("a page has the memory of the fullest ranks, the fullest first", "[report_page]") {
  std::vector<Run> runs = one_run();
  runs[0].info.device_memory = gigabytes(80);
  runs[0].metrics.memory.device = gigabytes(70);
  runs[0].metrics.memory.parts[MemoryPart::activations] = gigabytes(70);
  runs[0].metrics.memory.rank = HdpRank(6);
  for (std::size_t rank = 1; rank <= 6; ++rank) {
    const Bytes peak = gigabytes(10) * static_cast<std::int64_t>(rank);
    runs[0].result.memory.ranks.push_back(
        {HdpRank(rank), {{0_s, gigabytes(1), {}}, {1_s, peak, gigabytes(2)}, {4_s, gigabytes(1), {}}}});
  }
  const auto run = data_of(runs).at("runs").at(0);
  CHECK(run.at("memory_gb").at("device_limit").get<double>() == Approx(80));
  CHECK(run.at("memory_gb").at("rank") == 6);
  CHECK(run.at("memory_gb").at("parts").at("activations") == 70);
  const auto& ranks = run.at("samples");
  CHECK(ranks.at(0).at("rank") == 6);
  CHECK(ranks.at(0).at("samples").at(1) == nlohmann::json::array({1.0, 60.0, 2.0}));
  CHECK(ranks.size() == 4);
  CHECK(ranks.back().at("rank") == 3);
}

TEST_CASE("the page of a study of 16,384 GPUs and 24 plans and points stays below 10 MB", "[report_page]") {
  std::vector<Run> runs(24, a_run_of(16'384));
  std::vector<std::optional<ShownStep>> steps;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].info.point = i / 3;
    for (std::size_t rank = 0; rank < runs[i].result.ranks.size(); ++rank) {
      runs[i].result.ranks[rank][Activity::linear] =
          Duration::picoseconds(std::int64_t{1'234'567'891} * static_cast<std::int64_t>(rank));
    }
    ShownStep& step = *steps.emplace_back(ShownStep{});
    ShownStep::Lane lane;
    for (std::size_t piece = 0; piece < ShownStep::most_pieces; ++piece) {
      const Instant begin = Instant::at(123'456_us * static_cast<std::int64_t>(piece));
      lane.pieces.push_back({begin, begin + 123'456_us, 16'384, 123'456'789, 0.123456});
    }
    step.lanes.assign(ShownStep::most_lanes, lane);
  }
  evaluate(runs, std::nullopt);
  const std::string page = report_page({"1", study_named("large"), runs, {}, steps, {}});
  CHECK(page.size() > 1'000'000);
  CHECK(page.size() < 10'000'000);
  const auto map = page_data(page).at("runs").at(0).at("busy_map");
  CHECK(map.at("ranks_per_cell") == 4);
  CHECK(map.at("cells").size() == 4096);
}

TEST_CASE("a page has the answer, what plans and activities are, and why the explained runs take so long",
          "[report_page]") {
  Explanation why;
  why.step = 3;
  why.step_time = 4_s;
  why.mean = busy_for(3, 1);
  ExplainedPass& longest = why.longest.emplace_back();
  longest.micro_batch = 5;
  longest.ranks = 1;
  longest.time = 2_s;
  why.changes = {{"attention twice as fast", 3_s}, {"nobody waits for others", 2_s, true}};
  const auto data = page_data(report_page({"1", study_named("s"), one_run(), {}, {}, {}, {why}}));
  CHECK(data.at("answer").at("lead") == "static takes 4.00 s a step: attention 75%, group_wait 25%.");
  CHECK(data.at("answer").at("notes").size() == 3);  // one step; the costs; how sure
  CHECK_THAT(data.at("definitions").at("plans").at("static").get<std::string>(), Contains("static mesh"));
  CHECK(data.at("definitions").at("activities").size() == activity_count);
  CHECK(data.at("definitions").at("evidence").size() == evidence_kinds);
  const auto& told = data.at("runs").at(0).at("why");
  CHECK(told.at("step") == 3);
  CHECK(told.at("lines").at(0) ==
        nlohmann::json::array({0, "The time of a mean rank: attention 75%, group_wait 25%."}));
  CHECK(told.at("lines").back().at(0) == 1);  // an example of the line before it
  CHECK(told.at("changes").at(0) == nlohmann::json::array({"attention twice as fast", 3.0, false}));
  CHECK(told.at("changes").at(1).at(2) == true);
}

TEST_CASE("a page has what a user could change, and its plans over tokens a step", "[report_page]") {
  Explanation why;
  why.step_time = 4_s;
  why.advice = {{.changes = {"mesh.tp=4", "mesh.zero=2"},
                 .step_time = 3_s,
                 .tokens = 1000,
                 .gain = 0.25,
                 .device = Bytes(40'000'000'000)},
                {.changes = {"mesh.zero=3"}, .step_time = 5_s}};
  const std::vector<Run> runs = one_run();
  ReportData shown{"1", study_named("s"), runs, {}, {}, {}, {why}};
  shown.tokens = {{1 << 20, {100.0}}, {4 << 20, {std::nullopt}}};
  const auto data = page_data(report_page(shown));
  const auto& told = data.at("runs").at(0).at("why");
  CHECK(told.at("advised") == true);
  CHECK(told.at("advice").at(0) == nlohmann::json::array({"mesh.tp=4 mesh.zero=2", 3.0, 0.25, 40.0}));
  CHECK(told.at("advice").at(1).at(2).is_null());  // it could not run before
  CHECK(data.at("tokens").at(0) == nlohmann::json::parse("[1048576, [100.0]]"));
  CHECK(data.at("tokens").at(1).at(1).at(0).is_null());
}

TEST_CASE("a plan has the colour of its policy on every page, two of one policy have two", "[report_page]") {
  const auto few = plan_colors({"hdp-balance", "static"});
  const auto many = plan_colors({"static", "static {cp: 8}", "hdp-naive", "hdp-balance", "mine"});
  CHECK(few.at("static") == many.at("static"));
  CHECK(few.at("hdp-balance") == many.at("hdp-balance"));
  std::set<int> different;
  for (const auto& [plan, color] : many.items()) different.insert(color.get<int>());
  CHECK(different.size() == 5);
}

TEST_CASE("a plan with options has the meaning of its policy", "[report_page]") {
  const auto meanings = definitions({"static", "static {cp: 8}", "mine"}).at("plans");
  CHECK(meanings.at("static {cp: 8}") == meanings.at("static"));
  CHECK_FALSE(meanings.contains("mine"));
}

TEST_CASE("the same data give the same page", "[report_page]") {
  const auto page = [] { return report_page({"1", study_named("s"), one_run(), {}, {}, {}}); };
  CHECK((page() == page()));
}

}  // namespace
}  // namespace hdpsim
