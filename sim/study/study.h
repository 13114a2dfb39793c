#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/study/catalog.h"
#include "sim/study/override.h"
#include "sim/study/production_options.h"
#include "sim/study/study_options.h"
#include "sim/study/study_plans.h"
#include "sim/study/study_point.h"

namespace hdpsim {

/// A study, checked and ready to run: runs are all plans of the first point, then of the second, and so on.
struct Study {
  std::string name;
  Value resolved;               ///< With overrides and defaults put in, and with absolute paths.
  std::vector<MovedKey> moved;  ///< Keys that its file states where older studies did.
  std::vector<StudyPlan> plans;
  std::optional<std::string> compare_to;  ///< The name of the baseline.
  bool tunes_baseline = false;            ///< Whether speed-ups are over the baseline on the best mesh for it.
  OutputOptions output;
  ReplayOptions replay;
  std::optional<ProductionOptions> production;
  TuneOptions tune;
  std::vector<StudyPoint> points;

  [[nodiscard]] std::size_t run_count() const { return points.size() * plans.size(); }
  [[nodiscard]] RunInfo run_info(std::size_t point, std::size_t plan) const;
};

/// A study as its user wrote it, read once; it can be resolved with one set of changes after another.
class WrittenStudy {
 public:
  /// `problems` are those of the text. `texts` has, by name, what is no file, for messages.
  WrittenStudy(Value root, Diagnostics problems, std::map<std::string, std::string> texts = {});

  /// The study, with paths relative to its folder; those in overrides are relative to the working folder. InputError
  /// with every problem of its text, of the files that it names, and of every point of its sweep. `without` is applied
  /// after the overrides: see apply_without().
  [[nodiscard]] Study resolved(const std::vector<std::string>& overrides, Catalog& catalog,
                               const std::vector<std::string>& without = {}) const;

 private:
  Value root_;
  Diagnostics problems_;
  std::map<std::string, std::string> texts_;
};

/// Reads a file and resolves it: see WrittenStudy::resolved().
[[nodiscard]] Study load_study(const std::string& path, const std::vector<std::string>& overrides, Catalog& catalog,
                               const std::vector<std::string>& without = {});
/// The same for a text that is not a file. Problems call it `name`, and paths in it are relative to the folder of
/// `name`.
[[nodiscard]] Study parse_study(const std::string& name, const std::string& text,
                                const std::vector<std::string>& overrides, Catalog& catalog,
                                const std::vector<std::string>& without = {});
/// The same for a study without a file of its own; its paths are relative to the files of their positions. Who reads
/// many of them is not told what would leave room.
[[nodiscard]] Study read_study(Value root, Catalog& catalog);

/// The plan of a study that --plan names; if `name` is empty, the only plan. InputError if there is no such plan, or if
/// there are several to choose from.
[[nodiscard]] std::size_t chosen_plan(const Study& study, const std::string& name);

/// The point of a study that --point names, counted from 0. InputError if it does not exist.
[[nodiscard]] const StudyPoint& chosen_point(const Study& study, std::int64_t point);

}  // namespace hdpsim
