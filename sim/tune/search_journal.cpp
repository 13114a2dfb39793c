#include "sim/tune/search_journal.h"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path path_in(const fs::path& folder) {
  return folder / "search.jsonl";
}

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string header_of(std::string_view identity) {
  return line_of({{"schema", "hdpsim.search/1"}, {"identity", identity}});
}

// Times are whole picoseconds, floating-point numbers the shortest that read back as themselves.
Json json_of(const Evaluation& evaluation) {
  Json results = Json::array();
  for (const EvaluatedStep& step : evaluation.results) {
    results.push_back({step.time.picoseconds(), step.device.count(), step.model_flops});
  }
  return {{"candidate", evaluation.candidate}, {"closed_form", evaluation.closed_form},
          {"steps", evaluation.steps},         {"results", results},
          {"problem", evaluation.problem},     {"gpus", evaluation.gpus},
          {"capacity", evaluation.capacity},   {"peak", evaluation.peak.per_second()}};
}

Evaluation evaluation_of(const Json& json) {
  Evaluation evaluation{.candidate = json.at("candidate"),
                        .closed_form = json.at("closed_form"),
                        .steps = json.at("steps"),
                        .problem = json.at("problem"),
                        .gpus = json.at("gpus"),
                        .capacity = json.at("capacity"),
                        .peak = FlopRate(json.at("peak").get<double>())};
  for (const Json& step : json.at("results")) {
    evaluation.results.push_back({Duration::picoseconds(step.at(0).get<std::int64_t>()),
                                  Bytes(step.at(1).get<std::int64_t>()), step.at(2).get<double>()});
  }
  return evaluation;
}

std::optional<Evaluation> parsed(const std::string& line) {
  try {
    return evaluation_of(Json::parse(line));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

/// Lines that have their end.
class LineReader {
 public:
  explicit LineReader(const fs::path& path) : file_(path, std::ios::binary) {}
  std::optional<std::string> next() {
    std::string line;
    if (!std::getline(file_, line) || file_.eof()) return std::nullopt;
    return line;
  }

 private:
  std::ifstream file_;
};

}  // namespace

SearchJournal SearchJournal::begin(const fs::path& folder, std::string_view identity) {
  const fs::path path = path_in(folder);
  std::error_code error;
  fs::remove(path, error);
  if (error) throw MachineError(fmt::format("cannot write {}: {}", path.string(), error.message()));
  SearchJournal journal({}, GrowingFile(path, 0));
  journal.file_.append(header_of(identity));
  return journal;
}

SearchJournal SearchJournal::resume(const fs::path& folder, std::string_view identity) {
  const fs::path path = path_in(folder);
  LineReader lines(GrowingFile::present(path));
  const auto header = lines.next();
  if (!header) {
    throw InputError(fmt::format("{} holds no tuning to go on with", folder.string()), "leave --resume out");
  }
  if (*header + "\n" != header_of(identity)) {
    throw InputError(fmt::format("{} holds the tuning of another study, or by another version", folder.string()),
                     "name another folder, or leave --resume out to begin anew");
  }
  std::vector<Evaluation> kept;
  std::uintmax_t whole = header->size() + 1;
  while (const auto line = lines.next()) {
    auto evaluation = parsed(*line);
    if (!evaluation) break;
    kept.push_back(std::move(*evaluation));
    whole += line->size() + 1;
  }
  GrowingFile::reopen(path);
  return {std::move(kept), GrowingFile(path, whole)};
}

std::optional<Evaluation> SearchJournal::next(const Evaluation& asked) {
  if (taken_ == kept_.size()) return std::nullopt;
  Evaluation& kept = kept_[taken_++];
  const bool same = std::tie(kept.candidate, kept.closed_form, kept.steps) ==
                    std::tie(asked.candidate, asked.closed_form, asked.steps);
  HDPSIM_CHECK(same, "evaluation {} was of candidate {}, candidate {} is due", taken_, kept.candidate, asked.candidate);
  return std::move(kept);
}

void SearchJournal::append(const Evaluation& evaluation) {
  HDPSIM_CHECK(taken_ == kept_.size(), "{} of {} kept evaluations are taken", taken_, kept_.size());
  file_.append(line_of(json_of(evaluation)));
}

}  // namespace hdpsim
