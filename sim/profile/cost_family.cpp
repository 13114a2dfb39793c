#include "sim/profile/cost_family.h"

#include <algorithm>
#include <cmath>

namespace hdpsim {
namespace {

double quantile_of(const std::vector<double>& deciles, double p) {
  const double place = p * static_cast<double>(deciles.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), deciles.size() - 1);
  const std::size_t above = std::min(below + 1, deciles.size() - 1);
  return deciles[below] + (place - static_cast<double>(below)) * (deciles[above] - deciles[below]);
}

void add(const FitQuality& quality, CostFamily family, FamilyErrors& errors) {
  if (quality.residual_deciles.empty()) return;
  const auto samples = static_cast<double>(std::max<std::int64_t>(1, quality.samples));
  errors[static_cast<std::size_t>(family)].residuals.push_back({samples, quality.residual_deciles});
}

}  // namespace

std::string_view cost_family_name(CostFamily family) {
  constexpr std::array<std::string_view, cost_families> names = {
      "attention_forward", "attention_backward", "gemm", "memory_bound", "messages", "collectives", "host_copies"};
  return names.at(static_cast<std::size_t>(family));
}

double FamilyError::factor(double fit, double quantile, double normal) const {
  if (cv > 0) {
    const double variance = std::log1p(cv * cv);
    return std::exp(std::sqrt(variance) * normal - variance / 2);
  }
  double all = 0;
  for (const Residuals& each : residuals) all += each.weight;
  double left = fit * all;
  for (const Residuals& each : residuals) {
    left -= each.weight;
    if (left < 0) return 1 / (1 + quantile_of(each.deciles, quantile));
  }
  return 1;
}

double FamilyError::deviation() const {
  if (cv > 0) return cv;
  constexpr int grid = 100;
  double weight = 0;
  double sum = 0;
  double squares = 0;
  for (const Residuals& each : residuals) {
    for (int i = 0; i < grid; ++i) {
      const double factor = 1 / (1 + quantile_of(each.deciles, (i + 0.5) / grid));
      weight += each.weight;
      sum += each.weight * factor;
      squares += each.weight * factor * factor;
    }
  }
  if (weight == 0) return 0;
  return std::sqrt(std::max(0.0, squares / weight - (sum / weight) * (sum / weight)));
}

FamilyErrors residual_errors(const DeviceProfile& profile, std::int64_t head_dim) {
  FamilyErrors errors;
  const ProfileFits& fits = profile.fits;
  const auto has_dimension = [&](const AttentionFit& fit) { return fit.head_dim == head_dim; };
  const bool any = std::any_of(fits.attention.begin(), fits.attention.end(), has_dimension);
  for (const AttentionFit& fit : fits.attention) {
    if (any && !has_dimension(fit)) continue;
    const CostFamily family = fit.backward ? CostFamily::attention_backward : CostFamily::attention_forward;
    add(fit.quality, family, errors);
    if (fit.packed) add(*fit.packed, family, errors);
  }
  if (fits.gemm) add(fits.gemm->quality, CostFamily::gemm, errors);
  const bool only_all = fits.memory_bound.size() == 1;
  for (const MemoryBoundFit& fit : fits.memory_bound) {
    if (only_all || fit.kernel != every_kernel) add(fit.quality, CostFamily::memory_bound, errors);
  }
  for (const MessageFit& fit : fits.messages) {
    add(fit.quality, fit.kind == MessageKind::send_recv ? CostFamily::messages : CostFamily::collectives, errors);
  }
  for (const CopyFit& fit : fits.copies) add(fit.quality, CostFamily::host_copies, errors);
  return errors;
}

}  // namespace hdpsim
