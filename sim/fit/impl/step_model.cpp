#include "sim/fit/impl/step_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/analysis/uncertainty.h"
#include "sim/base/check.h"

namespace hdpsim {
namespace {

bool is_step(Quantity quantity) {
  return quantity == Quantity::step_time || quantity == Quantity::tokens_per_s_per_gpu;
}

MeasuredFigure figure_of(const StudyPoint& point, const PublishedFigure& published) {
  const PointSpec& spec = point.spec;
  const auto tokens = static_cast<double>(spec.batch.tokens_per_step);
  MeasuredFigure figure;
  figure.quantity = quantity_name(published.quantity);
  if (!published.plan.empty()) figure.quantity += " " + published.plan;
  figure.unit = quantity_unit(published.quantity);
  figure.measured = published.value;
  figure.is_rate = is_rate(published.quantity);
  figure.step_s =
      figure.is_rate ? tokens / (published.value * static_cast<double>(spec.mesh.devices())) : published.value;
  figure.micro_batches = std::max(1.0, tokens / static_cast<double>(spec.capacity * spec.mesh.hdp));
  figure.model = fmt::format("{} {} x {}", spec.model.name, spec.model.layers, spec.model.hidden);
  figure.mesh = fmt::format("tp {} pp {} hdp {}", spec.mesh.tp, spec.mesh.pp, spec.mesh.hdp);
  figure.size = fmt::format("context {} tokens {}", spec.batch.context, spec.batch.tokens_per_step);
  figure.identity = point.identity;
  return figure;
}

// The same without the cases that are not among `rows`.
ValidationSet part_of(const ValidationSet& set, const std::set<std::size_t>& rows) {
  ValidationSet part{set.name, set.about, set.source, set.attention_flops, set.speedup_over, {}};
  for (const std::size_t row : rows) part.cases.push_back(set.cases[row]);
  return part;
}

}  // namespace

DeviceProfile with_values(DeviceProfile profile, const std::vector<const PhysicalParameter*>& parameters,
                          const std::vector<double>& values) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (values.at(i) != parameters[i]->start(profile)) parameters[i]->apply(profile, values[i]);
  }
  // A study multiplies the host time of its framework by what is found here (with_overheads()).
  profile.provenance.fit.emplace();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    profile.provenance.fit->parameters.push_back({.name = std::string(parameters[i]->name), .value = values.at(i)});
  }
  return profile;
}

double log_ratio(const MeasuredFigure& figure, double predicted) {
  const double ratio = std::log(predicted / figure.measured);
  return figure.is_rate ? -ratio : ratio;
}

StepModel::StepModel(Source source) : source_(std::move(source)) {
  HDPSIM_CHECK(!source_.sets.empty(), "a model of steps without a set");
  std::vector<DeviceProfile> read;
  Catalog catalog(source_.data_folder, [&](DeviceProfile& profile) { read.push_back(profile); });
  std::vector<ValidationStudy> parts;
  for (const FitSource& one : source_.sets) {
    parts.push_back(read_validation(one.set, one.path, catalog, source_.changes));
    add_figures(parts.size() - 1, parts.back());
  }
  if (!figures_.empty()) find_profile(parts, read);
}

void StepModel::find_profile(const std::vector<ValidationStudy>& parts, const std::vector<DeviceProfile>& read) {
  std::string name;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (const StudyPoint& point : parts[part].study.points) {
      const std::string& other = point.spec.profile->name;
      if (name.empty()) name = other;
      if (other == name) continue;
      throw InputError(fmt::format("the rows of {} have the profiles {} and {}: a fit starts from one",
                                   source_.sets[part].path, name, other),
                       "choose the rows of one with --rows, or set --set profile=NAME");
    }
  }
  const auto found = std::find_if(read.begin(), read.end(), [&](const DeviceProfile& one) { return one.name == name; });
  HDPSIM_CHECK(found != read.end(), "the profile {} was never read", name);
  profile_ = *found;
}

void StepModel::add_figures(std::size_t part, const ValidationStudy& validation) {
  std::map<std::string, int> reasons;
  const std::vector<ValidationCase>& cases = source_.sets[part].set.cases;
  for (std::size_t row = 0; row < cases.size(); ++row) {
    if (!validation.points[row]) {
      ++reasons[validation.reasons[row]];
      continue;
    }
    for (const PublishedFigure& published : cases[row].published) {
      if (!is_step(published.quantity)) {
        ++reasons[quantity_name(published.quantity) + " is no time of a step"];
        continue;
      }
      figures_.push_back(figure_of(validation.study.points[*validation.points[row]], published));
      figures_.back().part = part;
      figures_.back().row = row;
    }
  }
  for (const auto& [reason, count] : reasons) left_out_.push_back(fmt::format("{} x {}", count, reason));
}

const ValidationCase& StepModel::case_of(std::size_t figure) const {
  return source_.sets[figures_[figure].part].set.cases[figures_[figure].row];
}

std::size_t StepModel::place_of(std::size_t figure) const {
  std::size_t place = figures_[figure].row;
  for (std::size_t part = 0; part < figures_[figure].part; ++part) place += source_.sets[part].set.cases.size();
  return place;
}

std::string StepModel::name_of(std::size_t figure) const {
  const std::string& name = case_of(figure).name;
  return source_.sets.size() == 1 ? name : case_in_set(source_.sets[figures_[figure].part].set.name, name);
}

std::vector<double> StepModel::predicted(const std::vector<const PhysicalParameter*>& parameters,
                                         const std::vector<double>& values,
                                         const std::vector<std::size_t>& figures) const {
  Catalog catalog(source_.data_folder, [&](DeviceProfile& profile) {
    if (profile.name == profile_.name) profile = with_values(std::move(profile), parameters, values);
  });
  std::vector<double> result(figures.size());
  for (std::size_t part = 0; part < source_.sets.size(); ++part) predict(part, catalog, figures, result);
  return result;
}

// Fills in what is predicted of the figures of one set.
void StepModel::predict(std::size_t part, Catalog& catalog, const std::vector<std::size_t>& figures,
                        std::vector<double>& predicted) const {
  const FitSource& source = source_.sets[part];
  std::set<std::size_t> rows;
  for (const std::size_t figure : figures) {
    if (figures_[figure].part == part) rows.insert(figures_[figure].row);
  }
  if (rows.empty()) return;
  const ValidationStudy validation = read_validation(part_of(source.set, rows), source.path, catalog, source_.changes);
  const auto answers = validate(validation, source_.running);
  if (!answers) throw FitStopped();
  std::map<std::pair<std::string, std::string>, double> by_figure;
  for (const ValidationRow& answer : *answers) {
    if (answer.predicted) by_figure[{answer.case_name, answer.quantity}] = *answer.predicted;
  }
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const MeasuredFigure& one = figures_[figures[i]];
    if (one.part == part) predicted[i] = by_figure.at({source.set.cases[one.row].name, one.quantity});
  }
}

ParameterScale::ParameterScale(const PhysicalParameter& parameter, const DeviceProfile& profile,
                               const std::vector<const MeasuredFigure*>& figures)
    : is_factor_(parameter.shape == PriorShape::factor) {
  const auto start = parameter.start(profile);
  HDPSIM_CHECK(start.has_value(), "the profile {} has no {}", profile.name, parameter.name);
  double least = parameter.least;
  double most = parameter.ceiling == nullptr ? parameter.most : std::min(parameter.most, parameter.ceiling(profile));
  double begin = *start;
  if (is_factor_) {
    least = std::log(least);
    most = std::max(std::log(most), parameter.width / 100);  // a range is never empty, whatever little room there is
    begin = 0;
  }
  const bool of_micro_batch = parameter.shape == PriorShape::of_the_micro_batch;
  if (parameter.shape == PriorShape::of_the_step || of_micro_batch) {
    std::vector<double> times;
    times.reserve(figures.size());
    for (const MeasuredFigure* figure : figures) {
      times.push_back(of_micro_batch ? figure->step_s / figure->micro_batches : figure->step_s);
    }
    unit_ = median(times);
    begin /= unit_;
    most = std::max(2 * begin, *std::min_element(times.begin(), times.end()) / unit_);
  }
  coordinate_ = {.start = begin, .width = parameter.width, .least = least, .most = std::max(most, begin)};
}

double ParameterScale::value(double coordinate) const {
  return is_factor_ ? std::exp(coordinate) : coordinate * unit_;
}

}  // namespace hdpsim
