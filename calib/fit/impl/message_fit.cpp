#include <algorithm>
#include <cmath>
#include <limits>

#include "calib/fit/impl/cross_validation.h"
#include "calib/fit/impl/families.h"
#include "calib/fit/impl/linear_fits.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

constexpr std::size_t most_lines = 4;
constexpr std::size_t least_samples_a_line = 2;
constexpr std::size_t most_cuts = 64;  // places where one line may follow another

double seconds_of(const Line& line, double bytes) {
  return line.latency_s + line.byte_s * bytes;
}

double squared_error(const Line& line, double bytes, double seconds) {
  const double error = seconds_of(line, bytes) / seconds - 1;
  return error * error;
}

/// A lower envelope of a few lines: first the sizes are divided into intervals with a line each so that the error is
/// least (by dynamic programming), then each line is fitted again to the sizes at which it is the envelope, until none
/// changes.
class EnvelopeFit {
 public:
  EnvelopeFit(Transfers messages, std::size_t lines)
      : messages_(std::move(messages)),
        lines_wanted_(std::min(lines, std::max<std::size_t>(1, messages_.bytes.size() / least_samples_a_line))) {}

  [[nodiscard]] std::vector<Line> lines() const {
    std::vector<Line> lines = by_intervals();
    constexpr int most_rounds = 20;
    double error = total_error(lines);
    for (int round = 0; round < most_rounds; ++round) {
      std::vector<Line> refined = refitted(lines);
      const double refined_error = total_error(refined);
      if (!(refined_error < error)) break;
      lines = std::move(refined);
      error = refined_error;
    }
    return lines;
  }

 private:
  [[nodiscard]] Line line_of(std::size_t begin, std::size_t end) const {
    const auto first = static_cast<std::ptrdiff_t>(begin);
    const auto last = static_cast<std::ptrdiff_t>(end);
    return fit_line({messages_.bytes.begin() + first, messages_.bytes.begin() + last},
                    {messages_.seconds.begin() + first, messages_.seconds.begin() + last});
  }

  [[nodiscard]] double error_of(const Line& line, std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += squared_error(line, messages_.bytes[i], messages_.seconds[i]);
    return sum;
  }

  // least[l][end]: the least error of the first `end` messages with l lines; cut[l][end]: where the last one begins.
  // Lines begin and end at every `stride`-th message, so that the time is linear in the number of messages.
  [[nodiscard]] std::vector<Line> by_intervals() const {
    const std::size_t count = messages_.bytes.size();
    const double never = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> least(lines_wanted_ + 1, std::vector<double>(count + 1, never));
    std::vector<std::vector<std::size_t>> cut(lines_wanted_ + 1, std::vector<std::size_t>(count + 1, 0));
    least[0][0] = 0;
    const std::size_t stride = (count - 1) / most_cuts + 1;
    const auto next = [&](std::size_t at) { return at < count ? std::min(count, at + stride) : count + 1; };
    for (std::size_t begin = 0; begin < count; begin = next(begin)) {
      const std::size_t first_end = std::min(count, begin + std::max(stride, least_samples_a_line));
      for (std::size_t end = first_end; end <= count; end = next(end)) {
        const double error = error_of(line_of(begin, end), begin, end);
        for (std::size_t lines = 1; lines <= lines_wanted_; ++lines) {
          if (!(least[lines - 1][begin] + error < least[lines][end])) continue;
          least[lines][end] = least[lines - 1][begin] + error;
          cut[lines][end] = begin;
        }
      }
    }
    std::vector<Line> found;
    std::size_t end = count;
    for (std::size_t lines = lines_wanted_; lines > 0 && end > 0; --lines) {
      found.push_back(line_of(cut[lines][end], end));
      end = cut[lines][end];
    }
    return found;
  }

  [[nodiscard]] std::size_t bounding(const std::vector<Line>& lines, double bytes) const {
    const auto compare = [&](const Line& a, const Line& b) { return seconds_of(a, bytes) < seconds_of(b, bytes); };
    return static_cast<std::size_t>(std::min_element(lines.begin(), lines.end(), compare) - lines.begin());
  }

  [[nodiscard]] double total_error(const std::vector<Line>& lines) const {
    double sum = 0;
    for (std::size_t i = 0; i < messages_.bytes.size(); ++i) {
      sum += squared_error(lines[bounding(lines, messages_.bytes[i])], messages_.bytes[i], messages_.seconds[i]);
    }
    return sum;
  }

  // Drops lines that are nowhere the envelope.
  [[nodiscard]] std::vector<Line> refitted(const std::vector<Line>& lines) const {
    std::vector<Transfers> own(lines.size());
    for (std::size_t i = 0; i < messages_.bytes.size(); ++i) {
      Transfers& of_line = own[bounding(lines, messages_.bytes[i])];
      of_line.bytes.push_back(messages_.bytes[i]);
      of_line.seconds.push_back(messages_.seconds[i]);
    }
    std::vector<Line> refined;
    for (const Transfers& of_line : own) {
      if (!of_line.bytes.empty()) refined.push_back(fit_line(of_line.bytes, of_line.seconds));
    }
    return refined;
  }

  Transfers messages_;
  std::size_t lines_wanted_;
};

/// Either an envelope of this many lines or a curve.
struct Form {
  std::size_t lines = 0;
  int octaves_between_knots = 0;
  ByteCosts costs = ByteCosts::rising;
};

MessageFit fitted(const Transfers& messages, const Form& form) {
  MessageFit fit;
  if (form.lines == 0) {
    fit.curve =
        fit_curve(messages, messages.bytes.front(), messages.bytes.back(), form.octaves_between_knots, form.costs);
    return fit;
  }
  for (const Line& line : EnvelopeFit(messages, form.lines).lines()) {
    fit.lines.push_back({Duration::seconds(line.latency_s), bandwidth_of(line.byte_s)});
  }
  return fit;
}

CandidateFit candidate(const Transfers& messages, const Form& form) {
  const auto predict = [&messages, form](const Indices& known, const Indices& asked) {
    std::vector<double> predictions;
    if (known.empty()) return std::vector<double>(asked.size(), 0);
    const MessageFit fit = fitted({selected(messages.bytes, known), selected(messages.seconds, known)}, form);
    for (const std::size_t i : asked) predictions.push_back(fitted_seconds(fit, messages.bytes[i]));
    return predictions;
  };
  return {"", predict};
}

std::vector<Form> forms() {
  std::vector<Form> forms;
  for (std::size_t lines = 1; lines <= most_lines; ++lines) forms.push_back({.lines = lines});
  for (const ByteCosts costs : {ByteCosts::rising, ByteCosts::free}) {
    for (const int octaves : {4, 3, 2, 1}) forms.push_back({.octaves_between_knots = octaves, .costs = costs});
  }
  return forms;
}

}  // namespace

MessageFit fit_messages(const std::vector<MessageSample>& samples, std::uint64_t seed) {
  std::vector<MessageSample> by_size = samples;
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const MessageSample& a, const MessageSample& b) { return a.bytes < b.bytes; });
  const Transfers messages = transfers_of(by_size);
  const std::vector<Form> all = forms();
  std::vector<CandidateFit> candidates;
  candidates.reserve(all.size());
  for (const Form& form : all) candidates.push_back(candidate(messages, form));
  const Indices held = inner_indices(by_size.size());
  const Choice choice = choose(candidates, messages.seconds, held, seed);
  MessageFit fit = fitted(messages, all[choice.candidate]);
  fit.link = samples.front().link;
  fit.kind = samples.front().kind;
  fit.ranks = samples.front().ranks;
  fit.least = by_size.front().bytes;
  fit.most = by_size.back().bytes;
  fit.quality = quality(choice.predictions, messages.seconds, held);
  return fit;
}

}  // namespace hdpsim::calib
