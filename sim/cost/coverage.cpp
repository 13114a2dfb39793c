#include "sim/cost/coverage.h"

#include <fmt/format.h>

#include <algorithm>

namespace hdpsim {
namespace {

std::string text(const Extent& extent) {
  return extent.least == extent.most ? fmt::format("{}", extent.least)
                                     : fmt::format("{} ... {}", extent.least, extent.most);
}

std::string megabytes_text(const Extent& bytes) {
  constexpr double mega = 1e6;
  const double least = static_cast<double>(bytes.least) / mega;
  const double most = static_cast<double>(bytes.most) / mega;
  return bytes.least == bytes.most ? fmt::format("{:.4g} MB", least) : fmt::format("{:.4g} ... {:.4g} MB", least, most);
}

/// Sides of blocks that were measured under every measured mask, and their number.
struct MeasuredBlocks {
  Extent sides;
  int masks = 0;
};

MeasuredBlocks measured_blocks(const DeviceProfile& profile, Direction direction, std::int64_t head_dim) {
  MeasuredBlocks measured;
  for (const AttentionFit& fit : profile.fits.attention) {
    if (fit.backward != (direction == Direction::backward) || fit.head_dim != head_dim) continue;
    const bool first = measured.masks++ == 0;
    measured.sides.least = first ? fit.shortest : std::max(measured.sides.least, fit.shortest);
    measured.sides.most = first ? fit.longest : std::min(measured.sides.most, fit.longest);
  }
  return measured;
}

}  // namespace

void Extent::add(std::int64_t number) {
  least = std::min(least, number);
  most = std::max(most, number);
}

void Extent::add(const Extent& other) {
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

bool Coverage::Asked::count(Evidence evidence) {
  ++operations;
  const bool is_beyond = evidence == Evidence::extrapolated || evidence == Evidence::formula;
  beyond += is_beyond ? 1 : 0;
  return is_beyond;
}

void Coverage::Asked::add(const Asked& other) {
  operations += other.operations;
  beyond += other.beyond;
}

void Coverage::add(const Gemm& op, Evidence evidence) {
  if (!gemm_.count(evidence)) return;
  gemm_.m.add(op.m);
  gemm_.n.add(op.n);
  gemm_.k.add(op.k);
}

void Coverage::add(const Attention& op, Evidence evidence) {
  if (op.blocks.empty()) return;
  AttentionAsked& asked = attention_[{op.direction, op.head_dim}];
  if (!asked.count(evidence)) return;
  for (const AttentionBlock& block : op.blocks) {
    if (block.queries <= 0 || block.keys <= 0 || block.count <= 0) continue;
    asked.sides.add(block.queries);
    asked.sides.add(block.keys);
  }
}

void Coverage::add(const MemoryBound& op, Evidence evidence) {
  if (op.kernels <= 0) return;
  if (memory_bound_.count(evidence)) memory_bound_.bytes.add(op.traffic.count() / op.kernels);
}

void Coverage::add(const Coverage& other) {
  for (const auto& [kind, asked] : other.attention_) {
    attention_[kind].add(asked);
    attention_[kind].sides.add(asked.sides);
  }
  gemm_.add(other.gemm_);
  gemm_.m.add(other.gemm_.m);
  gemm_.n.add(other.gemm_.n);
  gemm_.k.add(other.gemm_.k);
  memory_bound_.add(other.memory_bound_);
  memory_bound_.bytes.add(other.memory_bound_.bytes);
}

// The order of numbers(): kernels that are one kind each, then a group for every kind of attention.
template <class Self, class Visit>
void Coverage::visit_kernels(Self& self, const Visit& visit) {
  for (auto* const asked : {&self.gemm_.operations, &self.gemm_.beyond}) visit(*asked);
  for (auto* const extent : {&self.gemm_.m, &self.gemm_.n, &self.gemm_.k, &self.memory_bound_.bytes}) {
    visit(extent->least);
    visit(extent->most);
  }
  for (auto* const asked : {&self.memory_bound_.operations, &self.memory_bound_.beyond}) visit(*asked);
}

template <class Self, class Visit>
void Coverage::visit_attention(Self& asked, const Visit& visit) {
  for (auto* const number : {&asked.operations, &asked.beyond, &asked.sides.least, &asked.sides.most}) visit(*number);
}

std::vector<std::int64_t> Coverage::numbers() const {
  std::vector<std::int64_t> numbers;
  const auto write = [&](std::int64_t number) { numbers.push_back(number); };
  visit_kernels(*this, write);
  for (const auto& [kind, asked] : attention_) {
    write(static_cast<std::int64_t>(kind.first));
    write(kind.second);
    visit_attention(asked, write);
  }
  return numbers;
}

std::optional<Coverage> Coverage::of_numbers(std::span<const std::int64_t> numbers) {
  std::size_t next = 0;
  bool enough = true;
  const auto read = [&](std::int64_t& number) {
    enough = enough && next < numbers.size();
    if (enough) number = numbers[next++];
  };
  Coverage coverage;
  visit_kernels(coverage, read);
  while (enough && next < numbers.size()) {
    std::int64_t direction = 0;
    std::int64_t head_dim = 0;
    read(direction);
    read(head_dim);
    if (direction != 0 && direction != 1) return std::nullopt;
    visit_attention(coverage.attention_[{static_cast<Direction>(direction), head_dim}], read);
  }
  if (!enough) return std::nullopt;
  return coverage;
}

std::string Coverage::warning(const AttentionKind& kind, const AttentionAsked& asked, const DeviceProfile& profile) {
  const auto [direction, head_dim] = kind;
  const std::string what = fmt::format("{} attention of head dimension {}",
                                       direction == Direction::forward ? "forward" : "backward", head_dim);
  const MeasuredBlocks measured = measured_blocks(profile, direction, head_dim);
  if (measured.masks == 0) return fmt::format("{}: never measured, {} launches are guessed", what, asked.beyond);
  const std::string how_many = fmt::format("{}: {} of {} launches", what, asked.beyond, asked.operations);
  const bool known_sizes = asked.sides.least >= measured.sides.least && asked.sides.most <= measured.sides.most;
  if (measured.masks == 1 && known_sizes) return how_many + " are under a mask that was never measured";
  return fmt::format("{} are mostly of blocks of other sizes ({} tokens; measured {})", how_many, text(asked.sides),
                     text(measured.sides));
}

std::string Coverage::warning(const GemmAsked& asked, const DeviceProfile& profile) {
  if (!profile.gemm || profile.gemm->by_shape.empty())
    return fmt::format("matrix products: never measured, {} are guessed", asked.beyond);
  Extent m;
  Extent n;
  Extent k;
  for (const GemmShapeSample& sample : profile.gemm->by_shape) {
    m.add(sample.m);
    n.add(sample.n);
    k.add(sample.k);
  }
  return fmt::format(
      "matrix products: {} of {} are far from any that was measured (m {}, n {}, k {}; measured m {}, n {}, k {})",
      asked.beyond, asked.operations, text(asked.m), text(asked.n), text(asked.k), text(m), text(n), text(k));
}

std::string Coverage::warning(const MemoryBoundAsked& asked, const DeviceProfile& profile) {
  const auto& fits = profile.fits.memory_bound;
  if (fits.empty()) return fmt::format("memory-bound kernels: never measured, {} are guessed", asked.beyond);
  Extent measured;
  for (const auto& fit : fits) measured.add({fit.least.count(), fit.most.count()});
  return fmt::format("memory-bound kernels: {} of {} move other amounts ({}; measured {})", asked.beyond,
                     asked.operations, megabytes_text(asked.bytes), megabytes_text(measured));
}

std::vector<std::string> Coverage::warnings(const DeviceProfile& profile) const {
  std::vector<std::string> lines;
  for (const auto& [kind, asked] : attention_) {
    if (asked.beyond > 0) lines.push_back(warning(kind, asked, profile));
  }
  if (gemm_.beyond > 0) lines.push_back(warning(gemm_, profile));
  if (memory_bound_.beyond > 0) lines.push_back(warning(memory_bound_, profile));
  return lines;
}

}  // namespace hdpsim
