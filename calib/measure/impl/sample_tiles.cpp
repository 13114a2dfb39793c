#include "calib/measure/impl/sample_tiles.h"

#include <utility>
#include <vector>

#include "calib/fit/fit.h"

namespace hdpsim::calib {
namespace {

using Sides = std::pair<std::int64_t, std::int64_t>;

// Rows and columns: of FlashAttention and its like, of products of cuBLAS and of other libraries, and none at all.
const std::vector<Sides> usual_tiles = {{128, 128}, {64, 64}, {128, 64}, {128, 256}, {1, 1}};

double held_out_error(const ProfileFits& fits) {
  double sum = 0;
  double samples = 0;
  const auto add = [&](const FitQuality& quality) {
    sum += static_cast<double>(quality.samples) * quality.held_out.mean;
    samples += static_cast<double>(quality.samples);
  };
  for (const AttentionFit& fit : fits.attention) {
    add(fit.quality);
    if (fit.packed) add(*fit.packed);
  }
  if (fits.gemm) add(fits.gemm->quality);
  return samples > 0 ? sum / samples : 0;
}

// The sides with which the fit of `family` predicts held-out samples best; the first of equals.
template <class Set>
void choose_sides(Samples family, const Sides& known, const Set& set, Circumstances& chosen, std::uint64_t seed) {
  std::vector<Sides> candidates = {known};
  candidates.insert(candidates.end(), usual_tiles.begin(), usual_tiles.end());
  const Sides* best = nullptr;
  double least = 0;
  for (const Sides& sides : candidates) {
    set(family.circumstances, sides);
    const double error = held_out_error(fit_profile(family, {.source = {}, .seed = seed}).fits);
    if (best != nullptr && error >= least) continue;
    best = &sides;
    least = error;
  }
  set(chosen, *best);
}

}  // namespace

void choose_tiles(Samples& samples, std::uint64_t seed) {
  Circumstances& device = samples.circumstances;
  Samples family;
  family.circumstances = device;
  family.launch_s = samples.launch_s;
  if (!samples.attention.empty()) {
    family.attention = samples.attention;
    choose_sides(
        family, {device.attention_tile_queries, device.attention_tile_keys},
        [](Circumstances& of, const Sides& sides) {
          of.attention_tile_queries = sides.first;
          of.attention_tile_keys = sides.second;
        },
        device, seed);
    family.attention.clear();
  }
  if (samples.gemm.empty()) return;
  family.gemm = samples.gemm;
  choose_sides(
      family, {device.gemm_tile_m, device.gemm_tile_n},
      [](Circumstances& of, const Sides& sides) {
        of.gemm_tile_m = sides.first;
        of.gemm_tile_n = sides.second;
      },
      device, seed);
}

}  // namespace hdpsim::calib
