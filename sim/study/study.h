#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/engine/world.h"
#include "sim/plan/planner.h"
#include "sim/study/catalog.h"
#include "sim/study/output_options.h"
#include "sim/study/outsize.h"
#include "sim/study/point.h"
#include "sim/study/replay_options.h"
#include "sim/study/study_plans.h"
#include "sim/study/tune_options.h"

namespace hdpsim {

/// A job that trains beside the main one, ready to run.
struct StudyNeighbour {
  std::string name;
  LoweringOptions lowering;
  BatchSourcePtr batches;
  std::unique_ptr<Planner> planner;
  BatchSourcePtr held_back;  ///< Null: it trains each batch as it comes.

  [[nodiscard]] Plan plan(std::int64_t step) const;
};

/// One point of a study, ready to run. All plans see the same data, and but for those that hold sequences back the same
/// batches.
struct StudyPoint {
  std::vector<RunInfo::Coordinate> coordinates;
  PointSpec spec;
  /// Points with the same number can share a World.
  std::size_t world = 0;
  BatchSourcePtr batches;
  WorkModel work;                                  ///< The planners' model of the time of a micro-batch.
  std::vector<std::unique_ptr<Planner>> planners;  ///< In the order of Study::plans.
  std::vector<BatchSourcePtr> held_back;           ///< In the same order; null: that plan trains `batches`.
  std::vector<StudyNeighbour> neighbours;          ///< In the order of the jobs of its worlds.
  std::string identity;                            ///< YAML of all values on which its steps depend.
  Outsize outsize;                                 ///< The likely cause if a step is too long to be simulated.

  /// What a plan trains.
  [[nodiscard]] const BatchSource& batches_of(std::size_t plan) const;
  /// The world of the simulated cluster and all jobs that train on it; each thread needs its own.
  [[nodiscard]] std::unique_ptr<World> make_world() const;
  /// The same with another cluster of the same nodes.
  [[nodiscard]] std::unique_ptr<World> make_world(const ClusterSpec& cluster) const;
  /// The same with the costs of families multiplied by `factors`.
  [[nodiscard]] std::unique_ptr<World> make_world(const FamilyFactors& factors) const;
  /// The same with another profile of its device.
  [[nodiscard]] std::unique_ptr<World> make_world(const DeviceProfile& profile) const;
};

/// A study, checked and ready to run: runs are all plans of the first point, then of the second, and so on.
struct Study {
  std::string name;
  Value resolved;  ///< With overrides and defaults put in, and with absolute paths.
  std::vector<StudyPlan> plans;
  std::optional<std::string> compare_to;  ///< The name of the baseline.
  bool tunes_baseline = false;            ///< Whether speed-ups are over the baseline on the best mesh for it.
  OutputOptions output;
  ReplayOptions replay;
  TuneOptions tune;
  std::vector<StudyPoint> points;

  [[nodiscard]] std::size_t run_count() const { return points.size() * plans.size(); }
  [[nodiscard]] RunInfo run_info(std::size_t point, std::size_t plan) const;
};

/// Reads a study. Paths in it are relative to its folder, those in overrides to the working folder. InputError with
/// every problem of the file, of the files that it names, and of every point of its sweep. `without` is applied after
/// the overrides: see apply_without().
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

}  // namespace hdpsim
