#include "sim/study/study_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/base/first_problems.h"
#include "sim/base/printable.h"
#include "sim/base/text.h"
#include "sim/document/key_table.h"
#include "sim/document/values.h"
#include "sim/plan/plan_file.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_plans = 1000;

std::string name_in(const Value& entry) {
  if (names_plan_files(entry)) return name_of_plan_files(entry);
  return entry.is_map() && entry.entries.size() == 1 ? entry.entries.front().key : entry.text;
}

StudyPlan read_plan_entry(std::string name, const Value& entry, Diagnostics& diagnostics) {
  if (!names_plan_files(entry)) return {std::move(name), entry, read_policy(entry, diagnostics), nullptr};
  StudyPlan plan{std::move(name), entry, std::nullopt, read_plan_files(entry, diagnostics)};
  if (plan.given != nullptr) plan.policy = given_policy(plan.name, plan.given, entry);
  return plan;
}

}  // namespace

std::string StudyPlan::identity() const {
  return given == nullptr ? to_yaml(entry) : fmt::format("files: {:016x}\n", given->fingerprint);
}

Value with_option(const Value& plan, std::string_view option, Value value) {
  Value entry = plan.is_map() ? plan : Value::map(plan.position);
  if (!plan.is_map()) entry.set(plan.text, Value::map(plan.position));
  Value& options = entry.entries.front().value;
  if (!options.is_map()) options = Value::map(plan.position);
  options.set(option, std::move(value));
  return entry;
}

std::vector<StudyPlan> read_study_plans(const Value& plans, Diagnostics& diagnostics) {
  if (!plans.is_sequence() || plans.items.empty()) {
    diagnostics.error(plans.position, "the plans must be a list that is not empty",
                      "write plans: [static, hdp-balance]");
    return {};
  }
  if (plans.items.size() > most_plans) {
    diagnostics.error(plans.position, fmt::format("{} plans are more than {}", plans.items.size(), most_plans),
                      "several studies share them");
    return {};
  }
  std::map<std::string, int> uses;
  for (const Value& entry : plans.items) ++uses[name_in(entry)];
  std::vector<StudyPlan> read;
  std::set<std::string> names;
  for (const Value& entry : plans.items) {
    std::string name = name_in(entry);
    const bool of_files = names_plan_files(entry);
    if (uses[name] > 1 && !of_files && entry.is_map() && !entry.entries.empty())
      name = fmt::format("{} {}", name, line_of(entry.entries.front().value));
    if (!names.insert(name).second) {
      diagnostics.error(entry.position, fmt::format("the plan '{}' is stated a second time here", name),
                        of_files ? "call it otherwise: {file: plans/*.json, name: mine}" : "remove one of them");
    }
    read.push_back(read_plan_entry(std::move(name), entry, diagnostics));
  }
  return read;
}

namespace {

namespace fs = std::filesystem;

// More steps than anybody plans by hand; all plans of a study are in memory.
constexpr std::size_t most_files = 100'000;

/// An entry as written.
struct PlanFilesText {
  const Value* file = nullptr;
  std::string name;
};

const KeyTable<PlanFilesText>& plan_file_table() {
  static const auto made = [] {
    KeyTable<PlanFilesText> keys("an entry of plan files");
    keys.kept(
        {"file",
         either_shape({shape_of(KeyShape::Kind::text), list_shape(shape_of(KeyShape::Kind::text))}),
         "",
         "plans that were made elsewhere, one file for each step, as `hdpsim plan` and `hdpsim import-plan` write "
         "them: a path, a list of paths, or a pattern such as `plans/*.json`",
         {.required = true, .see = "plans-from-outside"}},
        &PlanFilesText::file);
    keys.text("name", at(&PlanFilesText::name), "how results call these plans",
              {.otherwise = "the file without its ending; for several files, their folder"});
    return keys;
  }();
  return made;
}

std::vector<const Value*> paths_of(const Value& file) {
  std::vector<const Value*> paths;
  if (file.is_scalar()) paths.push_back(&file);
  for (const Value& item : file.items) paths.push_back(&item);
  return paths;
}

bool is_pattern(std::string_view name) {
  return name.find_first_of("*?") != std::string_view::npos;
}

// Goes back to the last star when what follows it does not match, so that the time is at most the product of lengths.
bool matches(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;
  std::size_t in_name = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind_star = in_name;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == name[in_name])) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++behind_star;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == std::string_view::npos;
}

// The files of a folder that a pattern describes, sorted.
std::vector<std::string> files_like(const fs::path& pattern) {
  std::vector<std::string> files;
  std::error_code unreadable;
  const fs::path folder = pattern.parent_path().empty() ? fs::path(".") : pattern.parent_path();
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const fs::path name = entry.path().filename();
    if (entry.is_regular_file(unreadable) && matches(pattern.filename().string(), name.string())) {
      files.push_back((pattern.parent_path() / name).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Reads the plans of one entry.
class PlanFilesReader {
 public:
  explicit PlanFilesReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const Value& file) {
    if (!file.is_scalar() && !file.is_sequence()) {
      diagnostics_.error(file.position,
                         fmt::format("'file' is a path or a list of paths, found {}", kind_name(file.kind)),
                         "write file: plans/*.json");
    } else if (paths_of(file).empty()) {
      diagnostics_.error(file.position, "the list of plans is empty", "write file: plans/*.json");
    }
    for (const Value* path : paths_of(file)) read_path(*path);
  }

  [[nodiscard]] GivenPlans take() {
    std::uint64_t hash = fingerprint("plans");
    for (const auto& [step, text] : fingerprints_) hash = fingerprint(fmt::format("{} {:016x}", step, text), hash);
    plans_.fingerprint = hash;
    return std::move(plans_);
  }

 private:
  void read_path(const Value& path) {
    if (!hdpsim::read<std::string>(path, diagnostics_)) return;
    const fs::path where = path_of(path);
    if (!is_pattern(where.filename().string()) || is_there(where)) {
      if (!is_there(where)) {
        diagnostics_.error(path.position, fmt::format("there is no file {}", where.string()));
        return;
      }
      return read_plan_of(where.string(), path.position);
    }
    const std::vector<std::string> files = files_like(where);
    if (files.empty()) {
      diagnostics_.error(path.position, fmt::format("there is no file {}", where.string()),
                         "* and ? match characters in the name of a file, not of a folder");
    }
    for (const std::string& file : files) read_plan_of(file, path.position);
  }

  void read_plan_of(const std::string& file, const Position& entry) {
    if (++files_ > most_files) {
      if (files_ == most_files + 1) diagnostics_.error(entry, fmt::format("more than {} plans", most_files));
      return;
    }
    const auto text = read_text_file(file, diagnostics_);
    if (!text) return;
    std::optional<Plan> plan = read_plan(file, *text, diagnostics_);
    if (!plan) return;
    check(file, *text, *plan);
    const std::int64_t step = plan->step;
    fingerprints_[step] = fingerprint(*text);
    const auto [other, is_new] = plans_.by_step.try_emplace(step, GivenPlan{file, std::move(*plan)});
    if (is_new) return;
    diagnostics_.error({file, 0, 0}, fmt::format("this is a plan for step {}, as is {}", step, other->second.file),
                       "a plan states its 'step', from 0");
  }

  // What a rank holds is for the study to say.
  void check(const std::string& file, const std::string& text, Plan& plan) {
    const std::int64_t capacity = std::exchange(plan.capacity, std::numeric_limits<std::int64_t>::max());
    report_unsound(plan, file, text, diagnostics_);
    plan.capacity = capacity;
  }

  Diagnostics& diagnostics_;
  GivenPlans plans_;
  std::map<std::int64_t, std::uint64_t> fingerprints_;  // hashes of the texts, by step
  std::size_t files_ = 0;
};

// "4, 5, 6 and 43 more"
std::string some_of(const std::vector<std::int64_t>& steps) {
  const std::size_t told = std::min<std::size_t>(steps.size(), 3);
  const std::string more = steps.size() > told ? fmt::format(" and {} more", steps.size() - told) : "";
  return fmt::format("{}{}", joined(std::span(steps).first(told), ", "), more);
}

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void check_steps(const GivenPlans& plans, const Position& entry, std::int64_t steps, Diagnostics& diagnostics) {
  std::vector<std::int64_t> missing;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (!plans.by_step.contains(step)) missing.push_back(step);
  }
  std::vector<std::int64_t> others;
  for (const auto& [step, given] : plans.by_step) {
    if (step >= steps) others.push_back(step);
  }
  const std::string count = fmt::format("{} for the study's {}", counted(plans.by_step.size(), "plan"),
                                        counted(static_cast<std::size_t>(steps), "step"));
  if (!missing.empty()) {
    diagnostics.error(entry, fmt::format("{}: none for step {}", count, some_of(missing)),
                      "give one file for each step, which states its 'step' from 0, or change data.steps");
  }
  if (!others.empty()) {
    diagnostics.error(entry, fmt::format("{}: step {} is none of them", count, some_of(others)),
                      "give one file for each step, which states its 'step' from 0, or change data.steps");
  }
}

}  // namespace

bool names_plan_files(const Value& entry) {
  return entry.find("file") != nullptr;
}

KeyShape plan_files_shape() {
  return map_shape(plan_file_table().texts());
}

std::string name_of_plan_files(const Value& entry) {
  const Value* name = entry.find("name");
  if (name != nullptr && name->is_scalar()) return printable(name->text);
  const std::vector<const Value*> paths = paths_of(*entry.find("file"));
  if (paths.empty()) return "";
  const fs::path first = fs::absolute(path_of(*paths.front())).lexically_normal();
  const bool is_one = paths.size() == 1 && !is_pattern(first.filename().string());
  return printable((is_one ? first.stem() : first.parent_path().filename()).string());
}

std::shared_ptr<const GivenPlans> read_plan_files(const Value& entry, Diagnostics& diagnostics) {
  Diagnostics found;
  PlanFilesText text;
  (void)plan_file_table().read(entry, text, found);
  PlanFilesReader reader(found);
  if (text.file != nullptr) reader.read(*text.file);
  const std::string name = name_of_plan_files(entry);
  if (name.empty() && found.empty()) {
    found.error(entry.position, "these plans have no name", "write {file: plans/*.json, name: mine}");
  } else if (!policy_meaning(std::string_view(name).substr(0, name.find(' '))).empty()) {
    found.error(entry.position, fmt::format("these plans have the name of a policy, '{}'", name),
                "call them otherwise: {file: plans/*.json, name: mine}");
  }
  diagnostics.append(found);
  return found.empty() ? std::make_shared<const GivenPlans>(reader.take()) : nullptr;
}

void check_plan_files(const GivenPlans& plans, const Position& entry, std::int64_t steps, const BatchSource& batches,
                      Diagnostics& diagnostics) {
  check_steps(plans, entry, steps, diagnostics);
  FirstProblems others(diagnostics);
  for (const auto& [step, given] : plans.by_step) {
    if (step < 0 || step >= steps) continue;
    const auto difference = difference_of_batches(given.plan, batches.step(step));
    if (!difference) continue;
    others.error({given.file, 0, 0},
                 fmt::format("this is not the batch of step {} of the study: {}", step, *difference),
                 "hdpsim plan writes a plan with the study's batch, its 'sequences'");
  }
  others.finish(entry, "plans of other batches");
}

}  // namespace hdpsim
