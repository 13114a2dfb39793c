#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace hdpsim {

/// A text from one process to another.
struct Letter {
  int from = 0;
  std::string text;
};

/// Letters between process 0 and each of the other processes that share a study. The letters of one process arrive in
/// the order in which it posted them, unless the process is lost. Belongs to one thread, except for post().
class ProcessMail {
 public:
  virtual ~ProcessMail() = default;
  /// The number of this process, counted from 0.
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Posts a letter and returns at once; may be called from any thread. A letter to a lost process is lost too.
  virtual void post(int to, std::string text) = 0;
  /// The next letter that has arrived; waits at most `wait` for one.
  [[nodiscard]] virtual std::optional<Letter> take(std::chrono::milliseconds wait) = 0;
  /// Whether a process has been silent for so long that it counts as lost. It may be heard of again.
  [[nodiscard]] virtual bool is_silent(int process) const = 0;
  /// Whether process 0 has left.
  [[nodiscard]] virtual bool is_closed() const = 0;
};

}  // namespace hdpsim
