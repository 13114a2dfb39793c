#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/decide/prices.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What figures of a month count.
inline constexpr double days_a_month = 30;

/// What it takes to train so many tokens as a run trains.
struct Training {
  double goodput = 1;                      ///< Share of the time in steps that are not lost to failures.
  double days = 0;                         ///< With lost time.
  std::optional<FactorRange> sure_days{};  ///< By the interval of the step time (Confidence), at the same goodput.
  double gpu_hours = 0;                    ///< Of all GPUs in all of these days.
  double tokens_per_month = 0;             ///< In days_a_month.
  std::optional<double> energy_mwh{};      ///< Of the site; empty without a power.
  std::optional<double> cost{};            ///< Of GPU-hours and electricity; empty without a price of either.
};

/// What the GPUs of a run cost, in one currency.
struct Rates {
  std::optional<double> gpu_hour{};  ///< Money.
  std::optional<double> watts{};     ///< Of a GPU with its share of the node.
  std::optional<double> kwh{};       ///< Money; only with `watts`.
  double pue = 1;                    ///< Power of the site over that of its nodes.
};

/// What it takes to train `tokens`, which are positive. Empty for a run that does not: it was refused, does not fit, or
/// loses all its time to failures.
[[nodiscard]] std::optional<Training> training_of(const Run& run, double tokens, const Rates& rates);

/// A run with what it takes, and the same over those of another run.
struct Decision {
  std::shared_ptr<const Run> run;
  std::optional<Training> training;
  struct Over {
    double days = 1;
    double gpu_hours = 1;
    std::optional<double> cost{};
  };
  std::optional<Over> over_first{};  ///< Empty where one of the two trains nothing.
};

/// One figure over the other; empty unless both train.
[[nodiscard]] std::optional<Decision::Over> over(const std::optional<Training>& training,
                                                 const std::optional<Training>& first);

/// The prices that hold for a study: those of a file, or of GPU-hours alone as its `tune.price` states them.
struct StudyPrices {
  std::optional<Prices> file{};
  std::optional<Price> tuned{};

  [[nodiscard]] std::string currency() const;
  /// InputError if the file prices other clusters only.
  [[nodiscard]] Rates rates(const ClusterSpec& cluster) const;
};

/// The runs of a study, each over that of the same plan at the first point.
[[nodiscard]] std::vector<Decision> decisions_of(const Study& study, std::vector<Run> runs, double tokens,
                                                 const StudyPrices& prices);

}  // namespace hdpsim
