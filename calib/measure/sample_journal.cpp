#include "calib/measure/sample_journal.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "calib/measure/impl/subject_json.h"
#include "sim/document/record.h"

namespace hdpsim::calib {

using hdpsim::from_json;
using hdpsim::to_json;

template <SameAs<Circumstances> Self, class Visit>
void each_member(Self& c, const Visit& visit) {
  visit("device", c.device);
  visit("device_name", c.device_name);
  visit("devices", c.devices);
  visit("multiprocessors", c.multiprocessors);
  visit("memory_bytes", c.memory_bytes);
  visit("peak_flops", c.peak_flops);
  visit("memory_bandwidth", c.memory_bandwidth);
  visit("peak_source", c.peak_source);
  visit("hand_over_s", c.hand_over_s);
  visit("element_bytes", c.element_bytes);
  visit("attention_tile_queries", c.attention_tile_queries);
  visit("attention_tile_keys", c.attention_tile_keys);
  visit("attention_gradient_tile_queries", c.attention_gradient_tile_queries);
  visit("attention_gradient_tile_keys", c.attention_gradient_tile_keys);
  visit("gemm_tile_m", c.gemm_tile_m);
  visit("gemm_tile_n", c.gemm_tile_n);
  visit("driver", c.driver);
  visit("cuda", c.cuda);
  visit("nccl", c.nccl);
  visit("clocks", c.clocks);
  visit("instruction_set", c.instruction_set);
  visit("date", c.date);
  visit("commit", c.commit);
}

// But for the subject.
template <SameAs<Measurement> Self, class Visit>
void each_member(Self& measurement, const Visit& visit) {
  visit("round", measurement.round);
  visit("median_s", measurement.timing.median_s);
  visit("p10_s", measurement.timing.p10_s);
  visit("p90_s", measurement.timing.p90_s);
  visit("cv", measurement.timing.cv);
  visit("runs", measurement.timing.runs);
  visit("emptying_s", measurement.emptying_s);
}

namespace {

constexpr char circumstances_key[] = "circumstances";

constexpr char journal_work[] = "calibration";

JournalTitle journal_title(const SampleTitle& title) {
  const Circumstances& c = title.circumstances;
  return {journal_work, fmt::format("device: {}\ninstruction set: {}\ndriver: {}\nhdpsim: {}\nplan: {}\n",
                                    c.device_name, c.instruction_set, c.driver, title.program, title.plan)};
}

std::string key_of(const Measurement& measurement) {
  return fmt::format("{} round {}", subject_text(measurement.subject), measurement.round);
}

std::string text_of(const Measurement& measurement) {
  Json json = {{"subject", json_of(measurement.subject)}};
  each_member(measurement, [&](const char* name, const auto& member) { put_member(json[name], member); });
  return json_line(json);
}

// Empty if the text is of another shape, or has an impossible value.
std::optional<Measurement> measurement_of(const std::string& text) {
  try {
    const Json json = parsed_json(text);
    std::optional<Subject> subject = subject_from(json.at("subject"));
    if (!subject) return std::nullopt;
    Measurement measurement{.subject = std::move(*subject), .round = 0, .timing = {}};
    each_member(measurement, [&](const char* name, auto& member) { take_member(json.at(name), member); });
    if (!(measurement.timing.median_s > 0 && measurement.emptying_s.value_or(1) > 0)) return std::nullopt;
    return measurement;
  } catch (const std::exception&) {  // the library's, or one about an impossible value
    return std::nullopt;
  }
}

// The title of a calibration's journal, from its first line; empty if the file is none.
std::optional<JournalTitle> title_in(const std::string& path) {
  constexpr std::size_t longest_title = 1 << 16;
  std::ifstream file(path, std::ios::binary);
  std::string line(longest_title, '\0');
  file.getline(line.data(), longest_title);
  if (file.gcount() <= 1) return std::nullopt;
  line.resize(static_cast<std::size_t>(file.gcount()) - 1);
  const Json title = parsed_json(line);
  if (!title.is_object() || !title.contains("identity") || title.value("work", "") != journal_work) {
    return std::nullopt;
  }
  return JournalTitle{journal_work, title.value("identity", "")};
}

// The value of a line "name: value" of an identity.
std::string identity_part(const std::string& identity, std::string_view name) {
  std::istringstream lines(identity);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(fmt::format("{}: ", name))) return line.substr(name.size() + 2);
  }
  return {};
}

}  // namespace

SampleJournal::SampleJournal(Journal journal, const SampleTitle& title)
    : journal_(std::move(journal)), circumstances_(title.circumstances) {
  const auto text = journal_.kept(circumstances_key);
  const auto first = text ? record_of_text<Circumstances>(*text) : std::nullopt;
  if (first) {
    circumstances_ = *first;
  } else {
    journal_.add(circumstances_key, record_text(circumstances_));
  }
}

SampleJournal SampleJournal::start(const std::filesystem::path& path, const SampleTitle& title) {
  return {Journal::begin(path, journal_title(title)), title};
}

SampleJournal SampleJournal::resume(const std::filesystem::path& path, const SampleTitle& title,
                                    const TellDamage& tell) {
  SampleJournal journal(Journal::resume(path, journal_title(title), tell), title);
  for (const std::string& text : journal.journal_.values()) {
    if (auto measurement = measurement_of(text)) journal.measurements_.push_back(std::move(*measurement));
  }
  return journal;
}

void SampleJournal::add(const Measurement& measurement) {
  journal_.add(key_of(measurement), text_of(measurement));
  measurements_.push_back(measurement);
}

bool is_sample_journal(const std::string& path) {
  return title_in(path).has_value();
}

std::optional<SampleFile> read_sample_journal(const std::string& path, Diagnostics& diagnostics) {
  const std::optional<JournalTitle> title = title_in(path);
  if (!title) return std::nullopt;
  const Journal journal = Journal::read(path, *title, [&](const Diagnostic& damage) { diagnostics.add(damage); });
  SampleFile file;
  file.header.position = {path, 1, 1};
  file.header.through = "hdpsim";
  file.header.program = fmt::format("hdpsim {}", identity_part(title->identity, "hdpsim"));
  if (const auto text = journal.kept(circumstances_key)) {
    if (auto found = record_of_text<Circumstances>(*text)) file.header.circumstances = std::move(*found);
  }
  for (const std::string& text : journal.values()) {
    if (auto measurement = measurement_of(text)) file.measurements.push_back(std::move(*measurement));
  }
  if (file.measurements.empty()) diagnostics.error({path, 0, 0}, "there is no measurement in this journal");
  return file;
}

}  // namespace hdpsim::calib
