#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::bench {

/// What was measured, as JSON:
///   device    name, driver, clocks and peaks
///   results   one object a measurement: what, seconds (median, p10, p90, runs) and a rate
///   ratios    what the goals are stated in: name, value, goal, whether it is met
///   errors    parts that could not be measured, and why
class Report {
 public:
  /// The file is written after each part, so that a later part cannot lose an earlier one.
  Report(Backend& backend, std::string file);

  /// Adds a measurement and prints it as one line. `what` says all there is to say about it.
  void add(const nlohmann::ordered_json& what, std::vector<double> seconds, std::string_view rate_name, double amount);
  /// What a goal is stated in: at least `goal`, or at most.
  void at_least(const std::string& name, double value, double goal) { ratio(name, value, goal, value >= goal); }
  void at_most(const std::string& name, double value, double goal) { ratio(name, value, goal, value <= goal); }
  /// Runs a part; what it throws becomes an error of the report, and the next part runs. std::runtime_error if the file
  /// cannot be written.
  void part(const std::string& name, const std::function<void()>& measure);

  [[nodiscard]] bool complete() const { return json_["errors"].empty(); }

 private:
  /// What is faster than the device can be was not computed: an error of the report.
  void refuse_above_peak(const nlohmann::ordered_json& result, std::string_view rate_name);
  void ratio(const std::string& name, double value, double goal, bool met);

  Backend& backend_;
  std::string file_;
  nlohmann::ordered_json json_;
};

/// Seconds of a few to many runs, warm: about `budget_s` of them, after one that is not counted.
[[nodiscard]] std::vector<double> measure(Backend& backend, const std::function<void()>& work, double budget_s = 0.15);

// The parts. quick: fewer shapes.
void measure_attention(Backend& best, Backend& portable, Report& report, bool quick);
void measure_packed_attention(Backend& backend, Report& report);
void measure_accumulation(Backend& backend, Report& report);
void measure_ring(Backend& backend, Report& report);
void measure_offload(Backend& backend, Report& report);
void measure_matrix_products(Backend& backend, Report& report);
void measure_memory(Backend& backend, Report& report);

}  // namespace hdpsim::kernels::bench
