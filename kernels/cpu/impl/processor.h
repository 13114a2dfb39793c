#pragma once

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/impl/kernel_table.h"
#include "kernels/spec/backend.h"

/// What machine this is.
namespace hdpsim::kernels::cpu {

/// DeviceError if the processor or the build lacks the instruction set.
[[nodiscard]] const KernelTable& kernels_of(InstructionSet set);

/// From /proc and /sys; what they do not say stays empty.
[[nodiscard]] DeviceInfo describe_processor(InstructionSet set);
[[nodiscard]] DeviceState processor_state();

}  // namespace hdpsim::kernels::cpu
