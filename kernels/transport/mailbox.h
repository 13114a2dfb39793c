#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace hdpsim::kernels {

/// A text from one process to another.
struct Mail {
  int from = 0;
  std::string text;
};

/// Texts of any length between rank 0 and each of the other ranks of a job, some of which may die. Unlike a Transport
/// it has no collectives and no order among ranks, and the death of a rank is not an error: a rank from which nothing
/// has arrived for `patience` counts as silent until it is heard of again.
///
/// A thread of its own moves the texts and regularly reports to the others that this rank lives, whatever the threads
/// of the program do. Except for post(), only one thread may use it.
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  /// If all ranks are alive, waits until all of them are here, then ends MPI. Rank 0 does not wait for silent ranks;
  /// the others do not wait if rank 0 is silent. If any was silent, MPI is left as it is, because its end would wait
  /// for the dead; rank 0 then ends the whole job when it exits, and its exit code is the job's: a rank that hangs
  /// has no work left.
  virtual ~Mailbox() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Posts a text to rank 0 or from it. Returns at once. Texts of one rank arrive in the order in which it posted them.
  virtual void post(int to, std::string text) = 0;
  /// The next text; waits for it at most `wait`. DeviceError if MPI refuses.
  [[nodiscard]] virtual std::optional<Mail> take(std::chrono::milliseconds wait) = 0;
  /// Whether a rank is silent; asked about rank 0, or by rank 0.
  [[nodiscard]] virtual bool is_silent(int rank) const = 0;
  /// Whether rank 0 has left.
  [[nodiscard]] virtual bool is_closed() const = 0;
};

/// The mailbox of this process among those that mpirun or srun has started. Starts MPI, so that a process can have only
/// one such object in its life, and no MPI transport at the same time.
///
/// With Open MPI the job outlives a rank only under `mpirun --enable-recovery`; otherwise mpirun ends the others too.
/// Texts are sent in pieces that MPI sends without asking the receiver, so that no rank waits inside MPI for one that
/// has died.
///
/// DeviceError if the program was built without MPI, or MPI refuses.
[[nodiscard]] std::unique_ptr<Mailbox> make_mpi_mailbox(std::chrono::milliseconds patience);

}  // namespace hdpsim::kernels
