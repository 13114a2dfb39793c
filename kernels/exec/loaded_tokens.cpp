#include "kernels/exec/loaded_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::exec {

LoadedTokens::LoadedTokens(std::vector<LoadedSource> sources, LoadingRules rules)
    : sources_(std::move(sources)), rules_(std::move(rules)), deaths_(sources_.size()) {
  for (const LoadedSource& source : sources_) {
    if (source.text.empty()) throw std::logic_error("a source without text");
  }
  for (std::size_t source = 0; source < sources_.size(); ++source) {
    threads_.emplace_back([this, source](const std::stop_token& stop) { serve(source, stop); });
  }
}

LoadedTokens::~LoadedTokens() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all of them before the first is waited for
}

void LoadedTokens::expect(std::int64_t step, const std::vector<std::int64_t>& lengths, bool passed) {
  const std::scoped_lock lock(mutex_);
  if (step < known_) {
    const auto known = steps_.find(step);
    if (known == steps_.end() || known->second.lengths == lengths) return;
    throw UnsupportedInput(fmt::format("plans of step {} have unlike batches, which loaders cannot read both", step));
  }
  if (step != known_) throw std::logic_error("steps become known in their order");
  Step& added = steps_[known_++];
  added.passed = passed;
  added.lengths = lengths;
  added.sources = rules_.sources_of(step, lengths.size());
  added.loading = sources_.size();
  if (!passed) {
    added.bytes.resize(lengths.size());
    added.delivered.resize(lengths.size());
  }
  changed_.notify_all();
}

// The steps that are known, one after another, until it is told to stop.
void LoadedTokens::serve(std::size_t source, const std::stop_token& stop) {
  try {
    SourceLoader loader(sources_[source].text, rules_.options);
    for (std::int64_t number = 0;; ++number) {
      Step* step = nullptr;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return number < known_; })) return;
        step = &steps_.at(number);  // stays until all sources are done with it
      }
      load(source, number, *step, loader);
      const std::scoped_lock lock(mutex_);
      deaths_[source] = loader.deaths();
      --step->loading;
      changed_.notify_all();
    }
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
    changed_.notify_all();
  }
}

// Only this thread touches the sequences of its source.
void LoadedTokens::load(std::size_t source, std::int64_t number, Step& step, SourceLoader& loader) {
  loader.begin_step(number);
  if (!step.passed && rules_.dies(number, source)) loader.kill_loader();
  for (std::size_t i = 0; i < step.lengths.size(); ++i) {
    if (step.sources[i] != source) continue;
    const std::int64_t tokens = step.lengths[i];
    if (step.passed) {
      loader.pass(static_cast<std::uint64_t>(tokens));
      continue;
    }
    step.bytes[i].resize(static_cast<std::size_t>(tokens));
    step.delivered[i] = {number, static_cast<std::int64_t>(i), source, tokens, loader.deliver(step.bytes[i])};
  }
}

LoadedTokens::Step& LoadedTokens::complete(std::unique_lock<std::mutex>& lock, std::int64_t step) const {
  const auto found = steps_.find(step);
  if (found == steps_.end()) throw DeviceError(fmt::format("no loader knows of step {}", step));
  changed_.wait(lock, [&] { return error_ != nullptr || found->second.loading == 0; });
  if (error_ != nullptr) std::rethrow_exception(error_);
  return found->second;
}

void LoadedTokens::read(std::int64_t step, std::int64_t sequence, std::int64_t begin,
                        std::span<std::int32_t> tokens) const {
  std::unique_lock lock(mutex_);
  const std::string& bytes = complete(lock, step).bytes.at(static_cast<std::size_t>(sequence));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<unsigned char>(bytes.at(static_cast<std::size_t>(begin) + i));
  }
  for (auto left = steps_.begin(); left->first < step; left = steps_.erase(left)) {  // by all ranks
    if (!left->second.passed) delivered_[left->first] = std::move(left->second.delivered);
  }
}

std::vector<DeliveredSample> LoadedTokens::take_delivered(std::int64_t step) {
  std::unique_lock lock(mutex_);
  const auto known = steps_.find(step);
  if (known != steps_.end()) return std::exchange(complete(lock, step).delivered, {});
  const auto gone = delivered_.extract(step);
  return gone.empty() ? std::vector<DeliveredSample>{} : std::move(gone.mapped());
}

std::vector<LoaderDeath> LoadedTokens::deaths(std::size_t source) const {
  const std::scoped_lock lock(mutex_);
  return deaths_.at(source);
}

}  // namespace hdpsim::kernels::exec
