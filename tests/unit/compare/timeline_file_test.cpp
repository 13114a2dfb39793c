#include "sim/compare/timeline_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

Instant at_ps(std::int64_t ps) {
  return Instant::at(Duration::picoseconds(ps));
}

Timeline small_timeline() {
  Timeline timeline;
  timeline.step_time = Duration::picoseconds(2'000'000'000'001);
  timeline.ranks.resize(1);
  timeline.ranks[0][Activity::attention] = Duration::picoseconds(1);
  timeline.ranks[0][Activity::group_wait] = Duration::picoseconds(2'000'000'000'000);
  timeline.micro_batches = {{at_ps(10), at_ps(500'000'000'000)}};
  timeline.instructions = {{.rank = HdpRank(0),
                            .micro_batch = MicroBatchId(0),
                            .block = 2,
                            .iteration = 11,
                            .instruction = 3,
                            .opcode = Opcode::exchange,
                            .stream = Stream::comm,
                            .begin = at_ps(10),
                            .end = at_ps(250'000'000'000)}};
  return timeline;
}

constexpr char small_text[] =
    R"({"schema": "hdpsim.timeline/1", "source": "measured", "plan": "a \"plan\"", "step": 3, "step_time_s": 2.000000000001, "ranks": 1, "micro_batches": 1, "instructions": 1}
{"rank": 0, "breakdown_s": {"attention": 0.000000000001, "linear": 0, "cp_comm": 0, "tp_comm": 0, "offload_stall": 0, "bubble": 0, "group_wait": 2, "grad_sync": 0, "optimizer": 0, "data_wait": 0, "overhead": 0}}
{"micro_batch": 0, "begin_s": 0.00000000001, "end_s": 0.5}
[0, 0, 2, 11, 3, "exchange", "comm", 0.00000000001, 0.25]
)";

TEST_CASE("a timeline is lines of JSON, exact to the picosecond", "[report]") {
  CHECK(timeline_text({"measured", "a \"plan\"", 3}, small_timeline()) == small_text);
}

TEST_CASE("a timeline is read back equal", "[report]") {
  const Timeline timeline = small_timeline();
  const TimelineFile read = read_timeline("x.jsonl", small_text);
  CHECK(read.title == TimelineTitle{"measured", "a \"plan\"", 3});
  CHECK(read.timeline.step_time == timeline.step_time);
  CHECK(read.timeline.instructions == timeline.instructions);
  CHECK(read.timeline.micro_batches[0].end == timeline.micro_batches[0].end);
  CHECK(read.timeline.ranks[0].total() == read.timeline.step_time);
  CHECK(read.timeline.ranks[0][Activity::attention] == Duration::picoseconds(1));
}

TEST_CASE("what ranks did on their cores, and what share of one was predicted, are read back equal", "[report]") {
  const TimelineTitle title{"predicted", "p", 3, 0.5};
  std::vector<Breakdown> processor(1);
  processor[0][Activity::linear] = Duration::picoseconds(7);
  const std::string text = timeline_text(title, small_timeline(), processor);
  const TimelineFile read = read_timeline("x.jsonl", text);
  CHECK(read.title == title);
  CHECK(read_timeline_title("x.jsonl", text.substr(0, text.find('\n'))) == title);
  REQUIRE(read.processor.size() == 1);
  CHECK(read.processor[0][Activity::linear] == Duration::picoseconds(7));
  CHECK(read_timeline("x.jsonl", small_text).processor.empty());
}

TEST_CASE("of a pipeline, an instruction says which pass it belongs to", "[report]") {
  const TimelineTitle title{
      .source = "measured", .plan = "p", .step = 3, .stages = 2, .at_pace = Duration::picoseconds(5)};
  Timeline timeline = small_timeline();
  timeline.ranks.resize(2, timeline.ranks[0]);
  timeline.instructions[0].chunk = 3;
  timeline.instructions[0].stage = 1;
  timeline.instructions[0].kind = PassKind::backward;
  const std::string text = timeline_text(title, timeline);
  CHECK_THAT(text, Contains("[0, 0, 2, 11, 3, \"exchange\", \"comm\", 0.00000000001, 0.25, 3, \"backward\", 1]\n"));
  const TimelineFile read = read_timeline("x.jsonl", text);
  CHECK(read.title == title);
  CHECK(read.timeline.instructions == timeline.instructions);

  const auto broken = [&](const std::string& part, const std::string& by) {
    std::string copy = text;
    return copy.replace(copy.find(part), part.size(), by);
  };
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("\"stages\": 2", "\"stages\": 0")),
                    Contains("x.jsonl:1:1") && Contains("0 is no number of stages"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("backward", "sideways")),
                    Contains("x.jsonl:5:62") && Contains("there is no 'sideways'"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("\"backward\", 1", "\"backward\"")), Contains("x.jsonl:5:1"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("\"backward\", 1", "\"backward\", 2")),
                    Contains("there is no stage 2: the first line says that there are 2"));
}

TEST_CASE("what is no timeline is told with its line", "[report]") {
  const std::string text = small_text;
  const auto broken = [&](const std::string& part, const std::string& by) {
    std::string copy = text;
    return copy.replace(copy.find(part), part.size(), by);
  };
  CHECK_THROWS_WITH(read_timeline("x.jsonl", ""), Contains("x.jsonl:1:1: error: this is no line of a timeline"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("timeline/1", "result/1")), Contains("its schema is not"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken(R"("step": 3)", R"("step": 3, "core_share": 2)")),
                    Contains("x.jsonl:1:1") && Contains("2 is no share of a core"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("exchange", "exchanges")),
                    Contains("x.jsonl:4:1") && Contains("there is no 'exchanges'"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("0.25", "-1")), Contains("-1 s is no time"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", text.substr(0, text.rfind('['))), Contains("x.jsonl:4:1"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", text + "[]\n"), Contains("more lines than the first one says"));
  for (const char* ranks : {"2111e73", "-1", "1.5", "18446744073709551615"}) {
    CHECK_THROWS_WITH(read_timeline("x.jsonl", broken(R"("ranks": 1)", fmt::format(R"("ranks": {})", ranks))),
                      Contains("x.jsonl:1:1") && Contains("is no number from 0 to 1000000000"));
  }
  CHECK_THROWS_WITH(read_timeline("x.jsonl", broken("exchange", "exchanges")), Contains("x.jsonl:4:18"));
  CHECK_THROWS_WITH(read_timeline("x.jsonl", std::string(1'000'001, '[')), Contains("longer than 1000000 characters"));
}

TEST_CASE("a timeline that contradicts itself is refused where it does", "[report]") {
  struct Case {
    std::string part, by, place, message;
  };
  const Case contradiction = GENERATE(
      Case{"0.25]", "0.000000000005]", "4:53", "it ends at 0.000000000005 s, before it begins"},
      Case{"0.25]", "2.1]", "4:53", "it ends at 2.1 s, after the step, which takes 2.000000000001 s"},
      Case{"0.25]", "1e7]", "4:53", "10000000 s is no time from 0 to 9000000 s"},
      Case{"0.25]", "NaN]", "4:53", "it is not JSON from here on"}, Case{"0.25]", "1e999]", "4:1", "number overflow"},
      Case{"[0, 0,", "[1, 0,", "4:2", "there is no rank 1: the first line says that there are 1"},
      Case{"[0, 0,", "[0, 1,", "4:5", "there is no micro-batch 1: the first line says that there are 1"},
      Case{"[0, 0,", "[-1, 0,", "4:2", "-1 is no number"}, Case{"0.5}", "0}", "3:46", "before it begins"},
      Case{"\"micro_batch\": 0", "\"micro_batch\": 1", "3:2", "micro_batch 0 is due here"},
      Case{"{\"rank\": 0", "{\"rank\": 1", "2:2", "rank 0 is due here"},
      Case{"\"group_wait\": 2", "\"group_wait\": 3", "2:13",
           "its parts sum to 3.000000000001 s, the step takes 2.000000000001 s"},
      Case{"\"step\": 3", "\"step\": 3, \"stages\": 2", "1:1", "1 are no ranks of 2 stages each"});
  CAPTURE(contradiction.part, contradiction.by);
  std::string text = small_text;
  text.replace(text.find(contradiction.part), contradiction.part.size(), contradiction.by);
  CHECK_THROWS_WITH(read_timeline("x.jsonl", text),
                    Contains("x.jsonl:" + contradiction.place) && Contains(contradiction.message));
}

TEST_CASE("an instruction that stands there twice is refused at its second place", "[report]") {
  std::string text = small_text;
  const std::string last = text.substr(text.rfind('['));
  text.replace(text.find("\"instructions\": 1"), 17, "\"instructions\": 2");
  CHECK_THROWS_WITH(read_timeline("x.jsonl", text + last),
                    Contains("x.jsonl:5:1") && Contains("line 4 has this instruction, too"));
}

TEST_CASE("all that is wrong with a timeline is told in one go, up to a bound", "[report]") {
  const std::size_t wrong = GENERATE(3, 1000);
  std::string text = small_text;
  std::string line = text.substr(text.rfind('['));
  text.replace(text.find("\"instructions\": 1"), 17, fmt::format("\"instructions\": {}", wrong + 1));
  line[1] = '7';
  for (std::size_t i = 0; i < wrong; ++i) text += line;
  try {
    (void)read_timeline("x.jsonl", text);
    FAIL("it was read");
  } catch (const InputError& error) {
    CHECK(error.diagnostics().sorted().size() == std::min<std::size_t>(wrong, 100));
  }
}

TEST_CASE("a micro-batch that nobody ran contradicts nothing", "[report]") {
  Timeline timeline = small_timeline();
  timeline.micro_batches.push_back({Instant::at(timeline.step_time), Instant{}});
  CHECK(read_timeline("x.jsonl", timeline_text({"measured", "p", 3}, timeline)).timeline.micro_batches.size() == 2);
}

}  // namespace
}  // namespace hdpsim
