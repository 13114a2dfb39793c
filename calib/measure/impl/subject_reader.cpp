#include "calib/measure/impl/subject_reader.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/base/quantity_limits.h"
#include "sim/document/reader.h"

namespace hdpsim::calib {
namespace {

constexpr Range some{1, 1e12};
constexpr Range sizes{1, 1e15};
constexpr Range tokens{1, static_cast<double>(limits::most_tokens_of_sequence)};
constexpr Range members{2, static_cast<double>(limits::most_devices)};
constexpr Range not_below_zero{0, 1e12};

template <class Kind, class Name>
std::optional<Kind> named(MapReader& reader, std::string_view key, std::size_t count, const Name& name) {
  const Value* value = reader.require(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < count; ++i) words.emplace_back(name(static_cast<Kind>(i)));
  const auto index = read_choice(*value, fmt::format("'{}'", key), words, reader.diagnostics());
  return index ? std::optional(static_cast<Kind>(*index)) : std::nullopt;
}

std::optional<AttentionBlock> block_of(const Value& value, Diagnostics& diagnostics) {
  if (!value.is_sequence() || value.items.size() != 4) {
    diagnostics.error(value.position, "a block is [queries, keys, whether it is causal, how many are equal]",
                      "[1024, 1024, true, 1]");
    return std::nullopt;
  }
  const auto queries = read_in<std::int64_t>(value.items[0], "the number of queries", tokens, diagnostics);
  const auto keys = read_in<std::int64_t>(value.items[1], "the number of keys", tokens, diagnostics);
  const auto causal = read<bool>(value.items[2], diagnostics);
  const auto count = read_in<std::int64_t>(value.items[3], "the number of equal blocks", tokens, diagnostics);
  if (!queries || !keys || !causal || !count) return std::nullopt;
  if (*causal && *queries != *keys) {
    diagnostics.error(value.position, "a causal block has as many queries as keys",
                      "the keys before those of the queries are a block without a mask");
    return std::nullopt;
  }
  return AttentionBlock{*queries, *keys, *causal ? Mask::causal : Mask::full, *count};
}

void read_blocks(const Value& value, std::vector<AttentionBlock>& blocks, Diagnostics& diagnostics) {
  if (!value.is_sequence() || value.items.empty()) {
    return diagnostics.error(value.position, "'blocks' is a list of at least one block");
  }
  for (const Value& item : value.items) {
    const auto block = block_of(item, diagnostics);
    if (!block) continue;
    if (!blocks.empty() && blocks.front().mask != block->mask) {
      diagnostics.error(item.position, "blocks of one launch are all causal or all without a mask");
    }
    blocks.push_back(*block);
  }
}

Subject read_attention(MapReader& reader) {
  Attention op;
  op.direction = reader.required<bool>("backward").value_or(false) ? Direction::backward : Direction::forward;
  op.heads = reader.required_in<std::int64_t>("heads", some).value_or(1);
  op.kv_heads = reader.required_in<std::int64_t>("kv_heads", some).value_or(1);
  op.head_dim = reader.required_in<std::int64_t>("dim", some).value_or(1);
  if (const Value* blocks = reader.require("blocks")) read_blocks(*blocks, op.blocks, reader.diagnostics());
  if (op.heads % op.kv_heads != 0) reader.error("'kv_heads' does not divide 'heads'");
  return op;
}

Subject read_gemm(MapReader& reader) {
  Gemm op;
  op.m = reader.required_in<std::int64_t>("m", some).value_or(1);
  op.n = reader.required_in<std::int64_t>("n", some).value_or(1);
  op.k = reader.required_in<std::int64_t>("k", some).value_or(1);
  return op;
}

Subject read_memory_bound(MapReader& reader) {
  MemoryBoundSubject op;
  op.kernel = reader.required<std::string>("kernel").value_or("");
  op.bytes = reader.required_in<std::int64_t>("bytes", sizes).value_or(1);
  return op;
}

Subject read_copy(MapReader& reader) {
  CopySubject op;
  op.kind = named<CopyKind>(reader, "kind", copy_kind_count, copy_kind_name).value_or(CopyKind::d2h);
  op.bytes = reader.required_in<std::int64_t>("bytes", sizes).value_or(1);
  return op;
}

Subject read_message(MapReader& reader) {
  MessageSubject op;
  op.kind = named<MessageKind>(reader, "kind", message_kind_count, message_kind_name).value_or(MessageKind::send_recv);
  op.ranks = reader.required_in<std::int64_t>("ranks", members).value_or(2);
  op.bytes = reader.required_in<std::int64_t>("bytes", sizes).value_or(1);
  if (const Value* link = reader.find("link")) {
    const auto index = read_choice(*link, "'link'", {"node", "network"}, reader.diagnostics());
    if (index == 1) op.link = LinkKind::network;
  }
  return op;
}

// One of some words, and of these the text.
std::string one_of(MapReader& reader, std::string_view key, const std::vector<std::string>& words) {
  const Value* value = reader.require(key);
  if (value == nullptr) return {};
  const auto index = read_choice(*value, fmt::format("'{}'", key), words, reader.diagnostics());
  return index ? words[*index] : "";
}

Subject read_interference(MapReader& reader) {
  InterferenceSubject op;
  op.compute = one_of(reader, "compute", {"attention", "gemm", "elementwise"});
  op.traffic = one_of(reader, "traffic", {"d2h", "h2d", "both", "p2p"});
  op.ctas = reader.optional_in<std::int64_t>("ctas", not_below_zero).value_or(0);
  return op;
}

}  // namespace

std::optional<Subject> read_subject(const Value& value, Diagnostics& diagnostics) {
  using Read = Subject (*)(MapReader&);
  static constexpr std::array<std::pair<std::string_view, Read>, 6> families = {{{"attention", read_attention},
                                                                                 {"gemm", read_gemm},
                                                                                 {"memory_bound", read_memory_bound},
                                                                                 {"copies", read_copy},
                                                                                 {"messages", read_message},
                                                                                 {"interference", read_interference}}};
  const std::size_t before = diagnostics.count();
  MapReader reader(value, "a subject", diagnostics);
  const Value* family = reader.require("family");
  if (family == nullptr) return std::nullopt;
  std::vector<std::string> words;
  for (const auto& [name, unused] : families) words.emplace_back(name);
  const auto index = read_choice(*family, "'family'", words, diagnostics);
  if (!index) return std::nullopt;
  Subject subject = families.at(*index).second(reader);
  reader.finish();
  if (diagnostics.count() != before) return std::nullopt;
  return subject;
}

}  // namespace hdpsim::calib
