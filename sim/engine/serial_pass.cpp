#include "sim/engine/serial_pass.h"

#include <algorithm>
#include <utility>

#include "sim/engine/impl/pricer.h"

namespace hdpsim {

Duration SerialForm::Loop::delay(const Machine& machine) const {
  return is_issued ? host_delay(calls, device, machine) : Duration{};
}

std::optional<SerialForm> SerialForm::of(const PricedProgram& priced, const Machine& machine) {
  SerialForm form;
  form.others_.evidence = priced.evidence;
  for (std::size_t b = 0; b < priced.program.blocks.size(); ++b) {
    if (!form.add(priced.program.blocks[b], priced.times[b], priced, machine)) return std::nullopt;
  }
  return form;
}

bool SerialForm::add(const Block& block, const std::vector<Duration>& times, const PricedProgram& priced,
                     const Machine& machine) {
  Loop loop;
  loop.iterations = block.iterations;
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const Instruction& instruction = block.body[i];
    const bool always = instruction.first_iteration == 0 && instruction.last_skipped == 0;
    const bool of_group = instruction.opcode == Opcode::share || instruction.opcode == Opcode::rank_wait;
    if (instruction.stream != Stream::compute || !always || of_group) return false;
    if (host_waits_before(instruction, priced.program)) return false;
    if (instruction.opcode == Opcode::attention) {
      if (loop.is_issued) return false;
      loop.attention.push_back(instruction.work);
      continue;
    }
    others_.times[activity_of(instruction.opcode)] += times[i] * block.iterations;
    if (instruction.opcode == Opcode::issue) {
      if (std::exchange(loop.is_issued, true)) return false;
    } else if (!loop.is_issued) {
      loop.device += times[i];
      loop.calls += host_calls_of(instruction, priced.program, *machine.cost);
    }
  }
  if (loop.attention.empty()) {
    others_.times[Activity::overhead] += loop.delay(machine) * loop.iterations;
  } else {
    loops_.push_back(std::move(loop));
  }
  return true;
}

SerialPass SerialForm::with(const std::vector<Attention>& launches, const Machine& machine) const {
  SerialPass pass = others_;
  for (const Loop& of : loops_) {
    Loop loop{of.iterations, of.device, of.calls, of.is_issued, {}};
    Duration attention;
    for (const std::uint32_t launch : of.attention) {
      const Estimate estimate = machine.cost->attention(launches[launch]);
      attention += estimate.time;
      if (loop.is_issued) loop.calls.kernels += machine.cost->kernels(launches[launch]);
      pass.evidence[static_cast<std::size_t>(estimate.evidence)] += estimate.time * loop.iterations;
    }
    loop.device += attention;
    pass.times[Activity::attention] += attention * loop.iterations;
    pass.times[Activity::overhead] += loop.delay(machine) * loop.iterations;
  }
  return pass;
}

}  // namespace hdpsim
