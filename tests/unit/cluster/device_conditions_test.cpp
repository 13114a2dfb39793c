#include "sim/cluster/device_conditions.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments_of(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - (sum / count) * (sum / count))};
}

DeviceConditions noisy(double device_cv, double step_cv, std::uint64_t seed = 1) {
  return {{.device_cv = device_cv, .step_cv = step_cv, .seed = seed}, {}};
}

TEST_CASE("noise has mean 1 and the coefficient of variation that was asked for", "[noise]") {
  const std::int64_t devices = 100'000;
  const auto [device_cv, step_cv] = GENERATE(std::pair{0.02, 0.0}, std::pair{0.0, 0.1}, std::pair{0.03, 0.04});
  const Moments found = moments_of(time_factors(noisy(device_cv, step_cv), devices, 3));
  const double cv = std::sqrt((1 + device_cv * device_cv) * (1 + step_cv * step_cv) - 1);  // of a product
  const double error_of_mean = cv / std::sqrt(static_cast<double>(devices));
  CHECK(std::abs(found.mean - 1) < 5 * error_of_mean);
  CHECK(found.deviation == Approx(cv).epsilon(0.02));  // 5 errors of a deviation, 1 / sqrt(2 n), and the rungs
}

TEST_CASE("a device keeps its own factor through all steps, a step's factor is drawn anew", "[noise]") {
  CHECK(time_factors(noisy(0.05, 0), 64, 0) == time_factors(noisy(0.05, 0), 64, 9));
  CHECK(time_factors(noisy(0, 0.05), 64, 0) != time_factors(noisy(0, 0.05), 64, 9));
  CHECK(time_factors(noisy(0.05, 0.05), 64, 4) == time_factors(noisy(0.05, 0.05), 64, 4));
  CHECK(time_factors(noisy(0.05, 0.05), 64, 4) != time_factors(noisy(0.05, 0.05, 2), 64, 4));
}

TEST_CASE("12,288 noisy devices have a few hundred speeds, whatever their number", "[noise]") {
  const std::vector<double> factors = time_factors(noisy(0.01, 0.02), 12'288, 0);
  const std::set<double> distinct(factors.begin(), factors.end());
  // 12,288 normal draws lie within 5 deviations: two ladders of 5 x 16 rungs and the middle.
  CHECK(std::ssize(distinct) <= 2 * 5 * static_cast<int>(noise_steps) + 1);
  CHECK(std::ssize(distinct) > static_cast<int>(noise_steps));
}

TEST_CASE("no noise and no fault leave every device as it is", "[noise]") {
  CHECK(time_factors({}, 3, 7) == std::vector<double>(3, 1.0));
  CHECK_FALSE(DeviceConditions{}.any());
}

TEST_CASE("a fault slows its devices from its first step to its last, and faults multiply", "[faults]") {
  DeviceConditions conditions;
  conditions.faults = {{1, 2, 3, 5, 1.5}, {2, 2, 5, 9, 2}};
  CHECK(time_factors(conditions, 4, 2) == std::vector<double>{1, 1, 1, 1});
  CHECK(time_factors(conditions, 4, 3) == std::vector<double>{1, 1.5, 1.5, 1});
  CHECK(time_factors(conditions, 4, 5) == std::vector<double>{1, 1.5, 3, 1});
  CHECK(time_factors(conditions, 4, 6) == std::vector<double>{1, 1, 2, 1});
}

TEST_CASE("planners can know of faults, never of noise", "[faults]") {
  DeviceConditions conditions = noisy(0.1, 0.1);
  conditions.faults = {{0, 0, 0, 9, 2}};
  CHECK(fault_factors(conditions, 2, 1) == std::vector<double>{2, 1});
}

std::vector<std::string> problems_of_faults(const std::string& text) {
  ClusterSpec cluster;
  cluster.devices = 16;
  cluster.devices_per_node = 8;
  Diagnostics diagnostics;
  (void)read_faults(parse_document("faults.yaml", text, diagnostics), cluster, 10, diagnostics);
  std::vector<std::string> messages;
  for (const Diagnostic& problem : diagnostics.sorted()) messages.push_back(problem.message);
  return messages;
}

TEST_CASE("a node stands for its devices, and a fault without steps lasts the whole run", "[faults]") {
  ClusterSpec cluster;
  cluster.devices = 16;
  cluster.devices_per_node = 8;
  Diagnostics diagnostics;
  const Value list =
      parse_document("f", "[{node: 1, slowdown: 2}, {device: 3-4, from_step: 2, slowdown: 3}]", diagnostics);
  const std::vector<Fault> faults = read_faults(list, cluster, 10, diagnostics);
  REQUIRE(diagnostics.empty());
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].first_device == 8);
  CHECK(faults[0].last_device == 15);
  CHECK(faults[0].from_step == 0);
  CHECK(faults[0].to_step == 9);
  CHECK(faults[1].first_device == 3);
  CHECK(faults[1].last_device == 4);
  CHECK(faults[1].from_step == 2);
}

TEST_CASE("everything that is wrong with faults is told", "[faults]") {
  CHECK(problems_of_faults("{}") == std::vector<std::string>{"the faults must be a list, found a map"});
  CHECK(problems_of_faults("[{device: 16, slowdown: 2}]") == std::vector<std::string>{"there is no device 16"});
  CHECK(problems_of_faults("[{node: 2, slowdown: 2}]") == std::vector<std::string>{"there is no node 2"});
  CHECK(problems_of_faults("[{device: 1, node: 1, slowdown: 2}]") ==
        std::vector<std::string>{"a fault is of a 'device' or of a 'node'"});
  CHECK(problems_of_faults("[{device: x, slowdown: 2}]") == std::vector<std::string>{"'x' is no device"});
  CHECK(problems_of_faults("[{device: 1, from_step: 10, slowdown: 2}]") ==
        std::vector<std::string>{"'from_step' is 10, beyond the run's last step, 9"});
  CHECK(problems_of_faults("[{device: 1, from_step: 5, to_step: 4, slowdown: 2}]") ==
        std::vector<std::string>{"the fault ends in step 4, before it begins in step 5"});
  CHECK(problems_of_faults("[{device: 1, slowdown: 0.5}, {device: 1, slowdown: -1}]").size() == 2);
}

TEST_CASE("faults that meet slow a device a million times at most", "[faults]") {
  CHECK(problems_of_faults("[{device: 1, slowdown: 1000}, {device: 1, slowdown: 1000}]").empty());
  const std::string apart = "{device: 1, to_step: 3, slowdown: 1000}, {device: 1, from_step: 4, slowdown: 1000}";
  CHECK(problems_of_faults("[" + apart + ", {node: 0, slowdown: 1000}]").empty());  // meets them in different steps
  CHECK(problems_of_faults("[" + apart + ", {node: 1, slowdown: 1000}]").empty());
  CHECK(problems_of_faults("[" + apart + ", {node: 0, slowdown: 1000}, {device: 0-1, slowdown: 2}]").size() == 1);
  std::string many;
  for (int i = 0; i < 200; ++i) many += "{device: 0, slowdown: 1000}, ";
  CHECK(problems_of_faults("[" + many + "]").size() == 1);
}

TEST_CASE("a fault of a run whose steps are not known lasts all of them", "[faults]") {
  Diagnostics diagnostics;
  const Value list = parse_document("f", "[{device: 3, slowdown: 2}]", diagnostics);
  (void)read_faults(list, {}, 0, diagnostics);
  CHECK(diagnostics.empty());
}

TEST_CASE("noise that is no coefficient of variation is refused", "[noise]") {
  Diagnostics diagnostics;
  (void)read_noise(parse_document("n", "{device: {cv: -0.1}, step: {cv: 1.5}, steps: 1}", diagnostics), diagnostics);
  CHECK(diagnostics.sorted().size() == 3);
}

TEST_CASE("devices that are drawn have no spread besides, and both are not stated", "[noise]") {
  const auto read = [](const char* text, std::size_t problems = 0) {
    Diagnostics diagnostics;
    const Noise noise = read_noise(parse_document("n", text, diagnostics), diagnostics);
    CHECK(diagnostics.sorted().size() == problems);
    return noise.spread;
  };
  CHECK(read("{spread: 0.01}") == 0.01);
  CHECK(read("{step: {cv: 0.01}}") == std::nullopt);
  CHECK(read("{device: {cv: 0.01}}") == 0.0);
  (void)read("{device: {cv: 0.01}, spread: 0.01}", 1);
}

}  // namespace
}  // namespace hdpsim
