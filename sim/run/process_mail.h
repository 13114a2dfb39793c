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

/// Letters between process 0 and each of the others that share a study. Those of one process arrive in the order in
/// which it posted them, unless it is lost. Belongs to one thread, but for post().
class ProcessMail {
 public:
  virtual ~ProcessMail() = default;
  /// Of this process, counted from 0.
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Returns at once; from any thread. A letter to a process that is lost is lost too.
  virtual void post(int to, std::string text) = 0;
  /// The next letter that has come; waits for one at most so long.
  [[nodiscard]] virtual std::optional<Letter> take(std::chrono::milliseconds wait) = 0;
  /// Whether nothing has been heard of a process for so long that it counts as lost. It may be heard of again.
  [[nodiscard]] virtual bool is_silent(int process) const = 0;
  /// Whether process 0 has left.
  [[nodiscard]] virtual bool is_closed() const = 0;
};

}  // namespace hdpsim
