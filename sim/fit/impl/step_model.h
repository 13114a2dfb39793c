#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/fit/fit_source.h"
#include "sim/fit/robust_fit.h"
#include "sim/profile/physical_parameters.h"
#include "sim/validate/validation_study.h"

namespace hdpsim {

/// The user has stopped the fit.
struct FitStopped {};

/// One measured figure of a set that can be predicted.
struct MeasuredFigure {
  std::size_t part = 0;  ///< The set that it is of.
  std::size_t row = 0;   ///< Of the case in this set.
  std::string quantity;
  std::string unit;
  double measured = 0;
  bool is_rate = false;      ///< More is faster.
  double step_s = 0;         ///< The measured time of a step.
  double micro_batches = 1;  ///< Of a rank in a step, about.
  std::string model;         ///< What tells its model, mesh and size from others.
  std::string mesh;
  std::string size;
  std::string identity;  ///< Figures of one job have the same.
};

/// Rows of sets and what a profile with changed parameters predicts of them. Memory and speed-ups do not count: hardly
/// any parameter moves them.
class StepModel {
 public:
  struct Source {
    std::vector<FitSource> sets;  ///< At least one (checked).
    std::string data_folder;
    StudyChanges changes;
    RunnerOptions running;
  };
  /// InputError with every problem of a set, or if the rows have several profiles.
  explicit StepModel(Source source);

  [[nodiscard]] const std::vector<FitSource>& sets() const { return source_.sets; }
  /// The case of a figure, its place among the cases of all sets, and its name: with that of its set if there are
  /// several sets.
  [[nodiscard]] const ValidationCase& case_of(std::size_t figure) const;
  [[nodiscard]] std::size_t place_of(std::size_t figure) const;
  [[nodiscard]] std::string name_of(std::size_t figure) const;
  [[nodiscard]] const DeviceProfile& profile() const { return profile_; }  ///< Where the fit starts.
  /// In the order of the sets.
  [[nodiscard]] const std::vector<MeasuredFigure>& figures() const { return figures_; }
  /// Why rows have no figure here: "12 x pipelines cannot be ...".
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

  /// The predictions of some figures, by a profile in which the parameters have these values. FitStopped.
  [[nodiscard]] std::vector<double> predicted(const std::vector<const PhysicalParameter*>& parameters,
                                              const std::vector<double>& values,
                                              const std::vector<std::size_t>& figures) const;

 private:
  void find_profile(const std::vector<ValidationStudy>& parts, const std::vector<DeviceProfile>& read);
  void add_figures(std::size_t part, const ValidationStudy& validation);
  void predict(std::size_t part, Catalog& catalog, const std::vector<std::size_t>& figures,
               std::vector<double>& predicted) const;

  Source source_;
  DeviceProfile profile_;
  std::vector<MeasuredFigure> figures_;
  std::vector<std::string> left_out_;
};

/// A copy of the profile in which the parameters have these values. Figures that stay keep their sources.
[[nodiscard]] DeviceProfile with_values(DeviceProfile profile, const std::vector<const PhysicalParameter*>& parameters,
                                        const std::vector<double>& values);

/// ln(predicted / measured) of a time, ln(measured / predicted) of a rate: above 0 where the prediction is too slow.
[[nodiscard]] double log_ratio(const MeasuredFigure& figure, double predicted);

/// Coordinates of a fit and values of its parameters.
class ParameterScale {
 public:
  /// The scale of a parameter for the rows of a fit. The profile must have what it changes (checked).
  ParameterScale(const PhysicalParameter& parameter, const DeviceProfile& profile,
                 const std::vector<const MeasuredFigure*>& figures);

  [[nodiscard]] const FitCoordinate& coordinate() const { return coordinate_; }
  [[nodiscard]] double value(double coordinate) const;

 private:
  bool is_factor_;
  double unit_ = 1;  ///< Of a coordinate that is no logarithm.
  FitCoordinate coordinate_;
};

}  // namespace hdpsim
