#pragma once

#include <initializer_list>
#include <string>

namespace hdpsim::kernels {

/// A shared library that is opened when it is first needed, so that one program runs on machines with and without it,
/// and what needs none of it does not wait for it to start. Stays open as long as the process lives: NVIDIA's libraries
/// do not take kindly to being closed.
class SharedLibrary {
 public:
  /// Opens the first of `names` that the dynamic linker finds. DeviceError if there is none: "purpose" says what cannot
  /// be done without it, as in "matrix products need cuBLASLt".
  SharedLibrary(std::string purpose, std::initializer_list<const char*> names);

  /// A function of C linkage, as in `library.function<decltype(&ncclGetVersion)>("ncclGetVersion")`. DeviceError if the
  /// library has no such function: it is too old.
  template <class Function>
  [[nodiscard]] Function function(const char* symbol) const {
    return reinterpret_cast<Function>(address(symbol));
  }
  [[nodiscard]] bool has(const char* symbol) const;

 private:
  [[nodiscard]] void* address(const char* symbol) const;

  std::string purpose_;
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace hdpsim::kernels
