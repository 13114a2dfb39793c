#include <fmt/format.h>

#include <set>

#include "calib/measure/impl/nccl_tests_readers.h"
#include "calib/measure/summary.h"
#include "sim/document/document.h"
#include "sim/document/reader.h"

namespace hdpsim::calib {
namespace {

constexpr double microsecond = 1e-6;

const Value* found(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

class JsonReader {
 public:
  JsonReader(const Value& document, const RunUnsaid& otherwise, Diagnostics& diagnostics)
      : document_(document), otherwise_(otherwise), diagnostics_(diagnostics) {}

  std::vector<NcclTestsRun> read() {
    const Value* results = found(document_, "results");
    if (results == nullptr || !results->is_sequence()) {
      diagnostics_.error(document_.position, "this is no JSON of nccl-tests: there is no list of 'results' in it");
      return {};
    }
    NcclTestsRun run;
    read_devices(run);
    if (const Value* version = found(document_, "nccl_version")) run.nccl = version->text;
    bool good = true;
    for (const Value& row : results->items) good = read_row(row, run) && good;
    const std::optional<MessageKind> kind = kind_of_run();
    if (run.ranks == 0) run.ranks = otherwise_.ranks;
    good = check_nccl_tests_run(run, results->position, diagnostics_) && good;
    if (!good || !kind) return {};
    state_kind(run, *kind);
    return {run};
  }

 private:
  /// The program is the first argument of the command line.
  std::optional<MessageKind> kind_of_run() {
    const Value* arguments = found(document_, "args");
    const bool stated = arguments != nullptr && !arguments->items.empty();
    const Value& program = stated ? arguments->items.front() : document_;
    const auto kind = stated ? nccl_tests_kind(program.text) : otherwise_.kind;
    if (!kind) {
      diagnostics_.error(program.position,
                         stated ? fmt::format("{} is no collective that training here uses", program.text)
                                : "the output does not say which collective this is");
    }
    return kind;
  }

  void read_devices(NcclTestsRun& run) {
    const Value* config = found(document_, "config");
    if (config == nullptr) return;
    if (const Value* iterations = found(*config, "iterations")) {
      iterations_ = hdpsim::read<std::int64_t>(*iterations, diagnostics_).value_or(iterations_);
    }
    const Value* devices = found(*config, "devices");
    if (devices == nullptr) return;
    std::set<std::string> hosts;
    for (const Value& device : devices->items) {
      ++run.ranks;
      if (const Value* host = found(device, "hostname")) hosts.insert(host->text);
    }
    run.link = hosts.size() > 1 ? LinkKind::network : LinkKind::nvlink;
  }

  bool read_row(const Value& row, NcclTestsRun& run) {
    const Value* size = found(row, "size");
    const Value* body = found(row, "out_of_place");
    if (size == nullptr || body == nullptr) {
      diagnostics_.error(row.position, "a result needs 'size' and 'out_of_place'");
      return false;
    }
    const auto bytes = hdpsim::read<std::int64_t>(*size, diagnostics_);
    if (!bytes) return false;
    if (*bytes == 0) return true;  // a size that rounds to zero on that many ranks
    if (const Value* wrong = found(*body, "nwrong")) {
      const auto count = hdpsim::read<double>(*wrong, diagnostics_);
      if (!count || *count != 0) {
        diagnostics_.error(wrong->position, "wrong results: what failed is not measured");
        return false;
      }
    }
    const auto timing = timing_of(row, *body);
    if (timing) run.timings.push_back({.bytes = *bytes, .timing = *timing});
    return timing.has_value();
  }

  /// From the single iterations if they were recorded, otherwise from their mean.
  std::optional<Timing> timing_of(const Value& row, const Value& body) {
    const Value* single = found(row, "out_of_place_per_iter");
    const Value* times = single == nullptr ? nullptr : found(*single, "times_us");
    if (times != nullptr && !times->items.empty()) {
      std::vector<double> seconds;
      for (const Value& time : times->items) {
        const auto value = positive(time);
        if (!value) return std::nullopt;
        seconds.push_back(*value * microsecond);
      }
      return summary(seconds);
    }
    const Value* time = found(body, "time") != nullptr ? found(body, "time") : found(body, "cpu_time");
    if (time == nullptr) {
      diagnostics_.error(body.position, "there is no 'time'");
      return std::nullopt;
    }
    const auto value = positive(*time);
    if (!value) return std::nullopt;
    return Timing{*value * microsecond, *value * microsecond, *value * microsecond, 0, iterations_};
  }

  std::optional<double> positive(const Value& value) {
    // Values such as NaN are written as strings: "nan".
    const auto number = value.quoted ? std::nullopt : hdpsim::read<double>(value, diagnostics_);
    if (number && *number > 0) return number;
    if (number || value.quoted) {
      diagnostics_.error(value.position, fmt::format("'{}' is no time in microseconds", value.text));
    }
    return std::nullopt;
  }

  const Value& document_;
  const RunUnsaid& otherwise_;
  Diagnostics& diagnostics_;
  std::int64_t iterations_ = 20;  // the default of nccl-tests
};

}  // namespace

std::vector<NcclTestsRun> read_nccl_tests_json(const std::string& file, const std::string& text,
                                               const RunUnsaid& otherwise, Diagnostics& diagnostics) {
  Diagnostics syntax;
  const Value document = parse_document(file, text, syntax);
  diagnostics.append(syntax);
  return syntax.empty() ? JsonReader(document, otherwise, diagnostics).read() : std::vector<NcclTestsRun>{};
}

}  // namespace hdpsim::calib
