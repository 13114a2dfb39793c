#include "sim/run/tokens_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/quantity_text.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"
#include "sim/study/study_changes.h"

namespace hdpsim {
namespace {

// By what the tokens of a step are multiplied, and how many steps are simulated.
struct OtherTokens {
  std::int64_t times = 1;
  std::int64_t by = 1;
  std::int64_t steps = 1;
};
constexpr std::array<OtherTokens, 4> curve_tokens = {{{1, 4, 4}, {1, 1, 0}, {4, 1, 1}, {16, 1, 1}}};
constexpr std::int64_t most_curve_tokens = 1LL << 30;  // of all plans and steps of a number: about two seconds

std::optional<double> rate_of(const Run& run) {
  if (run.is_refused() || !run.metrics.fits) return std::nullopt;
  return run.metrics.tokens_per_s;
}

// Over the first steps.
std::optional<double> simulated_rate(const StudyPoint& point, std::size_t plan, std::int64_t steps) {
  double tokens = 0;
  double seconds = 0;
  const std::unique_ptr<World> world = point.make_world();
  try {
    for (std::int64_t step = 0; step < steps; ++step) {
      const StepResult result = simulate_step(point, plan, step, *world).result;
      if (!fits_in(result, point.spec)) return std::nullopt;
      tokens += static_cast<double>(result.tokens);
      seconds += result.time.seconds();
    }
  } catch (const InputError&) {
    return std::nullopt;
  }
  return tokens / seconds;
}

/// Makes the rows of one point.
class TokensCurve {
 public:
  TokensCurve(const Study& study, const std::vector<Run>& runs, std::size_t point)
      : study_(study), runs_(runs), point_(point), root_(study_of_point(study, point)) {}

  [[nodiscard]] std::optional<TokensRow> row(const OtherTokens& other, Catalog& catalog) const {
    const PointSpec& spec = study_.points[point_].spec;
    const std::int64_t own = spec.batch.tokens_per_step;
    if (other.times == other.by) return own_row(own);
    const std::int64_t tokens = own / other.by * other.times;
    const auto plans = static_cast<std::int64_t>(study_.plans.size());
    const bool is_cheap = tokens <= most_curve_tokens / (plans * other.steps) && spec.background.empty();
    if (own % other.by != 0 || !is_cheap) return std::nullopt;
    std::optional<Study> changed =
        changed_study(root_, {{tokens_subject, {fmt::format("{}={}", tokens_subject, count_text(tokens))}}}, catalog);
    if (!changed) return std::nullopt;
    StudyPoint& point = changed->points.front();
    point.spec.uncertainty.reset();
    if (point.spec.grain == Grain::exact) point.spec.grain = Grain::fluid;
    TokensRow row{tokens, {}};
    for (std::size_t plan = 0; plan < study_.plans.size(); ++plan) {
      row.tokens_per_s.push_back(simulated_rate(point, plan, other.steps));
    }
    return row;
  }

 private:
  [[nodiscard]] TokensRow own_row(std::int64_t tokens) const {
    TokensRow row{tokens, {}};
    for (std::size_t plan = 0; plan < study_.plans.size(); ++plan) {
      row.tokens_per_s.push_back(rate_of(runs_.at(point_ * study_.plans.size() + plan)));
    }
    return row;
  }

  const Study& study_;
  const std::vector<Run>& runs_;
  std::size_t point_;
  Value root_;
};

}  // namespace

std::vector<TokensRow> tokens_curve(const Study& study, const std::vector<Run>& runs, std::size_t point,
                                    const AdviceOptions& options) {
  if (study.plans.size() < 2) return {};
  const TokensCurve curve(study, runs, point);
  std::vector<TokensRow> rows;
  const auto make_worker = [&] {
    return [&, catalog = options.catalog](std::int64_t number) mutable {
      return curve.row(curve_tokens.at(static_cast<std::size_t>(number)), catalog);
    };
  };
  const OrderedWork work{.end = std::ssize(curve_tokens), .jobs = options.jobs, .stop = options.stop};
  const bool done = run_in_order(work, make_worker, [&](std::int64_t, const std::optional<TokensRow>& row) {
    const auto is_known = [](const std::optional<double>& rate) { return rate.has_value(); };
    if (row && std::any_of(row->tokens_per_s.begin(), row->tokens_per_s.end(), is_known)) rows.push_back(*row);
  });
  return done && rows.size() > 1 ? rows : std::vector<TokensRow>{};
}

}  // namespace hdpsim
