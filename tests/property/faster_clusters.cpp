// More bandwidth, faster devices and more memory, everything else being equal, should make no plan slower: what a
// policy may choose on the slower cluster it may choose on the faster one, too. Random small studies, all policies, all
// grains.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "sim/engine/step_ending.h"
#include "sim/plan/plan_check.h"
#include "sim/program/program.h"
#include "sim/run/step.h"
#include "sim/study/study.h"
#include "tests/support/catch.h"
#include "tests/support/random_clusters.h"
#include "tests/support/seeds.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

constexpr double speed_tolerance = 0.02;
// Bounds are in the planners' prices, straight lines between their probes: the best plans end up to 3 % before them.
constexpr double price_tolerance = 0.03;

using tests::one_of;

// A small study, of which a change makes something faster or larger.
struct Setting {
  bool a100 = true;
  std::int64_t per_node = 8;
  std::int64_t nodes = 1;
  std::int64_t nics = 8;
  double nic = 100;     // Gbit/s
  double nvlink = 300;  // GB/s
  double pcie = 32;
  double gpu_memory = 80;  // GB
  double host_memory = 2000;
  std::int64_t per_uplink = 1;
  double speed = 1;  // of kernels
  std::string model;
  std::string data;
  std::string mesh;
  bool is_tiny = false;
};

Setting random_setting(std::uint64_t seed) {
  RandomStream random(seed, "faster clusters");
  const auto word = [&](std::initializer_list<const char*> words) { return words.begin()[random.below(words.size())]; };
  Setting drawn;
  drawn.a100 = random.below(2) == 0;
  drawn.per_node = one_of(random, {4, 8});
  drawn.nodes = one_of(random, {1, 2, 2, 4});
  drawn.nics = drawn.per_node / one_of(random, {1, 1, 2});
  drawn.nic = static_cast<double>(one_of(random, {25, 100, 200, 400}));
  drawn.nvlink = drawn.a100 ? 300 : 450;
  drawn.pcie = drawn.a100 ? 32 : 64;
  drawn.host_memory = static_cast<double>(one_of(random, {200, 1000, 2000}));
  drawn.per_uplink = one_of(random, {1, 2});
  const std::int64_t tp = std::min(drawn.per_node, one_of(random, {1, 2, 4, 8}));
  const std::int64_t devices = drawn.per_node * drawn.nodes;
  const std::int64_t pp = tp * 2 <= devices ? one_of(random, {1, 1, 1, 2}) : 1;
  const std::int64_t ranks = devices / tp / pp;
  const std::int64_t capacity = one_of(random, {1024, 2048, 4096, 8192, 16384});
  const std::int64_t context = capacity * std::min(ranks, one_of(random, {1, 2, 4, 8, 16}));
  const std::int64_t wanted = std::max(2 * context, capacity * ranks * one_of(random, {1, 2, 4, 8}));
  const std::int64_t tokens = std::min<std::int64_t>(1 << 20, wanted);
  const std::int64_t layers = one_of(random, {4, 8, 16, 32});
  const std::int64_t zero = one_of(random, {0, 1, 2, 3});
  drawn.model = fmt::format("{{preset: llama-7b, num_hidden_layers: {}}}", layers);
  drawn.data = fmt::format("{{lengths: {{preset: {}}}, context: {}, tokens_per_step: {}, steps: 1, seed: {}}}",
                           word({"byted", "github", "web", "wikipedia"}), context, tokens, seed);
  drawn.mesh = fmt::format("{{tp: {}, pp: {}, capacity: {}, zero: {}, recompute: {}, placement: {}}}", tp, pp, capacity,
                           pp > 1 ? std::min<std::int64_t>(1, zero) : zero, word({"none", "selective", "full"}),
                           word({"contiguous", "strided"}));
  drawn.is_tiny = layers * tokens <= 8 * 65536 && ranks <= 8;
  return drawn;
}

// The same profile, with all kernels that compute so many times as fast.
class FasterProfiles {
 public:
  std::string operator()(const std::string& name, double speed) {
    if (speed == 1) return name;
    const std::filesystem::path path = folder_.path() / fmt::format("{}-{}.yaml", name, speed);
    if (std::filesystem::exists(path)) return path.string();
    std::ifstream in(std::string(HDPSIM_SOURCE_DIR "/calib/profiles/") + name + ".yaml");
    std::ofstream out(path);
    bool is_measured = false;  // what stands before is the data sheet, which decides no time
    for (std::string line; std::getline(in, line);) {
      is_measured = is_measured || line == "attention:";
      out << (is_measured && !line.starts_with("  #") ? with_faster_rate(line, speed) : line) << '\n';
    }
    return path.string();
  }

 private:
  // The line with the number before its first TFLOP/s, if there is one, so many times as large.
  static std::string with_faster_rate(const std::string& line, double speed) {
    const std::size_t end = line.find(" TFLOP/s");
    if (end == std::string::npos) return line;
    const std::size_t begin = line.find_last_not_of("0123456789.", end - 1) + 1;
    return fmt::format("{}{}{}", line.substr(0, begin), std::stod(line.substr(begin)) * speed, line.substr(end));
  }

  test::TemporaryFolder folder_;
};

const std::vector<std::string> plans = {"static",
                                        "hdp-naive: {offload: none}",
                                        "hdp-naive: {offload: auto}",
                                        "hdp-naive: {offload: token-wise}",
                                        "hdp-balance: {offload: none}",
                                        "hdp-balance: {offload: auto}",
                                        "hdp-balance: {offload: token-wise}"};

std::string text_of(const Setting& setting, FasterProfiles& profiles) {
  std::string text = fmt::format(
      R"(name: random
cluster:
  device: {}
  gpus: {}
  node:
    gpus: {}
    gpu_memory: {} GB
    host_memory: {} GB
    cpu: amd
    nvlink: {{bandwidth: {} GB/s}}
    nics: {{count: {}, bandwidth: {} Gbit/s}}
    pcie: {{bandwidth: {} GB/s, gpus_per_uplink: {}}}
  tiers:
    leaf: {{fan_in: 20, latency: 0.3 us}}
    spine: {{fan_in: 7, latency: 0.9 us}}
)",
      setting.a100 ? "A100-80GB" : "H100-80GB", setting.per_node * setting.nodes, setting.per_node, setting.gpu_memory,
      setting.host_memory, setting.nvlink, setting.nics, setting.nic, setting.pcie, setting.per_uplink);
  text += fmt::format("model: {}\nprofile: {}\ndata: {}\nmesh: {}\nplans:\n", setting.model,
                      profiles(setting.a100 ? "bytescale-implied" : "h100-published", setting.speed), setting.data,
                      setting.mesh);
  for (const std::string& plan : plans) text += plan == "static" ? "  - static\n" : fmt::format("  - {{{}}}\n", plan);
  return text;
}

// Seconds of every plan in every grain: the exact one where it costs little.
std::map<std::string, double> step_times(const Setting& setting, FasterProfiles& profiles, Catalog& catalog) {
  const std::string text = text_of(setting, profiles);
  Study study = parse_study("random.yaml", text, {}, catalog);
  StudyPoint& point = study.points.front();
  const Batch batch = point.batches->step(0);
  std::map<std::string, double> times;
  for (std::size_t i = 0; i < study.plans.size(); ++i) {
    const PointStep planned = point.planned(i, 0, batch);
    require_sound(planned.plan);
    const Program program(planned.plan, point.lowered);
    const auto world = point.make_world();
    const Machine& machine = world->machine();
    const double bound = (planned.bound(machine.speed) + least_ending(program, machine)).seconds();
    for (const auto& [grain, name] : {std::pair(Grain::closed_form, "closed form"), std::pair(Grain::fluid, "fluid"),
                                      std::pair(Grain::exact, "exact")}) {
      if (grain == Grain::exact && !setting.is_tiny) continue;
      point.spec.grain = grain;
      const double seconds = simulate_plan(program, *world, conditions_of(point)).step_time.seconds();
      INFO(plans[i] << ", " << name << ", over its bound: " << seconds / bound - 1);
      CHECK(bound <= seconds * (1 + price_tolerance));
      times[plans[i] + ", " + name] = seconds;
    }
  }
  return times;
}

// The same of random_setting(seed), once for all tests.
const std::map<std::string, double>& drawn_step_times(std::uint64_t seed) {
  static std::map<std::uint64_t, std::map<std::string, double>> known;
  const auto found = known.find(seed);
  if (found != known.end()) return found->second;
  FasterProfiles profiles;
  Catalog catalog(HDPSIM_SOURCE_DIR);
  return known.emplace(seed, step_times(random_setting(seed), profiles, catalog)).first->second;
}

const std::vector<std::pair<std::string, std::function<void(Setting&)>>> changes = {
    {"NICs 1.25 times as fast", [](Setting& s) { s.nic *= 1.25; }},
    {"NICs twice as fast", [](Setting& s) { s.nic *= 2; }},
    {"NVLink twice as fast", [](Setting& s) { s.nvlink *= 2; }},
    {"kernels 1.25 times as fast", [](Setting& s) { s.speed = 1.25; }},
    {"twice the device memory", [](Setting& s) { s.gpu_memory *= 2; }},
    {"twice the host memory", [](Setting& s) { s.host_memory *= 2; }},
    {"PCIe twice as fast", [](Setting& s) { s.pcie *= 2; }},
};

std::string replay_line(std::uint64_t seed, const char* tag, const Setting& setting) {
  return fmt::format(
      "replay: HDPSIM_SEED={} test_property {}: {} x {} {}, {} NICs of {} Gbit/s, model {}, data {}, mesh {}", seed,
      tag, setting.nodes, setting.per_node, setting.a100 ? "A100" : "H100", setting.nics, setting.nic, setting.model,
      setting.data, setting.mesh);
}

// How often a change makes a plan slower by more than 2 %, in any grain, and by how much at most.
struct Losses {
  int comparisons = 0;
  int losses = 0;
  double worst = 0;
};

Losses faster_clusters(std::uint64_t studies, const char* tag) {
  FasterProfiles profiles;
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Losses found;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    const Setting setting = random_setting(seed);
    const auto& before = drawn_step_times(seed);
    for (const auto& [what, change] : changes) {
      Setting faster = setting;
      change(faster);
      const auto after = step_times(faster, profiles, catalog);
      for (const auto& [plan, seconds] : after) {
        const double slower = seconds / before.at(plan) - 1;
        ++found.comparisons;
        found.worst = std::max(found.worst, slower);
        if (slower <= speed_tolerance) continue;
        ++found.losses;
        WARN(fmt::format("{}: {} takes {:.4f} s, {:.4f} s with {}: {:+.1f} %\n{}", seed, plan, before.at(plan), seconds,
                         what, 100 * slower, replay_line(seed, tag, setting)));
        CHECK(!plan.starts_with("static"));  // which chooses nothing
      }
    }
  }
  WARN(found.losses << " of " << found.comparisons << " are slower by more than 2 %, at most by " << 100 * found.worst
                    << " %");
  return found;
}

// The planner's model is some per cent off the engine, the more the smaller a step is, and its search tries a few ways
// alone, so that a few plans are worse choices on the faster cluster: 2 of 7,938 over 60 studies.
void check_faster_clusters(std::uint64_t studies, const char* tag) {
  const Losses found = faster_clusters(studies, tag);
  CHECK(found.losses <= found.comparisons / 600);
  CHECK(found.worst <= 0.2);
}

TEST_CASE("more bandwidth, faster devices and more memory make hardly any plan more than 2 % slower",
          "[property][faster]") {
  check_faster_clusters(60, "[faster]");
}

// step_times() holds every plan to its bound.
TEST_CASE("no plan beats its bound where ranks gather keys or trade heads, or layers have windows",
          "[property][shared bounds]") {
  FasterProfiles profiles;
  Catalog catalog(HDPSIM_SOURCE_DIR);
  for (const std::uint64_t seed : tests::seeds(80)) {
    Setting setting = random_setting(seed);
    RandomStream random(seed, "what ranks share");
    const std::vector<std::string> models = {"llama-7b", "mistral-7b", "phi-3-mini", "gemma-3-27b"};
    const std::vector<std::string> ways = {"p2p", "all_gather", "group_cast", "a2a"};
    setting.model = fmt::format("{{preset: {}, num_hidden_layers: {}}}", models[random.below(models.size())],
                                one_of(random, {4, 8, 12}));
    setting.mesh.back() = ',';
    setting.mesh += fmt::format(" cp_comm_type: {}}}", ways[random.below(ways.size())]);
    if (random.below(4) == 0) {
      const std::size_t begin = setting.data.find("preset: ");
      const std::size_t end = setting.data.find('}', begin);
      setting.data.replace(begin, end - begin, fmt::format("fixed: {}", one_of(random, {64, 512, 1024})));
    }
    INFO(replay_line(seed, "\"[shared bounds]\"", setting));
    (void)step_times(setting, profiles, catalog);
  }
}

TEST_CASE("no plan beats its bound where queries choose keys", "[property][bounds of chosen keys]") {
  FasterProfiles profiles;
  Catalog catalog(HDPSIM_SOURCE_DIR);
  for (const std::uint64_t seed : tests::seeds(30)) {
    Setting setting = random_setting(seed);
    RandomStream random(seed, "chosen keys");
    setting.model = fmt::format(
        "{{preset: deepseek-v3.2, num_hidden_layers: {}, num_nextn_predict_layers: 0, n_routed_experts: 0, index_topk: "
        "{}}}",
        one_of(random, {4, 8}), one_of(random, {512, 2048, 16'384}));
    INFO(replay_line(seed, "\"[bounds of chosen keys]\"", setting));
    (void)step_times(setting, profiles, catalog);
  }
}

TEST_CASE("the same over a thousand studies", "[.thousand][thousand faster]") {
  check_faster_clusters(1000, "\"[thousand faster]\"");
}

struct ComparedClusters {
  int plans = 0;
  int slower = 0;
  double worst = 0;
};

// By more than 2 %, in the fluid grain.
ComparedClusters compare_balance(std::uint64_t studies, const char* tag) {
  ComparedClusters compared;
  for (const std::uint64_t seed : tests::seeds(studies)) {
    const Setting setting = random_setting(seed);
    INFO(replay_line(seed, tag, setting));
    const auto& times = drawn_step_times(seed);
    for (const std::string offload : {"none", "auto", "token-wise"}) {
      const double naive = times.at("hdp-naive: {offload: " + offload + "}, fluid");
      const double balance = times.at("hdp-balance: {offload: " + offload + "}, fluid");
      const double loss = balance / std::min(naive, times.at("static, fluid")) - 1;
      compared.worst = std::max(compared.worst, loss);
      ++compared.plans;
      if (loss <= speed_tolerance) continue;
      ++compared.slower;
      WARN(
          fmt::format("{}: {:+.1f} % with offload {}\n{}", seed, 100 * loss, offload, replay_line(seed, tag, setting)));
    }
  }
  WARN("hdp-balance is slower than the better of static and hdp-naive by more than 2 % in "
       << compared.slower << " of " << compared.plans << " plans, by " << 100 * compared.worst << " % at most");
  return compared;
}

// In 9 of 180 plans, whose prices the planner knows less well than 2 %.
TEST_CASE("hdp-balance is rarely slower than static and hdp-naive", "[property][faster balance]") {
  const ComparedClusters compared = compare_balance(60, "\"[faster balance]\"");
  CHECK(compared.slower <= compared.plans / 20);
}

TEST_CASE("the same over a thousand studies of hdp-balance", "[.thousand][thousand balance]") {
  const ComparedClusters compared = compare_balance(1000, "\"[thousand balance]\"");
  CHECK(compared.slower <= compared.plans / 25);
}

}  // namespace
}  // namespace hdpsim
