#include "sim/decide/decision.h"

#include <utility>

namespace hdpsim {
namespace {

constexpr double day_s = 86400;

// Tokens a second that stay trained; empty of a run that trains none.
std::optional<double> lasting_rate(const Run& run) {
  if (run.is_refused() || !run.metrics.fits) return std::nullopt;
  const double goodput = run.metrics.goodput ? run.metrics.goodput->share : 1;
  const double rate = goodput * run.metrics.tokens_per_s;
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

}  // namespace

std::optional<Training> training_of(const Run& run, double tokens, const Rates& rates) {
  const std::optional<double> rate = lasting_rate(run);
  if (!rate) return std::nullopt;
  Training training;
  training.goodput = *rate / run.metrics.tokens_per_s;
  training.days = tokens / *rate / day_s;
  if (const auto& sure = run.metrics.confidence) {
    const double days = training.days / run.metrics.step_time_s.mean;
    training.sure_days = FactorRange{days * sure->step_time_s.least, days * sure->step_time_s.most};
  }
  training.gpu_hours = 24 * training.days * static_cast<double>(run.info.gpus);
  training.tokens_per_month = days_a_month * day_s * *rate;
  if (rates.watts) training.energy_mwh = training.gpu_hours * *rates.watts * rates.pue / 1e6;
  if (rates.gpu_hour || (rates.kwh && rates.watts)) {
    training.cost =
        rates.gpu_hour.value_or(0) * training.gpu_hours + rates.kwh.value_or(0) * 1e3 * training.energy_mwh.value_or(0);
  }
  return training;
}

std::optional<Decision::Over> over(const std::optional<Training>& training, const std::optional<Training>& first) {
  if (!training || !first) return std::nullopt;
  Decision::Over over{training->days / first->days, training->gpu_hours / first->gpu_hours};
  if (training->cost && first->cost) over.cost = *training->cost / *first->cost;
  return over;
}

std::string StudyPrices::currency() const {
  if (file) return file->currency;
  return tuned ? tuned->currency : "";
}

Rates StudyPrices::rates(const ClusterSpec& cluster) const {
  if (!file) return {.gpu_hour = tuned ? std::optional(tuned->amount) : std::nullopt};
  const HardwarePrice& found = price_for(*file, cluster);
  const auto amount = [](const std::optional<Price>& price) {
    return price ? std::optional(price->amount) : std::nullopt;
  };
  return {amount(found.price), found.watts_of_gpu(cluster.devices_per_node), amount(file->electricity), file->pue};
}

std::vector<Decision> decisions_of(const Study& study, std::vector<Run> runs, double tokens,
                                   const StudyPrices& prices) {
  std::vector<Decision> decisions;
  for (Run& each : runs) {
    const std::size_t index = decisions.size();
    const StudyPoint& point = study.points.at(each.info.point);
    Decision& decision = decisions.emplace_back();
    decision.run = std::make_shared<const Run>(std::move(each));
    decision.training = training_of(*decision.run, tokens, prices.rates(point.spec.cluster));
    decision.over_first = over(decision.training, decisions.at(index % study.plans.size()).training);
  }
  return decisions;
}

}  // namespace hdpsim
