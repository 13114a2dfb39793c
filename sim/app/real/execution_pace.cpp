#include "sim/app/real/execution_pace.h"

namespace hdpsim::app {

ExecutionPace::ExecutionPace(const DeviceProfile& profile, DeviceKind kind)
    : meter_(kind == DeviceKind::cpu ? calib::make_cpu_device() : calib::make_cuda_device(0), profile),
      noise_(profile.samples.noise) {}

std::vector<calib::FamilyDrift> ExecutionPace::begin() {
  std::vector<std::vector<calib::PaceRatio>> rounds;
  while (std::ssize(rounds) < calib::least_drift_rounds) rounds.push_back(meter_.ratios());
  after_ = calib::factors_of(rounds.back());
  return calib::drift_of(rounds, noise_);
}

void ExecutionPace::read() {
  before_ = after_;
  after_ = meter_.read();
}

FamilyFactors ExecutionPace::of_last_run() const {
  FamilyFactors mean;
  for (std::size_t i = 0; i < cost_families; ++i) {
    const auto family = static_cast<CostFamily>(i);
    mean[family] = (before_[family] + after_[family]) / 2;
  }
  return mean;
}

}  // namespace hdpsim::app
