#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace hdpsim::python {

inline constexpr char version[] = HDPSIM_VERSION;

/// How a study is run, tuned or replayed.
struct RunOptions {
  std::size_t jobs = 1;
  std::string out;  ///< Output folder; empty: nothing is written.
  bool resume = false;
  std::function<void(std::int64_t, std::int64_t)> progress;  ///< Called with the work done and all work; may be empty.

  /// Reports progress. Needs no GIL.
  void report(std::int64_t done, std::int64_t all) const {
    if (!progress) return;
    const pybind11::gil_scoped_acquire gil;
    progress(done, all);
  }
};

/// Asks Python for Ctrl-C, which Python keeps until it is asked: in the calling thread, between two steps.
class Interrupt {
 public:
  bool operator()() {
    if (!raised_ && std::this_thread::get_id() == caller_) {
      const pybind11::gil_scoped_acquire gil;
      raised_ = PyErr_CheckSignals() != 0;
    }
    return raised_;
  }
  /// Throws the exception that Python has raised, if any. Needs the GIL.
  void throw_if_raised() const {
    if (raised_) throw pybind11::error_already_set();
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  std::atomic<bool> raised_ = false;
};

/// Returns what `simulate(stop)` returns. It runs without the GIL and ends early when `stop()` is true; an exception
/// that Python has raised is then thrown.
template <class Simulate>
auto interruptible(const Simulate& simulate) {
  Interrupt interrupt;
  auto result = [&] {
    const pybind11::gil_scoped_release no_gil;
    return simulate([&interrupt] { return interrupt(); });
  }();
  interrupt.throw_if_raised();
  return result;
}

}  // namespace hdpsim::python
