#include "sim/engine/impl/overlap.h"

#include <algorithm>

#include "sim/engine/impl/group_run.h"

namespace hdpsim {
namespace {

// The exchanges of one loop body that have been posted and that no kernel has waited for, in the order of their stream.
class ExchangesUnderWay {
 public:
  void post(std::size_t instruction, Duration time) { open_.push_back({instruction, time}); }

  // When a kernel needs an exchange, all earlier exchanges have ended too.
  void await(const Instruction& kernel) {
    for (const Dependency& needed : kernel.needed()) {
      if (needed.iterations_back > 0) continue;
      const auto needs = [&](const Exchange& exchange) { return exchange.instruction == needed.instruction; };
      const auto last = std::find_if(open_.begin(), open_.end(), needs);
      if (last != open_.end()) open_.erase(open_.begin(), last + 1);
    }
  }

  // Advances the exchanges by at most `most`; returns by how much they advanced.
  Duration pass(Duration most) {
    Duration passed;
    while (!open_.empty() && passed < most) {
      const Duration taken = std::min(open_.front().left, most - passed);
      passed += taken;
      open_.front().left -= taken;
      if (open_.front().left == Duration{}) open_.erase(open_.begin());
    }
    return passed;
  }

 private:
  struct Exchange {
    std::size_t instruction;
    Duration left;
  };
  std::vector<Exchange> open_;  // at most two: each kernel of a ring waits for the exchange before the newest
};

/// What a pass spends in its layers with experts, in all of them together, by what runs beside a pass of another
/// micro-batch. Kernels count with their slowdown under messages.
struct ExpertPhases {
  Duration outside;  ///< Kernels before tokens travel to experts and behind their return: attention and router.
  Duration inside;   ///< Kernels between both all-to-alls: the experts.
  Duration to;       ///< All-to-alls to the experts, in backward of the results' gradients.
  Duration back;
};

/// A part of a loop body with experts.
enum class ExpertPhase { outside, to, inside, back };

ExpertPhase phase_of(const Block& block, std::size_t instruction) {
  for (const BodyRange& experts : block.exchanged_experts) {
    if (instruction == experts.first) return ExpertPhase::to;
    if (instruction == experts.last) return ExpertPhase::back;
    if (instruction > experts.first && instruction < experts.last) return ExpertPhase::inside;
  }
  return ExpertPhase::outside;
}

// Calls each(time, instruction, phase, iterations) for every kernel and exchange of layers with experts.
template <class Program, class Each>
void for_each_time(Program& priced, Each each) {
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    const Block& block = priced.program.blocks[b];
    if (block.exchanged_experts.empty()) continue;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const ExpertPhase phase = phase_of(block, i);
      const bool travels = phase == ExpertPhase::to || phase == ExpertPhase::back;
      if (!travels && !depends_on_device_speed(block.body[i].opcode)) continue;
      each(priced.times[b][i], block.body[i], phase, block.body[i].runs(block.iterations));
    }
  }
}

ExpertPhases phases_of(const PricedProgram& priced, const KernelSlowdown& slowdown) {
  ExpertPhases all;
  for_each_time(priced, [&](Duration time, const Instruction& instruction, ExpertPhase phase, std::int64_t iterations) {
    const Duration slowed = time.scaled(factor_of(instruction.opcode, slowdown)) * iterations;
    if (phase == ExpertPhase::outside) all.outside += slowed;
    if (phase == ExpertPhase::inside) all.inside += slowed;
    if (phase == ExpertPhase::to) all.to += time * iterations;
    if (phase == ExpertPhase::back) all.back += time * iterations;
  });
  return all;
}

// Kernels for the gradients of weights run behind those for the gradients of inputs, part by part.
void add_weight_gradients(ExpertPhases& all, const PricedProgram& weights, const KernelSlowdown& slowdown) {
  Duration kernels;
  for (std::size_t b = 0; b < weights.program.blocks.size(); ++b) {
    const Block& block = weights.program.blocks[b];
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      if (!depends_on_device_speed(block.body[i].opcode)) continue;
      kernels +=
          weights.times[b][i].scaled(factor_of(block.body[i].opcode, slowdown)) * block.body[i].runs(block.iterations);
    }
  }
  const Duration inputs = all.outside + all.inside;
  if (inputs == Duration{}) return;
  const Duration outside = kernels.scaled(all.outside.seconds() / inputs.seconds());
  all.outside += outside;
  all.inside += kernels - outside;
}

bool is_forward(const PricedProgram& priced) {
  const auto& blocks = priced.program.blocks;
  return std::none_of(blocks.begin(), blocks.end(),
                      [](const Block& block) { return block.direction == Direction::backward; });
}

}  // namespace

double factor_of(Opcode opcode, const KernelSlowdown& slowdown) {
  if (opcode == Opcode::attention || opcode == Opcode::rank_wait) return slowdown.attention;
  if (opcode == Opcode::dense) return slowdown.product;
  return opcode == Opcode::merge ? slowdown.memory_bound : 1;
}

void slow_under_exchanges(PricedProgram& priced, const std::vector<Hop>& hops, const KernelSlowdown& slowdown) {
  RingPace pace;
  for (const Hop& hop : hops) pace.add(hop, false);
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    const Block& block = priced.program.blocks[b];
    ExchangesUnderWay exchanges;
    Duration lost;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      if (instruction.opcode == Opcode::exchange) {
        exchanges.post(i, pace.transfer(priced.program.bytes[instruction.work]));
      } else if (instruction.stream == Stream::compute) {
        exchanges.await(instruction);
        Duration& time = priced.times[b][i];
        const double factor = factor_of(instruction.opcode, slowdown);
        const Duration lost_here = lost_to_overlap(time, exchanges.pass(time.scaled(factor)), factor);
        lost += lost_here;
        time += lost_here;
      }
    }
    priced.evidence[static_cast<std::size_t>(slowdown.evidence)] += lost * block.iterations;
  }
}

void overlap_passes(PricedProgram& priced, std::span<const PricedProgram> others, const KernelSlowdown& slowdown) {
  const ExpertPhases own = phases_of(priced, slowdown);
  ExpertPhases partner = phases_of(others.front(), slowdown);
  for (const PricedProgram& weights : others.subspan(1)) add_weight_gradients(partner, weights, slowdown);
  const auto share = [](Duration part, Duration whole) {
    return whole > Duration{} ? std::min(1.0, part.seconds() / whole.seconds()) : 1.0;
  };
  // Forward sends to experts beside the partner's experts, and back beside its attention; backward the other way round.
  const bool forward = is_forward(priced);
  const double to = share(forward ? partner.inside : partner.outside, own.to);
  const double back = share(forward ? partner.outside : partner.inside, own.back);
  const double outside = share(forward ? partner.to : partner.back, own.outside);
  const double inside = share(forward ? partner.back : partner.to, own.inside);
  for_each_time(priced, [&](Duration& time, const Instruction& kernel, ExpertPhase phase, std::int64_t iterations) {
    if (phase == ExpertPhase::to || phase == ExpertPhase::back) {
      time -= time.scaled(phase == ExpertPhase::to ? to : back);
      return;
    }
    const double factor = factor_of(kernel.opcode, slowdown);
    const Duration messages = time.scaled(factor * (phase == ExpertPhase::outside ? outside : inside));
    const Duration lost = lost_to_overlap(time, messages, factor);
    time += lost;
    priced.evidence[static_cast<std::size_t>(slowdown.evidence)] += lost * iterations;
  });
}

}  // namespace hdpsim
