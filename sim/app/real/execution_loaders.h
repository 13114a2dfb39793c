#pragma once

#include <memory>
#include <string>

#include "kernels/exec/loaded_tokens.h"
#include "sim/app/real/execution_work.h"

namespace hdpsim::app {

/// Loaders of the text files that the user names, a source a file: mixed by the weights of the study's `loading`, with
/// its shadows and its snapshots, and killed in the steps that it states. Without sources there all files are read
/// alike. Sequences of a step are dealt out by the seed, so that a run is repeated whatever dies.
class ExecutionLoaders {
 public:
  /// Steps before `first` are passed over. InputError for a study whose sources are not as many as the files.
  ExecutionLoaders(const ExecuteOptions& options, const Work& work, std::int64_t first);

  [[nodiscard]] const kernels::exec::TokenSource& tokens() const { return *tokens_; }
  /// Must be told of every plan before its step is read. UnsupportedInput for two plans of a step with unlike batches.
  void expect(const Plan& plan) { tokens_->expect(plan.step, plan.sequence_tokens); }
  /// Rows of samples.csv for a step that has ended; the first time that it is asked for.
  [[nodiscard]] std::string rows(std::int64_t step);
  [[nodiscard]] static std::string heading();
  /// "loaders: 24 samples of 6Ki bytes from 2 sources, each once", and a line for each loader that died.
  [[nodiscard]] std::string summary() const;

 private:
  std::unique_ptr<kernels::exec::LoadedTokens> tokens_;
  std::int64_t samples_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace hdpsim::app
