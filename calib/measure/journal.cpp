#include "calib/measure/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "calib/measure/impl/subject_json.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/growing_file.h"
#include "sim/document/document.h"

namespace hdpsim::calib {
namespace {

constexpr char schema[] = "hdpsim.samples/1";

/// One list of the fields of Circumstances for reading and for writing.
template <class Json_, class Circumstances_, class Field>
void each_field(Json_& json, Circumstances_& c, const Field& field) {
  field(json, "device", c.device);
  field(json, "device_name", c.device_name);
  field(json, "devices", c.devices);
  field(json, "multiprocessors", c.multiprocessors);
  field(json, "memory_bytes", c.memory_bytes);
  field(json, "peak_flops", c.peak_flops);
  field(json, "memory_bandwidth", c.memory_bandwidth);
  field(json, "peak_source", c.peak_source);
  field(json, "hand_over_s", c.hand_over_s);
  field(json, "element_bytes", c.element_bytes);
  field(json, "attention_tile_queries", c.attention_tile_queries);
  field(json, "attention_tile_keys", c.attention_tile_keys);
  field(json, "attention_gradient_tile_queries", c.attention_gradient_tile_queries);
  field(json, "attention_gradient_tile_keys", c.attention_gradient_tile_keys);
  field(json, "gemm_tile_m", c.gemm_tile_m);
  field(json, "gemm_tile_n", c.gemm_tile_n);
  field(json, "driver", c.driver);
  field(json, "cuda", c.cuda);
  field(json, "nccl", c.nccl);
  field(json, "clocks", c.clocks);
  field(json, "instruction_set", c.instruction_set);
  field(json, "date", c.date);
  field(json, "commit", c.commit);
}

std::string header_line(const JournalHeader& header) {
  Json circumstances = Json::object();
  each_field(circumstances, header.circumstances,
             [](Json& json, const char* name, const auto& value) { json[name] = value; });
  return Json{{"schema", schema},
              {"program", header.program},
              {"plan", header.plan},
              {"circumstances", std::move(circumstances)}}
      .dump();
}

JournalHeader header_from(const Json& json) {
  JournalHeader header;
  if (json.at("schema").get<std::string>() != schema) throw std::invalid_argument("another schema");
  header.program = json.at("program").get<std::string>();
  header.plan = json.at("plan").get<std::string>();
  const Json& circumstances = json.at("circumstances");
  each_field(circumstances, header.circumstances,
             [](const Json& from, const char* name, auto& value) { from.at(name).get_to(value); });
  return header;
}

std::string line_of(const Measurement& measurement) {
  const Timing& timing = measurement.timing;
  Json json = {{"subject", json_of(measurement.subject)},
               {"round", measurement.round},
               {"median_s", timing.median_s},
               {"p10_s", timing.p10_s},
               {"p90_s", timing.p90_s},
               {"cv", timing.cv},
               {"runs", timing.runs}};
  if (measurement.emptying_s) json["emptying_s"] = *measurement.emptying_s;
  return json.dump();
}

Measurement measurement_from(const Json& json) {
  std::optional<Subject> subject = subject_from(json.at("subject"));
  if (!subject) throw std::invalid_argument("no subject");
  Measurement measurement{.subject = std::move(*subject), .round = json.at("round").get<int>(), .timing = {}};
  measurement.timing = {.median_s = json.at("median_s").get<double>(),
                        .p10_s = json.at("p10_s").get<double>(),
                        .p90_s = json.at("p90_s").get<double>(),
                        .cv = json.at("cv").get<double>(),
                        .runs = json.at("runs").get<std::int64_t>()};
  if (json.contains("emptying_s")) measurement.emptying_s = json.at("emptying_s").get<double>();
  if (!(measurement.timing.median_s > 0 && measurement.emptying_s.value_or(1) > 0)) {
    throw std::invalid_argument("a time that is not positive");
  }
  return measurement;
}

struct Difference {
  std::string_view what;
  std::string then;
  std::string now;
};

void require_same(const Position& position, const JournalHeader& then, const JournalHeader& now) {
  for (const Difference& difference :
       {Difference{"device", then.circumstances.device_name, now.circumstances.device_name},
        Difference{"instruction set", then.circumstances.instruction_set, now.circumstances.instruction_set},
        Difference{"driver", then.circumstances.driver, now.circumstances.driver},
        Difference{"version of hdpsim", then.program, now.program}, Difference{"plan", then.plan, now.plan}}) {
    if (difference.then == difference.now) continue;
    throw InputError(position,
                     fmt::format("these samples are of another {}: '{}', now '{}'", difference.what, difference.then,
                                 difference.now),
                     "leave out --resume to measure anew, or name another file with --out");
  }
}

/// The complete lines of a text: what follows the last line end was cut off.
std::vector<std::string_view> complete_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

/// What `read` makes of a line; a line that it cannot read is the user's damaged file.
template <class Read>
auto parsed(const std::string& file, std::size_t index, std::string_view line, const Read& read) {
  try {
    return read(Json::parse(line));
  } catch (const std::exception&) {  // of the JSON library, or of a value that cannot be
    throw InputError(Position{file, static_cast<int>(index) + 1, 1},
                     index == 0 ? "this is no journal of samples" : "this line is damaged",
                     index == 0 ? "its first line must hold \"schema\": \"hdpsim.samples/1\""
                                : "delete the line: what it held is measured again");
  }
}

[[noreturn]] void refused(const std::filesystem::path& path) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

Journal Journal::start(const std::filesystem::path& path, const JournalHeader& header) {
  Journal journal;
  journal.path_ = path;
  journal.circumstances_ = header.circumstances;
  journal.file_.reset(open_growing(path, 0));
  journal.append(header_line(header));
  return journal;
}

Journal Journal::resume(const std::filesystem::path& path, const JournalHeader& header) {
  const std::string file = path.string();
  if (!std::filesystem::exists(path)) {
    throw InputError(fmt::format("there are no samples to go on with: no file {}", file),
                     "leave out --resume, or give the --out and --name of the calibration that was stopped");
  }
  Diagnostics diagnostics;
  const std::optional<std::string> text = read_text_file(file, diagnostics);
  diagnostics.throw_if_any();
  const std::vector<std::string_view> lines = complete_lines(*text);
  const JournalHeader then = parsed(file, 0, lines.empty() ? std::string_view{} : lines.front(),
                                    [](const Json& json) { return header_from(json); });
  require_same({file, 1, 1}, then, header);

  Journal journal;
  journal.path_ = path;
  journal.circumstances_ = then.circumstances;
  std::size_t bytes = lines.front().size() + 1;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    journal.measurements_.push_back(parsed(file, i, lines[i], [](const Json& json) { return measurement_from(json); }));
    bytes += lines[i].size() + 1;
  }
  journal.file_.reset(open_growing(path, bytes));
  return journal;
}

void Journal::add(const Measurement& measurement) {
  append(line_of(measurement));
  measurements_.push_back(measurement);
}

void Journal::append(const std::string& line) {
  const std::string text = line + '\n';
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) refused(path_);
}

}  // namespace hdpsim::calib
