#include "sim/engine/simulator.h"

#include "sim/engine/impl/simulations.h"

namespace hdpsim {

Timeline simulate(const Program& program, Machine& machine, Grain grain) {
  switch (grain) {
    case Grain::fluid:
      return simulate_fluid(program, machine, true);
    case Grain::exact:
      return simulate_exact(program, machine);
    case Grain::closed_form:
      return simulate_fluid(program, machine, false);
  }
  return {};
}

}  // namespace hdpsim
