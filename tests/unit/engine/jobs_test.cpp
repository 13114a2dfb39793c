#include <algorithm>
#include "sim/engine/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

constexpr std::int64_t job_layers = 2;
constexpr Grain shared_grains[] = {Grain::fluid, Grain::exact};

/// Rank i on the i-th of these devices.
class OnDevices final : public Placement {
 public:
  explicit OnDevices(std::vector<std::size_t> devices) : devices_(std::move(devices)) {}
  [[nodiscard]] DeviceId device(HdpRank rank, std::int64_t, std::int64_t) const override {
    return DeviceId(devices_.at(rank.index()));
  }

 private:
  std::vector<std::size_t> devices_;
};

/// Two jobs of two ranks each on four devices; where everything is shared, devices 0 and 2 are in other nodes, as 1 and
/// 3.
struct TwoJobs {
  OnDevices places_of_main;
  OnDevices places_of_other;
  HandMachine world;
  Machine other;
  LoweringOptions lowering{one_head_model(job_layers), Mesh{.hdp = 2}};

  explicit TwoJobs(ClusterSpec cluster, std::vector<std::size_t> main, std::vector<std::size_t> beside)
      : places_of_main(std::move(main)),
        places_of_other(std::move(beside)),
        world(std::move(cluster), std::make_unique<HandCosts>(1_us)),
        other(world.machine) {
    world.machine.placement = &places_of_main;
    other.placement = &places_of_other;
    world.machine.speed.resize(2);
    other.speed.resize(2);
  }

  [[nodiscard]] Timeline run(const Plan& plan, Grain grain, const Background& background = {}) {
    const Program program(plan, lowering);
    return simulate(program, world.machine, grain, background);
  }
  [[nodiscard]] Background beside(const Plan& plan) {
    return {{{"neighbour", &other, lowering, [plan](std::int64_t) { return plan; }}}, {}};
  }
};

/// Two nodes of two devices with one NIC each, which both jobs cross: ranks of a job sit in different nodes.
TwoJobs jobs_that_share_nics() {
  ClusterSpec cluster = one_device_nodes(4, 1_GBps);
  cluster.devices_per_node = 2;
  cluster.tiers[0].fan_in = 2;
  return TwoJobs(cluster, {0, 2}, {1, 3});
}

// Four one-device nodes: every NIC has one owner.
TwoJobs jobs_apart() {
  return TwoJobs(one_device_nodes(4, 1_GBps), {0, 1}, {2, 3});
}

const Plan& one_ring() {
  static const Plan plan = plan_of(2, job_layers, {{{0, 1}, 2048}});
  return plan;
}

// Keys and values of the 1024 tokens of a rank, 256 bytes each: what one exchange sends.
Duration message() {
  return Bytes(std::int64_t{1024} * 256) / 1_GBps;
}

TEST_CASE("two equal jobs that share a link get half of it each", "[jobs]") {
  // Every message outlasts the kernels beside it (see "a ring of two on a slow network"), one forward and three
  // backward a layer. At half the rate each takes its time once more.
  const Duration extra = job_layers * 4 * message();
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_that_share_nics();
    const Timeline alone = jobs.run(one_ring(), grain);
    const Timeline beside = jobs.run(one_ring(), grain, jobs.beside(one_ring()));
    CHECK((beside.step_time - alone.step_time).seconds() == Approx(extra.seconds()).epsilon(0.001));
    CHECK(beside.ranks[0][Activity::cp_comm] - alone.ranks[0][Activity::cp_comm] == beside.step_time - alone.step_time);
    CHECK((beside.links.bytes == alone.links.bytes));
    CHECK(alone.other_links.empty());
  }
}

TEST_CASE("a message without end takes half of a link too", "[jobs]") {
  const Duration extra = job_layers * 4 * message();
  const Background both_ways{{}, {{"copies", {{DeviceId(1), DeviceId(3)}, {DeviceId(3), DeviceId(1)}}}}};
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_that_share_nics();
    const Timeline alone = jobs.run(one_ring(), grain);
    const Timeline beside = jobs.run(one_ring(), grain, both_ways);
    CHECK((beside.step_time - alone.step_time).seconds() == Approx(extra.seconds()).epsilon(0.001));
  }
}

TEST_CASE("what others sent is counted until the step ends, on the links that they took", "[jobs]") {
  TwoJobs jobs = jobs_apart();
  const Background one_way{{}, {{"copies", {{DeviceId(2), DeviceId(3)}}}}};
  const Timeline beside = jobs.run(one_ring(), Grain::fluid, one_way);
  const Bytes expected(static_cast<std::int64_t>(beside.step_time.seconds() * 1e9));  // 1 GB/s all the time
  const NetworkModel& network = *jobs.world.machine.network;
  for (std::size_t link = 0; link < network.link_count(); ++link) {
    const std::string name = network.link_name(LinkId(link));
    const bool used = name == "node 2 nic 0 out" || name == "node 3 nic 0 in";
    CAPTURE(name);
    CHECK(std::abs(beside.other_links.bytes[link].count() - (used ? expected.count() : 0)) <= 1);
  }
}

TEST_CASE("jobs apart do not slow each other, whatever the other one does", "[jobs]") {
  const Plan longer = plan_of(2, job_layers, {{{0, 1}, 3000}, {{0}, 500}, {{1}, 100}});
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_apart();
    const Timeline alone = jobs.run(one_ring(), grain);
    CHECK(jobs.run(one_ring(), grain, jobs.beside(longer)).step_time == alone.step_time);
    CHECK(jobs.run(one_ring(), grain).step_time == alone.step_time);  // the network is as idle as before
  }
}

TEST_CASE("a background job trains step after step, and of the last one the part that was done counts", "[jobs]") {
  // Twice the micro-batches take twice the time: the main job's step holds two of the other's.
  const Plan twice = plan_of(2, job_layers, {{{0, 1}, 2048}, {{0, 1}, 2048}});
  const auto sum = [](const std::vector<Bytes>& bytes) {
    std::int64_t all = 0;
    for (const Bytes each : bytes) all += each.count();
    return all;
  };
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_apart();
    std::vector<std::int64_t> asked;
    Background background = jobs.beside(one_ring());
    background.jobs[0].plan = [&](std::int64_t step) {
      asked.push_back(step);
      return one_ring();
    };
    const Timeline two_steps = jobs.run(twice, grain, background);
    CHECK(asked.at(0) == 0);
    CHECK(asked.at(1) == 1);
    CHECK(sum(two_steps.other_links.bytes) == sum(two_steps.links.bytes));

    const Timeline half_a_step = jobs.run(one_ring(), grain, jobs.beside(twice));
    CHECK(static_cast<double>(sum(half_a_step.other_links.bytes)) ==
          Approx(static_cast<double>(sum(half_a_step.links.bytes))).epsilon(0.01));
  }
}

// A ring of two: so many flows each way, all at one pace.
CollectivePlan ring_of_two(const NetworkModel& network, DeviceId first, DeviceId second, double flows) {
  CollectivePlan plan;
  CollectivePlan::Part& part = plan.parts.emplace_back();
  for (const Route& route : {network.route(first, second), network.route(second, first)}) {
    for (const auto& [link, share] : route.binding_links()) {
      part.push_back({static_cast<FairShare::Link>(link.index()), flows});
    }
  }
  std::sort(part.begin(), part.end(), [](const auto& a, const auto& b) { return a.link < b.link; });
  plan.bytes_per_flow = 1e5;  // more than a second's worth
  return plan;
}

// A pool of two whose collectives take a second at the full rate of the NICs, and cross them.
void add_collectives(Machine& machine, HandMachine& world, DeviceId first, DeviceId second, double flows = 1) {
  machine.pool = test::each_takes(1_s);
  machine.pool_flows = [&world, first, second, flows](CollectiveKind, Bytes) {
    return ring_of_two(*world.machine.network, first, second, flows);
  };
}

TEST_CASE("collectives at the ends of two equal steps take twice their time", "[jobs]") {
  const Plan no_rings = plan_of(2, job_layers, {{{0}, 64}, {{1}, 64}});
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_that_share_nics();
    add_collectives(jobs.world.machine, jobs.world, DeviceId(0), DeviceId(2));
    add_collectives(jobs.other, jobs.world, DeviceId(1), DeviceId(3));
    const Timeline alone = jobs.run(no_rings, grain);
    CHECK(alone.ranks[0][Activity::grad_sync] == 2_s);
    const Timeline beside = jobs.run(no_rings, grain, jobs.beside(no_rings));
    CHECK(beside.ranks[0][Activity::grad_sync] == 4_s);
    CHECK(beside.step_time - alone.step_time == 2_s);
  }
}

TEST_CASE("a collective beside a job that needs no links takes its own time", "[jobs]") {
  const Plan no_rings = plan_of(2, job_layers, {{{0}, 64}, {{1}, 64}});
  TwoJobs jobs = jobs_that_share_nics();
  add_collectives(jobs.world.machine, jobs.world, DeviceId(0), DeviceId(2));
  const Timeline beside = jobs.run(no_rings, Grain::fluid, jobs.beside(no_rings));
  CHECK(beside.step_time == jobs.run(no_rings, Grain::fluid).step_time);
}

TEST_CASE("what a collective does to itself is in its closed form already", "[jobs]") {
  const Plan no_rings = plan_of(2, job_layers, {{{0}, 64}, {{1}, 64}});
  TwoJobs jobs = jobs_that_share_nics();
  constexpr double meet_on_each_link = 2;
  add_collectives(jobs.world.machine, jobs.world, DeviceId(0), DeviceId(2), meet_on_each_link);
  CHECK(jobs.run(no_rings, Grain::fluid, jobs.beside(no_rings)).ranks[0][Activity::grad_sync] == 2_s);
  // An endless message leaves two thirds of its link to them.
  const Background one_way{{}, {{"copies", {{DeviceId(1), DeviceId(3)}}}}};
  CHECK(jobs.run(no_rings, Grain::fluid, one_way).ranks[0][Activity::grad_sync].seconds() == Approx(3));
}

TEST_CASE("a deadlock names the job whose ranks wait for each other", "[jobs]") {
  Plan circle = plan_of(2, job_layers, {{{0, 1}, 64}, {{0, 1}, 64}});
  std::swap(circle.schedule[0][0], circle.schedule[0][1]);
  for (const Grain grain : shared_grains) {
    TwoJobs jobs = jobs_apart();
    CHECK_THROWS_WITH(jobs.run(one_ring(), grain, jobs.beside(circle)),
                      Catch::Contains("of 'neighbour' is deadlocked; rank 0 waits in micro-batch"));
    CHECK_THROWS_WITH(jobs.run(circle, grain, jobs.beside(one_ring())),
                      Catch::Contains("of 'the main job' is deadlocked; rank 0 waits in micro-batch"));
    CHECK(jobs.run(one_ring(), grain).step_time > Duration{});  // the network is idle again
  }
}

TEST_CASE("the closed form refuses a background", "[jobs]") {
  TwoJobs jobs = jobs_apart();
  CHECK_THROWS_WITH(jobs.run(one_ring(), Grain::closed_form, jobs.beside(one_ring())),
                    Catch::Contains("simulates the main job alone"));
}

}  // namespace
}  // namespace hdpsim
