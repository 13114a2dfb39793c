#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace hdpsim::kernels {

/// What a loader says of a sample: its bytes are those from `begin`, the next sample begins at `next`.
struct LoadedSample {
  std::uint64_t begin = 0;
  std::uint64_t next = 0;
  std::uint64_t hash = 0;  ///< BytesHash of its bytes.
  friend bool operator==(const LoadedSample&, const LoadedSample&) = default;
};

/// A process that reads a text: samples of any number of bytes, each of which begins with the first line behind the
/// sample before it. Behind its end the text begins again. The process is a copy of this one that does nothing else,
/// and ends with the thread that started it. It may die at any time, or be silent for longer than `limit`, which counts
/// as death; then all calls return false or nothing. Not thread-safe.
class LoaderProcess {
 public:
  /// Starts at the text's first line. The text, which is not empty (checked), must outlive the object. DeviceError if
  /// the system has no room for a process.
  LoaderProcess(std::string_view text, std::chrono::milliseconds limit);
  LoaderProcess(const LoaderProcess&) = delete;
  LoaderProcess& operator=(const LoaderProcess&) = delete;
  ~LoaderProcess();

  [[nodiscard]] int id() const { return process_; }
  /// Goes on from a place that it has stated before.
  [[nodiscard]] bool go_to(std::uint64_t place);
  /// Fills `bytes` with the next sample. DeviceError if they are not those that the loader has read.
  [[nodiscard]] std::optional<LoadedSample> deliver(std::span<char> bytes);
  /// Reads the next sample of so many bytes and keeps it for itself.
  [[nodiscard]] std::optional<LoadedSample> pass(std::uint64_t count);
  /// SIGKILL.
  void kill() const;

 private:
  int process_ = -1;
  int socket_ = -1;
};

}  // namespace hdpsim::kernels
