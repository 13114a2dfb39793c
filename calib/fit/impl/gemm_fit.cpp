#include <algorithm>
#include <array>
#include <string_view>

#include "calib/fit/impl/cross_validation.h"
#include "calib/fit/impl/families.h"
#include "calib/fit/impl/linear_fits.h"
#include "sim/cost/fitted_gemm.h"

namespace hdpsim::calib {
namespace {

struct GemmTerm {
  std::string_view name;
  double GemmFit::*coefficient;
};
constexpr GemmTerm gemm_launch_term = {"launch", &GemmFit::launch_s};
constexpr GemmTerm flop_term = {"wave-rounded work", &GemmFit::flop_s};
constexpr GemmTerm element_term = {"elements", &GemmFit::element_s};

struct GemmForm {
  std::vector<GemmTerm> terms;
  std::int64_t neighbours = 0;
  double power = 2;

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const GemmTerm& term : terms) text += (text.empty() ? "" : " + ") + std::string(term.name);
    return neighbours == 0 ? text : text + ", times the ratio at shapes near by";
  }
};

class Products {
 public:
  Products(const GemmTable& table, std::int64_t multiprocessors) : table_(table), multiprocessors_(multiprocessors) {}

  [[nodiscard]] std::vector<double> seconds() const {
    std::vector<double> seconds;
    for (const GemmShapeSample& sample : table_.by_shape) seconds.push_back(sample.time.seconds());
    return seconds;
  }

  [[nodiscard]] CandidateFit candidate(const GemmForm& form) const {
    const auto predict = [this, form](const Indices& known, const Indices& asked) {
      GemmTable part = table_;
      part.by_shape = selected(table_.by_shape, known);
      const FittedGemm products(fitted(form, part), part, multiprocessors_);
      std::vector<double> predictions;
      for (const std::size_t i : asked) {
        const GemmShapeSample& sample = table_.by_shape[i];
        predictions.push_back(products.cost({sample.m, sample.n, sample.k}).seconds);
      }
      return predictions;
    };
    return {form.text(), predict};
  }

  [[nodiscard]] GemmFit fitted(const GemmForm& form, const GemmTable& table) const {
    GemmTable no_samples = table;
    no_samples.by_shape.clear();
    std::vector<FittedGemm> units;
    for (const GemmTerm& term : form.terms) {
      GemmFit unit;
      unit.*term.coefficient = 1;
      units.emplace_back(unit, no_samples, multiprocessors_);
    }
    Equations equations;
    for (const GemmShapeSample& sample : table.by_shape) {
      std::vector<double>& features = equations.features.emplace_back();
      for (const FittedGemm& unit : units) features.push_back(unit.law_seconds({sample.m, sample.n, sample.k}));
      equations.seconds.push_back(sample.time.seconds());
    }
    const std::vector<double> coefficients = relative_least_squares(equations);
    GemmFit fit;
    fit.form = form.text();
    for (std::size_t i = 0; i < coefficients.size(); ++i) fit.*form.terms[i].coefficient = coefficients[i];
    fit.neighbours = form.neighbours;
    fit.power = form.power;
    return fit;
  }

 private:
  const GemmTable& table_;
  std::int64_t multiprocessors_;
};

std::vector<GemmForm> gemm_forms() {
  std::vector<GemmForm> forms;
  const std::array<std::vector<GemmTerm>, 3> laws = {std::vector{flop_term}, std::vector{gemm_launch_term, flop_term},
                                                     std::vector{gemm_launch_term, flop_term, element_term}};
  forms.reserve(7 * laws.size());
  for (const auto& law : laws) forms.push_back({law, 0, 2});
  for (const std::int64_t neighbours : {3, 6, 12}) {
    for (const double power : {2.0, 4.0}) {
      for (const auto& law : laws) forms.push_back({law, neighbours, power});
    }
  }
  return forms;
}

/// Whether larger products take longer.
bool grows(const GemmFit& law) {
  return law.flop_s + law.element_s > 0;
}

}  // namespace

GemmFit fit_gemm(const GemmTable& table, std::int64_t multiprocessors, std::uint64_t seed) {
  const Products products(table, multiprocessors);
  std::vector<GemmForm> all = gemm_forms();
  // Where noise rules, launches alone may explain the times best, and a profile may not state such a law. Work alone
  // always gets its cost.
  std::erase_if(all, [&](const GemmForm& form) { return !grows(products.fitted(form, table)); });
  std::vector<CandidateFit> candidates;
  candidates.reserve(all.size());
  for (const GemmForm& form : all) candidates.push_back(products.candidate(form));
  const std::vector<double> seconds = products.seconds();
  const Indices held = all_indices(seconds.size());
  const Choice choice = choose(candidates, seconds, held, seed);
  GemmFit fit = products.fitted(all[choice.candidate], table);
  fit.quality = quality(choice.predictions, seconds, held);
  return fit;
}

}  // namespace hdpsim::calib
