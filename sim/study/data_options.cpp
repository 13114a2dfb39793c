#include "sim/study/data_options.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "sim/base/machine_limits.h"
#include "sim/base/quantity_text.h"
#include "sim/document/key_table.h"
#include "sim/study/lengths.h"

namespace hdpsim {
namespace {

constexpr Range tokens_of_sequence{1, limits::most_tokens_of_sequence};
constexpr Range tokens_of_step{1, limits::most_tokens_of_step};
constexpr Range steps_range{1, 1e6};
constexpr Range seeds{0, 9e15};

// Lengths are read by the catalog, which caches them.
const KeyTable<DataOptions>& data_table() {
  static const auto made = [] {
    KeyTable<DataOptions> data("the data");
    data.add({"lengths",
              either_shape({shape_of(KeyShape::Kind::text), lengths_shape()}),
              "",
              "where the lengths of sequences come from; a text is the path of a file",
              {.required = true}},
             [](const Value&, DataOptions&, Diagnostics&) {});
    data.count("context", tokens_of_sequence, at(&DataOptions::batch, &BatchOptions::context), "the longest sequence",
               {.unit = "tokens", .required = true});
    data.count("tokens_per_step", tokens_of_step, at(&DataOptions::batch, &BatchOptions::tokens_per_step),
               "tokens of one optimizer step, which has 64Mi sequences at most", {.unit = "tokens", .required = true});
    data.count("steps", steps_range, at(&DataOptions::steps), "how many steps are simulated",
               {.unit = "steps", .required = true});
    data.word("overlong", "way with overlong sequences",
              {{"split", Overlong::split}, {"truncate", Overlong::truncate}, {"drop", Overlong::drop}},
              at(&DataOptions::batch, &BatchOptions::overlong), "what becomes of documents longer than the context",
              {.written = always_written});
    data.count("seed", seeds, at(&DataOptions::batch, &BatchOptions::seed),
               "the seed of generated lengths, and of the order of a file's documents", {.written = always_written});
    return data;
  }();
  return made;
}

// A step of 16 million sequences peaks at 2.3 GB, with its batch, plan and program (sim/README.md, cost of a
// simulation).
constexpr double bytes_a_sequence = 150;

// Steps that a file names take their size from it, and from how its documents are split.
const Position& deciding_place(const BatchOptions& options, const BatchSource& batches) {
  const std::optional<TraceUse> use = batches.use(1);
  return use && use->order == TraceOrder::steps ? options.context_position : options.tokens_position;
}

}  // namespace

const std::vector<KeyText>& data_keys() {
  return data_table().texts();
}

DataOptions read_data(const Value& value, Catalog& catalog, Diagnostics& diagnostics) {
  DataOptions data;
  const KeyReading reading = data_table().read(value, data, diagnostics);
  if (reading.is_right("lengths") && value.find("lengths") != nullptr) {
    const Value& stated = *value.find("lengths");
    if (auto lengths = catalog.lengths(stated, diagnostics)) {
      data.lengths = std::move(*lengths);
      data.lengths.order = catalog.order_of(data.lengths, stated, data.batch.seed);
    }
  }
  BatchOptions& batch = data.batch;
  if (const Value* context = value.find("context")) batch.context_position = context->position;
  if (const Value* tokens = value.find("tokens_per_step")) batch.tokens_position = tokens->position;
  if (batch.context > 0 && batch.tokens_per_step > 0 && batch.tokens_per_step < batch.context) {
    diagnostics.error(value.find("tokens_per_step")->position,
                      fmt::format("a step of {} tokens cannot hold a sequence of the context, {}",
                                  count_text(batch.tokens_per_step), count_text(batch.context)),
                      "use a larger 'tokens_per_step' or a shorter 'context'");
  }
  return data;
}

void check_step_size(const BatchOptions& options, const BatchSource& batches, Diagnostics& diagnostics) {
  const double sequences = batches.sequences_per_step();
  const Position& place = deciding_place(options, batches);
  if (sequences > static_cast<double>(most_sequences_of_step)) {
    diagnostics.error(place,
                      fmt::format("a step has about {} sequences: at most {} are simulated", short_number(sequences),
                                  count_text(most_sequences_of_step)),
                      "take fewer 'tokens_per_step', longer sequences or a longer 'context'");
    return;
  }
  require_memory(fmt::format("{}:{}:{}: a step of about {} sequences", place.file, place.line, place.column,
                             short_number(sequences)),
                 sequences * bytes_a_sequence);
}

}  // namespace hdpsim
