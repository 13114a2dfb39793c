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

bool is_exchange(const PricedProgram& priced, const Instruction& instruction) {
  return instruction.opcode == Opcode::collective &&
         priced.program.collectives[instruction.work].among == CollectiveGroup::experts;
}

// Calls each(time, instruction, iterations) for every instruction of a program.
template <class Program, class Each>
void for_each_time(Program& priced, Each each) {
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    const Block& block = priced.program.blocks[b];
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      each(priced.times[b][i], block.body[i], block.body[i].runs(block.iterations));
    }
  }
}

/// The time that passes spend on what can overlap with another pass.
struct OverlappableTime {
  Duration kernels;
  Duration exchanges;
};

void add(OverlappableTime& occupied, const PricedProgram& priced) {
  for_each_time(priced, [&](Duration time, const Instruction& instruction, std::int64_t iterations) {
    if (is_exchange(priced, instruction)) {
      occupied.exchanges += time * iterations;
    } else if (depends_on_device_speed(instruction.opcode)) {
      occupied.kernels += time * iterations;
    }
  });
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
  OverlappableTime own;
  add(own, priced);
  OverlappableTime partners;
  for (const PricedProgram& other : others) add(partners, other);
  const auto share = [](Duration part, Duration whole) {
    return whole > Duration{} ? std::min(1.0, part.seconds() / whole.seconds()) : 1.0;
  };
  const double hidden = share(partners.kernels, own.exchanges);
  const double overlapped = share(partners.exchanges, own.kernels);
  for_each_time(priced, [&](Duration& time, const Instruction& instruction, std::int64_t iterations) {
    if (is_exchange(priced, instruction)) {
      time -= time.scaled(hidden);
    } else if (depends_on_device_speed(instruction.opcode)) {
      const double factor = factor_of(instruction.opcode, slowdown);
      const Duration lost = lost_to_overlap(time, time.scaled(overlapped), factor);
      time += lost;
      priced.evidence[static_cast<std::size_t>(slowdown.evidence)] += lost * iterations;
    }
  });
}

}  // namespace hdpsim
