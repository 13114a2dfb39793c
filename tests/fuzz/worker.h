#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/fuzz/change.h"
#include "tests/fuzz/target.h"

namespace hdpsim::fuzz {

/// Executions of one target: the inputs `begin` to `end` - 1 of a seed.
struct WorkerBatch {
  const Target* target = nullptr;
  const Changer* changer = nullptr;
  std::uint64_t seed = 1;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Counts {
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  std::uint64_t skipped = 0;
  double processor_s = 0;
};

/// What a worker came to.
struct Report {
  Counts counts;
  std::uint64_t next = 0;  ///< Input that was not executed yet.
  std::string reason;      ///< Why the last one was refused, if it was.
  /// Of input next - 1, which ended the worker.
  std::optional<std::string> find{};
};

/// A process that goes through a batch, so that no input can end the attack or spoil the next one. It ends with the
/// first find: an exception that is no refusal, a signal, more work than the target has, more memory than
/// 1 GiB, or no end at all.
class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  void start(const WorkerBatch& batch);
  [[nodiscard]] pid_t process() const { return process_; }
  [[nodiscard]] const WorkerBatch& batch() const { return batch_; }
  /// After the process has ended with this status of waitpid().
  [[nodiscard]] Report report(int status) const;

 private:
  struct Shared;
  [[noreturn]] void work() const;

  Shared* shared_;  ///< Memory of both processes.
  pid_t process_ = -1;
  WorkerBatch batch_;
};

}  // namespace hdpsim::fuzz
