#include "calib/measure/subject.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/base/units.h"

namespace hdpsim::calib {
namespace {

std::string text_of(const AttentionBlock& block) {
  const std::string count = block.count == 1 ? "" : fmt::format("{} of ", block.count);
  const std::string keys = block.queries == block.keys ? "" : fmt::format("x{}", block.keys);
  return fmt::format("{}{} {}{}", count, block.mask == Mask::causal ? "causal" : "full", block.queries, keys);
}

std::string text_of(std::int64_t bytes) {
  return bytes_text(Bytes(bytes));
}

struct Labels {
  std::string operator()(const Attention& op) const {
    const char* direction = op.direction == Direction::forward ? "forward" : "backward";
    const std::string blocks =
        op.blocks.size() == 1 ? text_of(op.blocks.front()) : fmt::format("{} documents", op.blocks.size());
    return fmt::format("attention {} d{} h{}/{} {}", direction, op.head_dim, op.heads, op.kv_heads, blocks);
  }
  std::string operator()(const Gemm& op) const { return fmt::format("gemm {}x{}x{}", op.m, op.n, op.k); }
  std::string operator()(const MemoryBoundSubject& op) const {
    return fmt::format("{} {}", op.kernel, text_of(op.bytes));
  }
  std::string operator()(const CopySubject& op) const {
    return fmt::format("copy {} {}", copy_kind_name(op.kind), text_of(op.bytes));
  }
  std::string operator()(const MessageSubject& op) const {
    const char* where = op.link == LinkKind::network ? " between nodes" : "";
    return fmt::format("{} {} ranks{} {}", message_kind_name(op.kind), op.ranks, where, text_of(op.bytes));
  }
  std::string operator()(const InterferenceSubject& op) const {
    const std::string ctas = op.ctas == 0 ? "" : fmt::format(", {} blocks", op.ctas);
    return fmt::format("{} under {}{}", op.compute, op.traffic, ctas);
  }
};

struct Families {
  std::string_view operator()(const Attention&) const { return "attention"; }
  std::string_view operator()(const Gemm&) const { return "gemm"; }
  std::string_view operator()(const MemoryBoundSubject&) const { return "memory_bound"; }
  std::string_view operator()(const CopySubject&) const { return "copies"; }
  std::string_view operator()(const MessageSubject&) const { return "messages"; }
  std::string_view operator()(const InterferenceSubject&) const { return "interference"; }
};

}  // namespace

std::string_view family_of(const Subject& subject) {
  return std::visit(Families{}, subject);
}

std::string label_of(const Subject& subject) {
  return std::visit(Labels{}, subject);
}

}  // namespace hdpsim::calib
