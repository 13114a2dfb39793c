#include "sim/validate/validation_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/model/parameters.h"
#include "sim/run/refusals.h"
#include "sim/study/override.h"
#include "sim/study/problems.h"

namespace hdpsim {
namespace {

constexpr double bytes_per_gb = 1e9;

// The features of a case that this program lacks, each told once; empty if there are none. Other problems of such a
// case are ignored: what it says of pipelines, for instance, may use words that only the missing feature brings.
std::string reason_not_to_run(const InputError& error) {
  std::vector<std::string> reasons;
  for (const Diagnostic& problem : error.diagnostics().sorted()) {
    if (!problem.unsupported) continue;
    if (std::find(reasons.begin(), reasons.end(), problem.message) == reasons.end()) reasons.push_back(problem.message);
  }
  return joined(reasons, "; ");
}

// Appends the points of one more case to those of the others. Worlds are numbered anew, because no two cases need share
// one.
void join(Study& all, Study&& one) {
  if (all.points.empty()) {
    all = std::move(one);
    return;
  }
  const std::size_t worlds = all.points.back().world + 1;
  for (StudyPoint& point : one.points) point.world += worlds;
  std::move(one.points.begin(), one.points.end(), std::back_inserter(all.points));
}

// The study over which the speed-ups of a case are, if it is not the case itself.
Study base_of(const ValidationCase& one, const Value& unlike, Catalog& catalog) {
  Value base = one.study;
  Diagnostics found;
  for (const auto& [path, position, value] : unlike.entries) (void)put_at(base, path, value, found);
  found.throw_if_any();
  return read_study(base, catalog);
}

void check_plans(const ValidationCase& one, const Study& study, const ValidationSet& set, const std::string& file,
                 Problems& problems) {
  for (const PublishedFigure& figure : one.published) {
    const bool known =
        figure.plan.empty() || std::any_of(study.plans.begin(), study.plans.end(),
                                           [&](const StudyPlan& plan) { return plan.name == figure.plan; });
    Diagnostics found;
    if (!known)
      found.error({file, 0, 0}, fmt::format("a figure is of the plan '{}', which the study has not", figure.plan));
    const bool compares = study.compare_to || set.speedup_over.is_map();
    if (figure.quantity == Quantity::speedup && !compares) {
      found.error({file, 0, 0}, "speed-ups need the study's 'compare_to'");
    }
    const bool is_saving = figure.quantity == Quantity::loader_memory_saving;
    const bool has_loaders = std::all_of(study.points.begin(), study.points.end(), [](const StudyPoint& point) {
      return point.spec.loading && !point.spec.loading->sources.empty();
    });
    if (is_saving && !(has_loaders && set.speedup_over.is_map())) {
      found.error({file, 0, 0}, "savings of loaders' memory need 'loading' with sources, and 'speedup_over'");
    }
    if (figure.quantity == Quantity::speedup && study.tunes_baseline) {
      found.error({file, 0, 0}, "a published speed-up is over a published mesh: the baseline cannot be tuned");
    }
    problems.add(found, {file, 0, 0});
  }
}

std::size_t plan_index(const Study& study, const std::string& name) {
  const auto plan = std::find_if(study.plans.begin(), study.plans.end(),
                                 [&](const StudyPlan& candidate) { return candidate.name == name; });
  return name.empty() ? 0 : static_cast<std::size_t>(plan - study.plans.begin());
}

// Whether the profile was fitted to this figure.
bool was_fitted_to(const DeviceProfile& profile, const ValidationRow& row) {
  const std::optional<StepFit>& fit = profile.provenance.fit;
  if (!fit) return false;
  const std::string name = fit->set == row.set ? row.case_name : case_in_set(row.set, row.case_name);
  return std::find(fit->rows.begin(), fit->rows.end(), FittedRow{row.quantity, name}) != fit->rows.end();
}

// Model FLOPs a second and device, as the set counts attention. Publications count twice the forward for the backward
// (Chowdhery et al. 2022, arXiv 2204.02311, appendix B: 12 L h s a token), metrics what its kernel multiplies, with the
// scores a second time (attention_flops()).
double flops_per_s(const Run& run, const PointSpec& spec, CountedAttention counted) {
  constexpr double both_published = 1 + 2;
  constexpr double both_multiplied = 1 + backward_attention;
  constexpr std::int64_t tokens = 1'000'000;
  const double kept = kept_copies(spec.model, spec.experts.layout);
  const double of_tokens = training_linear_flops(spec.model, tokens, kept, spec.recipe).count();
  const double linear = of_tokens / tokens * run.metrics.tokens_per_s_per_gpu;
  const double multiplied = run.metrics.mfu * run.info.peak.per_second() - linear;
  const double half = multiplied * both_published / both_multiplied;
  switch (counted) {
    case CountedAttention::half:
      return linear + half;
    case CountedAttention::full:
      return linear + 2 * half;
    case CountedAttention::none:
      return linear;
  }
  return linear;
}

double predicted(const Run& run, Quantity quantity, const PointSpec& spec, CountedAttention attention) {
  constexpr double flops_per_tflop = 1e12;
  const RunMetrics& metrics = run.metrics;
  switch (quantity) {
    case Quantity::step_time:
      return metrics.step_time_s.mean;
    case Quantity::tokens_per_s_per_gpu:
      return metrics.tokens_per_s_per_gpu;
    case Quantity::device_memory:
      return static_cast<double>(metrics.memory.device.count()) / bytes_per_gb;
    case Quantity::allocated_memory:
      return static_cast<double>(metrics.memory.parts.allocated().count()) / bytes_per_gb;
    case Quantity::reserved_memory:
      return static_cast<double>((metrics.memory.device - metrics.memory.parts[MemoryPart::reserve]).count()) /
             bytes_per_gb;
    case Quantity::speedup:
      return metrics.speedup->mean;
    case Quantity::loader_memory_saving:
      return 1;  // over itself
    case Quantity::tflops_per_gpu:
      return flops_per_s(run, spec, attention) / flops_per_tflop;
    case Quantity::mfu:
      return flops_per_s(run, spec, attention) / run.info.peak.per_second();
  }
  return 0;
}

// A figure of a run over another one's; empty if it is none of two runs.
std::optional<double> over_study(const RunMetrics& run, const RunMetrics& base, Quantity quantity) {
  const auto loaded = [](const RunMetrics& of) { return static_cast<double>(of.loaders->most.memory.all.count()); };
  if (quantity == Quantity::speedup) return base.step_time_s.mean / run.step_time_s.mean;
  if (quantity == Quantity::loader_memory_saving) return loaded(base) / loaded(run);
  return std::nullopt;
}

}  // namespace

std::string case_in_set(const std::string& set, const std::string& name) {
  return fmt::format("{}: {}", set, name);
}

ValidationStudy load_validation(const std::string& path, Catalog& catalog, const StudyChanges& changes) {
  Diagnostics diagnostics;
  auto set = load_validation_set(path, diagnostics);
  diagnostics.throw_if_any();
  return read_validation(std::move(*set), path, catalog, changes);
}

ValidationStudy read_validation(ValidationSet set, const std::string& path, Catalog& catalog,
                                const StudyChanges& changes) {
  ValidationStudy validation;
  validation.set = std::move(set);
  Problems problems{Diagnostics()};
  for (ValidationCase& one : validation.set.cases) {
    Diagnostics of_options;
    apply_overrides(one.study, changes.set, of_options);
    apply_without(one.study, changes.without, of_options);
    problems.add(of_options, {});
    validation.points.emplace_back();
    validation.bases.emplace_back();
    validation.resolved.emplace_back();
    validation.reasons.emplace_back();
    try {
      Study study = read_study(one.study, catalog);
      std::optional<Study> base;
      if (validation.set.speedup_over.is_map()) base = base_of(one, validation.set.speedup_over, catalog);
      check_plans(one, study, validation.set, path, problems);
      validation.points.back() = validation.study.points.size();
      validation.resolved.back() = study.resolved;
      validation.resolved.back().set("name", Value::scalar(case_in_set(validation.set.name, one.name), {path, 0, 0}));
      join(validation.study, std::move(study));
      if (!base) continue;
      validation.bases.back() = validation.study.points.size();
      join(validation.study, std::move(*base));
    } catch (const InputError& error) {
      validation.reasons.back() = reason_not_to_run(error);
      if (validation.reasons.back().empty()) problems.add(error.diagnostics(), {path, 0, 0});
    }
  }
  problems.throw_if_any(
      {{override_source, override_text(changes.set)}, {without_source, override_text(changes.without)}});
  return validation;
}

std::optional<std::vector<ValidationRow>> validate(const ValidationStudy& validation, const RunnerOptions& options) {
  const auto runs = run_study(validation.study, options);
  if (!runs) return std::nullopt;
  for (const Run& run : *runs) require_one_that_ran({&run});  // a published figure is of a plan that runs
  std::vector<ValidationRow> rows;
  for (std::size_t i = 0; i < validation.set.cases.size(); ++i) {
    const ValidationCase& one = validation.set.cases[i];
    for (const PublishedFigure& figure : one.published) {
      const std::string name = quantity_name(figure.quantity);
      ValidationRow row{.set = validation.set.name,
                        .case_name = one.name,
                        .quantity = figure.plan.empty() ? name : fmt::format("{} {}", name, figure.plan),
                        .unit = quantity_unit(figure.quantity),
                        .published = figure.value,
                        .predicted = {},
                        .not_predicted = validation.reasons[i],
                        .source = validation.set.source,
                        .fits = true,
                        .fitted = figure.fitted,
                        .job = one.job,
                        .line = one.line,
                        .micro_batches = one.micro_batches};
      if (validation.points[i]) {
        const std::size_t plan = plan_index(validation.study, figure.plan);
        const std::size_t run = *validation.points[i] * validation.study.plans.size() + plan;
        const std::size_t base = validation.bases[i] * validation.study.plans.size() + plan;
        const PointSpec& spec = validation.study.points[*validation.points[i]].spec;
        const auto over_base = over_study(runs->at(run).metrics, runs->at(base).metrics, figure.quantity);
        row.over_study = over_base && validation.set.speedup_over.is_map();
        row.predicted = row.over_study
                            ? *over_base
                            : predicted(runs->at(run), figure.quantity, spec, validation.set.attention_flops);
        row.run = spec.kind;
        row.memory_use = runs->at(run).metrics.memory.device.gigabytes() / runs->at(run).info.device_memory.gigabytes();
        row.fits = runs->at(run).metrics.fits;
        row.is_at_risk = fit_of(runs->at(run)) == MemoryFit::at_risk;
        row.fitted = row.fitted || was_fitted_to(*spec.profile, row);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace hdpsim
