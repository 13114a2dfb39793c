#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/study/catalog.h"
#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim::spec {
namespace {

using test::one_head_model;

/// Seconds of a collective of a step, by kind and size.
using Collectives = std::map<std::pair<CollectiveKind, std::int64_t>, double>;

struct Where {
  std::string cluster;
  std::string profile;
  bool in_network_reduction = false;  ///< The switches between nodes add up.
};

const Where a100{"dgx-a100-superpod", "a100-sxm-published"};
const Where h100{"h100-rail", "h100-published"};
const Where cpu{"laptop-cpu", "epyc-cpu"};

Where with_switches_that_add_up(Where where) {
  where.in_network_reduction = true;
  return where;
}

/// What a step is made of: all ranks compute one sequence of so many tokens each.
struct Step {
  Mesh mesh;
  std::int64_t tokens = 0;
  bool sequence_parallel = true;
  std::int64_t zero = 1;
};

LoweringOptions lowering_of(const Step& step) {
  Transformer model = one_head_model(2);
  if (step.mesh.ep > 1) {
    model.moe = MixtureOfExperts{.experts = step.mesh.ep, .experts_per_token = 1, .expert_hidden = 128};
  }
  LoweringOptions options{.model = model, .mesh = step.mesh};
  options.experts.ep = step.mesh.ep;
  options.recipe.sequence_parallel = step.sequence_parallel;
  options.recipe.zero = step.zero;
  return options;
}

Plan plan_of(const Step& step) {
  std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> micro_batches;
  for (std::int64_t rank = 0; rank < step.mesh.hdp; ++rank) {
    micro_batches.push_back({{static_cast<std::size_t>(rank)}, step.tokens});
  }
  return test::plan_of(step.mesh.hdp, 2, micro_batches);
}

/// The collective that an instruction is, if it is one.
std::optional<std::pair<CollectiveKind, std::int64_t>> collective_of(const MicroBatchProgram& program,
                                                                     const InstructionRecord& record) {
  const std::uint32_t work = program.blocks[record.block].body[record.instruction].work;
  switch (record.opcode) {
    case Opcode::collective:
      return std::pair(program.collectives[work].kind, program.collectives[work].bytes.count());
    case Opcode::gather:
      return std::pair(CollectiveKind::all_gather, program.pools[work].common.count());
    case Opcode::reduce:
      return std::pair(CollectiveKind::reduce_scatter, program.pools[work].common.count());
    default:
      return std::nullopt;
  }
}

/// The collectives that the first rank of a step runs as instructions of the exact grain.
Collectives instructions_of(const Where& where, const Step& step) {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics problems;
  Value cluster = Value::map();
  cluster.set("preset", Value::scalar(where.cluster));
  cluster.set("gpus", Value::scalar(fmt::format("{}", step.mesh.devices())));
  auto spec = catalog.cluster(cluster, problems);
  const auto profile = catalog.profile(Value::scalar(where.profile), problems);
  problems.throw_if_any();
  spec->in_network_reduction = where.in_network_reduction;
  const auto world = World::make(*spec, *profile, {.mesh = step.mesh}, problems);
  problems.throw_if_any();
  world->machine().record_instructions = true;
  const LoweringOptions options = lowering_of(step);
  const Plan plan = plan_of(step);
  const Program program(plan, options);
  const MicroBatchProgram first = program.micro_batch(MicroBatchId(0));
  Collectives found;
  for (const InstructionRecord& record : simulate(program, world->machine(), Grain::exact).instructions) {
    if (record.rank != HdpRank(0)) continue;
    if (const auto collective = collective_of(first, record)) {
      found[*collective] = (record.end - record.begin).seconds();
    }
  }
  return found;
}

/// The cluster for the command line: its name, or a file like the shipped one.
std::string cluster_for(const Workplace& here, const Where& where) {
  if (!where.in_network_reduction) return where.cluster;
  std::ifstream shipped(fmt::format("{}/configs/clusters/{}.yaml", HDPSIM_SOURCE_DIR, where.cluster));
  const std::string text{std::istreambuf_iterator<char>(shipped), {}};
  here.write("adds-up.yaml", text + "\nin_network_reduction: true\n");
  return "adds-up.yaml";
}

double comm_seconds(const Workplace& here, const Where& where, std::int64_t gpus, CollectiveKind kind,
                    std::int64_t bytes) {
  const Outcome outcome =
      here.hdpsim(fmt::format("comm {} --cluster {} --profile {} -g {} -b {} -e {} --format json",
                              collective_name(kind), cluster_for(here, where), where.profile, gpus, bytes, bytes));
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto row = nlohmann::json::parse(outcome.out).at("results").at(0);
  return row.at("out_of_place").at("time").get<double>() * 1e-6;
}

void check_one_price(const Where& where, const Step& step, std::int64_t gpus, std::size_t kinds) {
  const Workplace here;
  const Collectives instructions = instructions_of(where, step);
  std::set<CollectiveKind> met;
  for (const auto& [collective, seconds] : instructions) {
    const auto& [kind, bytes] = collective;
    CAPTURE(where.cluster, gpus, collective_name(kind), bytes);
    met.insert(kind);
    CHECK(seconds == Approx(comm_seconds(here, where, gpus, kind, bytes)).margin(2e-12));
  }
  CHECK(met.size() == kinds);
}

// Inside a node and over two, and over 64.
TEST_CASE("one collective has one price: as tensor parallelism asks for it", "[comm][price]") {
  for (const std::int64_t tokens : {16, 1 << 20}) {
    check_one_price(a100, {.mesh = {.tp = 8}, .tokens = tokens}, 8, 2);
    check_one_price(a100, {.mesh = {.tp = 16}, .tokens = tokens, .sequence_parallel = false}, 16, 2);
    check_one_price(h100, {.mesh = {.tp = 512}, .tokens = tokens}, 512, 2);
    check_one_price(with_switches_that_add_up(h100),
                    {.mesh = {.tp = 512}, .tokens = tokens, .sequence_parallel = false}, 512, 2);
  }
}

TEST_CASE("one collective has one price: as FSDP asks for it", "[comm][price]") {
  check_one_price(a100, {.mesh = {.hdp = 8}, .tokens = 16, .zero = 3}, 8, 2);
  check_one_price(with_switches_that_add_up(a100), {.mesh = {.hdp = 32}, .tokens = 16, .zero = 3}, 32, 2);
}

TEST_CASE("one collective has one price: as experts ask for it", "[comm][price]") {
  check_one_price(a100, {.mesh = {.tp = 8, .ep = 8}, .tokens = 1 << 16}, 8, 3);
  check_one_price(h100, {.mesh = {.tp = 64, .ep = 64}, .tokens = 1 << 16}, 64, 3);
}

TEST_CASE("one collective has one price: as it was measured", "[comm][price]") {
  for (const std::int64_t tokens : {16, 1 << 20}) {
    check_one_price(cpu, {.mesh = {.hdp = 2, .tp = 2}, .tokens = tokens}, 2, 2);
    check_one_price(cpu, {.mesh = {.hdp = 2, .tp = 2}, .tokens = tokens, .sequence_parallel = false}, 2, 2);
  }
}

}  // namespace
}  // namespace hdpsim::spec
