#include "calib/measure/drift.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

PaceRatio gemm(double ratio, const std::string& what = "one") {
  return {.family = CostFamily::gemm, .what = what, .quantile = 0.25, .ratio = ratio};
}

// Rounds of one sample of a family, a ratio each.
std::vector<std::vector<PaceRatio>> rounds_of(CostFamily family, const std::vector<double>& ratios) {
  std::vector<std::vector<PaceRatio>> rounds;
  for (const double ratio : ratios) {
    rounds.push_back({gemm(ratio)});
    rounds.back().front().family = family;
  }
  return rounds;
}

Judgement judgement_of(const std::vector<double>& ratios, const std::vector<NoiseFloor>& noise = {}) {
  return drift_of(rounds_of(CostFamily::gemm, ratios), noise).at(0).judgement;
}

TEST_CASE("a family holds up to the usual variation, and has drifted beyond it", "[drift]") {
  // Rounds that agree leave nothing open, so that the border is the variation itself.
  const double border = 1 + usual_variation;
  CHECK(judgement_of({1, 1, 1}) == Judgement::holds);
  CHECK(judgement_of({0.999 * border, 0.999 * border, 0.999 * border}) == Judgement::holds);
  CHECK(judgement_of({1.001 * border, 1.001 * border, 1.001 * border}) == Judgement::slower);
  CHECK(judgement_of({1.001 / border, 1.001 / border, 1.001 / border}) == Judgement::holds);
  CHECK(judgement_of({0.999 / border, 0.999 / border, 0.999 / border}) == Judgement::faster);
}

TEST_CASE("a profile that was noisy may differ by its noise", "[drift]") {
  const std::vector<NoiseFloor> noise = {{.family = "gemm", .mean = 0.05, .p90 = 0.2, .max = 0.5, .pairs = 10},
                                         {.family = "messages", .mean = 0.001, .p90 = 0.002, .max = 0.01, .pairs = 10}};
  CHECK(judgement_of({1.15, 1.15, 1.15}, noise) == Judgement::holds);
  CHECK(judgement_of({1.25, 1.25, 1.25}, noise) == Judgement::slower);
  // One that was not still may differ by the usual variation; messages and collectives have one noise floor.
  for (const CostFamily family : {CostFamily::messages, CostFamily::collectives}) {
    CHECK(drift_of(rounds_of(family, {1, 1, 1}), noise).at(0).allowance == usual_variation);
  }
}

TEST_CASE("rounds that differ too much tell nothing", "[drift]") {
  // The lower quartile of 4 rounds is uncertain by sqrt(0.25 x 0.75 / 4) = 0.217 of their ranks either way. Ranks 0.1
  // and 1.4 of {0.8, 1.0, 1.2, 1.4}: from 0.82 to 1.08, where the quartile is 0.95. Within 5 %, but known to 27 %.
  const FamilyDrift drift = drift_of(rounds_of(CostFamily::gemm, {1.4, 0.8, 1.2, 1.0}), {}).at(0);
  CHECK(drift.ratio == Approx(0.95));
  const double rank = std::sqrt(0.25 * 0.75 / 4);
  CHECK(drift.uncertainty == Approx(0.2 * 3 * 2 * rank / 0.95));
  CHECK(drift.judgement == Judgement::unclear);
  // So is a ratio that is outside by less than what is open.
  CHECK(judgement_of({1.0, 1.1, 1.2, 1.3}) == Judgement::unclear);
  // So are two rounds, of which nobody knows how far they spread.
  CHECK(judgement_of({2, 2}) == Judgement::unclear);
  // One that is far outside is told whatever they say.
  CHECK(judgement_of({2.0, 2.2, 2.4, 2.6}) == Judgement::slower);
}

TEST_CASE("kernels count by the lower quartile of their rounds, as a calibration counts them", "[drift]") {
  // Other programs slow one round of four: the quartile is that of the others.
  CHECK(drift_of(rounds_of(CostFamily::gemm, {1, 1, 1, 3}), {}).at(0).ratio == 1);
}

TEST_CASE("the median of a family's samples counts, and the one that is furthest is named", "[drift]") {
  const std::vector<PaceRatio> round = {gemm(1, "small"), gemm(1.02, "middle"), gemm(0.5, "large")};
  const FamilyDrift drift = drift_of({round, round, round}, {}).at(0);
  CHECK(drift.ratio == 1);
  CHECK(drift.samples == 3);
  CHECK(drift.rounds == 3);
  CHECK(drift.furthest == "large");
  CHECK(drift.furthest_ratio == 0.5);
  CHECK(drift.judgement == Judgement::holds);
  CHECK(drift.p10 < 1);
}

TEST_CASE("a profile holds if all that was timed holds", "[drift]") {
  auto rounds = rounds_of(CostFamily::gemm, {1, 1, 1});
  CHECK(verdict_on(drift_of(rounds, {})) == Verdict::holds);
  CHECK(drift_words(drift_of(rounds, {})).empty());
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    rounds[i].push_back(
        {.family = CostFamily::host_copies, .what = "copy", .quantile = 0.5, .ratio = i == 1 ? 1.2 : 1});
  }
  CHECK(verdict_on(drift_of(rounds, {})) == Verdict::unclear);  // the median of three is uncertain by 0.12
  for (auto& round : rounds) round.push_back({.family = CostFamily::memory_bound, .what = "adam", .ratio = 1.25});
  const auto families = drift_of(rounds, {});
  CHECK(verdict_on(families) == Verdict::drifted);
  CHECK(drift_words(families) == "time now over time in the profile: memory-bound kernels 1.25");
  REQUIRE(families.size() == 3);
  CHECK(families[0].family == CostFamily::gemm);  // in the order of families, whatever was timed first
  CHECK(families[1].family == CostFamily::memory_bound);
  CHECK_THAT(drift_table(families),
             Catch::Contains("memory-bound kernels") && Catch::Contains("slower; furthest adam 1.25"));
}

}  // namespace
}  // namespace hdpsim::calib
