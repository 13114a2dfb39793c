#include "tests/gpu/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "kernels/cuda/peak.h"

namespace hdpsim::kernels::bench {
namespace {

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

nlohmann::ordered_json state_json(const DeviceState& state) {
  nlohmann::ordered_json json;
  if (state.clock_mhz) json["clock_mhz"] = *state.clock_mhz;
  if (state.power_w) json["power_w"] = *state.power_w;
  if (state.temperature_c) json["temperature_c"] = *state.temperature_c;
  json["throttled"] = state.throttled;
  return json;
}

}  // namespace

Report::Report(Backend& backend, std::string file) : backend_(backend), file_(std::move(file)) {
  const DeviceInfo info = backend.info();
  const DevicePeak peak = cuda_device_peak();
  json_["device"] = {{"name", info.name},
                     {"multiprocessors", info.multiprocessors},
                     {"memory_bytes", info.memory_bytes},
                     {"driver", info.driver},
                     {"cuda", info.cuda},
                     {"highest_clock_mhz", info.clock_mhz},
                     {"instruction_set", info.instruction_set},
                     {"peak_flops", peak.flops},
                     {"peak_memory_bandwidth", peak.memory_bandwidth},
                     {"peak_source", peak.source}};
  json_["results"] = nlohmann::ordered_json::array();
  json_["ratios"] = nlohmann::ordered_json::array();
  json_["errors"] = nlohmann::ordered_json::array();
}

void Report::add(const nlohmann::ordered_json& what, std::vector<double> seconds, std::string_view rate_name,
                 double amount) {
  std::ranges::sort(seconds);
  const double typical = quantile(seconds, 0.5);
  nlohmann::ordered_json result = what;
  result["median_s"] = typical;
  result["p10_s"] = quantile(seconds, 0.1);
  result["p90_s"] = quantile(seconds, 0.9);
  result["runs"] = seconds.size();
  result[std::string(rate_name)] = amount / typical;
  result["state"] = state_json(backend_.state());
  json_["results"].push_back(result);
  refuse_above_peak(result, rate_name);
  std::string text;
  for (const auto& [key, value] : what.items()) {
    text += fmt::format("{} ", value.is_string() ? value.get<std::string>() : key + "=" + value.dump());
  }
  fmt::print("{:<78} {:10.3f} ms {:10.3g} {}\n", text, typical * 1e3, amount / typical, rate_name);
  std::fflush(stdout);
}

void Report::refuse_above_peak(const nlohmann::ordered_json& result, std::string_view rate_name) {
  const nlohmann::ordered_json& device = json_["device"];
  const bool is_flops = rate_name == "flops";
  if (!is_flops && rate_name != "bytes_per_s") return;
  const double rate = result[std::string(rate_name)];
  const double peak = device[is_flops ? "peak_flops" : "peak_memory_bandwidth"];
  if (rate <= peak) return;
  json_["errors"].push_back({{"part", "measurement"},
                             {"message", fmt::format("{:.4g} {} are above the peak of {:.4g}", rate, rate_name, peak)},
                             {"result", result}});
}

void Report::ratio(const std::string& name, double value, double goal, bool met) {
  json_["ratios"].push_back({{"name", name}, {"value", value}, {"goal", goal}, {"met", met}});
  fmt::print("{:<78} {:10.3f} (goal {}: {})\n", name, value, goal, met ? "met" : "MISSED");
}

void Report::part(const std::string& name, const std::function<void()>& measure) {
  try {
    measure();
  } catch (const std::exception& error) {
    json_["errors"].push_back({{"part", name}, {"message", error.what()}});
    fmt::print(stderr, "error: {}: {}\n", name, error.what());
  }
  const std::string unfinished = file_ + ".part";
  std::ofstream file(unfinished);
  file << json_.dump(2) << "\n";
  file.close();
  if (!file || std::rename(unfinished.c_str(), file_.c_str()) != 0) throw std::runtime_error("cannot write " + file_);
}

std::vector<double> measure(Backend& backend, const std::function<void()>& work, double budget_s) {
  constexpr double fewest = 5;
  constexpr double most = 100;
  work();
  backend.synchronize();
  const double once = backend.time(1, false, work)[0];
  return backend.time(static_cast<int>(std::clamp(budget_s / once, fewest, most)), false, work);
}

}  // namespace hdpsim::kernels::bench
