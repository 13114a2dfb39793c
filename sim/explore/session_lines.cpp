#include "sim/explore/session_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/document/json.h"
#include "sim/results/result_files.h"

namespace hdpsim {
namespace {

// In the order of Question::Want.
constexpr std::array<std::string_view, 3> wants = {"answer", "study", "report"};

bool is_at(const Position& position, const Position& place) {
  return position.line == place.line && position.column == place.column && position.file == place.file;
}

void search(const Value& value, const std::string& path, const Position& place, std::string& found) {
  if (is_at(value.position, place)) found = path;
  const std::string before = path.empty() ? "" : path + ".";
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    search(value.items[i], fmt::format("{}{}", before, i), place, found);
  }
  for (const auto& [key, position, of] : value.entries) {
    if (is_at(position, place)) found = before + key;
    search(of, before + key, place, found);
  }
}

std::string place_text(const Position& place) {
  return place.file.empty() ? "" : fmt::format("{}:{}:{}", place.file, place.line, place.column);
}

template <class Count>
double share_of(Count done, Count all) {
  return all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
}

}  // namespace

Question read_question(const std::string& text) {
  const Json json = parsed_json(text);
  const InputError wrong("the page has asked for something that this program does not know", "load it again");
  if (!json.is_object() || !json.contains("want") || !json.contains("set") || !json["set"].is_array()) throw wrong;
  const auto want = std::find(wants.begin(), wants.end(), json["want"]);
  if (want == wants.end()) throw wrong;
  Question question{static_cast<Question::Want>(want - wants.begin()), {}};
  for (const auto& assignment : json["set"]) {
    if (!assignment.is_string()) throw wrong;
    question.set.push_back(assignment.get<std::string>());
  }
  return question;
}

std::string path_of_place(const Value& document, const Position& place) {
  std::string found;
  search(document, "", place, found);
  return found;
}

std::string answer_line(const Study& study, const std::vector<Run>& runs, std::string_view version,
                        const std::vector<std::string>* notes) {
  const RunInfo info = study.run_info(0, 0);
  return json_line({{"kind", "answer"},
                    {"final", notes != nullptr},
                    {"steps", study.points.front().spec.steps},
                    {"setting", info.setting},
                    {"limits_gb", {{"device", info.device_memory.gigabytes()}, {"host", info.host_memory.gigabytes()}}},
                    {"notes", notes != nullptr ? *notes : std::vector<std::string>{}},
                    {"result", parsed_json(result_json(study.resolved, version, runs))}});
}

std::string progress_line(const Progress& progress) {
  return json_line({{"kind", "progress"},
                    {"share", share_of(progress.steps_done, progress.steps)},
                    {"text", fmt::format("{} of {} steps simulated", progress.steps_done, progress.steps)}});
}

std::string progress_line(const TuneProgress& progress) {
  return json_line({{"kind", "progress"},
                    {"share", share_of(progress.done(), progress.most())},
                    {"text", fmt::format("the best mesh of the baseline, {}: {} of {} candidates left", progress.stage,
                                         progress.left, progress.candidates)}});
}

std::string problems_line(const Diagnostics& found, const Value& study) {
  Json problems = Json::array();
  for (const Diagnostic& problem : found.sorted()) {
    problems.push_back({{"path", path_of_place(study, problem.position)},
                        {"place", place_text(problem.position)},
                        {"message", problem.message},
                        {"help", problem.help}});
  }
  return json_line({{"kind", "problems"}, {"text", found.text()}, {"problems", problems}});
}

std::string study_line(const Value& resolved, const std::string& dropped) {
  Value study = resolved;
  std::erase_if(study.entries, [](const Value::Entry& entry) { return entry.key == "sweep"; });
  Json json = {{"kind", "study"}, {"dropped", Json()}};
  Value* data = study.find("data");
  Value* lengths = data == nullptr ? nullptr : data->find("lengths");
  Value* file = lengths == nullptr ? nullptr : lengths->find("file");
  if (file != nullptr && file->text.starts_with(dropped)) {
    file->text = std::filesystem::path(file->text).filename().string();
    json["dropped"] = file->text;
  }
  json["yaml"] = to_yaml(study);
  return json_line(json);
}

std::string report_line(const std::string& page) {
  return json_line({{"kind", "report"}, {"html", page}});
}

std::string failure_line(const std::string& text) {
  return json_line({{"kind", "failed"}, {"text", text}});
}

}  // namespace hdpsim
