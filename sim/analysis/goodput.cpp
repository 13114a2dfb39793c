#include "sim/analysis/goodput.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim {
namespace {

constexpr int drawn_parts = 100;
constexpr int attempts_per_part = 1000;
// The longest restart, in mean times between failures. A restart of this length begins e^3 = 20 times until one
// succeeds; a job with much longer restarts would draw failures for ever and never run a step.
constexpr double longest_restart = 3;

struct Spent {
  double worked_s = 0;  // on steps that count
  double all_s = 0;
  [[nodiscard]] double share() const { return worked_s / all_s; }
};

/// A job that works, writes checkpoints, fails and restarts.
class FailingJob {
 public:
  FailingJob(const FailureModel& model, double mtbf_s, double interval_s)
      : model_(model), mtbf_s_(mtbf_s), interval_s_(interval_s), failures_(model.seed, "node failures") {}

  // Runs `attempts` intervals, each of which ends with its checkpoint or with a failure.
  Spent run(int attempts) {
    Spent spent;
    for (int i = 0; i < attempts; ++i) {
      const double attempt_s = interval_s_ + model_.checkpoint_s;
      const double failure_s = time_to_failure();
      if (failure_s > attempt_s) {
        spent.worked_s += interval_s_;
        spent.all_s += attempt_s;
      } else {
        spent.all_s += failure_s + restart();
      }
    }
    return spent;
  }

 private:
  // An exponential distribution has no memory, so that each new attempt draws anew.
  double time_to_failure() { return -mtbf_s_ * std::log1p(-failures_.uniform()); }

  // A restart that fails begins again.
  double restart() {
    double all_s = 0;
    double failure_s = 0;
    while ((failure_s = time_to_failure()) <= model_.restart_s) all_s += failure_s;
    return all_s + model_.restart_s;
  }

  const FailureModel& model_;
  double mtbf_s_;
  double interval_s_;
  RandomStream failures_;
};

void simulate(const FailureModel& model, double interval_s, Goodput& goodput) {
  FailingJob job(model, goodput.mtbf_s, interval_s);
  Spent whole;
  double sum = 0;
  double squares = 0;
  for (int part = 0; part < drawn_parts; ++part) {
    const Spent spent = job.run(attempts_per_part);
    whole.worked_s += spent.worked_s;
    whole.all_s += spent.all_s;
    sum += spent.share();
    squares += spent.share() * spent.share();
  }
  goodput.simulated = whole.share();
  const double variance = std::max(0.0, squares / drawn_parts - (sum / drawn_parts) * (sum / drawn_parts));
  goodput.simulated_error = std::sqrt(variance / (drawn_parts - 1));
}

}  // namespace

double young_interval(double checkpoint_s, double mtbf_s) {
  return std::sqrt(2 * checkpoint_s * mtbf_s);
}

double daly_interval(double checkpoint_s, double mtbf_s) {
  const double ratio = checkpoint_s / (2 * mtbf_s);
  if (ratio >= 1) return mtbf_s;
  return young_interval(checkpoint_s, mtbf_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - checkpoint_s;
}

double expected_goodput(const FailureModel& model, double mtbf_s, double interval_s) {
  const double attempt = (interval_s + model.checkpoint_s) / mtbf_s;
  return interval_s / (mtbf_s * std::exp(model.restart_s / mtbf_s) * std::expm1(attempt));
}

Goodput goodput(const FailureModel& model, std::int64_t nodes, Duration step) {
  HDPSIM_CHECK(model.node_mtbf_s > 0 && model.checkpoint_s > 0 && nodes > 0 && step > Duration{},
               "{} nodes that fail every {} s, checkpoints of {} s", nodes, model.node_mtbf_s, model.checkpoint_s);
  Goodput goodput;
  goodput.mtbf_s = model.node_mtbf_s / static_cast<double>(nodes);
  goodput.young_s = young_interval(model.checkpoint_s, goodput.mtbf_s);
  goodput.daly_s = daly_interval(model.checkpoint_s, goodput.mtbf_s);
  const double wanted_s = model.interval_s.value_or(goodput.daly_s);
  goodput.every_steps = std::max<std::int64_t>(1, std::llround(wanted_s / step.seconds()));
  const double interval_s = static_cast<double>(goodput.every_steps) * step.seconds();
  goodput.share = expected_goodput(model, goodput.mtbf_s, interval_s);
  goodput.simulated = goodput.share;
  if (model.restart_s <= longest_restart * goodput.mtbf_s) simulate(model, interval_s, goodput);
  return goodput;
}

}  // namespace hdpsim
