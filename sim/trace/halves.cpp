#include "sim/trace/halves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sim/base/quantity_text.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_pieces = 512;
constexpr double fewest_documents = 16;
constexpr double much = 1.5;           // between the means of halves that differ strongly
constexpr double standard_errors = 4;  // of a difference that is no chance

}  // namespace

std::string halves_note(const Halves& halves) {
  return fmt::format("the first half of the documents has {} tokens each on average, the second half {}",
                     short_number(halves.first_mean), short_number(halves.second_mean));
}

void HalvesTally::Moments::add(const Moments& other) {
  count += other.count;
  sum += other.sum;
  squares += other.squares;
  logs += other.logs;
  log_squares += other.log_squares;
}

void HalvesTally::add(std::int64_t tokens) {
  if (pieces_.empty() || pieces_.back().count == piece_) {
    if (pieces_.size() == most_pieces) {
      for (std::size_t i = 0; i < most_pieces / 2; ++i) {
        pieces_[i] = pieces_[2 * i];
        pieces_[i].add(pieces_[2 * i + 1]);
      }
      pieces_.resize(most_pieces / 2);
      piece_ *= 2;
    }
    pieces_.emplace_back();
  }
  const auto length = static_cast<double>(tokens);
  const double log = std::log(length);
  pieces_.back().add({1, length, length * length, log, log * log});
}

HalvesTally::Mean HalvesTally::mean_of(double count, double sum, double squares) {
  const double mean = sum / count;
  return {mean, std::max(0.0, squares / count - mean * mean) / (count - 1)};
}

bool HalvesTally::differ(const Mean& a, const Mean& b, double least) {
  const double difference = std::abs(a.value - b.value);
  return difference >= least && difference >= standard_errors * std::sqrt(a.variance + b.variance);
}

std::optional<Halves> HalvesTally::halves() const {
  Moments all;
  for (const Moments& piece : pieces_) all.add(piece);
  if (all.count < fewest_documents) return std::nullopt;
  Moments first;
  Moments second;
  double before = 0;
  for (const Moments& piece : pieces_) {
    (before + piece.count / 2 <= all.count / 2 ? first : second).add(piece);
    before += piece.count;
  }
  const Mean a = mean_of(first.count, first.sum, first.squares);
  const Mean b = mean_of(second.count, second.sum, second.squares);
  const Mean log_a = mean_of(first.count, first.logs, first.log_squares);
  const Mean log_b = mean_of(second.count, second.logs, second.log_squares);
  const bool differs = differ(a, b, (much - 1) * std::min(a.value, b.value)) || differ(log_a, log_b, std::log(much));
  return Halves{a.value, b.value, differs};
}

}  // namespace hdpsim
