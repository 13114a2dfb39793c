#include "sim/compare/course_comparison.h"

#include <nlohmann/json.hpp>

#include "sim/base/diagnostic.h"
#include "sim/compare/course_output.h"
#include "sim/compare/trace_course.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

Duration lasting(double count) {
  return Duration::seconds(count);
}

InstructionRecord record(std::uint32_t block, std::uint32_t instruction, Opcode opcode, Stream stream, double begin,
                         double end) {
  return {.rank = HdpRank(0),
          .micro_batch = MicroBatchId(0),
          .block = block,
          .iteration = 0,
          .instruction = instruction,
          .opcode = opcode,
          .stream = stream,
          .begin = Instant::at(lasting(begin)),
          .end = Instant::at(lasting(end))};
}

// A step of 12 s on two ranks, of which the first runs a micro-batch: overhead to 1; forward to 5 with 2 of dense work,
// 1 of attention, and 1 of an exchange that 1 more hides; backward to 11 with 6 of dense work; a reduction of 1.
TimelineFile predicted() {
  TimelineFile file;
  file.title = {"predicted", "static", 3};
  Timeline& timeline = file.timeline;
  timeline.step_time = lasting(12);
  timeline.ranks.resize(2);
  timeline.ranks[0][Activity::overhead] = lasting(1);
  timeline.ranks[0][Activity::linear] = lasting(8);
  timeline.ranks[0][Activity::attention] = lasting(1);
  timeline.ranks[0][Activity::cp_comm] = lasting(1);
  timeline.ranks[0][Activity::grad_sync] = lasting(1);
  timeline.ranks[1][Activity::group_wait] = lasting(11);
  timeline.ranks[1][Activity::grad_sync] = lasting(1);
  timeline.micro_batches = {{Instant::at(lasting(0)), Instant::at(lasting(11))}};
  timeline.instructions = {
      record(0, 0, Opcode::overhead, Stream::compute, 0, 1), record(1, 0, Opcode::dense, Stream::compute, 1, 3),
      record(1, 1, Opcode::exchange, Stream::comm, 2, 4), record(1, 2, Opcode::attention, Stream::compute, 4, 5),
      record(3, 0, Opcode::dense, Stream::compute, 5, 11)};
  return file;
}

const double& of(const CourseSeconds& all, CourseActivity activity) {
  return all.at(static_cast<std::size_t>(activity));
}
const Pair& of(const CoursePair& all, CourseActivity activity) {
  return all.activities.at(static_cast<std::size_t>(activity));
}

StepOfTrace traced_step() {
  StepOfTrace step{.step = 3, .seconds_in_all = 24, .seconds = {}, .has_optimizer = true, .passes = {}};
  const auto set = [](std::array<double, device_activities>& all, DeviceActivity activity, double s) {
    all.at(static_cast<std::size_t>(activity)) = s;
  };
  set(step.seconds, DeviceActivity::product, 16);
  set(step.seconds, DeviceActivity::attention_forward, 4);
  set(step.seconds, DeviceActivity::send_recv, 2);
  set(step.seconds, DeviceActivity::all_reduce, 1);
  set(step.seconds, DeviceActivity::idle, 1);
  PassOfTrace forward{.micro_batch = 0, .is_forward = true, .begin_s = 1, .end_s = 11, .seconds = {}};
  set(forward.seconds, DeviceActivity::product, 4);
  set(forward.seconds, DeviceActivity::attention_forward, 4);
  set(forward.seconds, DeviceActivity::send_recv, 2);
  PassOfTrace backward{.micro_batch = 0, .is_forward = false, .begin_s = 11, .end_s = 23, .seconds = {}};
  set(backward.seconds, DeviceActivity::product, 12);
  step.passes = {forward, backward};
  return step;
}

StepTrace trace_of(std::optional<std::int64_t> rank, const std::string& file = "rank0.json") {
  return {.file = file, .rank = rank, .is_of_host = true, .steps = {traced_step()}, .work = 3, .outside = 0};
}

TEST_CASE("a timeline with instructions tells what each pass does", "[compare]") {
  const StepCourse course = course_of("p.jsonl", predicted());
  REQUIRE(course.ranks.size() == 2);
  CHECK(course.has_passes);
  CHECK(of(course.ranks[0].seconds, CourseActivity::computing) == Approx(8));
  CHECK(of(course.ranks[0].seconds, CourseActivity::messages) == Approx(2));
  CHECK(of(course.ranks[1].seconds, CourseActivity::messages) == Approx(12));
  REQUIRE(course.ranks[0].passes.size() == 2);
  const PassCourse& forward = course.ranks[0].passes[0];
  CHECK(forward.is_forward);
  CHECK(forward.begin_s == Approx(0));
  CHECK(forward.end_s == Approx(5));
  CHECK(of(forward.seconds, CourseActivity::computing) == Approx(2));
  CHECK(of(forward.seconds, CourseActivity::attention) == Approx(1));
  CHECK(of(forward.seconds, CourseActivity::messages) == Approx(1));
  CHECK(of(forward.seconds, CourseActivity::host) == Approx(1));
  CHECK(of(course.ranks[0].passes[1].seconds, CourseActivity::computing) == Approx(6));
  CHECK(course.ranks[1].passes.empty());
}

TEST_CASE("a trace lies beside a prediction by rank, micro-batch and activity", "[compare]") {
  Diagnostics diagnostics;
  const TracedCourse traced = course_of({trace_of(0)}, 3, diagnostics);
  const CourseComparison comparison = compare_courses(course_of("p.jsonl", predicted()), traced.course, diagnostics);
  CHECK(diagnostics.empty());
  CHECK(comparison.knows_passes);
  REQUIRE(comparison.ranks.size() == 1);
  const ComparedRank& rank = comparison.ranks[0];
  CHECK(rank.seconds.total().predicted == Approx(12));
  CHECK(rank.seconds.total().measured == Approx(24));
  CHECK(rank.seconds.computed().predicted == Approx(9));
  CHECK(rank.seconds.computed().measured == Approx(20));
  REQUIRE(comparison.passes.size() == 2);
  CHECK(of(comparison.passes[0].seconds, CourseActivity::attention).measured == Approx(4));
  CHECK(of(comparison.passes[0].seconds, CourseActivity::attention).predicted == Approx(1));
  CHECK(comparison.passes[1].seconds.total().measured == Approx(12));
  // What is left: the reduction on both sides, and an idle second that was measured.
  CHECK(of(rank.between_passes, CourseActivity::messages).measured == Approx(1));
  CHECK(of(rank.between_passes, CourseActivity::messages).predicted == Approx(1));
  CHECK(of(rank.between_passes, CourseActivity::host).measured == Approx(1));
  CHECK(of(rank.between_passes, CourseActivity::computing).predicted == 0);
  REQUIRE(comparison.micro_batches.size() == 1);
  CHECK(comparison.micro_batches[0].end_s.measured == Approx(23));
  CHECK(comparison.notes == std::vector<std::string>{"1 of the 2 ranks of the plan was not measured: 1."});
  const std::vector<std::string> words = differences_in_words(comparison);
  REQUIRE(words.size() >= 4);
  CHECK(words[0] == "The measured step takes 24.0 s, 2.00 times the simulated one of 12.0 s.");
  CHECK(words[1] == "products and memory-bound: 8.00 s more than simulated (16.0 s against 8.00 s)");
  CHECK_THAT(words.back(), Contains("rank 0, micro-batch 0 forward: 5.00 s more"));
}

TEST_CASE("the output holds each side's parts, which sum to its step", "[compare]") {
  Diagnostics diagnostics;
  const TracedCourse traced = course_of({trace_of(0)}, 3, diagnostics);
  CourseComparison comparison = compare_courses(course_of("p.jsonl", predicted()), traced.course, diagnostics);
  comparison.plan = "static";
  comparison.traces = 1;
  comparison.source = "1 trace of CPUs";
  const auto json = nlohmann::json::parse(formatted(comparison, Format::json));
  CHECK(json.at("schema") == "hdpsim.trace_comparison/2");
  for (const char* side : {"measured", "simulated"}) {
    double parts = json.at("ranks").at(0).at("between_passes").at(0).at(std::string(side) + "_s");
    for (std::size_t i = 1; i < course_activities; ++i) {
      parts += json.at("ranks").at(0).at("between_passes").at(i).at(std::string(side) + "_s").get<double>();
    }
    for (const auto& pass : json.at("passes")) parts += pass.at("seconds").at(side).get<double>();
    CHECK(parts == Approx(json.at("ranks").at(0).at("step_time_s").at(side).get<double>()));
    CHECK(parts == Approx(json.at("step_time_s").at(side).get<double>()));
  }
  CHECK_THAT(formatted(comparison, Format::csv),
             Contains("rank,micro_batch,pass,activity,measured_s,simulated_s\n0,,step,attention,4,1\n") &&
                 Contains("\n0,0,forward,messages and waiting for ranks,2,1\n") &&
                 Contains("\n0,,between passes,the host,1,0\n"));
  CHECK_THAT(formatted(comparison, Format::table), Contains("plan static, step 3, 1 trace of CPUs\n") &&
                                                       Contains("micro-batch 0 backward") &&
                                                       Contains("messages and waiting for ranks"));
}

TEST_CASE("a rank is what the trace says, or its file's name, or its place, and all that differs is said at once",
          "[compare]") {
  Diagnostics none;
  const TracedCourse named = course_of({trace_of(std::nullopt, "traces/rank1-step3.json.gz"), trace_of(0)}, 3, none);
  CHECK(none.empty());
  CHECK(named.course.ranks.at(1).rank == 1);
  CHECK(named.notes.empty());
  const TracedCourse placed = course_of({trace_of(std::nullopt, "a.json"), trace_of(1, "b.json")}, 3, none);
  CHECK(placed.course.ranks.at(0).file == "a.json");
  CHECK_THAT(placed.notes.at(0), Contains("1 of the traces do not say their rank"));

  StepTrace other = trace_of(0);
  other.steps[0].passes[0].micro_batch = 7;
  StepTrace late = trace_of(4, "late.json");
  late.steps[0].step = 9;
  Diagnostics problems;
  const TracedCourse traced = course_of(
      {other, trace_of(1, "idle.json"), trace_of(0, "again.json"), trace_of(2, "far.json"), late}, 3, problems);
  static_cast<void>(compare_courses(course_of("p.jsonl", predicted()), traced.course, problems));
  const std::string text = problems.text();
  CHECK_THAT(text, Contains("rank 0 ran micro-batch 7 forward, which the plan does not give it") &&
                       Contains("rank 0 did not run micro-batch 0 forward, which the plan gives it") &&
                       Contains("rank 1 ran micro-batch 0 backward, which the plan does not give it") &&
                       Contains("again.json: error: this trace is of rank 0, as rank0.json is") &&
                       Contains("far.json: error: it is of rank 2, the plan has ranks 0 to 1") &&
                       Contains("late.json: error: step 3 is not in this trace, which has 9"));
  CHECK(step_of_traces({trace_of(0), trace_of(1)}, std::nullopt) == 3);
  CHECK_FALSE(step_of_traces({trace_of(0), late}, std::nullopt));
}

TEST_CASE("a pass that ran twice counts with both times, and a step that comes again with the last one", "[compare]") {
  StepTrace trace = trace_of(0);
  trace.steps[0].passes.insert(trace.steps[0].passes.begin(), trace.steps[0].passes[0]);
  Diagnostics none;
  const StepCourse twice = course_of({trace}, 3, none).course;
  const CourseComparison comparison = compare_courses(course_of("p.jsonl", predicted()), twice, none);
  CHECK(none.empty());
  CHECK(comparison.passes.at(0).seconds.total().measured == Approx(20));

  trace = trace_of(0);
  trace.steps.push_back(trace.steps[0]);
  trace.steps[1].seconds.fill(0);
  const TracedCourse again = course_of({trace}, 3, none);
  CHECK(sum_of(again.course.ranks.at(0).seconds) == 0);
  CHECK_THAT(again.notes.at(0), Contains("step 3 more than once: the last one counts"));
}

TEST_CASE("a timeline without instructions compares by rank and by when micro-batches ran", "[compare]") {
  TimelineFile measured = predicted();
  measured.title.source = "measured";
  measured.timeline.instructions.clear();
  measured.timeline.ranks[0][Activity::attention] = lasting(3);
  measured.timeline.ranks[0][Activity::linear] = lasting(6);
  measured.timeline.micro_batches[0].end = Instant::at(lasting(10));
  Diagnostics none;
  const CourseComparison comparison =
      compare_courses(course_of("p.jsonl", predicted()), course_of("m.jsonl", measured), none);
  CHECK(none.empty());
  CHECK_FALSE(comparison.knows_passes);
  CHECK(comparison.passes.empty());
  CHECK(of(comparison.ranks.at(0).seconds, CourseActivity::attention).measured == Approx(3));
  CHECK(of(comparison.ranks.at(0).seconds, CourseActivity::attention).predicted == Approx(1));
  CHECK(comparison.micro_batches.at(0).end_s.measured == Approx(10));
  CHECK(comparison.micro_batches.at(0).end_s.predicted == Approx(11));
  CHECK_THAT(formatted(comparison, Format::table), Contains("end measured"));
}

}  // namespace
}  // namespace hdpsim
