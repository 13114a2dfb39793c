#include "sim/trace/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity_text.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::array percents{1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99};

double share(Int128 part, Int128 whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

double deviation(const LengthTally& tally) {
  if (tally.min() == tally.max()) return 0;  // the difference below would only be rounding
  const auto count = static_cast<double>(tally.total().count);
  const double mean = static_cast<double>(tally.total().tokens) / count;
  return std::sqrt(std::max(0.0, static_cast<double>(tally.total().squares) / count - mean * mean));
}

}  // namespace

LengthTally tally(LengthSource& source) {
  LengthTally tally;
  while (const auto length = source.next()) tally.add(length->tokens);
  return tally;
}

Description describe(const LengthTally& tally) {
  const LengthTally::Sums& total = tally.total();
  if (total.count == 0) throw InputError("there are no lengths to describe");
  if (total.tokens > INT64_MAX) throw InputError("the lengths hold more than 2^63 tokens in all");
  Description description{.count = total.count,
                          .tokens = static_cast<std::int64_t>(total.tokens),
                          .mean = static_cast<double>(total.tokens) / static_cast<double>(total.count),
                          .deviation = deviation(tally),
                          .min = tally.min(),
                          .max = tally.max(),
                          .percentiles = {},
                          .shares = {}};
  for (const double percent : percents) description.percentiles.push_back({percent, tally.quantile(percent / 100)});
  for (int exponent = first_threshold_log2; exponent <= last_threshold_log2; ++exponent) {
    const LengthTally::Sums above = tally.above(exponent);
    description.shares.push_back({std::int64_t{1} << exponent, share(above.count, total.count),
                                  share(above.tokens, total.tokens), share(above.squares, total.squares)});
  }
  return description;
}

Description describe(LengthSource& source) {
  LengthTally tally;
  HalvesTally halves;
  while (const auto length = source.next()) {
    tally.add(length->tokens);
    halves.add(length->tokens);
  }
  Description description = describe(tally);
  description.halves = halves.halves();
  return description;
}

std::string text_of(const Description& d) {
  std::string text = fmt::format("{:<12}{:>16}\n", "sequences", d.count);
  text += fmt::format("{:<12}{:>16}\n", "tokens", d.tokens);
  text += fmt::format("{:<12}{:>16.1f}\n", "mean", d.mean);
  text += fmt::format("{:<12}{:>16.1f}\n", "deviation", d.deviation);
  text += fmt::format("{:<12}{:>16}\n", "min", d.min);
  for (const auto& p : d.percentiles) text += fmt::format("{:<12}{:>16}\n", fmt::format("p{}", p.percent), p.length);
  text += fmt::format("{:<12}{:>16}\n", "max", d.max);
  text += fmt::format("\n{:<12}{:>16}{:>16}{:>16}\n", "above", "sequences %", "tokens %", "sum s^2 %");
  for (const auto& s : d.shares) {
    text += fmt::format("{:<12}{:>16.4f}{:>16.4f}{:>16.4f}\n", count_text(s.above), 100 * s.sequences, 100 * s.tokens,
                        100 * s.squares);
  }
  if (d.halves && d.halves->differ) text += fmt::format("\n{}\n", halves_note(*d.halves));
  return text;
}

std::string csv_of(const Description& d) {
  std::string text = "quantity,at,value\n";
  text += fmt::format("sequences,,{}\ntokens,,{}\nmean,,{}\ndeviation,,{}\n", d.count, d.tokens, d.mean, d.deviation);
  text += fmt::format("min,,{}\nmax,,{}\n", d.min, d.max);
  if (d.halves) {
    text += fmt::format("mean_of_half,first,{}\nmean_of_half,second,{}\n", d.halves->first_mean, d.halves->second_mean);
  }
  for (const auto& p : d.percentiles) text += fmt::format("percentile,{},{}\n", p.percent, p.length);
  for (const auto& s : d.shares) {
    text += fmt::format("sequence_share_above,{0},{1}\ntoken_share_above,{0},{2}\nsquare_share_above,{0},{3}\n",
                        s.above, s.sequences, s.tokens, s.squares);
  }
  return text;
}

Json json_of(const Description& d) {
  Json json{{"schema", "hdpsim.lengths/1"}, {"sequences", d.count}, {"tokens", d.tokens}, {"mean", d.mean},
            {"deviation", d.deviation},     {"min", d.min},         {"max", d.max}};
  json["percentiles"] = Json::array();
  for (const auto& p : d.percentiles) json["percentiles"].push_back({{"percent", p.percent}, {"length", p.length}});
  json["shares"] = Json::array();
  for (const auto& s : d.shares) {
    json["shares"].push_back(
        {{"above", s.above}, {"sequences", s.sequences}, {"tokens", s.tokens}, {"squares", s.squares}});
  }
  if (d.halves) {
    json["halves"] = {
        {"first_mean", d.halves->first_mean}, {"second_mean", d.halves->second_mean}, {"differ", d.halves->differ}};
  }
  return json;
}

}  // namespace hdpsim
