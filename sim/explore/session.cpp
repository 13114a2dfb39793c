#include "sim/explore/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/units.h"
#include "sim/document/document.h"
#include "sim/document/json.h"
#include "sim/explore/explore_page.h"
#include "sim/explore/session_lines.h"
#include "sim/report/study_report.h"
#include "sim/results/table.h"
#include "sim/run/best_static.h"
#include "sim/run/runner.h"
#include "sim/run/step.h"
#include "sim/run/study_coverage.h"
#include "sim/study/override.h"
#include "sim/study/study_notes.h"
#include "sim/tune/tuned_baseline.h"

namespace hdpsim {
namespace {

constexpr char dropped_folder[] = "dropped";

// Finished runs make a way back to earlier settings short. When they are many, all are dropped.
constexpr std::size_t most_kept_runs = 1000;

std::string text_of(const std::string& path) {
  Diagnostics found;
  const std::optional<std::string> text = read_text_file(path, found);
  found.throw_if_any();
  return *text;
}

// One point at a time, whatever the study or the settings sweep over.
std::vector<std::string> without_sweep(std::vector<std::string> settings) {
  settings.emplace_back("sweep=null");
  return settings;
}

// With many steps the figures of the first are shown for long; those of an eighth are much nearer to the mean of all,
// and so are those of 64 steps, however many there are: nobody waits longer for them.
constexpr std::int64_t many_steps = 16;
constexpr std::int64_t first_part = 8;
constexpr std::int64_t most_first_steps = 64;

/// Lets a study have its first steps alone for a while, without what takes all of them: intervals, and a baseline that
/// is searched for.
class FirstStepsOnly {
 public:
  FirstStepsOnly(Study& study, std::int64_t steps)
      : study_(study),
        spec_(study.points.front().spec),
        steps_(std::exchange(spec_.steps, steps)),
        uncertainty_(std::exchange(spec_.uncertainty, {})),
        compare_to_(study.compare_to) {
    if (study.tunes_baseline) study.compare_to.reset();
  }
  ~FirstStepsOnly() {
    spec_.steps = steps_;
    spec_.uncertainty = uncertainty_;
    study_.compare_to = compare_to_;
  }
  FirstStepsOnly(const FirstStepsOnly&) = delete;
  FirstStepsOnly& operator=(const FirstStepsOnly&) = delete;

 private:
  Study& study_;
  PointSpec& spec_;
  const std::int64_t steps_;
  const std::optional<UncertaintyOptions> uncertainty_;
  const std::optional<std::string> compare_to_;
};

// Steps of a part are those of the whole, unless that asks more of them.
KnownSteps* shared_steps(const Study& study, KnownSteps& known) {
  return study.points.front().spec.uncertainty ? nullptr : &known;
}

std::optional<std::vector<Run>> first_steps(Study& study, std::int64_t steps, const RunnerOptions& options) {
  const FirstStepsOnly only(study, steps);
  return run_study(study, options);
}

// A file name without folders, of characters that every system and YAML take as they are.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : std::filesystem::path(name).filename().string()) {
    const bool kept =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
    plain += kept ? c : '_';
  }
  constexpr std::size_t longest = 100;
  if (plain.size() > longest) plain.erase(0, plain.size() - longest);
  return plain.empty() || plain.front() == '.' ? "lengths" + plain : plain;
}

std::filesystem::path made(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace

ExploreSession::ExploreSession(ExploreOptions options)
    : options_(std::move(options)),
      text_(text_of(options_.study)),
      journal_(Journal::begin(made(options_.scratch) / journal_name, runs_title())),
      catalog_(options_.data) {
  (void)read({});
}

std::string ExploreSession::page(std::string_view nonce) {
  const Study study = read({});
  const std::lock_guard lock(mutex_);
  return explore_page(study, catalog_, options_.version, nonce);
}

std::string ExploreSession::take_lengths(const std::string& name, const std::string& bytes) {
  const std::lock_guard lock(mutex_);
  const std::filesystem::path folder = options_.scratch / dropped_folder / std::to_string(++files_);
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / plain_name(name);
  write_file(file, bytes);
  return json_line({{"file", file.string()}, {"name", file.filename().string()}});
}

void ExploreSession::answer(const std::string& question, AnswerStream& stream) {
  std::vector<std::string> settings;
  try {
    const Question asked = read_question(question);
    settings = asked.set;
    answer(asked, stream);
  } catch (const InputError& error) {
    stream.send(problems_line(error.diagnostics(), changed(settings)));
  } catch (const QuantityOverflow& error) {
    stream.send(
        failure_line(fmt::format("error: {}; are sizes, rates and times those that were meant?", error.what())));
  } catch (const CheckFailure& error) {
    stream.send(failure_line(fmt::format("bug: {}", error.what())));
  } catch (const std::exception& error) {
    stream.send(failure_line(fmt::format("error: {}", error.what())));
  }
}

void ExploreSession::answer(const Question& question, AnswerStream& stream) {
  KnownSteps known;
  std::optional<Study> study = begun(question, known, stream);
  if (!study || question.want == Question::Want::study) return;
  const OneAtATime::Turn turn(all_steps_, [&] { return stream.is_closed(); });
  if (!turn) return;
  if (journal_.size() >= most_kept_runs) {
    journal_ = Journal();  // closed before it begins anew
    journal_ = Journal::begin(options_.scratch / journal_name, runs_title());
  }
  if (question.want == Question::Want::answer && !send_part(*study, known, stream)) return;
  std::vector<std::string> notes = cold_step_warnings(*study);
  const auto runs = all_steps(*study, question, known, notes, stream);
  if (!runs) return;
  if (question.want == Question::Want::answer) return stream.send(answer_line(*study, *runs, options_.version, &notes));
  const Catalog catalog(options_.data);
  const auto page =
      study_page(*study, *runs, options_.version,
                 {.jobs = options_.jobs, .stop = [&] { return stream.is_closed(); }, .catalog = &catalog});
  if (page) stream.send(report_line(*page));
}

std::optional<Study> ExploreSession::begun(const Question& question, KnownSteps& known, AnswerStream& stream) {
  const auto stop = [&] { return stream.is_closed(); };
  const OneAtATime::Turn turn(first_steps_, stop);
  if (!turn) return std::nullopt;
  std::optional<Study> study = read(question.set);
  StudyPoint& point = study->points.front();
  require_simulable(point);
  if (question.want == Question::Want::study) {
    stream.send(study_line(study->resolved, (options_.scratch / dropped_folder).string()));
  } else if (question.want == Question::Want::answer) {
    const RunnerOptions how{
        .jobs = options_.jobs, .version = options_.version, .stop = stop, .known = shared_steps(*study, known)};
    const auto runs = first_steps(*study, 1, how);
    if (!runs) return std::nullopt;
    stream.send(answer_line(*study, *runs, options_.version, nullptr));
  }
  return study;
}

bool ExploreSession::send_part(Study& study, KnownSteps& known, AnswerStream& stream) const {
  const std::int64_t steps = study.points.front().spec.steps;
  if (steps < many_steps) return true;
  const RunnerOptions options{.jobs = options_.jobs,
                              .version = options_.version,
                              .stop = [&] { return stream.is_closed(); },
                              .known = shared_steps(study, known)};
  const auto runs = first_steps(study, std::min(steps / first_part, most_first_steps), options);
  if (runs) stream.send(answer_line(study, *runs, options_.version, nullptr));
  return runs.has_value();
}

std::optional<std::vector<Run>> ExploreSession::all_steps(const Study& study, const Question& question,
                                                          KnownSteps& known, std::vector<std::string>& notes,
                                                          AnswerStream& stream) {
  StudyCoverage coverage;
  const RunnerOptions how{.jobs = options_.jobs,
                          .journal = &journal_,
                          .version = options_.version,
                          .stop = [&] { return stream.is_closed(); },
                          .report = [&](const Progress& progress) { stream.send(progress_line(progress)); },
                          .cover = [&](const auto& profile, const Coverage& part) { coverage.add(profile, part); },
                          .known = shared_steps(study, known)};
  auto runs = run_study(study, how);
  if (!runs || !compare_with_tuned(study, question, stream, *runs)) return std::nullopt;
  const bool is_asked = question.want == Question::Want::answer;
  if (is_asked && has_best_static(study)) stream.send(answer_line(study, *runs, options_.version, nullptr));
  Catalog catalog(options_.data);  // of its own, so that other questions are read meanwhile
  if (!compare_with_best_static(study, catalog, how, *runs)) return std::nullopt;
  const RunAdvice advice = advice_in_need(
      study, *runs, {.catalog = catalog, .jobs = options_.jobs, .stop = [&] { return stream.is_closed(); }});
  for (const std::string& note : result_notes(*runs, advice)) notes.push_back(note);
  for (const std::string& warning : coverage.warnings(study, *runs)) notes.push_back(warning);
  return runs;
}

// The search has a catalog of its own, so that other questions are read meanwhile.
bool ExploreSession::compare_with_tuned(const Study& study, const Question& question, AnswerStream& stream,
                                        std::vector<Run>& runs) {
  if (!study.tunes_baseline) return true;
  Diagnostics none;
  const Value root = tuning_root(parse_document(options_.study, text_, none), without_sweep(question.set));
  Catalog catalog(options_.data);
  const TuneRun search{.jobs = options_.jobs,
                       .version = options_.version,
                       .stop = [&] { return stream.is_closed(); },
                       .report = [&](const TuneProgress& progress) { stream.send(progress_line(progress)); }};
  return hdpsim::compare_with_tuned(study, root, catalog, BaselineRun{search, &journal_}, runs);
}

Study ExploreSession::read(const std::vector<std::string>& settings) {
  const std::lock_guard lock(mutex_);
  return parse_study(options_.study, text_, without_sweep(settings), catalog_);
}

// The document in which problems have their places.
Value ExploreSession::changed(const std::vector<std::string>& settings) const {
  Diagnostics found_before;
  Value root = parse_document(options_.study, text_, found_before);
  apply_overrides(root, without_sweep(settings), found_before);
  return root;
}

}  // namespace hdpsim
