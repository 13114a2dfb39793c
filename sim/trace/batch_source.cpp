#include "sim/trace/batch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/division.h"

namespace hdpsim {
namespace {

constexpr const char* context_help = "split or truncate long documents, or take a longer context";

// The number of tokens of a document that are trained on.
std::int64_t kept_tokens(std::int64_t tokens, const BatchOptions& options) {
  if (tokens <= options.context || options.overlong == Overlong::split) return tokens;
  return options.overlong == Overlong::truncate ? options.context : 0;
}

// The sequences that so many tokens of one document become.
double pieces_of(std::int64_t kept, std::int64_t context) {
  return static_cast<double>(kept / context + (kept % context != 0 ? 1 : 0));
}

// Appends the tokens [from, kept) of a document, in pieces that end at multiples of the context, at most `budget`
// tokens in all. Returns where it stopped.
std::int64_t append_pieces(Batch& batch, std::int64_t document, std::int64_t from, std::int64_t kept,
                           std::int64_t budget, std::int64_t context) {
  const std::int64_t end = kept - from <= budget ? kept : from + budget;
  while (from < end) {
    const std::int64_t piece_end = std::min(end, (from / context + 1) * context);
    batch.sequences.push_back({piece_end - from, document});
    from = piece_end;
  }
  return end;
}

// So many dropped documents of a step, and so many for each that fits, mean that practically none fits.
constexpr std::int64_t most_dropped = 1'000'000;
constexpr std::int64_t most_dropped_for_each = 1'000;

class GeneratedBatches : public BatchSource {
 public:
  GeneratedBatches(LengthDistributionPtr distribution, const BatchOptions& options)
      : distribution_(std::move(distribution)), options_(options) {}

  [[nodiscard]] Batch step(std::int64_t k) const override {
    HDPSIM_CHECK(k >= 0, "step {}", k);
    RandomStream random(options_.seed, "lengths", static_cast<std::uint64_t>(k));
    Batch batch;
    std::int64_t left = options_.tokens_per_step;
    std::int64_t dropped = 0;
    constexpr std::int64_t sampled = 4096;  // documents after which the sequences of a step are known well enough
    for (std::int64_t document = 0; left > 0;) {
      const std::int64_t kept = kept_tokens(distribution_->draw(random), options_);
      if (kept > 0) {
        left -= append_pieces(batch, document++, 0, kept, left, options_.context);
        if (document == sampled) reserve_rest(batch, left);
      } else if (++dropped >= most_dropped + most_dropped_for_each * document) {
        refuse(document, dropped + document);
      }
    }
    return batch;
  }

  // By the middle of every 4096th of the documents.
  [[nodiscard]] double sequences_per_step() const override {
    constexpr int parts = 4096;
    double tokens = 0;
    double pieces = 0;
    for (int i = 0; i < parts; ++i) {
      const std::int64_t kept = kept_tokens(distribution_->quantile((i + 0.5) / parts), options_);
      tokens += static_cast<double>(kept);
      pieces += pieces_of(kept, options_.context);
    }
    return tokens > 0 ? pieces * static_cast<double>(options_.tokens_per_step) / tokens : 0;
  }

 private:
  // Makes room for the sequences of the tokens that are left, as many a token as so far, so that they seldom move.
  void reserve_rest(Batch& batch, std::int64_t left) const {
    constexpr double slack = 1.05;
    const auto drawn = static_cast<double>(options_.tokens_per_step - left);
    const double all = static_cast<double>(batch.sequences.size()) * static_cast<double>(options_.tokens_per_step);
    batch.sequences.reserve(static_cast<std::size_t>(std::min(slack * all / drawn, 1e8)));
  }

  [[noreturn]] void refuse(std::int64_t fit, std::int64_t drawn) const {
    const std::string some = fit == 0 ? "none" : fmt::format("only {}", fit);
    throw InputError(options_.context_position,
                     fmt::format("{} of {} documents fit{} the context of {} tokens", some, drawn, fit > 1 ? "" : "s",
                                 options_.context),
                     context_help);
  }

  LengthDistributionPtr distribution_;
  BatchOptions options_;
};

using TracePtr = std::shared_ptr<const LengthTrace>;

// All fields except how often the trace is read.
TraceUse use_of(const LengthTrace& trace, const BatchOptions& options, TraceOrder order) {
  TraceUse use{.documents = std::ssize(trace.tokens),
               .order = order,
               .context = options.context,
               .fate = options.overlong,
               .column = trace.column,
               .halves = trace.halves};
  double tokens = 0;
  double overlong_tokens = 0;
  for (const std::int64_t length : trace.tokens) {
    tokens += static_cast<double>(length);
    if (length <= options.context) continue;
    ++use.overlong;
    overlong_tokens += static_cast<double>(length);
  }
  use.overlong_documents = static_cast<double>(use.overlong) / static_cast<double>(use.documents);
  use.overlong_tokens = overlong_tokens / tokens;
  return use;
}

/// Step k is the tokens [k B, (k+1) B) of the trace repeated for ever.
class CutTrace : public BatchSource {
 public:
  CutTrace(TracePtr trace, const BatchOptions& options, RowOrder order)
      : trace_(std::move(trace)),
        order_(std::move(order)),
        options_(options),
        use_(use_of(*trace_, options, order_ ? TraceOrder::shuffle : TraceOrder::file)) {
    for (std::size_t i = 0; i < trace_->tokens.size(); ++i) {
      if (i % documents_per_mark == 0) marks_.push_back(lap_tokens_);
      lap_tokens_ += kept(i);
      lap_pieces_ += pieces_of(kept(i), options_.context);
    }
    if (lap_tokens_ == 0) {
      throw InputError(options_.context_position,
                       fmt::format("no document of the trace fits the context of {} tokens", options_.context),
                       context_help);
    }
  }

  [[nodiscard]] Batch step(std::int64_t k) const override {
    HDPSIM_CHECK(k >= 0 && k < INT64_MAX / options_.tokens_per_step, "step {}", k);
    const std::int64_t start = k * options_.tokens_per_step;
    std::int64_t lap = start / lap_tokens_;
    auto [row, from] = place_of(start % lap_tokens_);
    const std::size_t rows = trace_->tokens.size();
    Batch batch;
    for (std::int64_t left = options_.tokens_per_step; left > 0;) {
      const std::int64_t document = lap * static_cast<std::int64_t>(rows) + static_cast<std::int64_t>(row_at(row));
      left -= append_pieces(batch, document, from, kept(row), left, options_.context) - from;
      from = 0;
      if (++row == rows) {
        row = 0;
        ++lap;
      }
    }
    return batch;
  }

  [[nodiscard]] double sequences_per_step() const override {
    return lap_pieces_ * static_cast<double>(options_.tokens_per_step) / static_cast<double>(lap_tokens_);
  }

  // The last step may take tokens from the beginning of the trace to be full.
  [[nodiscard]] std::optional<std::int64_t> lap() const override {
    return divided(lap_tokens_, options_.tokens_per_step);
  }

  [[nodiscard]] std::optional<TraceUse> use(std::int64_t steps) const override {
    const double tokens = static_cast<double>(steps) * static_cast<double>(options_.tokens_per_step);
    TraceUse use = use_;
    use.times_read = tokens / static_cast<double>(lap_tokens_);
    return use;
  }

 private:
  static constexpr std::size_t documents_per_mark = 1024;

  /// Places are counted in the order in which documents are read.
  [[nodiscard]] std::size_t row_at(std::size_t place) const { return order_ ? (*order_)[place] : place; }
  [[nodiscard]] std::int64_t kept(std::size_t place) const {
    return kept_tokens(trace_->tokens[row_at(place)], options_);
  }

  /// The place of the document of a token of the lap, and the token's place in it.
  [[nodiscard]] std::pair<std::size_t, std::int64_t> place_of(std::int64_t token) const {
    const auto mark = std::upper_bound(marks_.begin(), marks_.end(), token) - 1;
    std::size_t row = static_cast<std::size_t>(mark - marks_.begin()) * documents_per_mark;
    for (token -= *mark; token >= kept(row); ++row) token -= kept(row);
    return {row, token};
  }

  TracePtr trace_;
  RowOrder order_;
  BatchOptions options_;
  TraceUse use_;
  std::vector<std::int64_t> marks_;  // tokens before every 1024th document
  std::int64_t lap_tokens_ = 0;
  double lap_pieces_ = 0;
};

/// Replays the steps that a trace names.
class SteppedTrace : public BatchSource {
 public:
  SteppedTrace(TracePtr trace, const BatchOptions& options)
      : trace_(std::move(trace)), options_(options), use_(use_of(*trace_, options, TraceOrder::steps)) {
    rows_.resize(trace_->tokens.size());
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
    const auto& steps = trace_->steps;
    std::stable_sort(rows_.begin(), rows_.end(), [&](std::size_t a, std::size_t b) { return steps[a] < steps[b]; });
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (i == 0 || steps[rows_[i]] != steps[rows_[i - 1]]) first_.push_back(i);
    }
    first_.push_back(rows_.size());
    check_none_empty();
  }

  [[nodiscard]] Batch step(std::int64_t k) const override {
    HDPSIM_CHECK(k >= 0, "step {}", k);
    const std::size_t at = static_cast<std::size_t>(k) % (first_.size() - 1);
    Batch batch;
    for (std::size_t i = first_[at]; i < first_[at + 1]; ++i) {
      const std::int64_t kept = kept_tokens(trace_->tokens[rows_[i]], options_);
      static_cast<void>(
          append_pieces(batch, static_cast<std::int64_t>(rows_[i]), 0, kept, INT64_MAX, options_.context));
    }
    return batch;
  }

  [[nodiscard]] std::optional<std::int64_t> lap() const override { return std::ssize(first_) - 1; }

  [[nodiscard]] double sequences_per_step() const override {
    double most = 0;
    for (std::size_t at = 0; at + 1 < first_.size(); ++at) {
      double pieces = 0;
      for (std::size_t i = first_[at]; i < first_[at + 1]; ++i) {
        pieces += pieces_of(kept_tokens(trace_->tokens[rows_[i]], options_), options_.context);
      }
      most = std::max(most, pieces);
    }
    return most;
  }

  [[nodiscard]] std::optional<TraceUse> use(std::int64_t steps) const override {
    TraceUse use = use_;
    use.times_read = static_cast<double>(steps) / static_cast<double>(std::ssize(first_) - 1);
    return use;
  }

 private:
  void check_none_empty() const {
    Diagnostics problems;
    for (std::size_t at = 0; at + 1 < first_.size() && problems.sorted().size() < 20; ++at) {
      const bool empty = std::all_of(rows_.begin() + static_cast<std::ptrdiff_t>(first_[at]),
                                     rows_.begin() + static_cast<std::ptrdiff_t>(first_[at + 1]),
                                     [&](std::size_t row) { return kept_tokens(trace_->tokens[row], options_) == 0; });
      if (!empty) continue;
      problems.error(options_.context_position,
                     fmt::format("no document of step {} fits the context of {} tokens",
                                 trace_->steps[rows_[first_[at]]], options_.context),
                     context_help);
    }
    problems.throw_if_any();
  }

  TracePtr trace_;
  BatchOptions options_;
  TraceUse use_;
  std::vector<std::size_t> rows_;   // in order of their steps
  std::vector<std::size_t> first_;  // begin of each step in rows_, and the end
};

// InputError if an option is out of range.
void check(const BatchOptions& options) {
  Diagnostics problems;
  if (options.context < 1) {
    problems.error({}, fmt::format("context {} is below 1 token", options.context));
  }
  if (options.tokens_per_step < 1) {
    problems.error({}, fmt::format("tokens_per_step {} is below 1 token", options.tokens_per_step));
  }
  problems.throw_if_any();
}

void check(const LengthTrace& trace) {
  if (trace.tokens.empty()) throw InputError("the trace holds no lengths");
  HDPSIM_CHECK(trace.steps.empty() || trace.steps.size() == trace.tokens.size(), "{} steps of {} lengths",
               trace.steps.size(), trace.tokens.size());
  std::int64_t sum = 0;
  for (const std::int64_t tokens : trace.tokens) {
    HDPSIM_CHECK(tokens >= 1 && tokens <= longest_length, "tokens = {}", tokens);
    if (__builtin_add_overflow(sum, tokens, &sum)) throw InputError("the trace holds more than 2^63 tokens");
  }
}

class BatchLengths : public LengthSource {
 public:
  BatchLengths(const BatchSource& batches, std::int64_t steps) : batches_(batches), steps_(steps) {}

  [[nodiscard]] std::optional<Length> next() override {
    while (at_ == batch_.sequences.size()) {
      if (step_ + 1 == steps_) return std::nullopt;
      batch_ = batches_.step(++step_);
      at_ = 0;
    }
    return Length{batch_.sequences[at_++].tokens, step_};
  }

 private:
  const BatchSource& batches_;
  std::int64_t steps_;
  std::int64_t step_ = -1;
  Batch batch_;
  std::size_t at_ = 0;
};

}  // namespace

BatchSourcePtr make_batches(LengthDistributionPtr distribution, const BatchOptions& options) {
  HDPSIM_CHECK(distribution != nullptr, "no distribution");
  check(options);
  return std::make_unique<GeneratedBatches>(std::move(distribution), options);
}

BatchSourcePtr make_batches(std::shared_ptr<const LengthTrace> trace, const BatchOptions& options, RowOrder order) {
  HDPSIM_CHECK(trace != nullptr, "no trace");
  HDPSIM_CHECK(order == nullptr || order->size() == trace->tokens.size(), "an order of {} of {} documents",
               order->size(), trace->tokens.size());
  check(options);
  check(*trace);
  if (trace->steps.empty()) return std::make_unique<CutTrace>(std::move(trace), options, std::move(order));
  return std::make_unique<SteppedTrace>(std::move(trace), options);
}

std::unique_ptr<LengthSource> make_batch_lengths(const BatchSource& batches, std::int64_t steps) {
  HDPSIM_CHECK(steps >= 0, "steps = {}", steps);
  return std::make_unique<BatchLengths>(batches, steps);
}

}  // namespace hdpsim
