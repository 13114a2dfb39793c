#include "calib/measure/sample_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include "calib/measure/impl/subject_reader.h"
#include "calib/measure/sample_journal.h"
#include "sim/base/quantity_limits.h"
#include "sim/document/document.h"
#include "sim/document/reader.h"

namespace hdpsim::calib {
namespace {

constexpr Range counts{1, 1e9};
constexpr Range host_times{0, 1};
constexpr Range byte_counts{1, 8};
constexpr double longest_s = 3600;
constexpr Range sample_times{1e-12, longest_s};
constexpr Range shares{0, 1e6};

/// A file line by line: each a document of its own whose places are those of the file.
class LineValues {
 public:
  LineValues(std::string file, std::string_view text, Diagnostics& diagnostics)
      : file_(std::move(file)), text_(text), diagnostics_(diagnostics) {}

  /// The next line that is not blank; false at the end. A line that is no JSON object is reported, and `value` null.
  bool next(Value& value) {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = text_.substr(at_, end - at_);
      at_ = end + 1;
      ++number_;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      value = parsed(line);
      return true;
    }
    return false;
  }

  [[nodiscard]] Position position() const { return {file_, number_, 1}; }

 private:
  Value parsed(std::string_view line) {
    if (line.front() != '{') {
      diagnostics_.error(position(), "this line is no JSON object");
      return {};
    }
    Diagnostics found;
    Value value = parse_document(file_, std::string(line), found);
    for (Diagnostic problem : found.sorted()) {
      problem.position.line = number_;
      diagnostics_.add(std::move(problem));
    }
    if (!found.empty()) return {};
    move(value);
    return value;
  }

  void move(Value& value) {
    value.position.line = number_;
    for (Value& item : value.items) move(item);
    for (Value::Entry& entry : value.entries) {
      entry.position.line = number_;
      move(entry.value);
    }
  }

  std::string file_;
  std::string_view text_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  int number_ = 0;
};

std::map<std::string, std::string> read_texts(MapReader& reader, std::string_view key) {
  std::map<std::string, std::string> texts;
  const Value* value = reader.find(key);
  if (value == nullptr) return texts;
  if (!value->is_map()) {
    reader.diagnostics().error(value->position, fmt::format("'{}' maps names to texts", key));
    return texts;
  }
  for (const Value::Entry& entry : value->entries) {
    if (auto text = read<std::string>(entry.value, reader.diagnostics())) texts[entry.key] = std::move(*text);
  }
  return texts;
}

void read_device(MapReader& reader, Circumstances& device) {
  device.device = reader.required<std::string>("device").value_or("");
  device.device_name = reader.optional<std::string>("device_name", "");
  device.devices = reader.optional_in<std::int64_t>("devices", counts).value_or(1);
  device.multiprocessors = reader.optional_in<std::int64_t>("multiprocessors", counts).value_or(0);
  const Range memory{static_cast<double>(limits::memory.least.count()),
                     static_cast<double>(limits::memory.most.count())};
  device.memory_bytes = reader.optional_in<std::int64_t>("memory_bytes", memory).value_or(0);
  constexpr double highest_peak = 1e17;  // of a device: room for what is found to be faster
  const Range rates{limits::flop_rate.least.per_second(), highest_peak};
  device.peak_flops = reader.optional_in<double>("peak_flops", rates).value_or(0);
  const Range bandwidths{static_cast<double>(limits::bandwidth.least.bytes_per_second()),
                         static_cast<double>(limits::bandwidth.most.bytes_per_second())};
  device.memory_bandwidth = reader.optional_in<double>("memory_bandwidth", bandwidths).value_or(0);
  device.peak_source = reader.optional<std::string>("peak_source", "");
  device.element_bytes = reader.optional_in<std::int64_t>("element_bytes", byte_counts).value_or(2);
  device.clocks = reader.optional<std::string>("clocks", "");
  device.date = reader.optional<std::string>("date", "");
}

void take_version(const SampleHeader& header, const char* name, std::string& version) {
  const auto found = header.software.find(name);
  if (found != header.software.end()) version = found->second;
}

SampleHeader read_header(const Value& value, Diagnostics& diagnostics) {
  SampleHeader header;
  header.position = value.position;
  MapReader reader(value, "the header of samples", diagnostics);
  (void)reader.find("schema");
  read_device(reader, header.circumstances);
  header.through = reader.required<std::string>("through").value_or("");
  header.program = reader.required<std::string>("program").value_or("");
  header.kernels = read_texts(reader, "kernels");
  header.software = read_texts(reader, "software");
  header.host_issue_s = reader.optional_in<double>("host_issue_s", host_times).value_or(0);
  header.launch_s = reader.optional_in<double>("launch_s", host_times).value_or(0);
  header.ring_gradient_bytes = reader.optional_in<std::int64_t>("ring_gradient_bytes", byte_counts).value_or(0);
  (void)reader.optional_in<std::int64_t>("world", counts);
  (void)reader.optional_in<std::int64_t>("devices_per_node", counts);
  reader.finish();
  take_version(header, "driver", header.circumstances.driver);
  take_version(header, "cuda", header.circumstances.cuda);
  take_version(header, "nccl", header.circumstances.nccl);
  return header;
}

std::optional<Measurement> read_measurement(const Value& value, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.count();
  MapReader reader(value, "a measurement", diagnostics);
  const Value* asked = reader.require("subject");
  std::optional<Subject> subject = asked == nullptr ? std::nullopt : read_subject(*asked, diagnostics);
  const auto round = reader.optional_in<std::int64_t>("round", Range{0, 1e9}).value_or(0);
  Timing timing;
  timing.median_s = reader.required_in<double>("median_s", sample_times).value_or(1);
  timing.p10_s = reader.optional_in<double>("p10_s", sample_times).value_or(timing.median_s);
  timing.p90_s = reader.optional_in<double>("p90_s", sample_times).value_or(timing.median_s);
  timing.cv = reader.optional_in<double>("cv", shares).value_or(0);
  timing.runs = reader.optional_in<std::int64_t>("runs", counts).value_or(1);
  const auto emptying_s = reader.optional_in<double>("emptying_s", sample_times);
  reader.finish();
  if (diagnostics.count() == before && (timing.p10_s > timing.median_s || timing.median_s > timing.p90_s)) {
    reader.error("'median_s' is not between 'p10_s' and 'p90_s'");
  }
  if (diagnostics.count() != before) return std::nullopt;
  return Measurement{std::move(*subject), static_cast<int>(round), timing, emptying_s};
}

class SampleReader {
 public:
  SampleReader(const std::string& file, const std::string& text, Diagnostics& diagnostics)
      : lines_(file, text, diagnostics), diagnostics_(diagnostics) {}

  std::optional<SampleFile> read() {
    const std::size_t before = diagnostics_.count();
    Value line;
    if (!lines_.next(line)) {
      diagnostics_.error({lines_.position().file, 0, 0}, "the file is empty");
      return std::nullopt;
    }
    if (!is_header(line)) return std::nullopt;
    file_.header = read_header(line, diagnostics_);
    while (lines_.next(line)) {
      if (line.is_map()) add(line);
    }
    if (file_.measurements.empty() && diagnostics_.count() == before) {
      diagnostics_.error({lines_.position().file, 0, 0}, "there is no measurement behind the header");
    }
    require_kernels();
    if (diagnostics_.count() != before) return std::nullopt;
    return std::move(file_);
  }

 private:
  bool is_header(const Value& line) {
    if (!line.is_map()) return false;
    const Value* schema = line.find("schema");
    if (schema != nullptr && schema->text == samples_schema) return true;
    diagnostics_.error(schema == nullptr ? line.position : schema->position, "these are no samples of kernels",
                       fmt::format("the first line of such a file has \"schema\": \"{}\"", samples_schema));
    return false;
  }

  void add(const Value& line) {
    if (line.find("schema") != nullptr) {
      return diagnostics_.error(line.position, "a second header", "hand over the files one by one, they are merged");
    }
    std::optional<Measurement> measurement = read_measurement(line, diagnostics_);
    if (!measurement) return;
    const auto [first, is_new] =
        seen_.emplace(std::pair(subject_text(measurement->subject), measurement->round), line.position.line);
    if (!is_new) {
      return diagnostics_.error(
          line.position, fmt::format("round {} of this subject is in line {}, too", measurement->round, first->second));
    }
    file_.measurements.push_back(std::move(*measurement));
  }

  // A profile says whose kernels were measured.
  void require_kernels() {
    std::map<std::string, int> families;
    for (const Measurement& measurement : file_.measurements) ++families[std::string(family_of(measurement.subject))];
    families.erase("interference");
    for (const auto& [family, unused] : families) {
      if (file_.header.kernels.contains(family)) continue;
      diagnostics_.error(file_.header.position, fmt::format("'kernels' does not say whose those of '{}' are", family),
                         fmt::format(R"("kernels": {{"{}": "a library and its version"}})", family));
    }
  }

  LineValues lines_;
  Diagnostics& diagnostics_;
  SampleFile file_;
  std::map<std::pair<std::string, int>, int> seen_;  // lines of subjects in rounds
};

/// Takes what a header says over into one that stands for several, and reports where they differ.
class Merge {
 public:
  Merge(SampleHeader& all, const SampleHeader& next, Diagnostics& diagnostics)
      : all_(all), next_(next), diagnostics_(diagnostics) {}

  void run() {
    Circumstances& all = all_.circumstances;
    const Circumstances& next = next_.circumstances;
    agree("device", all.device, next.device);
    agree("device_name", all.device_name, next.device_name);
    agree("multiprocessors", all.multiprocessors, next.multiprocessors);
    agree("memory_bytes", all.memory_bytes, next.memory_bytes);
    agree("peak_flops", all.peak_flops, next.peak_flops);
    agree("memory_bandwidth", all.memory_bandwidth, next.memory_bandwidth);
    agree("element_bytes", all.element_bytes, next.element_bytes);
    agree("ring_gradient_bytes", all_.ring_gradient_bytes, next_.ring_gradient_bytes);
    agree("through", all_.through, next_.through);
    for (const auto& [family, name] : next_.kernels) agree("kernels of " + family, all_.kernels[family], name);
    for (const auto& [name, version] : next_.software) agree("version of " + name, all_.software[name], version);
    if (all.peak_source.empty()) all.peak_source = next.peak_source;
    if (all.instruction_set.empty()) all.instruction_set = next.instruction_set;
    all.devices = std::max(all.devices, next.devices);
    all.date = std::max(all.date, next.date);
  }

 private:
  template <class T>
  void agree(std::string_view what, T& all, const T& next) {
    const T unknown{};
    if (next == unknown || next == all) return;
    if (all == unknown) {
      all = next;
      return;
    }
    diagnostics_.error(next_.position,
                       fmt::format("{}: {} here, {} in {}:{}", what, next, all, all_.position.file, all_.position.line),
                       "samples of one device, by the same kernels, are merged");
  }

  SampleHeader& all_;
  const SampleHeader& next_;
  Diagnostics& diagnostics_;
};

double median_known(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::optional<SampleFile> parse_samples(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  diagnostics.add_source(file, text);
  return SampleReader(file, text, diagnostics).read();
}

std::optional<SampleFile> read_sample_file(const std::string& path, Diagnostics& diagnostics) {
  if (auto journal = read_sample_journal(path, diagnostics)) return journal;
  const std::optional<std::string> text = read_text_file(path, diagnostics);
  if (!text) return std::nullopt;
  return parse_samples(path, *text, diagnostics);
}

bool holds_samples(const std::string& path) {
  constexpr std::size_t enough = 256;  // the schema is the first member of the first line
  std::ifstream file(path, std::ios::binary);
  std::string text(enough, '\0');
  file.read(text.data(), enough);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text.substr(0, text.find('\n')).find("\"hdpsim.samples/") != std::string::npos || is_sample_journal(path);
}

SampleFile merged_samples(const std::vector<SampleFile>& files, Diagnostics& diagnostics) {
  SampleFile all = files.front();
  std::vector<double> issues = {all.header.host_issue_s};
  std::vector<double> launches = {all.header.launch_s};
  for (std::size_t i = 1; i < files.size(); ++i) {
    Merge(all.header, files[i].header, diagnostics).run();
    issues.push_back(files[i].header.host_issue_s);
    launches.push_back(files[i].header.launch_s);
    all.measurements.insert(all.measurements.end(), files[i].measurements.begin(), files[i].measurements.end());
  }
  all.header.host_issue_s = median_known(issues);
  all.header.launch_s = median_known(launches);
  return all;
}

}  // namespace hdpsim::calib
