#pragma once

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/spec/backend.h"

/// Properties of this machine.
namespace hdpsim::kernels::cpu {

/// The kernels of an instruction set. DeviceError if the processor or the build lacks it.
[[nodiscard]] const KernelTable& kernels_of(InstructionSet set);

/// Descriptions from /proc and /sys; what they do not contain stays empty.
[[nodiscard]] DeviceInfo describe_processor(InstructionSet set);
[[nodiscard]] DeviceState processor_state();

}  // namespace hdpsim::kernels::cpu
