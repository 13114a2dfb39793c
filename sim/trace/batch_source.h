#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/trace/halves.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"
#include "sim/trace/sequence.h"

namespace hdpsim {

/// The treatment of a document longer than the context: `split` into pieces of the context's length and a rest,
/// `truncate` to the context, or `drop` it.
enum class Overlong { split, truncate, drop };

struct BatchOptions {
  std::int64_t context = 0;          ///< The longest sequence, in tokens.
  std::int64_t tokens_per_step = 0;  ///< Tokens of one batch.
  Overlong overlong = Overlong::split;
  std::uint64_t seed = 1;          ///< Seed of generated lengths, and of the order of a trace.
  Position context_position = {};  ///< Where the context is stated, which messages name, ...
  Position tokens_position = {};   ///< ... and where the tokens of a step are.
};

/// How a run uses a trace: how often it reads it, and how the context changes its documents.
struct TraceUse {
  std::int64_t documents = 0;  ///< Documents of the trace.
  double times_read = 0;       ///< Tokens that the steps take over tokens of the trace; above 1 it has begun again.
  TraceOrder order = TraceOrder::file;  ///< In which the documents are read.
  std::int64_t context = 0;             ///< The longest sequence, in tokens.
  std::int64_t overlong = 0;            ///< Documents that are longer than that, ...
  double overlong_documents = 0;        ///< ... as a share of all, ...
  double overlong_tokens = 0;           ///< ... and the share of all tokens that they hold.
  Overlong fate = Overlong::split;
  std::string column{};            ///< LengthTrace::column.
  std::optional<Halves> halves{};  ///< LengthTrace::halves.

  friend bool operator==(const TraceUse&, const TraceUse&) = default;
};

/// The batches of a training run. Any step can be asked for, in any order and from any thread: step k is a pure
/// function of what the source was made from, and takes time in proportion to its sequences.
class BatchSource {
 public:
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  virtual ~BatchSource() = default;

  /// The batch of step k >= 0.
  [[nodiscard]] virtual Batch step(std::int64_t k) const = 0;
  /// Steps after which a trace has been used once; empty for lengths that are drawn.
  [[nodiscard]] virtual std::optional<std::int64_t> lap() const { return std::nullopt; }
  /// The sequences that a step has, in the mean or at most, without making one; 0 if that is not known.
  [[nodiscard]] virtual double sequences_per_step() const { return 0; }
  /// How steps 0 ... steps-1 use a trace; empty for lengths that are drawn.
  [[nodiscard]] virtual std::optional<TraceUse> use(std::int64_t /*steps*/) const { return std::nullopt; }
};

using BatchSourcePtr = std::unique_ptr<const BatchSource>;

/// Draws documents from RandomStream(seed, "lengths", k) until the budget is met exactly: the last sequence is cut to
/// fit, and its remainder is never used, since every step draws its own documents.
[[nodiscard]] BatchSourcePtr make_batches(LengthDistributionPtr distribution, const BatchOptions& options);

/// A trace without steps is read in the given order and cut into consecutive runs of tokens_per_step tokens (counted
/// after `overlong` is applied); a sequence that passes the end of a step continues in the next one, so that no token
/// is lost or used twice, and after the last document the trace starts again, in the same order. `document` is lap x
/// documents + row. A trace with steps replays them, in ascending order of their numbers and again from the first after
/// the last one; neither the order nor tokens_per_step is applied to them. `document` is the row.
[[nodiscard]] BatchSourcePtr make_batches(std::shared_ptr<const LengthTrace> trace, const BatchOptions& options,
                                          RowOrder order = nullptr);

/// The sequences of steps 0 ... steps-1 with their step numbers, for a file that replays them.
/// `batches` must outlive the result.
[[nodiscard]] std::unique_ptr<LengthSource> make_batch_lengths(const BatchSource& batches, std::int64_t steps);

}  // namespace hdpsim
