#include "sim/engine/impl/beside_passes.h"

#include <algorithm>

#include "sim/engine/impl/beside_exchanges.h"

namespace hdpsim {
namespace {

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

/// What passes do that can run beside another pass.
struct Occupied {
  Duration kernels;
  Duration exchanges;
};

void add(Occupied& occupied, const PricedProgram& priced) {
  for_each_time(priced, [&](Duration time, const Instruction& instruction, std::int64_t iterations) {
    if (is_exchange(priced, instruction)) {
      occupied.exchanges += time * iterations;
    } else if (depends_on_device_speed(instruction.opcode)) {
      occupied.kernels += time * iterations;
    }
  });
}

}  // namespace

void run_beside(PricedProgram& priced, std::span<const PricedProgram> others, const KernelSlowdown& slowdown) {
  Occupied own;
  add(own, priced);
  Occupied beside;
  for (const PricedProgram& other : others) add(beside, other);
  const auto share = [](Duration part, Duration whole) {
    return whole > Duration{} ? std::min(1.0, part.seconds() / whole.seconds()) : 1.0;
  };
  const double hidden = share(beside.kernels, own.exchanges);
  const double overlapped = share(beside.exchanges, own.kernels);
  for_each_time(priced, [&](Duration& time, const Instruction& instruction, std::int64_t iterations) {
    if (is_exchange(priced, instruction)) {
      time -= time.scaled(hidden);
    } else if (depends_on_device_speed(instruction.opcode)) {
      const double factor = factor_of(instruction.opcode, slowdown);
      const Duration lost = lost_beside(time, time.scaled(overlapped), factor);
      time += lost;
      priced.evidence[static_cast<std::size_t>(slowdown.evidence)] += lost * iterations;
    }
  });
}

}  // namespace hdpsim
