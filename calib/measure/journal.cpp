#include "calib/measure/journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "calib/measure/impl/subject_json.h"
#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/growing_file.h"
#include "sim/document/document.h"
#include "sim/document/json.h"

namespace hdpsim::calib {
namespace {

constexpr char schema[] = "hdpsim.samples/2";

// The owner is empty because a header itself says what the measurements depend on.
Seal header_seal() {
  return Seal("");
}

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
  return header_seal().closed(json_line({{"schema", schema},
                                         {"program", header.program},
                                         {"plan", header.plan},
                                         {"circumstances", std::move(circumstances)}}));
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

std::string object_of(const Measurement& measurement) {
  const Timing& timing = measurement.timing;
  Json json = {{"subject", json_of(measurement.subject)},
               {"round", measurement.round},
               {"median_s", timing.median_s},
               {"p10_s", timing.p10_s},
               {"p90_s", timing.p90_s},
               {"cv", timing.cv},
               {"runs", timing.runs}};
  if (measurement.emptying_s) json["emptying_s"] = *measurement.emptying_s;
  return json_line(json);
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

struct Condition {
  std::string_view what;
  std::string value;
};

/// The conditions that measurements of one journal share.
std::vector<Condition> conditions_of(const JournalHeader& header) {
  return {{"device", header.circumstances.device_name},
          {"instruction set", header.circumstances.instruction_set},
          {"driver", header.circumstances.driver},
          {"version of hdpsim", header.program},
          {"plan", header.plan}};
}

void require_same(const Position& position, const JournalHeader& before, const JournalHeader& header) {
  const std::vector<Condition> then = conditions_of(before);
  const std::vector<Condition> now = conditions_of(header);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (then[i].value == now[i].value) continue;
    throw InputError(
        position,
        fmt::format("these samples are of another {}: '{}', now '{}'", now[i].what, then[i].value, now[i].value),
        "leave out --resume to measure anew, or name another file with --out");
  }
}

Seal measurement_seal(const JournalHeader& header) {
  std::string owner;
  for (const Condition& condition : conditions_of(header)) owner.append(condition.value).push_back('\n');
  return Seal(owner);
}

/// The result of `read` for a line; empty if it cannot read it.
template <class Read>
auto parsed(std::string_view line, const Read& read) -> std::optional<decltype(read(Json()))> {
  try {
    return read(parsed_json(line));
  } catch (const std::exception&) {  // the library's, or one about an impossible value
    return std::nullopt;
  }
}

[[noreturn]] void refused(const std::filesystem::path& path) {
  throw MachineError(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

void tell_header(const std::string& file, const TellDamage& tell) {
  Diagnostic part;
  part.position = {file, 1, 1};
  part.message = "this line is damaged, or is of a version without checksums";
  tell(part);
}

}  // namespace

Journal::Journal(std::filesystem::path path, const JournalHeader& header)
    : path_(std::move(path)), circumstances_(header.circumstances), seal_(measurement_seal(header)) {}

Journal Journal::start(const std::filesystem::path& path, const JournalHeader& header) {
  Journal journal(path, header);
  journal.file_.reset(open_growing(path, 0));
  journal.write(header_line(header));
  return journal;
}

Journal Journal::resume(const std::filesystem::path& path, const JournalHeader& header, const TellDamage& tell) {
  const std::string file = path.string();
  if (!std::filesystem::exists(path)) {
    throw InputError(fmt::format("there are no samples to go on with: no file {}", file),
                     "leave out --resume, or give the --out and --name of the calibration that was stopped");
  }
  const std::string text = text_of_kept(path);
  const std::vector<std::string_view> lines = complete_lines(text);
  const auto first = lines.empty() ? std::nullopt : header_seal().opened(lines.front());
  const auto before = first ? parsed(*first, header_from) : std::nullopt;
  if (before) require_same({file, 1, 1}, *before, header);
  if (!before && !lines.empty()) tell_header(file, tell);
  const JournalHeader& then = before ? *before : header;
  Journal journal(path, then);
  std::string whole = header_line(then);
  std::set<std::pair<std::string, int>> seen;
  const auto take = [&](const std::string& object, std::string_view line) -> std::string {
    auto measurement = parsed(object, measurement_from);
    if (!measurement) return "this line holds no measurement";
    if (!seen.emplace(subject_text(measurement->subject), measurement->round).second) {
      return "what this line holds is there twice";
    }
    journal.measurements_.push_back(std::move(*measurement));
    whole.append(line).push_back('\n');
    return "";
  };
  const bool good = take_sealed(file, lines, journal.seal_, take, tell);
  journal.keep(whole, good && before.has_value());
  return journal;
}

void Journal::keep(const std::string& whole, bool begins_so) {
  if (!begins_so)
    // Removes unusable lines. The file is replaced at once, so that no other line is lost.
    write_file(path_, whole);
  file_.reset(open_growing(path_, whole.size()));
}

void Journal::add(const Measurement& measurement) {
  write(seal_.closed(object_of(measurement)));
  measurements_.push_back(measurement);
}

void Journal::write(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) refused(path_);
}

}  // namespace hdpsim::calib
