#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/exec/tokens.h"
#include "kernels/loading/source_loader.h"

namespace hdpsim::kernels::exec {

/// A text that loaders read.
struct LoadedSource {
  std::string name;
  std::string text;  ///< Not empty (checked).
};

/// A sample as it was delivered for a sequence of a step.
struct DeliveredSample {
  std::int64_t step = 0;
  std::int64_t sequence = 0;
  std::size_t source = 0;
  std::int64_t tokens = 0;
  LoadedSample sample;
};

/// How the samples of steps are read.
struct LoadingRules {
  /// The source from which each of the sequences of a step comes.
  std::function<std::vector<std::size_t>(std::int64_t step, std::size_t sequences)> sources_of;
  /// Whether the loader of a source is killed as its part of a step begins.
  std::function<bool(std::int64_t step, std::size_t source)> dies;
  SourceOptions options;
};

/// The bytes of texts, read by processes that may die (SourceLoader): each source in its order, sequence by sequence of
/// a step and step by step. A thread a source asks for the samples of all steps that are known, ahead of the steps that
/// train; bytes of a step stay until a later one is read.
class LoadedTokens final : public TokenSource {
 public:
  LoadedTokens(std::vector<LoadedSource> sources, LoadingRules rules);
  ~LoadedTokens() override;

  /// Makes a step known by the tokens of its sequences: every step from 0 on once, in its order. Of steps that are
  /// `passed` over nothing is delivered, but later ones go on behind them. UnsupportedInput if a step that is known
  /// already has other lengths.
  void expect(std::int64_t step, const std::vector<std::int64_t>& lengths, bool passed = false);

  [[nodiscard]] std::int64_t vocabulary() const override { return 256; }
  /// Waits for the sample. DeviceError if its step is not known, or what a loader's thread met.
  void read(std::int64_t step, std::int64_t sequence, std::int64_t begin,
            std::span<std::int32_t> tokens) const override;

  /// What was delivered for a step that has been read, by sequence; once.
  [[nodiscard]] std::vector<DeliveredSample> take_delivered(std::int64_t step);
  /// Of a source, so far.
  [[nodiscard]] std::vector<LoaderDeath> deaths(std::size_t source) const;
  [[nodiscard]] const std::vector<LoadedSource>& sources() const { return sources_; }

 private:
  struct Step {
    bool passed = false;
    std::vector<std::int64_t> lengths;
    std::vector<std::size_t> sources;  ///< By sequence.
    std::vector<std::string> bytes;    ///< By sequence; empty if it is passed over. So the next.
    std::vector<DeliveredSample> delivered;
    std::size_t loading = 0;  ///< Sources that are not done with it.
  };
  void serve(std::size_t source, const std::stop_token& stop);
  void load(std::size_t source, std::int64_t number, Step& step, SourceLoader& loader);
  /// The step when all sources are done with it. Requires the lock.
  [[nodiscard]] Step& complete(std::unique_lock<std::mutex>& lock, std::int64_t step) const;

  std::vector<LoadedSource> sources_;
  LoadingRules rules_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  mutable std::map<std::int64_t, Step> steps_;
  std::int64_t known_ = 0;                                                  ///< Steps that are known.
  mutable std::map<std::int64_t, std::vector<DeliveredSample>> delivered_;  ///< Of steps that are gone.
  std::vector<std::vector<LoaderDeath>> deaths_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;  // last member, so that they end before what they use
};

}  // namespace hdpsim::kernels::exec
