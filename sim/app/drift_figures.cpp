#include "sim/app/drift_figures.h"

#include "sim/profile/cost_family.h"

namespace hdpsim::app {
namespace {

FigureTable<calib::FamilyDrift> figures_of_a_family() {
  using Row = calib::FamilyDrift;
  FigureTable<Row> all;
  all.add({"family", "family", "", "a family of costs"},
          [](const Row& row) { return std::string(cost_family_name(row.family)); });
  all.add({"samples", "samples", "", "samples of the profile that were timed again"}, at(&Row::samples));
  all.add({"rounds", "rounds", "", "how often each of them was"}, at(&Row::rounds));
  all.add({"ratio", "ratio", "", "time now over time in the profile, of the median sample"}, at(&Row::ratio));
  all.add({"p10", "p10", "", "the first decile of that over all samples and rounds"}, at(&Row::p10));
  all.add({"p90", "p90", "", "the ninth decile"}, at(&Row::p90));
  all.add({"uncertainty", "uncertainty", "share", "what the rounds leave open of the ratio"}, at(&Row::uncertainty));
  all.add({"allowance", "allowance", "share", "how far from 1 the ratio may be while the profile holds"},
          at(&Row::allowance));
  all.add({"furthest", "furthest", "", "the sample that is furthest from its time in the profile"}, at(&Row::furthest));
  all.add({"furthest_ratio", "furthest_ratio", "", "the ratio of this sample"}, at(&Row::furthest_ratio));
  all.add(
      {"judgement", "judgement", "", "`holds`, `slower`, `faster`, or `unclear`: its rounds differ too much to tell"},
      [](const Row& row) { return std::string(calib::judgement_name(row.judgement)); });
  return all;
}

}  // namespace

const FigureTable<calib::FamilyDrift>& family_drift_figures() {
  static const auto figures = figures_of_a_family();
  return figures;
}

FigureSection drift_figures() {
  return {.title = "A check of a profile",
          .note =
              "Printed by `hdpsim calibrate --check`: `--format csv` has the families, `--format json` also "
              "`verdict` (`holds`, `drifted`, `unclear`). Places are those below `families[]`.",
          .json = "--format json",
          .files = {{"families", family_drift_figures().texts()}}};
}

}  // namespace hdpsim::app
