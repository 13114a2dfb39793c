#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/loading/loader_process.h"

namespace hdpsim::kernels {

struct SourceOptions {
  int shadows = 0;            ///< Processes that read what the loader reads, and one of which takes over when it dies.
  std::int64_t snapshot = 1;  ///< Steps from one snapshot of the loader's place to the next.
  std::chrono::milliseconds limit = std::chrono::seconds(60);  ///< Of silence, which counts as death.
};

/// A loader that died, and what took over.
struct LoaderDeath {
  std::int64_t step = 0;  ///< Whose samples it was asked for.
  int process = 0;
  bool has_shadow = false;    ///< A shadow took over, otherwise a new process.
  std::int64_t repeated = 0;  ///< Samples that the new process had to read once more.
  double seconds = 0;         ///< Until the next sample could be asked for.
};

/// The samples of a text in their order, whatever happens to the processes that read it: none is lost, none is
/// repeated, which is checked by their places and hashes. What a new process needs is the last snapshot, and how many
/// bytes each sample has had since. Not thread-safe; for one thread (LoaderProcess).
class SourceLoader {
 public:
  /// The text must outlive the object.
  SourceLoader(std::string_view text, SourceOptions options);

  /// Begins the samples of a step, steps in their order; takes a snapshot when it is due.
  void begin_step(std::int64_t step);
  /// Fills `bytes` with the next sample. DeviceError if loaders die one after another, or if one repeats or leaves out
  /// anything.
  [[nodiscard]] LoadedSample deliver(std::span<char> bytes);
  /// As if it had been delivered.
  LoadedSample pass(std::uint64_t count);
  /// Kills the loader; its shadows stay.
  void kill_loader() const { loaders_.front()->kill(); }
  [[nodiscard]] const std::vector<LoaderDeath>& deaths() const { return deaths_; }

 private:
  struct Read {
    std::uint64_t count = 0;
    LoadedSample sample;
  };
  template <class Ask>
  LoadedSample next(std::uint64_t count, Ask ask);
  void replace_loader();
  [[nodiscard]] std::unique_ptr<LoaderProcess> new_loader() const;
  [[nodiscard]] std::uint64_t place() const { return since_.empty() ? snapshot_ : since_.back().sample.next; }

  std::string_view text_;
  SourceOptions options_;
  std::deque<std::unique_ptr<LoaderProcess>> loaders_;  ///< The loader and, behind it, its shadows.
  std::int64_t step_ = 0;
  std::int64_t begun_ = 0;      ///< Steps since the snapshot.
  std::uint64_t snapshot_ = 0;  ///< The place of the last snapshot.
  std::vector<Read> since_;     ///< The samples since then.
  std::vector<LoaderDeath> deaths_;
};

}  // namespace hdpsim::kernels
