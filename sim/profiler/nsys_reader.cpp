#include "sim/profiler/profiler_readers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/base/first_problems.h"
#include "sim/document/input_file.h"

namespace hdpsim {
namespace {

struct Field {
  std::string text;
  int column = 1;  ///< Where it begins in its line.
};
using Fields = std::vector<Field>;

/// The fields of a line: separated by commas, those with commas in quotes, quotes in these doubled.
Fields fields_of(std::string_view line) {
  Fields fields = {{"", 1}};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back().text += '"';
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.push_back({"", static_cast<int>(i) + 2});
    } else {
      fields.back().text += c;
    }
  }
  return fields;
}

/// The columns that count, by what their names begin with; units follow.
struct Columns {
  std::size_t begin = 0, duration = 0, correlation = 0, bytes = 0, from = 0, to = 0, device = 0, stream = 0, name = 0;
  double begin_us = 1;     ///< A unit of the begin in microseconds.
  double duration_us = 1;  ///< The same of the duration.
  double unit_bytes = 1;
};

std::optional<std::size_t> find(const Fields& head, std::string_view name) {
  const auto found =
      std::find_if(head.begin(), head.end(), [&](const Field& field) { return field.text.starts_with(name); });
  if (found == head.end()) return std::nullopt;
  return static_cast<std::size_t>(found - head.begin());
}

struct Unit {
  std::string_view name;
  double size;
};
constexpr auto times = std::to_array<Unit>({{"(ns)", 1e-3}, {"(us)", 1}, {"(ms)", 1e3}, {"(s)", 1e6}, {"(sec)", 1e6}});
constexpr auto amounts = std::to_array<Unit>({{"(B)", 1}, {"(KB)", 1e3}, {"(MB)", 1e6}, {"(GB)", 1e9}});

template <class Units>
double unit_of(const Units& units, const std::string& name) {
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return name.ends_with(u.name); });
  return found == units.end() ? 0 : found->size;
}

std::optional<Columns> columns_of(const Fields& head) {
  Columns columns;
  const auto wanted = std::to_array<std::pair<std::string_view, std::size_t*>>({{"Start", &columns.begin},
                                                                                {"Duration", &columns.duration},
                                                                                {"CorrId", &columns.correlation},
                                                                                {"Bytes", &columns.bytes},
                                                                                {"SrcMemKd", &columns.from},
                                                                                {"DstMemKd", &columns.to},
                                                                                {"Device", &columns.device},
                                                                                {"Strm", &columns.stream},
                                                                                {"Name", &columns.name}});
  for (const auto& [name, index] : wanted) {
    const std::optional<std::size_t> found = find(head, name);
    if (!found) return std::nullopt;
    *index = *found;
  }
  columns.begin_us = unit_of(times, head[columns.begin].text);
  columns.duration_us = unit_of(times, head[columns.duration].text);
  columns.unit_bytes = unit_of(amounts, head[columns.bytes].text);
  if (columns.begin_us == 0 || columns.duration_us == 0 || columns.unit_bytes == 0) return std::nullopt;
  return columns;
}

class NsysReader {
 public:
  NsysReader(const std::filesystem::path& path, const TakeEvent& take)
      : lines_(path), take_(take), problems_(diagnostics_) {}

  ProfilerHeader read(const ReportShare& report) {
    find_head();
    constexpr int between_reports = 65536;
    while (lines_.next_filled('\0')) {
      row(fields_of(lines_.text()));
      if (lines_.number() % between_reports == 0) report(lines_.share_read());
    }
    problems_.finish({lines_.file_name(), 0, 0}, "rows");
    diagnostics_.throw_if_any();
    ProfilerHeader header;
    if (!device_.empty()) header.devices.push_back({device_.substr(0, device_.rfind(" (")), 0, 0});
    return header;
  }

 private:
  void find_head() {
    constexpr int most_before = 1000;
    while (lines_.next_filled('\0') && lines_.number() < most_before) {
      const Fields head = fields_of(lines_.text());
      if (!find(head, "Name") || head.size() < 3) continue;
      const std::optional<Columns> columns = columns_of(head);
      if (!columns) {
        throw InputError(Position{lines_.file_name(), lines_.number(), 1}, "this is another report of Nsight Systems",
                         "nsys stats --report cuda_gpu_trace --format csv");
      }
      columns_ = *columns;
      width_ = head.size();
      return;
    }
    throw InputError(Position{lines_.file_name(), 0, 0}, "it has no head with 'Start (ns)', 'Duration (ns)' and 'Name'",
                     "nsys stats --report cuda_gpu_trace --format csv");
  }

  [[nodiscard]] Position at(const Field& field) const { return {lines_.file_name(), lines_.number(), field.column}; }

  /// A number in its unit. Empty, with the problem reported, if the field has none.
  std::optional<double> number(const Field& field, const char* what) {
    double value = 0;
    const char* end = field.text.data() + field.text.size();
    const auto [stop, error] = std::from_chars(field.text.data(), end, value);
    constexpr double most = 1e18;
    if (error == std::errc{} && stop == end && std::abs(value) <= most) return value;
    problems_.error(at(field), fmt::format("'{}' is no {}", field.text, what));
    return std::nullopt;
  }

  [[nodiscard]] static std::int64_t whole(const std::string& text) {
    std::int64_t value = -1;
    static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), value));
    return value;
  }

  void row(const Fields& fields) {
    if (fields.size() < width_) {
      return problems_.error(at(fields.front()), fmt::format("{} fields where the head has {}", fields.size(), width_),
                             "is the file complete?");
    }
    const auto begin = number(fields[columns_.begin], "time");
    const auto duration = number(fields[columns_.duration], "time");
    if (!begin || !duration) return;
    const double duration_us = *duration * columns_.duration_us;
    if (const std::string_view problem = problem_of_duration(duration_us, true); !problem.empty()) {
      return problems_.error(at(fields[columns_.duration]), fmt::format("a row that cannot be: {}", problem),
                             "export the report again");
    }
    if (!is_of_device(fields[columns_.device])) return;
    ProfilerEvent event;
    event.position = at(fields.front());
    event.name = fields[columns_.name].text;
    event.begin_us = *begin * columns_.begin_us;
    event.duration_us = duration_us;
    event.correlation = whole(fields[columns_.correlation].text);
    event.stream = whole(fields[columns_.stream].text);
    event.category = "kernel";
    if (event.name.starts_with("[CUDA memset")) event.category = "gpu_memset";
    if (event.name.starts_with("[CUDA memcpy") && !copy(fields, event)) return;
    take_(event);
  }

  bool is_of_device(const Field& field) {
    if (device_.empty()) device_ = field.text;
    if (field.text == device_) return true;
    problems_.error(at(field), fmt::format("a row of '{}' among rows of '{}'", field.text, device_),
                    "put the rows of each device into a file of their own");
    return false;
  }

  // Named as PyTorch's profiler names copies: "Memcpy HtoD (Pinned -> Device)".
  bool copy(const Fields& fields, ProfilerEvent& event) {
    event.category = "gpu_memcpy";
    const bool to_host = event.name.find("Device-to-Host") != std::string::npos;
    const bool to_device = event.name.find("Host-to-Device") != std::string::npos;
    event.name = fmt::format("Memcpy {} ({} -> {})",
                             to_host     ? "DtoH"
                             : to_device ? "HtoD"
                                         : "DtoD",
                             fields[columns_.from].text, fields[columns_.to].text);
    const auto amount = number(fields[columns_.bytes], "amount of data");
    if (amount) event.bytes = std::llround(std::clamp(*amount * columns_.unit_bytes, 0.0, 1e15));
    return amount.has_value();
  }

  LineReader lines_;
  const TakeEvent& take_;
  Diagnostics diagnostics_;
  FirstProblems problems_;
  Columns columns_;
  std::size_t width_ = 0;
  std::string device_;
};

}  // namespace

ProfilerHeader read_nsys(const std::filesystem::path& path, const TakeEvent& take, const ReportShare& report) {
  return NsysReader(path, take).read(report);
}

}  // namespace hdpsim
