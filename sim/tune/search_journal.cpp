#include "sim/tune/search_journal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

fs::path path_in(const fs::path& folder) {
  return folder / "search.jsonl";
}

// The owner is empty because a header itself says what the lines depend on.
Seal header_seal() {
  return Seal("");
}

std::string header_of(std::string_view identity) {
  return header_seal().closed(json_line({{"schema", "hdpsim.search/3"}, {"identity", identity}}));
}

// Times are whole picoseconds, floating-point numbers the shortest that read back exactly.
Json json_of(const Evaluation& evaluation) {
  Json results = Json::array();
  for (const EvaluatedStep& step : evaluation.results) {
    results.push_back({step.time.picoseconds(), step.device.count(), step.model_flops, step.device_at_most.count(),
                       step.is_at_risk, step.sharing.picoseconds()});
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
                                  Bytes(step.at(1).get<std::int64_t>()), step.at(2).get<double>(),
                                  Bytes(step.at(3).get<std::int64_t>()), step.at(4).get<bool>(),
                                  Duration::picoseconds(step.at(5).get<std::int64_t>())});
  }
  return evaluation;
}

std::optional<Evaluation> parsed(const std::string& object) {
  try {
    return evaluation_of(parsed_json(object));
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

SearchJournal::Key SearchJournal::key_of(const Evaluation& evaluation) {
  return {evaluation.candidate, evaluation.closed_form, evaluation.steps};
}

SearchJournal::SearchJournal(fs::path path, std::string_view identity, std::map<Key, Kept> kept, std::uintmax_t bytes)
    : path_(std::move(path)),
      seal_(identity),
      text_(header_of(identity)),
      kept_(std::move(kept)),
      file_(path_, bytes) {}

SearchJournal SearchJournal::begin(const fs::path& folder, std::string_view identity) {
  const fs::path path = path_in(folder);
  std::error_code error;
  fs::remove(path, error);
  if (error) throw MachineError(fmt::format("cannot write {}: {}", path.string(), error.message()));
  SearchJournal journal(path, identity, {}, 0);
  journal.file_.append(journal.text_);
  return journal;
}

SearchJournal SearchJournal::resume(const fs::path& folder, std::string_view identity, const TellDamage& tell) {
  const fs::path path = path_in(folder);
  const fs::path present = GrowingFile::present(path);
  if (!fs::exists(present)) {
    throw InputError(fmt::format("{} holds no tuning to go on with", folder.string()), "leave --resume out");
  }
  const std::string text = text_of_kept(present);
  const std::vector<std::string_view> lines = complete_lines(text);
  const std::string header = header_of(identity);
  std::string whole = header;
  bool good = !lines.empty() && text.starts_with(header);
  if (!lines.empty() && !good) {
    if (header_seal().opened(lines.front())) {
      throw InputError(fmt::format("{} holds the tuning of another study, or by another version", folder.string()),
                       "name another folder, or leave --resume out to begin anew");
    }
    tell({{present.string(), 1, 1}, "this line is damaged, or is of a version without checksums", {}});
  }
  std::map<Key, Kept> kept;
  const auto take = [&](const std::string& object, std::string_view line) -> std::string {
    std::optional<Evaluation> evaluation = parsed(object);
    if (!evaluation) return "this line is no evaluation";
    Key key = key_of(*evaluation);
    if (!kept.try_emplace(std::move(key), Kept{std::move(*evaluation), kept.size()}).second) {
      return "this line is there twice";
    }
    whole.append(line).push_back('\n');
    return "";
  };
  good = take_sealed(present.string(), lines, Seal(identity), take, tell) && good;
  GrowingFile::reopen(path);
  if (!good) write_file(GrowingFile::temporary(path), whole);
  return {path, identity, std::move(kept), whole.size()};
}

const Evaluation* SearchJournal::kept(const Evaluation& asked) const {
  const auto found = kept_.find(key_of(asked));
  return found == kept_.end() ? nullptr : &found->second.evaluation;
}

void SearchJournal::add(const Evaluation& evaluation) {
  const std::string line = seal_.closed(json_line(json_of(evaluation)));
  const auto found = kept_.find(key_of(evaluation));
  const bool is_kept = found != kept_.end();
  in_order_ = in_order_ && (is_kept ? found->second.place == added_ : added_ >= kept_.size());
  ++added_;
  text_ += line;
  if (!is_kept) file_.append(line);
}

void SearchJournal::finish() {
  in_order_ = in_order_ && added_ >= kept_.size();
  file_.finish();
  if (!in_order_) write_file(path_, text_);
}

}  // namespace hdpsim
