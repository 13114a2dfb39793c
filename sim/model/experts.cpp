#include "sim/model/experts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/model/product_format.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

// The share of all copies that an expert takes.
double share_of_expert(const MixtureOfExperts& moe, const ExpertLayout& layout, std::int64_t expert) {
  const double even = 1 / static_cast<double>(moe.experts);
  const double share = layout.shares.empty() ? even : layout.shares[static_cast<std::size_t>(expert)];
  return layout.capacity_factor ? std::min(share, *layout.capacity_factor * even) : share;
}

// Copies that each expert gets when the group has `copies` in all. Sums are rounded, so that all of them together are
// those that experts keep.
std::vector<std::int64_t> rows_by_expert(const MixtureOfExperts& moe, const ExpertLayout& layout, std::int64_t copies) {
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(moe.experts));
  double sum = 0;
  std::int64_t given = 0;
  for (std::int64_t e = 0; e < moe.experts; ++e) {
    sum += share_of_expert(moe, layout, e) * static_cast<double>(copies);
    // Rounding of the product must not add a row for a zero share.
    const auto until = std::max(given, static_cast<std::int64_t>(std::ceil(sum - 1e-6)));
    rows.push_back(until - given);
    given = until;
  }
  return rows;
}

std::size_t fullest_device(const std::vector<std::int64_t>& rows, std::size_t per_device) {
  std::size_t fullest = 0;
  std::int64_t most = -1;
  for (std::size_t first = 0; first < rows.size(); first += per_device) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    const std::int64_t sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(per_device), std::int64_t{0});
    if (sum > most) fullest = first;
    most = std::max(most, sum);
  }
  return fullest;
}

// An expert with copies has a cluster. Rounding must not add one.
std::int64_t clusters_of(std::int64_t copies, double rate) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(copies) * rate - 1e-6));
}

void compress(ExpertRows& rows, double rate) {
  for (std::vector<std::int64_t>* each : {&rows.slowest, &rows.even}) {
    for (std::int64_t& copies : *each) copies = clusters_of(copies, rate);
  }
  rows.sent = clusters_of(rows.sent, rate);
}

std::int64_t bytes_of_copy(const Transformer& model, bool fp8) {
  // DeepEP sends the scales of DeepSeek-V3's blocks.
  return row_bytes(fp8 ? ProductFormat::fp8_blocks : ProductFormat::elements, copy_width(model), model.element_bytes);
}

// The probability that none of `taken` different items out of `all` is among `marked` of these.
double none_of(std::int64_t marked, std::int64_t taken, std::int64_t all) {
  double probability = 1;
  for (std::int64_t i = 0; i < taken; ++i) {
    probability *= static_cast<double>(std::max<std::int64_t>(0, all - marked - i)) / static_cast<double>(all - i);
  }
  return probability;
}

// The probability that a token has one of the experts [first, last). Goes through the groups that have some of them,
// with the probability of each number of groups chosen so far and of experts that the token may have in them.
double has_one_of(const MixtureOfExperts& moe, std::int64_t first, std::int64_t last) {
  const std::int64_t of_group = moe.experts / moe.groups;
  std::map<std::pair<std::int64_t, std::int64_t>, double> states{{{0, 0}, 1.0}};
  std::int64_t seen = 0;
  for (std::int64_t group = first / of_group; group * of_group < last; ++group, ++seen) {
    const std::int64_t here = std::min(last, (group + 1) * of_group) - std::max(first, group * of_group);
    std::map<std::pair<std::int64_t, std::int64_t>, double> next;
    for (const auto& [state, probability] : states) {
      const auto [chosen, reached] = state;
      const double take = static_cast<double>(moe.groups_per_token - chosen) / static_cast<double>(moe.groups - seen);
      if (take > 0) next[{chosen + 1, reached + here}] += probability * take;
      if (take < 1) next[state] += probability * (1 - take);
    }
    states = std::move(next);
  }
  double found = 0;
  for (const auto& [state, probability] : states) {
    found += probability * (1 - none_of(state.second, moe.experts_per_token, moe.groups_per_token * of_group));
  }
  return found;
}

}  // namespace

std::vector<double> zipf_shares(const MixtureOfExperts& moe, double s, std::uint64_t seed) {
  const auto experts = static_cast<std::size_t>(moe.experts);
  std::vector<double> shares;
  shares.reserve(experts);
  for (std::size_t rank = 1; rank <= experts; ++rank) shares.push_back(std::pow(static_cast<double>(rank), -s));
  // Most popular first: the excess of the first ones is spread over those behind them.
  const double most = 1 / static_cast<double>(moe.experts_per_token);
  double left = 1;
  // Sums from the least popular one on: in sums with the first ones, and at last by themselves, they are nothing.
  std::vector<double> from_here(experts);
  std::partial_sum(shares.rbegin(), shares.rend(), from_here.rbegin());
  for (std::size_t i = 0; i < experts; ++i) {
    const double part = from_here[i] > 0 ? shares[i] / from_here[i] : 1 / static_cast<double>(experts - i);
    shares[i] = std::min(most, left * part);
    left -= shares[i];
  }
  RandomStream random(seed, "popularity of experts");
  for (std::size_t i = experts; i > 1; --i) std::swap(shares[i - 1], shares[random.below(i)]);
  return shares;
}

double kept_copies(const Transformer& model, const ExpertLayout& layout) {
  if (!model.moe || !layout.capacity_factor) return 1;
  double kept = 0;
  for (std::int64_t e = 0; e < model.moe->experts; ++e) kept += share_of_expert(*model.moe, layout, e);
  return std::min(1.0, kept);
}

std::int64_t expert_ranks(const ExpertDivision& division, std::int64_t tp) {
  return std::max<std::int64_t>(1, division.devices() / tp);
}

ExpertTokens tokens_inside(std::int64_t tokens, std::int64_t tp, std::int64_t devices) {
  if (devices == 1) return {tokens, tokens};
  const std::int64_t most = divided(tokens, tp);
  return {most, std::min(most * devices, tokens)};
}

std::int64_t ExpertRows::computed() const {
  return sum_of(slowest);
}

std::int64_t ExpertRows::received() const {
  return divided(computed(), etp);
}

ExpertRows expert_rows(const MixtureOfExperts& moe, const ExpertLayout& layout, const ExpertTokens& tokens) {
  HDPSIM_CHECK(layout.ep >= 1 && moe.experts % layout.ep == 0, "{} experts on {} devices", moe.experts, layout.ep);
  const std::vector<std::int64_t> rows = rows_by_expert(moe, layout, tokens.all * moe.experts_per_token);
  const std::size_t per_device = rows.size() / static_cast<std::size_t>(layout.ep);
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(fullest_device(rows, per_device));
  const std::int64_t kept = sum_of(rows);
  ExpertRows found;
  found.etp = layout.division().cut(1);
  found.slowest.assign(first, first + static_cast<std::ptrdiff_t>(per_device));
  found.even.assign(per_device, divided(kept, moe.experts));
  const std::int64_t copies = tokens.most * moe.experts_per_token;
  // Dropped copies are spread over the devices in proportion to their copies.
  found.sent = tokens.all == 0 ? 0 : std::min(copies, divided(kept * tokens.most, tokens.all));
  if (layout.compression) compress(found, layout.compression->rate);
  return found;
}

double hottest_device(const MixtureOfExperts& moe, const ExpertLayout& layout) {
  constexpr std::int64_t many = 1 << 20;
  const ExpertRows rows = expert_rows(moe, layout, {many, many * layout.ep});
  return static_cast<double>(rows.computed()) / static_cast<double>(many * moe.experts_per_token);
}

ExpertUse expert_use(const Transformer& model, const ExpertLayout& layout) {
  if (!model.moe) return {};
  return {layout.ep, hottest_device(*model.moe, layout), layout.etp};
}

Bytes expert_exchange_bytes(const Transformer& model, const ExpertRows& rows, bool fp8) {
  return Bytes(std::max(rows.sent, rows.received()) * bytes_of_copy(model, fp8));
}

Bytes expert_gather_bytes(const Transformer& model, const ExpertRows& rows, bool fp8) {
  return Bytes(rows.computed() * bytes_of_copy(model, fp8));
}

Bytes token_exchange_bytes(const Transformer& model, const ExpertRows& rows, bool fp8) {
  return Bytes(divided(std::max(rows.sent, rows.received()), model.moe->experts_per_token) * bytes_of_copy(model, fp8));
}

double mean_parts(const MixtureOfExperts& moe, std::int64_t parts) {
  HDPSIM_CHECK(parts > 0 && moe.experts % parts == 0, "{} experts in {} parts", moe.experts, parts);
  const std::int64_t each = moe.experts / parts;
  double sum = 0;
  for (std::int64_t part = 0; part < parts; ++part) sum += has_one_of(moe, part * each, (part + 1) * each);
  return sum;
}

}  // namespace hdpsim
