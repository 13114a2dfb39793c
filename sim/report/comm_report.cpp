#include "sim/report/comm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/printable.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::int64_t float_bytes = 4;

std::string_view redop(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ? "sum" : "none";
}

// The rank whose data a broadcast sends; -1 for other collectives.
int root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast ? 0 : -1;
}

// Elements as nccl-tests counts them: those of one rank if the size is that of all ranks.
std::int64_t count_of(CollectiveKind kind, std::int64_t bytes, std::int64_t ranks) {
  const bool is_of_all = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                         kind == CollectiveKind::all_to_all;
  return bytes / float_bytes / (is_of_all ? ranks : 1);
}

double algorithm_bandwidth(const CommRow& row) {
  return static_cast<double>(row.bytes) / row.seconds / 1e9;
}

double average_bus_bandwidth(const CommReport& report) {
  double sum = 0;
  for (const CommRow& row : report.rows) sum += algorithm_bandwidth(row) * bus_factor(report.kind, report.ranks);
  return report.rows.empty() ? 0 : sum / static_cast<double>(report.rows.size());
}

/// Columns that only some tables have.
class Columns {
 public:
  explicit Columns(const CommReport& report)
      : alone_(any(report, [](const CommRow& row) { return row.alone_s.has_value(); })),
        basis_(any(report, [](const CommRow& row) { return row.collective.basis != CollectiveBasis::nccl_model; })),
        measured_(any(report, [](const CommRow& row) { return row.measured_s.has_value(); })) {}

  [[nodiscard]] std::string first_heads() const {
    return fmt::format("{}{}{}", alone_ ? fmt::format(" {:>10}", "alone") : "",
                       basis_ ? fmt::format(" {:>12}", "rests on") : "", measured_ ? "   measured    error" : "");
  }
  [[nodiscard]] std::string second_heads() const {
    return fmt::format("{}{}{}", alone_ ? fmt::format(" {:>10}", "(us)") : "", basis_ ? std::string(13, ' ') : "",
                       measured_ ? "       (us)" : "");
  }
  [[nodiscard]] std::string cells(const CommRow& row) const {
    std::string text;
    if (alone_) text += fmt::format(" {:>10.2f}", row.alone_s.value_or(row.seconds) * 1e6);
    if (basis_) text += fmt::format(" {:>12}", collective_basis_name(row.collective.basis));
    if (row.measured_s) {
      text += fmt::format(" {:>10.2f} {:>+7.1f}%", *row.measured_s * 1e6, 100 * (row.seconds / *row.measured_s - 1));
    }
    return text;
  }

 private:
  template <class Predicate>
  static bool any(const CommReport& report, const Predicate& predicate) {
    return std::any_of(report.rows.begin(), report.rows.end(), predicate);
  }

  bool alone_;
  bool basis_;
  bool measured_;
};

// The last row of each algorithm is the largest, where links matter most.
std::string bottleneck_lines(const CommReport& report) {
  std::map<std::string_view, const Bottleneck*> of_algorithm;
  for (const CommRow& row : report.rows) of_algorithm[algorithm_name(row.collective.algorithm)] = &row.bottleneck;
  std::string text;
  for (const auto& [algorithm, found] : of_algorithm) {
    if (found->first.empty()) continue;
    const std::string more = found->links > 1 ? fmt::format(" and {} more", found->links - 1) : "";
    text += fmt::format("# Fullest links, {:<8}: {}{}, {:.0f} % used\n", algorithm, found->first.front(), more,
                        100 * found->used);
  }
  return text;
}

// A time with three significant digits and a unit.
std::string three_digits(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

std::string_view pattern_name(TrafficPattern pattern) {
  static const std::vector<std::string> names = traffic_pattern_names();
  return names.at(static_cast<std::size_t>(pattern));
}

std::string rates_line(const std::string& profile) {
  return profile.empty() ? "rates of the bare fabric, without a profile" : "rates of the profile " + printable(profile);
}

Json profile_json(const std::string& profile) {
  return profile.empty() ? Json() : Json(profile);
}

}  // namespace

std::string comm_table(const CommReport& report) {
  const Columns columns(report);
  std::string text = fmt::format("# {} of {} ranks on {} nodes of {}, simulated\n", collective_name(report.kind),
                                 report.ranks, report.nodes, printable(report.cluster));
  text += fmt::format("# {}\n", rates_line(report.profile));
  text += fmt::format("#{:>13} {:>13} {:>7} {:>7} {:>6} {:>10} {:>8} {:>8}  {:>9} {:>7}", "size", "count", "type",
                      "redop", "root", "time", "algbw", "busbw", "algo", "proto");
  text += columns.first_heads() + "\n";
  text += fmt::format("#{:>13} {:>13} {:>7} {:>7} {:>6} {:>10} {:>8} {:>8}  {:>9} {:>7}", "(B)", "(elements)", "", "",
                      "", "(us)", "(GB/s)", "(GB/s)", "", "");
  text += columns.second_heads() + "\n";
  for (const CommRow& row : report.rows) {
    const double algbw = algorithm_bandwidth(row);
    text += fmt::format(" {:>13} {:>13} {:>7} {:>7} {:>6} {:>10.2f} {:>8.2f} {:>8.2f}  {:>9} {:>7}", row.bytes,
                        count_of(report.kind, row.bytes, report.ranks), "float", redop(report.kind), root(report.kind),
                        row.seconds * 1e6, algbw, algbw * bus_factor(report.kind, report.ranks),
                        algorithm_name(row.collective.algorithm), protocol_name(row.collective.protocol));
    text += columns.cells(row) + "\n";
  }
  return text + bottleneck_lines(report) +
         fmt::format("# Avg bus bandwidth    : {:.4g}\n", average_bus_bandwidth(report));
}

std::string comm_json(const CommReport& report, std::string_view version) {
  Json json = {{"version", version},
               {"simulated", true},
               {"args", {fmt::format("{}_perf", collective_name(report.kind))}},
               {"config",
                {{"ranks", report.ranks},
                 {"nodes", report.nodes},
                 {"cluster", report.cluster},
                 {"profile", profile_json(report.profile)}}},
               {"results", Json::array()}};
  for (const CommRow& row : report.rows) {
    const double algbw = algorithm_bandwidth(row);
    Json entry = {{"size", row.bytes},
                  {"count", count_of(report.kind, row.bytes, report.ranks)},
                  {"type", "float"},
                  {"redop", redop(report.kind)},
                  {"root", root(report.kind)},
                  {"algorithm", algorithm_name(row.collective.algorithm)},
                  {"protocol", protocol_name(row.collective.protocol)},
                  {"out_of_place",
                   {{"time", row.seconds * 1e6},
                    {"alg_bw", algbw},
                    {"bus_bw", algbw * bus_factor(report.kind, report.ranks)},
                    {"nwrong", 0}}}};
    entry["rests_on"] = collective_basis_name(row.collective.basis);
    entry["bottleneck"] = {
        {"used", row.bottleneck.used}, {"links", row.bottleneck.links}, {"first", row.bottleneck.first}};
    if (row.alone_s) entry["alone_us"] = *row.alone_s * 1e6;
    if (row.measured_s) entry["measured_us"] = *row.measured_s * 1e6;
    json["results"].push_back(std::move(entry));
  }
  json["average_bus_bandwidth"] = average_bus_bandwidth(report);
  return json_page(json);
}

std::string traffic_table(const TrafficReport& report) {
  const TrafficResult& result = report.result;
  const double all = static_cast<double>(result.messages) * report.traffic.bytes;
  std::string text =
      fmt::format("{} of {} gpus on {}: {} messages of {:.0f} B\n", pattern_name(report.traffic.pattern),
                  report.traffic.devices, printable(report.cluster), result.messages, report.traffic.bytes);
  text += fmt::format("  {}\n", rates_line(report.profile));
  text += fmt::format("  first {}, mean {}, last {}; {:.4g} GB/s a gpu\n", three_digits(result.first_s),
                      three_digits(result.mean_s), three_digits(result.last_s),
                      all / result.last_s / static_cast<double>(report.traffic.devices) / 1e9);
  text += fmt::format("  {:<40} {:>10} {:>12} {:>6}\n", "busiest links", "GB/s", "GB", "used");
  for (const LinkUse& link : report.busiest) {
    text += fmt::format("  {:<40} {:>10.4g} {:>12.4g} {:>5.1f}%\n", link.name,
                        static_cast<double>(link.rate.bytes_per_second()) / 1e9,
                        static_cast<double>(link.bytes.count()) / 1e9, 100 * link.utilisation);
  }
  return text;
}

std::string traffic_json(const TrafficReport& report, std::string_view version) {
  Json json = {{"version", version},
               {"simulated", true},
               {"pattern", pattern_name(report.traffic.pattern)},
               {"cluster", report.cluster},
               {"profile", profile_json(report.profile)},
               {"gpus", report.traffic.devices},
               {"bytes", report.traffic.bytes},
               {"messages", report.result.messages},
               {"first_s", report.result.first_s},
               {"mean_s", report.result.mean_s},
               {"last_s", report.result.last_s},
               {"links", Json::array()}};
  for (const LinkUse& link : report.busiest) {
    json["links"].push_back({{"link", link.name},
                             {"gb_per_s", static_cast<double>(link.rate.bytes_per_second()) / 1e9},
                             {"gb", static_cast<double>(link.bytes.count()) / 1e9},
                             {"utilisation", link.utilisation}});
  }
  return json_page(json);
}

}  // namespace hdpsim
