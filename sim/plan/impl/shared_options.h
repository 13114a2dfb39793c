#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/quantity_limits.h"
#include "sim/document/key_table.h"
#include "sim/document/limits.h"

namespace hdpsim {

// Options that several policies have, with the declarations of their keys.

/// The order in which a policy that ignores loads deals out its micro-batches.
enum class DealOrder : std::uint8_t {
  data,        ///< By the place in the batch of the sequence that opened the micro-batch.
  descending,  ///< By the longest sequence: the order in which best-fit decreasing opened them.
};

/// The part of the activations that a policy moves to host memory.
struct OffloadRule {
  enum class Mode : std::uint8_t { none, automatic, fixed, token_wise };
  Mode mode = Mode::none;
  double ratio = 0;  ///< Ratio of a fixed rule.
};

/// How a policy sizes the groups of ranks that share a sequence.
enum class GroupSizes : std::uint8_t {
  by_length,  ///< By the length of each sequence.
  uniform,    ///< Each sequence gets the ranks of the longest one, which makes the policy `static`.
};

/// The text of a scalar, or what kind of value it is.
[[nodiscard]] std::string_view written(const Value& value);
/// Reads a number of ranks, or `auto`, which is no value. Reports anything else.
[[nodiscard]] std::optional<std::int64_t> cp_of(const Value& value, Diagnostics& diagnostics);
/// What a policy calls `offload`.
struct OffloadWords {
  bool splits_tokens = true;  ///< `token-wise` is one of its words.
  std::string_view automatic = "what pays, of long sequences";
};
/// Reads `none`, `auto`, `token-wise` or a ratio. Reports anything else.
[[nodiscard]] OffloadRule offload_of(const Value& value, const OffloadWords& words, Diagnostics& diagnostics);

/// `chosen`: what `auto` is.
template <class Options>
void add_cp(KeyTable<Options>& keys, const std::string& chosen = "the least that holds the context") {
  keys.add(
      {"cp",
       either_shape({word_shape({"auto"}), shape_of(KeyShape::Kind::count)}),
       "auto",
       "the degree of context parallelism: ranks that share each sequence; `auto`: " + chosen,
       {}},
      [](const Value& value, Options& policy, Diagnostics& diagnostics) { policy.cp = cp_of(value, diagnostics); });
}

template <class Options>
void add_min_cp(KeyTable<Options>& keys) {
  keys.count("min_cp", {1, limits::most_devices}, at(&Options::min_cp), "the least ranks of a group, a power of two",
             {.unit = "ranks"});
}

template <class Options>
void add_micro_batch_multiple(KeyTable<Options>& keys) {
  keys.count("micro_batches_divided_by", {1, 65536}, at(&Options::multiple),
             "the number of micro-batches of a replica is a multiple of this, as virtual pipeline stages need",
             {.unit = "micro-batches"});
}

template <class Options>
void add_max_tokens(KeyTable<Options>& keys) {
  keys.count(
      "max_tokens", {1, limits::most_tokens_of_sequence}, at(&Options::max_tokens),
      "tokens of a micro-batch for each rank, from which the number of micro-batches follows; as work is balanced, "
      "not tokens, some may have more, up to the capacity",
      {.unit = "tokens", .otherwise = "the capacity"});
}

template <class Options>
void add_order(KeyTable<Options>& keys) {
  keys.word("order", "order", {{"data", DealOrder::data}, {"descending", DealOrder::descending}}, at(&Options::order),
            "micro-batches are assigned in the order of their first sequences in the data, or longest first");
}

[[nodiscard]] KeyShape offload_shape(const OffloadWords& words);
[[nodiscard]] std::string offload_meaning(const OffloadWords& words);

template <class Options>
void add_offload(KeyTable<Options>& keys, const OffloadWords& words = {}) {
  keys.add({"offload", offload_shape(words), "none", offload_meaning(words), {.mechanism = "offload", .off = "none"}},
           [words](const Value& value, Options& policy, Diagnostics& diagnostics) {
             policy.offload = offload_of(value, words, diagnostics);
           });
}

template <class Options>
void add_groups(KeyTable<Options>& keys) {
  keys.word("groups", "way to make groups", {{"by_length", GroupSizes::by_length}, {"uniform", GroupSizes::uniform}},
            at(&Options::groups),
            "each sequence gets the ranks that its length asks for, or those of the longest one, as in the static mesh",
            {.mechanism = "dynamic-groups", .off = "uniform"});
}

}  // namespace hdpsim
