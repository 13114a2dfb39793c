#include "sim/compare/step_comparison.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/compare/comparison_output.h"
#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

Duration seconds(double count) {
  return Duration::seconds(count);
}
Instant at(double count) {
  return Instant::at(seconds(count));
}

InstructionRecord record(std::size_t rank, std::uint32_t block, Opcode opcode, double begin, double end) {
  const Stream stream = opcode == Opcode::exchange ? Stream::comm : Stream::compute;
  return {.rank = HdpRank(rank),
          .micro_batch = MicroBatchId(0),
          .block = block,
          .iteration = 0,
          .instruction = opcode == Opcode::exchange ? 0U : 1U,
          .opcode = opcode,
          .stream = stream,
          .begin = at(begin),
          .end = at(end)};
}

// One rank, overhead and four blocks: embedding (dense), forward with an exchange beside attention, and both again
// backward. Kernels take `pace` seconds each, one after another; the exchange of forward takes `exchange`.
TimelineFile small(const std::string& source, double pace = 1, double exchange = 0.5) {
  TimelineFile file;
  file.title = {source, "static", 3};
  Timeline& timeline = file.timeline;
  timeline.step_time = seconds(5 * pace);
  timeline.ranks.resize(1);
  timeline.ranks[0][Activity::linear] = seconds(3 * pace);
  timeline.ranks[0][Activity::attention] = seconds(pace);
  timeline.ranks[0][Activity::group_wait] = seconds(pace);
  timeline.instructions = {record(0, 0, Opcode::overhead, 0, 0),
                           record(0, 1, Opcode::dense, 0, pace),
                           record(0, 2, Opcode::exchange, pace, pace + exchange),
                           record(0, 2, Opcode::attention, pace, 2 * pace),
                           record(0, 3, Opcode::dense, 2 * pace, 3 * pace),
                           record(0, 4, Opcode::dense, 3 * pace, 4 * pace)};
  return file;
}

Comparison compared(const TimelineFile& predicted, const std::vector<TimelineFile>& measured) {
  StepComparison step("p.jsonl", predicted);
  for (const TimelineFile& run : measured) step.add("m.jsonl", run);
  return step.result();
}

const FamilyComparison& family_of(const Comparison& comparison, const std::string& name) {
  const auto found = std::find_if(comparison.families.begin(), comparison.families.end(),
                                  [&](const FamilyComparison& family) { return family.family == name; });
  REQUIRE(found != comparison.families.end());
  return *found;
}

TEST_CASE("instructions are added up by opcode and direction, the later half of the blocks being backward",
          "[comparison]") {
  const Comparison result = compared(small("predicted"), {small("measured", 2)});
  CHECK(result.families.size() == 5);
  const FamilyComparison& backward = family_of(result, "dense backward");
  CHECK(backward.instructions == 2);
  CHECK(backward.seconds.predicted == Approx(2));
  CHECK(backward.seconds.measured == Approx(4));
  CHECK(backward.seconds.error() == Approx(-0.5));
  CHECK(family_of(result, "dense forward").instructions == 1);
  CHECK(family_of(result, "attention forward").seconds.measured == Approx(2));
  CHECK(family_of(result, "overhead").instructions == 1);
  CHECK_FALSE(family_of(result, "overhead").seconds.error());
  CHECK(result.families.front().family == "dense backward");  // it is off by 2 s, the others by 1 s at most
}

TEST_CASE("the order of the lines of a timeline means nothing", "[comparison]") {
  TimelineFile measured = small("measured");
  std::reverse(measured.timeline.instructions.begin(), measured.timeline.instructions.end());
  const Comparison result = compared(small("predicted"), {measured});
  for (const FamilyComparison& family : result.families) CHECK(family.seconds.difference() == 0);
  CHECK(result.step_time_s.error() == Approx(0));
}

TEST_CASE("an exchange is hidden while the rank computes", "[comparison]") {
  TimelineFile measured = small("measured", 1, 1.5);  // beside attention, and beside half of the next kernel
  const Comparison beside = compared(small("predicted"), {measured});
  CHECK(beside.ranks[0].exchange_s.measured == Approx(1.5));
  CHECK(beside.ranks[0].hidden_s.measured == Approx(1.5));
  measured.timeline.instructions[4].begin = at(2.25);  // the next kernel comes a quarter of a second later
  const Comparison waited = compared(small("predicted"), {measured});
  CHECK(waited.ranks[0].hidden_s.measured == Approx(1.25));
  CHECK(waited.ranks[0].hidden_s.predicted == Approx(0.5));
}

TEST_CASE("of several runs the median counts, and the halves that interleave tell the noise", "[comparison]") {
  // Step times 5, 10, 15, 30: median 12.5. Even runs 5 and 15, odd ones 10 and 30: |10 - 20|.
  const Comparison result = compared(
      small("predicted"), {small("measured", 1), small("measured", 2), small("measured", 3), small("measured", 6)});
  CHECK(result.runs == 4);
  CHECK(result.step_time_s.measured == Approx(12.5));
  CHECK(result.noise_floor_s == Approx(10));
  CHECK(family_of(result, "attention forward").seconds.measured == Approx(2.5));
  CHECK(result.ranks[0].busy_s.measured == Approx(4 * 2.5));
  CHECK_FALSE(compared(small("predicted"), {small("measured")}).noise_floor_s);
}

TEST_CASE("a machine that grows slower from run to run does not look quiet", "[comparison]") {
  // 5, 6, 7, 8 s: even runs 5 and 7, odd ones 6 and 8.
  const Comparison result = compared(small("predicted"), {small("measured", 1), small("measured", 1.2),
                                                          small("measured", 1.4), small("measured", 1.6)});
  CHECK(result.noise_floor_s == Approx(1));
}

TEST_CASE("steps count alike", "[comparison]") {
  const Comparison first = compared(small("predicted", 1), {small("measured", 1)});
  Comparison second = compared(small("predicted", 3), {small("measured", 5), small("measured", 7)});
  const Comparison mean = mean_of({first, second});
  CHECK(mean.step_time_s.predicted == Approx((5 + 15) / 2.0));
  CHECK(mean.step_time_s.measured == Approx((5 + 30) / 2.0));
  CHECK(mean.runs == 1);
  CHECK_FALSE(mean.noise_floor_s);
  CHECK(family_of(mean, "attention forward").seconds.predicted == Approx(2));
  CHECK(mean.ranks[0].busy_s.measured == Approx((4 + 24) / 2.0));
  second.plan = "hdp-naive";
  CHECK_THROWS_WITH(mean_of({first, second}), Contains("steps of two plans, 'static' and 'hdp-naive', have no mean"));
}

TEST_CASE("what ranks that share cores computed is compared as on a core of their own", "[comparison]") {
  TimelineFile predicted = small("predicted", 2);  // half a core each: 8 s of kernels are 4 s on a core
  predicted.title.core_share = 0.5;
  TimelineFile measured = small("measured", 2.5);
  CHECK_FALSE(compared(predicted, {measured}).on_core_s);
  measured.processor.resize(1);
  measured.processor[0][Activity::linear] = seconds(3);
  measured.processor[0][Activity::attention] = seconds(2);
  const Comparison result = compared(predicted, {measured});
  CHECK(result.on_core_s->predicted == Approx(4));
  CHECK(result.on_core_s->measured == Approx(5));
  CHECK(result.core_share == 0.5);
}

TEST_CASE("a machine on which kernels lack the core that was predicted for them is told to be busy", "[comparison]") {
  const auto with_core_for = [](double share, double predicted_share) {
    TimelineFile predicted = small("predicted", 1);
    predicted.title.core_share = predicted_share;
    TimelineFile measured = small("measured", 2);  // 8 s of kernels
    measured.processor.resize(1);
    measured.processor[0][Activity::linear] = seconds(6 * share);
    measured.processor[0][Activity::attention] = seconds(2 * share);
    return compared(predicted, {measured});
  };
  const Comparison busy = with_core_for(0.57, 1);
  CHECK(*measured_core_share(busy) == Approx(0.57));
  const std::string said = "kernels had a core 57% of their time, 100% was predicted: the machine is busy";
  CHECK_THAT(comparison_table({busy}), Contains("  static: " + said));
  CHECK_THAT(comparison_page("mine", {busy}), Contains(said));
  CHECK(nlohmann::json::parse(comparison_json({busy}))["machine_was_busy"] == true);
  CHECK(busy_machine_text(with_core_for(0.91, 1)).empty());
  CHECK_FALSE(busy_machine_text(with_core_for(0.89, 1)).empty());
  CHECK(busy_machine_text(with_core_for(0.57, 0.6)).empty());  // they were to share cores
  const Comparison unknown = compared(small("predicted"), {small("measured", 2)});
  CHECK(busy_machine_text(unknown).empty());
  CHECK_FALSE(measured_core_share(unknown));
}

TEST_CASE("where kernels were timed beside the runs, the step is predicted at their pace too", "[comparison]") {
  TimelineFile fast = small("measured", 2);  // 10 s
  fast.title.at_pace = seconds(9);
  TimelineFile slow = small("measured", 4);  // 20 s
  slow.title.at_pace = seconds(18);
  const Comparison result = compared(small("predicted"), {fast, slow});
  CHECK(result.step_time_s.error() == Approx(5 / 15.0 - 1));
  CHECK(result.at_pace_s->error() == Approx(13.5 / 15 - 1));
  CHECK_THAT(comparison_table({result}), Contains("13.5 s (the prediction +170.0%), error -10.0%"));
  CHECK(mean_of({result, result}).at_pace_s->predicted == Approx(13.5));
  CHECK_FALSE(compared(small("predicted"), {fast, small("measured")}).at_pace_s);
}

// One rank of two stages. Forward on the first takes 1 s, on the second 2 s, backward there 3 s and on the first 4 s,
// times `pace`. Block and place are the same in all passes; between the two on the second stage is its bubble.
TimelineFile pipeline_of_two(const std::string& source, double pace) {
  TimelineFile file;
  file.title = {.source = source, .plan = "static", .step = 3, .stages = 2};
  Timeline& timeline = file.timeline;
  timeline.step_time = seconds(10 * pace);
  timeline.ranks.resize(2);
  timeline.ranks[0][Activity::linear] = seconds(5 * pace);
  timeline.ranks[0][Activity::bubble] = seconds(5 * pace);
  timeline.ranks[1][Activity::linear] = seconds(5 * pace);
  timeline.ranks[1][Activity::bubble] = seconds(5 * pace);
  double begin = 0;
  const auto add = [&](std::uint32_t chunk, PassKind kind, double lasts) {
    InstructionRecord pass = record(0, 0, Opcode::dense, pace * begin, pace * (begin + lasts));
    pass.chunk = chunk;
    pass.stage = chunk;
    pass.kind = kind;
    timeline.instructions.push_back(pass);
    begin += lasts;
  };
  add(0, PassKind::forward, 1);
  add(1, PassKind::forward, 2);
  add(1, PassKind::backward, 3);
  add(0, PassKind::backward, 4);
  return file;
}

TEST_CASE("the passes of a pipeline are compared each with its own, forward and backward", "[comparison][pp]") {
  TimelineFile measured = pipeline_of_two("measured", 2);
  std::reverse(measured.timeline.instructions.begin(), measured.timeline.instructions.end());
  const Comparison result = compared(pipeline_of_two("predicted", 1), {measured});
  CHECK(family_of(result, "dense forward").instructions == 2);
  CHECK(family_of(result, "dense forward").seconds.predicted == Approx(1 + 2));
  CHECK(family_of(result, "dense backward").seconds.predicted == Approx(3 + 4));
  CHECK(family_of(result, "dense backward").seconds.measured == Approx(2 * (3 + 4)));
  REQUIRE(result.ranks.size() == 2);
  CHECK(result.ranks[1].busy_s.measured == Approx(10));
  CHECK(worker_name(result, 1) == "0, stage 1");
  CHECK_THAT(comparison_table({result}), Contains("0, stage 1"));
  const auto json = nlohmann::json::parse(comparison_json({result}));
  CHECK(json["ranks"][1]["rank"] == 0);
  CHECK(json["ranks"][1]["stage"] == 1);

  StepComparison step("p.jsonl", pipeline_of_two("predicted", 1));
  CHECK_THROWS_WITH(step.add("m.jsonl", small("measured")),
                    Contains("its number of stages is 1, that of the prediction 2"));
  TimelineFile other = pipeline_of_two("measured", 1);
  other.timeline.instructions[2].chunk = 0;
  CHECK_THROWS_WITH(
      step.add("m.jsonl", other),
      Contains("were not measured; the first is dense (rank 0, micro-batch 0, chunk 1, backward, block 0"));
}

TEST_CASE("timelines that do not belong together say all that differs", "[comparison]") {
  const auto refused = [](const TimelineFile& measured, const std::string& reason) {
    StepComparison step("p.jsonl", small("predicted"));
    CHECK_THROWS_WITH(step.add("m.jsonl", measured), Contains(reason));
  };
  TimelineFile other = small("measured");
  other.title = {"measured", "hdp-naive", 4};
  refused(other, "m.jsonl: error: its plan is hdp-naive, that of the prediction static");
  refused(other, "m.jsonl: error: its step is 4, that of the prediction 3");
  other = small("measured");
  other.timeline.ranks.resize(2);
  refused(other, "m.jsonl: error: its number of ranks is 2, that of the prediction 1");
  other = small("measured");
  other.timeline.instructions.erase(other.timeline.instructions.begin() + 1, other.timeline.instructions.begin() + 3);
  refused(other,
          "2 instructions of p.jsonl were not measured; the first is dense (rank 0, micro-batch 0, block 1, "
          "iteration 0, instruction 1)");
  other = small("measured");
  other.timeline.instructions.push_back(record(0, 5, Opcode::merge, 0, 1));
  refused(other, "1 instructions are not in p.jsonl; the first is merge (rank 0, micro-batch 0, block 5");
  other = small("measured");
  other.timeline.instructions[1].opcode = Opcode::merge;
  refused(other, "1 instructions are others in p.jsonl; the first is merge");
  refused(small("predicted"), "m.jsonl: error: this timeline is predicted, not measured");
  CHECK_THROWS_WITH(StepComparison("p.jsonl", small("measured")), Contains("this timeline is measured, not predicted"));
  TimelineFile empty = small("predicted");
  empty.timeline.instructions.clear();
  CHECK_THROWS_WITH(StepComparison("p.jsonl", empty), Contains("this timeline has no instructions"));
}

// ---- As text

// Two plans; the second has a name that means something to HTML, CSV and JSON.
std::vector<Comparison> two_plans() {
  Comparison first = compared(small("predicted", 2), {small("measured", 2), small("measured", 4)});
  Comparison second = compared(small("predicted", 1), {small("measured", 1), small("measured", 1)});
  second.plan = "<b>\"a, b\" & 'c'</b>";
  return {first, second};
}

TEST_CASE("one plan is a flat JSON object, several are a list with their ranking", "[comparison]") {
  const std::vector<Comparison> plans = two_plans();
  const auto one = nlohmann::json::parse(comparison_json({plans[0]}));
  CHECK(one["schema"] == "hdpsim.comparison/1");
  CHECK(one["step_time_s"]["predicted"] == 10.0);
  CHECK(one["step_time_s"]["measured"] == 15.0);
  CHECK(one["step_time_s"]["noise_floor"] == 10.0);
  CHECK(one["families"].size() == plans[0].families.size());
  CHECK(one["families"][0]["family"] == plans[0].families[0].family);
  CHECK(one["ranks"][0]["busy_s"]["predicted"] == 8.0);
  const auto several = nlohmann::json::parse(comparison_json(plans));
  CHECK(several["kendall_tau"] == 1.0);
  CHECK(several["plans"][1]["plan"] == plans[1].plan);
  CHECK(several["plans"][1]["step_time_s"]["noise_floor"] == 0.0);
}

TEST_CASE("nothing of a file becomes part of the page but as text", "[comparison]") {
  const std::string page = comparison_page("real & <true>", two_plans());
  CHECK_THAT(page, Contains("<title>real &amp; &lt;true&gt;"));
  CHECK_THAT(page, !Contains("<b>"));
  CHECK(test::page_data(page).at("plans").at(1) == "<b>\"a, b\" & 'c'</b>");
}

TEST_CASE("a page compares every plan, and begins with how wrong the step times are", "[comparison]") {
  // 5 s are predicted and 10 s measured.
  const auto data = test::page_data(comparison_page("x", {compared(small("predicted", 1), {small("measured", 2)})}));
  CHECK(data.at("answer").at("lead") ==
        "The predicted step time is off by at most 50.0 %: static 5.00 s against 10.0 s measured (-50.0 %).");
  const auto& plan = data.at("comparisons").at(0);
  CHECK(plan.at("step_time_s").at("predicted") == 5);
  CHECK(plan.at("step_time_s").at("measured") == 10);
  CHECK(plan.at("ranks").size() == plan.at("all_ranks"));
  CHECK_FALSE(plan.at("families").empty());
}

TEST_CASE("tables of many ranks show those that are predicted worst", "[comparison]") {
  Comparison many = compared(small("predicted"), {small("measured")});
  many.ranks.assign(12'288, many.ranks[0]);
  many.ranks[7'000].busy_s.measured = 100;
  CHECK(worst_ranks(many, 3).front() == 7'000);
  CHECK_THAT(comparison_table({many}),
             Contains("\n  7000 ") && Contains("and 12272 ranks whose busy time differs less"));
  CHECK(test::page_data(comparison_page("x", {many})).at("comparisons").at(0).at("ranks").size() == 64);
  const std::string csv = compared_ranks_csv({many});
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 12'289);
}

TEST_CASE("the table says when the noise is not known", "[comparison]") {
  CHECK_THAT(comparison_table({compared(small("predicted"), {small("measured")})}),
             Contains("unknown") && Contains("execute them with --repeat"));
  CHECK_THAT(comparison_table(two_plans()), Contains("66.7%") && Contains("Kendall's tau: 1.00"));
}

TEST_CASE("a comparison of 12,288 ranks takes time in proportion to its instructions", "[comparison]") {
  const auto cluster = [](const std::string& source) {
    TimelineFile file = small(source);
    const std::vector<InstructionRecord> one = file.timeline.instructions;
    file.timeline.ranks.assign(12'288, file.timeline.ranks[0]);
    for (std::size_t rank = 1; rank < file.timeline.ranks.size(); ++rank) {
      for (InstructionRecord record : one) {
        record.rank = HdpRank(rank);
        file.timeline.instructions.push_back(record);
      }
    }
    return file;
  };
  const Comparison result = compared(cluster("predicted"), {cluster("measured")});
  CHECK(result.ranks.size() == 12'288);
  CHECK(family_of(result, "dense backward").seconds.predicted == Approx(2 * 12'288));
}

}  // namespace
}  // namespace hdpsim
