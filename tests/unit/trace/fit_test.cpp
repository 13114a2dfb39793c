#include "sim/trace/length_fit.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

constexpr std::int64_t count = 200'000;

LengthFit fitted(const LengthDistributionPtr& lengths) {
  return fit(*make_drawn_lengths(lengths, 1, count));
}

}  // namespace

TEST_CASE("a fit finds the parameters of the lognormal that made the lengths", "[trace]") {
  const LengthFit fit = fitted(make_distribution(Lognormal{.mu = 8, .sigma = 1.2}));
  // Standard errors of the maximum likelihood: sigma / sqrt(n) of mu and sigma / sqrt(2 n) of sigma; four of them.
  CHECK(fit.lognormal.parameters.mu == Approx(8).margin(4 * 1.2 / std::sqrt(count)));
  CHECK(fit.lognormal.parameters.sigma == Approx(1.2).margin(4 * 1.2 / std::sqrt(2.0 * count)));
  // Kolmogorov: sqrt(n) D passes 1.95 once in a thousand samples.
  CHECK(fit.lognormal.goodness.ks_distance < 1.95 / std::sqrt(count));
  CHECK(fit.lognormal.goodness.token_share_error < 0.02);
  CHECK_FALSE(fit.tail_is_better);
}

TEST_CASE("a fit finds the tail that made the lengths, and says that it pays", "[trace]") {
  const LengthFit fit = fitted(make_distribution(
      LognormalPareto{.mu = 6, .sigma = 1, .tail_from = 4096, .alpha = 1.6, .max = 2 << 20, .tail_share = 0.1}));
  REQUIRE(fit.lognormal_pareto.has_value());
  CHECK(fit.tail_is_better);
  const LognormalPareto& p = fit.lognormal_pareto->parameters;
  // Four standard errors of Hill's estimator, alpha / sqrt(n in the tail), of a tail of at least 1 % of the lengths.
  CHECK(p.alpha == Approx(1.6).margin(4 * 1.6 / std::sqrt(0.01 * count)));
  CHECK(fit.lognormal_pareto->goodness.ks_distance < 0.02);
  CHECK(fit.lognormal_pareto->goodness.token_share_error < 0.02);
  CHECK(fit.lognormal.goodness.token_share_error > 0.05);
}

TEST_CASE("drawing from a fit and fitting again gives the same distribution", "[trace]") {
  const LengthFit first = fitted(make_distribution(
      LognormalPareto{.mu = 6, .sigma = 1, .tail_from = 4096, .alpha = 1.6, .max = 2 << 20, .tail_share = 0.1}));
  const LengthFit second = fitted(make_distribution(first));
  REQUIRE(second.lognormal_pareto.has_value());
  CHECK(second.lognormal_pareto->parameters.mu == Approx(first.lognormal_pareto->parameters.mu).epsilon(0.02));
  CHECK(second.lognormal_pareto->parameters.alpha == Approx(first.lognormal_pareto->parameters.alpha).epsilon(0.1));
}

TEST_CASE("too few or equal lengths cannot be fitted", "[trace]") {
  const TraceFolder folder;
  ListedLengths few(std::vector<Length>(99, Length{5}));
  ListedLengths equal(std::vector<Length>(100, Length{5}));
  CHECK(folder.complaint([&] { return fit(few); }) ==
        "error: 99 lengths are too few to fit\n        give at least 100\n");
  CHECK(folder.complaint([&] { return fit(equal); }) == "error: all 100 lengths are 5: there is nothing to fit\n");
}

TEST_CASE("two lengths only leave a lognormal and no tail", "[trace]") {
  std::vector<Length> lengths(100, Length{5});
  lengths.resize(200, Length{7});
  ListedLengths two(lengths);
  const LengthFit fit = hdpsim::fit(two);
  CHECK_FALSE(fit.lognormal_pareto.has_value());
  CHECK_FALSE(fit.tail_is_better);
  CHECK(fit.lognormal.parameters.mu == Approx((std::log(5.0) + std::log(7.0)) / 2));
  CHECK(text_of(fit).find("lognormal_pareto") == std::string::npos);
  CHECK_FALSE(json_of(fit).contains("lognormal_pareto"));
}

TEST_CASE("a fit is rendered with its goodness and names the better family", "[trace]") {
  LengthFit fit;
  fit.lognormal = {{.mu = 6, .sigma = 1.25, .min = 1, .max = 4096}, {.ks_distance = 0.125, .token_share_error = 0.25}};
  fit.lognormal_pareto = {
      {.mu = 5.5, .sigma = 1, .tail_from = 1024, .alpha = 2, .min = 1, .max = 4096, .tail_share = 0.0625},
      {.ks_distance = 0.0625, .token_share_error = 0.125}};
  fit.tail_is_better = true;
  CHECK(text_of(fit) ==
        "                       KS distance     token share error\n"
        "lognormal                   0.1250                0.2500\n"
        "lognormal_pareto            0.0625                0.1250   <- best\n"
        "\n"
        "lognormal: {mu: 6, sigma: 1.25, min: 1, max: 4096}\n"
        "lognormal_pareto: {mu: 5.5, sigma: 1, tail_from: 1024, alpha: 2, tail_share: 0.0625, min: 1, max: 4096}\n");
  CHECK(csv_of(fit) ==
        "family,mu,sigma,tail_from,alpha,tail_share,min,max,ks_distance,token_share_error,best\n"
        "lognormal,6,1.25,,,,1,4096,0.125,0.25,false\n"
        "lognormal_pareto,5.5,1,1024,2,0.0625,1,4096,0.0625,0.125,true\n");
  CHECK(json_of(fit)["best"] == "lognormal_pareto");
  CHECK(json_of(fit)["lognormal_pareto"]["alpha"] == 2.0);
  CHECK(json_of(fit)["lognormal"]["goodness"]["ks_distance"] == 0.125);
}

}  // namespace hdpsim
