#include "calib/measure/impl/subject_json.h"

#include <string_view>

namespace hdpsim::calib {
namespace {

std::string_view word_of(CopyKind kind) {
  return copy_kind_name(kind);
}

std::string_view word_of(MessageKind kind) {
  return message_kind_name(kind);
}

template <class Kind>
std::optional<Kind> kind_from(const Json& word, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto kind = static_cast<Kind>(i);
    if (word.get<std::string>() == word_of(kind)) return kind;
  }
  return std::nullopt;
}

struct Writer {
  Json operator()(const Attention& op) const {
    Json blocks = Json::array();
    for (const AttentionBlock& block : op.blocks) {
      blocks.push_back({block.queries, block.keys, block.mask == Mask::causal, block.count});
    }
    return {{"family", "attention"}, {"backward", op.direction == Direction::backward},
            {"heads", op.heads},     {"kv_heads", op.kv_heads},
            {"dim", op.head_dim},    {"blocks", blocks}};
  }
  Json operator()(const Gemm& op) const { return {{"family", "gemm"}, {"m", op.m}, {"n", op.n}, {"k", op.k}}; }
  Json operator()(const MemoryBoundSubject& op) const {
    return {{"family", "memory_bound"}, {"kernel", op.kernel}, {"bytes", op.bytes}};
  }
  Json operator()(const CopySubject& op) const {
    return {{"family", "copies"}, {"kind", word_of(op.kind)}, {"bytes", op.bytes}};
  }
  Json operator()(const MessageSubject& op) const {
    Json json = {{"family", "messages"}, {"kind", word_of(op.kind)}, {"ranks", op.ranks}, {"bytes", op.bytes}};
    if (op.link == LinkKind::network) json["link"] = "network";  // otherwise "node", which is not written
    return json;
  }
  Json operator()(const InterferenceSubject& op) const {
    return {{"family", "interference"}, {"compute", op.compute}, {"traffic", op.traffic}, {"ctas", op.ctas}};
  }
};

Attention attention_from(const Json& json) {
  Attention op;
  op.direction = json.at("backward").get<bool>() ? Direction::backward : Direction::forward;
  op.heads = json.at("heads").get<std::int64_t>();
  op.kv_heads = json.at("kv_heads").get<std::int64_t>();
  op.head_dim = json.at("dim").get<std::int64_t>();
  for (const Json& block : json.at("blocks")) {
    op.blocks.push_back({.queries = block.at(0).get<std::int64_t>(),
                         .keys = block.at(1).get<std::int64_t>(),
                         .mask = block.at(2).get<bool>() ? Mask::causal : Mask::full,
                         .count = block.at(3).get<std::int64_t>()});
  }
  return op;
}

}  // namespace

Json json_of(const Subject& subject) {
  return std::visit(Writer{}, subject);
}

std::optional<Subject> subject_from(const Json& json) {
  const auto integer = [&json](const char* key) { return json.at(key).get<std::int64_t>(); };
  const std::string family = json.at("family").get<std::string>();
  if (family == "attention") return attention_from(json);
  if (family == "gemm") return Gemm{integer("m"), integer("n"), integer("k")};
  if (family == "memory_bound") return MemoryBoundSubject{json.at("kernel").get<std::string>(), integer("bytes")};
  if (family == "copies") {
    const auto kind = kind_from<CopyKind>(json.at("kind"), copy_kind_count);
    if (kind) return CopySubject{*kind, integer("bytes")};
  }
  if (family == "messages") {
    const auto kind = kind_from<MessageKind>(json.at("kind"), message_kind_count);
    const bool far = json.value("link", "node") == "network";
    if (kind) {
      return MessageSubject{*kind, integer("ranks"), integer("bytes"), far ? LinkKind::network : LinkKind::nvlink};
    }
  }
  if (family == "interference") {
    return InterferenceSubject{json.at("compute").get<std::string>(), json.at("traffic").get<std::string>(),
                               integer("ctas")};
  }
  return std::nullopt;
}

std::string subject_text(const Subject& subject) {
  return json_line(json_of(subject));
}

}  // namespace hdpsim::calib
