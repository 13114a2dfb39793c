#include "sim/compare/timeline_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/diagnostic.h"
#include "sim/compare/timeline_file.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::streamsize longest_title = 1 << 20;  // a longer first line is cut, which makes it none

TimelineTitle title_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(longest_title, '\0');
  if (!file.getline(line.data(), longest_title) && !fs::is_regular_file(path)) {
    throw InputError(Position{path.string(), 0, 0}, "there is no such file");
  }
  line.resize(std::strlen(line.data()));
  return read_timeline_title(path.string(), line);
}

// Sorts measured-0-2 before measured-0-10.
bool runs_before(const fs::path& a, const fs::path& b) {
  const auto key = [](const fs::path& path) { return std::pair(path.native().size(), path.native()); };
  return key(a) < key(b);
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end(), runs_before);
  return entries;
}

// The timelines that `hdpsim execute` has written there.
std::vector<fs::path> timelines_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& path : sorted_entries(folder)) {
    const std::string name = path.filename().string();
    const bool is_timeline = name.starts_with("predicted-") || name.starts_with("measured-");
    if (is_timeline && name.ends_with(".jsonl")) files.push_back(path);
  }
  return files;
}

std::string step_text(const TimelineTitle& title) {
  return fmt::format("step {} of '{}'", title.step, title.plan);
}

std::vector<StepFiles> steps_of(const std::vector<fs::path>& files) {
  std::map<std::pair<std::string, std::int64_t>, StepFiles> steps;
  std::map<std::pair<std::string, std::int64_t>, TimelineTitle> titles;
  Diagnostics diagnostics;
  for (const fs::path& file : files) {
    const TimelineTitle title = title_in(file);
    const std::pair key(title.plan, title.step);
    titles[key] = title;
    StepFiles& step = steps[key];
    if (title.source != "predicted") {
      step.measured.push_back(file);
    } else if (step.predicted.empty()) {
      step.predicted = file;
    } else {
      diagnostics.error({file.string(), 0, 0}, fmt::format("a second prediction of {}; the first is {}",
                                                           step_text(title), step.predicted.string()));
    }
  }
  std::vector<StepFiles> found;
  for (auto& [key, step] : steps) {
    const std::string name = step_text(titles[key]);
    if (step.predicted.empty()) {
      diagnostics.error({step.measured[0].string(), 0, 0}, fmt::format("there is no prediction of {}", name));
    } else if (step.measured.empty()) {
      diagnostics.error({step.predicted.string(), 0, 0}, fmt::format("{} was not measured", name));
    }
    found.push_back(std::move(step));
  }
  diagnostics.throw_if_any();
  return found;
}

std::vector<TimelineSet> sets_in(const fs::path& folder) {
  if (const std::vector<fs::path> files = timelines_in(folder); !files.empty()) return {{"", steps_of(files)}};
  std::vector<TimelineSet> sets;
  std::vector<fs::path> entries = sorted_entries(folder);
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (!fs::is_directory(entry)) continue;
    if (const std::vector<fs::path> files = timelines_in(entry); !files.empty()) {
      sets.push_back({entry.filename().string(), steps_of(files)});
    }
  }
  if (sets.empty()) {
    throw InputError(Position{folder.string(), 0, 0}, "there are no timelines in this folder",
                     "hdpsim execute STUDY --out FOLDER writes them");
  }
  return sets;
}

}  // namespace

std::vector<TimelineSet> find_timelines(const std::vector<std::string>& paths) {
  if (paths.size() == 1 && fs::is_directory(paths[0])) return sets_in(paths[0]);
  if (paths.size() == 1) {
    throw InputError(Position{paths[0], 0, 0}, "one timeline has nothing to be compared with",
                     "name the folder of hdpsim execute, or a prediction and what was measured");
  }
  if (paths.size() == 2) return {{"", {{paths[0], {paths[1]}}}}};
  return {{"", steps_of({paths.begin(), paths.end()})}};
}

}  // namespace hdpsim
