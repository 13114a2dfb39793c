#pragma once

#include <stdexcept>

namespace hdpsim::kernels {

/// The machine refuses: no device, a driver that is too old, no memory, a missing library, a peer that died. The
/// message names the call that failed and what to do.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A shape, type or value that a kernel does not support: the caller's input is wrong.
class UnsupportedInput : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

}  // namespace hdpsim::kernels
