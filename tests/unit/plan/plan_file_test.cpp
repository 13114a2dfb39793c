#include "sim/plan/plan_file.h"

#include <fmt/format.h>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

Plan some_plan() {
  Plan plan;
  plan.policy = "by \"hand\"";
  plan.step = 3;
  plan.ranks = 6;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {290, 60, 30};
  plan.micro_batches = {
      {.group = {HdpRank(0), HdpRank(1), HdpRank(2)}, .spans = {{SequenceId(0), 0, 290}}, .offload = 0.253814},
      {.group = {HdpRank(4), HdpRank(5), HdpRank(3)}, .spans = {{SequenceId(1), 0, 60}, {SequenceId(2), 0, 20}}},
      {.group = {HdpRank(0)}, .spans = {{SequenceId(2), 20, 10}}}};
  const MicroBatchId ring(0);
  const MicroBatchId other(1);
  plan.schedule = {{ring, MicroBatchId(2)}, {ring}, {ring}, {other}, {other}, {other}};
  return plan;
}

const std::string some_text = R"({
  "schema": "hdpsim.plan/1",
  "policy": "by \"hand\"",
  "step": 3,
  "ranks": 6,
  "capacity": 100,
  "layers": 10,
  "sequences": [
    290, 60, 30],
  "micro_batches": [
    {"group": "0-2", "spans": [0], "offload": 0.253814},
    {"group": "4-5,3", "spans": [1, [2, 0, 20]]},
    {"group": "0", "spans": [[2, 20, 10]]}],
  "schedule": [
    [0, 2],
    [0],
    [0],
    [1],
    [1],
    [1]]
}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// The same plan in the words of the second schema, in which plans are written.
std::string second_text() {
  return replaced(replaced(some_text, "plan/1", "plan/2"), "\"layers\": 10,\n",
                  "\"layers\": 10,\n  \"waves\": false,\n");
}

PlanDocument some_document() {
  return {
      .plan = some_plan(),
      .ids = {std::int64_t{5}, std::string("5"), std::string("a \"name\"")},
      .mesh = {.tp = 2, .pp = 3, .placement = "contiguous", .model_layers = 30, .exchange = KeyExchange::all_gather},
      .made_by = PlanOrigin{"0.1.0", "mine", "0123456789abcdef"}};
}

// What is wrong with a text, in lines of "line:column: message; help".
std::vector<std::string> told(const std::string& text) {
  Diagnostics diagnostics;
  CHECK(!read_plan_document("plan.json", text, diagnostics));
  std::vector<std::string> found;
  for (const Diagnostic& problem : diagnostics.sorted()) {
    found.push_back(fmt::format("{}:{}: {}{}{}", problem.position.line, problem.position.column, problem.message,
                                problem.help.empty() ? "" : "; ", problem.help));
  }
  return found;
}

// The problems of the plan's text after one replacement; there must be some.
std::string problems(const std::string& from, const std::string& to) {
  Diagnostics diagnostics;
  CHECK(!read_plan("plan.json", replaced(some_text, from, to), diagnostics));
  return diagnostics.text();
}

}  // namespace

TEST_CASE("a plan is written one micro-batch a line, groups as ranges, whole sequences as their index",
          "[plan][file]") {
  CHECK(plan_text(some_plan()) == second_text());
}

TEST_CASE("what a runtime must know besides the plan is written, and read back equal", "[plan][file][document]") {
  const PlanDocument document = some_document();
  const std::string text = plan_text(document);
  CHECK_THAT(text, Catch::Contains(R"("made_by": {"version": "0.1.0", "study": "mine", "hash": "0123456789abcdef"},)"));
  CHECK_THAT(text, Catch::Contains("\"tp\": 2,\n  \"pp\": 3,\n  \"placement\": \"contiguous\",\n"));
  CHECK_THAT(text, Catch::Contains("\"ids\": [\n    5, \"5\", \"a \\\"name\\\"\"],\n"));
  Diagnostics diagnostics;
  const auto read = read_plan_document("plan.json", text, diagnostics);
  CHECK(diagnostics.text().empty());
  CHECK(read == document);
}

TEST_CASE("a micro-batch states how its group shares keys where its cut asks for another way than the plan",
          "[plan][file][document]") {
  PlanDocument document = some_document();
  document.plan.micro_batches[1].cut = TokenCut::served;
  const std::string text = plan_text(document);
  CHECK_THAT(text, Catch::Contains(R"("cut": "served", "exchange": "servers"})"));
  Diagnostics diagnostics;
  CHECK(read_plan_document("plan.json", text, diagnostics) == document);
  CHECK(told(replaced(text, R"("exchange": "servers")", R"("exchange": "a2a")"))
            .front()
            .find("its group shares keys by servers, not a2a") != std::string::npos);
}

TEST_CASE("a plan says whether its ranks can run the k-th micro-batches of their lists together",
          "[plan][file][document]") {
  Plan plan = some_plan();
  CHECK_FALSE(runs_in_waves(plan));  // rank 0 has two micro-batches, the others one
  plan.micro_batches[0].spans.push_back(plan.micro_batches[2].spans[0]);
  plan.micro_batches.pop_back();
  plan.schedule[0].pop_back();
  CHECK(runs_in_waves(plan));
  const std::string text = plan_text(plan);
  CHECK_THAT(text, Catch::Contains("\"waves\": true,"));
  Diagnostics diagnostics;
  CHECK(read_plan("plan.json", replaced(text, "\"waves\": true", "\"waves\": false"), diagnostics) == plan);
  CHECK(told(replaced(second_text(), "\"waves\": false", "\"waves\": true")).front() ==
        "8:12: the plan does not run in waves: ranks have unlike numbers of micro-batches, or one at unlike places; "
        "leave 'waves' out: it follows from 'schedule'");

  Plan crossed = some_plan();  // as many each, but the ring is the first of rank 0 and the second of rank 1
  crossed.micro_batches.push_back({.group = {HdpRank(1)}, .spans = {}});
  crossed.schedule = {{MicroBatchId(0), MicroBatchId(2)}, {MicroBatchId(3), MicroBatchId(0)}};
  CHECK_FALSE(runs_in_waves(crossed));
}

TEST_CASE("ids that are there twice, too few or no names are told at their places", "[plan][file][document]") {
  const std::string text = plan_text(some_document());
  CHECK(told(replaced(text, "5, \"5\"", "5, 5")) == std::vector<std::string>{"18:8: the id 5 is there twice"});
  CHECK(told(replaced(text, "5, \"5\"", "5, [5]")) ==
        std::vector<std::string>{"18:8: an id is a whole number or a text; write 17 or \"17\""});
  CHECK(told(replaced(text, "5, \"5\", ", "5, ")) ==
        std::vector<std::string>{
            "17:10: 'ids' has 2 entries, the plan has 3 sequences; one id a sequence, in their order"});
}

TEST_CASE("a file of the first schema has no keys of the second", "[plan][file][document]") {
  CHECK(told(replaced(some_text, "\"layers\": 10,", "\"layers\": 10, \"tp\": 2,")) ==
        std::vector<std::string>{"7:23: 'tp' is no key of hdpsim.plan/1; write \"schema\": \"hdpsim.plan/2\""});
}

TEST_CASE("a plan is read back equal", "[plan][file]") {
  Diagnostics diagnostics;
  const auto plan = read_plan("plan.json", some_text, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(plan);
  CHECK(*plan == some_plan());
}

TEST_CASE("an empty plan is read back equal", "[plan][file]") {
  const Plan empty = plan_of("static", small_pool(), {});
  Diagnostics diagnostics;
  const auto plan = read_plan("plan.json", plan_text(empty), diagnostics);
  REQUIRE(plan);
  CHECK(*plan == empty);
}

TEST_CASE("how a group cuts its tokens is written where it is not per document, and read back", "[plan][file][cut]") {
  Plan plan = some_plan();
  plan.micro_batches[0].cut = TokenCut::dispatch;
  plan.micro_batches[1].cut = TokenCut::per_pack;
  const std::string text = plan_text(plan);
  CHECK(text.find(R"("spans": [0], "cut": "dispatch", "offload")") != std::string::npos);
  Diagnostics diagnostics;
  const auto read = read_plan("plan.json", text, diagnostics);
  REQUIRE(read);
  CHECK(*read == plan);
  CHECK(problems(R"("spans": [0])", R"("spans": [0], "cut": "per_pach")").find("did you mean 'per_pack'?") !=
        std::string::npos);
}

TEST_CASE("what ranks of a group hold alone is written with their ranks, and read back", "[plan][file][local]") {
  Plan plan = some_plan();
  plan.micro_batches[1].spans.pop_back();
  plan.micro_batches[1].local = {{1, {{SequenceId(2), 0, 20}}}};
  const std::string text = plan_text(plan);
  CHECK(text.find(R"("group": "4-5,3", "spans": [1], "local": [{"rank": 5, "spans": [[2, 0, 20]]}])") !=
        std::string::npos);
  Diagnostics diagnostics;
  const auto read = read_plan("plan.json", text, diagnostics);
  REQUIRE(read);
  CHECK(*read == plan);
  const std::string wrong =
      problems(R"("spans": [0],)", R"("spans": [0], "local": [{"rank": 3, "spans": []}, {"rank": 1, "spans": [7]},
        {"rank": 1, "spans": []}, {"rang": 1}],)");
  CHECK(wrong.find("rank 3 is not in the group") != std::string::npos);
  CHECK(wrong.find("there is no sequence 7") != std::string::npos);
  CHECK(wrong.find("rank 1 is not in the group that shares the micro-batch, or stated twice") != std::string::npos);
  CHECK(wrong.find("did you mean 'rank'?") != std::string::npos);
}

TEST_CASE("queries that other ranks attend to are written with these ranks, and read back", "[plan][file][served]") {
  Plan plan = some_plan();
  plan.micro_batches[1].cut = TokenCut::served;
  plan.micro_batches[1].moved = {{0, 2, 5, 1}, {1, 0, 3, 2}};
  const std::string text = plan_text(plan);
  CHECK_THAT(text, Catch::Contains(R"("moved": [[0, 2, 5, 5], [1, 0, 3, 3]], "cut": "served")"));
  Diagnostics diagnostics;
  CHECK(read_plan("plan.json", text, diagnostics) == plan);
  CHECK(diagnostics.text() == "");
  const std::string wrong =
      problems(R"("spans": [0],)", R"("spans": [0], "moved": [[0, 1, 2, 3], [7, 0, 1, 0], [0, 1], [0, 1, 0, 0]],)");
  CHECK_THAT(wrong, Catch::Contains("rank 3 is not in the group of the micro-batch"));
  CHECK_THAT(wrong, Catch::Contains("there is no span 7"));
  CHECK_THAT(wrong, Catch::Contains("queries that move are [index of a span, begin, tokens, rank]"));
  CHECK_THAT(wrong, Catch::Contains("the number of queries is 0"));
}

TEST_CASE("chunks in order are written, and read back", "[plan][file][chunks]") {
  Plan plan;
  plan.policy = "by hand";
  plan.ranks = 1;
  plan.capacity = 100;
  plan.layers = 10;
  plan.sequence_tokens = {150};
  plan.micro_batches = {{.group = {HdpRank(0)}, .spans = {{SequenceId(0), 0, 100}}},
                        {.group = {HdpRank(0)}, .spans = {{SequenceId(0), 100, 50}}}};
  plan.micro_batches[0].repeats_forward = true;
  plan.micro_batches[1].continues = true;
  plan.schedule = {{MicroBatchId(0), MicroBatchId(1)}};
  const std::string text = plan_text(plan);
  CHECK_THAT(text, Catch::Contains(R"({"group": "0", "spans": [[0, 0, 100]], "repeats_forward": true})"));
  CHECK_THAT(text, Catch::Contains(R"({"group": "0", "spans": [[0, 100, 50]], "continues": true})"));
  Diagnostics diagnostics;
  CHECK(read_plan("plan.json", text, diagnostics) == plan);
  CHECK(diagnostics.empty());
}

TEST_CASE("a group may be written as a list or as one number", "[plan][file]") {
  Diagnostics diagnostics;
  const std::string with_list = replaced(some_text, R"("4-5,3")", "[4, 5, 3]");
  const auto plan = read_plan("plan.json", replaced(with_list, R"("group": "0",)", R"("group": 0,)"), diagnostics);
  REQUIRE(plan);
  CHECK(*plan == some_plan());
}

TEST_CASE("plan file: each problem is told at its place, all of them at once", "[plan][file]") {
  struct Change {
    const char* from;
    const char* to;
    std::vector<std::string> problems;  ///< Line, column, message and what to do.
  };
  std::vector<Change> changes = {
      {"[1]]\n}", "[1]\n}", {"21:1: illegal flow end"}},
      {"plan/1", "plan/3", {"2:13: there is no schema 'hdpsim.plan/3'; did you mean 'hdpsim.plan/2'?"}},
      {"\"step\"", "\"stop\"", {"1:1: the plan needs 'step'", "4:3: the plan has no key 'stop'; did you mean 'step'?"}},
      {"\"spans\": [0]", "\"spans\": [9]", {"11:32: there is no sequence 9: the plan has 3"}},
      {"\"0-2\"", "\"0,\"", {"11:15: '' is no run of ranks; write ranks as 5, 0-38 or 0-3,8-11"}},
      {"\"0-2\"", "\"0-6\"", {"11:15: there is no rank 6: the plan has 6"}},
      {"[0, 2]", "[0, 3]", {"15:9: there is no micro-batch 3: the plan has 3"}},
      {"0.253814", "1.25", {"11:47: 'offload' is 1.25, it must be from 0 to 1"}},
      {"[2, 20, 10]", "[2, 20, 0]", {"13:38: the length of a span is 0, it must be from 1 to 1073741824"}},
      {"\"capacity\": 100", "\"capacity\": 0", {"6:15: 'capacity' is 0, it must be from 1 to 1Gi"}},
      {"[[2, 20, 10]]", "[[2, 20]]", {"13:30: a span is the index of a sequence or [sequence, begin, tokens]"}},
      {"[[2, 20, 10]]", "2", {"13:29: 'spans' must be a list, found a value"}},
      {"    [1],\n    [1]]",
       "    [1]]",
       {"14:15: 'schedule' has 5 lists, the plan has 6 ranks; one list a rank, empty for a rank without work"}},
      {"\"spans\": [0], \"offload\": 0.253814",
       "\"spans\": [9], \"offload\": 1.25",
       {"11:32: there is no sequence 9: the plan has 3", "11:47: 'offload' is 1.25, it must be from 0 to 1"}},
  };
  for (const char* wrong : {"\"2-0\"", "\"-1\"", "\"0-\"", "\"a\"", "\"\"", "\"0-2-4\"", "\"0 - 2\""}) {
    changes.push_back({"\"0-2\"",
                       wrong,
                       {"11:15: '" + std::string(wrong + 1, std::string(wrong).size() - 2) +
                        "' is no run of ranks; write ranks as 5, 0-38 or 0-3,8-11"}});
  }
  for (const auto& [from, to, problems] : changes) {
    CAPTURE(from, to);
    CHECK(told(replaced(some_text, from, to)) == problems);
  }
}

TEST_CASE("plan file: keys may stand in any order", "[plan][file]") {
  const std::size_t lists = std::string(some_text).find("  \"sequences\"");
  const std::string text(some_text);
  const std::size_t schedule = text.find("  \"schedule\"");
  const std::size_t micro_batches = text.find("  \"micro_batches\"");
  const std::size_t end = text.rfind("\n}");
  const std::string backwards =
      "{\n" + text.substr(schedule, end - schedule) + ",\n" + text.substr(micro_batches, schedule - micro_batches) +
      text.substr(lists, micro_batches - lists) + text.substr(2, text.rfind(',', lists) - 2) + "\n}\n";
  Diagnostics diagnostics;
  const auto plan = read_plan("plan.json", backwards, diagnostics);
  CHECK(diagnostics.text().empty());
  REQUIRE(plan);
  CHECK(*plan == some_plan());
}

TEST_CASE("plan file: more sequences, micro-batches and ranks than a document may have values", "[plan][file]") {
  Plan plan;
  plan.policy = "large";
  plan.ranks = 300'000;
  plan.capacity = 10;
  plan.layers = 4;
  for (std::size_t i = 0; i < 300'000; ++i) {
    plan.sequence_tokens.push_back(10);
    plan.micro_batches.push_back({{HdpRank(i)}, {{SequenceId(i), 0, 10}}});
    plan.schedule.push_back({MicroBatchId(i)});
  }
  Diagnostics diagnostics;
  const auto read = read_plan("plan.json", plan_text(plan), diagnostics);
  CHECK(diagnostics.text().empty());
  REQUIRE(read);
  CHECK(*read == plan);
}

TEST_CASE("plan file: a few letters cannot name ranks without end", "[plan][file]") {
  std::string text = replaced(some_text, "\"ranks\": 6", "\"ranks\": 16000000");
  std::string runs = "0-15999999";
  for (int i = 0; i < 2; ++i) runs += ",0-15999999";  // 48 million ranks; 33,554,432 are allowed
  text = replaced(text, "0-2", runs);
  Diagnostics diagnostics;
  CHECK_FALSE(read_plan("plan.json", text, diagnostics));
  CHECK(diagnostics.text().find("plan.json:11:15: error: too many ranks in the groups of one plan") == 0);
}

TEST_CASE("plan file: a thousand wrong items end the reading", "[plan][file]") {
  std::string wrong = "0";
  for (int i = 1; i < 2000; ++i) wrong += i < 1999 ? ",0" : ",\"last\"";
  Diagnostics diagnostics;
  CHECK_FALSE(read_plan("plan.json", "{\"sequences\": [" + wrong + "]}", diagnostics));
  CHECK(diagnostics.sorted().size() == 1000);
}

TEST_CASE("plan file: a sequence may be cut, but not into any number of spans", "[plan][file]") {
  constexpr int superfluous = 1 << 19;
  const auto problems_of = [](int spans) {
    std::string text = R"({"schema": "hdpsim.plan/1", "policy": "p", "step": 0, "ranks": 1, "capacity": 8, "layers": 1,
      "sequences": [8], "micro_batches": [)";
    constexpr int a_micro_batch = 300'000;
    for (int left = spans; left > 0; left -= a_micro_batch) {
      text += left == spans ? "" : ",";
      text += R"({"group": 0, "spans": [0)";
      for (int i = 1; i < std::min(left, a_micro_batch); ++i) text += ",0";
      text += "]}";
    }
    Diagnostics diagnostics;
    (void)read_plan("plan.json", text + "], \"schedule\": [[]]}", diagnostics);
    return diagnostics.text();
  };
  CHECK(problems_of(superfluous + 2).empty());
  CHECK(problems_of(superfluous + 3).find("error: more than 524290 spans of so many sequences") != std::string::npos);
}

}  // namespace hdpsim
