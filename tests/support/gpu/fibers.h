#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace hdpsim::emulator {

/// A function with a stack of its own, which runs when it is resumed and until it suspends itself.
class Fiber {
 public:
  explicit Fiber(std::size_t stack_bytes = 128 * 1024);
  Fiber(Fiber&&) noexcept;
  Fiber& operator=(Fiber&&) noexcept;
  ~Fiber();

  /// Sets the function of the fiber; an earlier one is dropped as if it had ended. `body` must not throw.
  void start(void (*body)(void*), void* argument);
  /// Runs the fiber until it suspends or ends; false once it has ended.
  bool resume();
  /// Returns to where the running fiber was resumed.
  static void suspend();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hdpsim::emulator
