#include "sim/app/real/execution_loaders.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "kernels/exec/tokens.h"
#include "sim/app/command.h"
#include "sim/base/quantity_text.h"
#include "sim/base/random.h"
#include "sim/results/table_sink.h"

namespace hdpsim::app {
namespace {

namespace exec = kernels::exec;

// The study's sources, one by one.
std::vector<std::string> stated_names(const LoadingSpec* loading) {
  std::vector<std::string> names;
  if (loading == nullptr) return names;
  for (const SourceSpec& source : loading->sources) {
    for (std::int64_t i = 0; i < source.count; ++i) names.push_back(source.name);
  }
  return names;
}

std::vector<exec::LoadedSource> read_sources(const ExecuteOptions& options, const std::vector<std::string>& names) {
  std::vector<exec::LoadedSource> sources;
  for (std::size_t i = 0; i < options.text.size(); ++i) {
    const std::filesystem::path file = options.text[i];
    sources.push_back({names.empty() ? file.filename().string() : names[i], exec::read_training_text(file)});
  }
  return sources;
}

// The share of each source in a step, in the order of the files.
std::vector<double> shares_of(const LoadingSpec* loading, std::size_t sources, std::int64_t step) {
  if (loading == nullptr || loading->sources.empty()) {
    return std::vector<double>(sources, 1.0 / static_cast<double>(sources));
  }
  std::vector<double> shares;
  const std::vector<double> of_entries = loading->shares_at(step);
  for (std::size_t entry = 0; entry < of_entries.size(); ++entry) {
    shares.insert(shares.end(), static_cast<std::size_t>(loading->sources[entry].count), of_entries[entry]);
  }
  return shares;
}

exec::LoadingRules rules_of(const ExecuteOptions& options, const LoadingSpec* loading,
                            const std::vector<std::string>& names) {
  exec::LoadingRules rules;
  const std::size_t sources = options.text.size();
  const auto seed = static_cast<std::uint64_t>(options.seed);
  rules.sources_of = [=](std::int64_t step, std::size_t sequences) {
    const std::vector<double> shares = shares_of(loading, sources, step);
    RandomStream random(seed, "sources of sequences", static_cast<std::uint64_t>(step));
    std::vector<std::size_t> found(sequences);
    for (std::size_t& source : found) {
      double left = random.uniform();
      while (source + 1 < sources && left >= shares[source]) left -= shares[source++];
    }
    return found;
  };
  rules.dies = [=](std::int64_t step, std::size_t source) {
    if (loading == nullptr || !loading->deaths) return false;
    const auto first = [&](const std::string& name) {
      return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    return std::ranges::any_of(loading->deaths->stated, [&](const LoaderDeaths::Stated& death) {
      return death.step == step && first(death.source) == source;
    });
  };
  if (loading != nullptr && loading->deaths) {
    rules.options.shadows = static_cast<int>(loading->deaths->shadows);
    rules.options.snapshot = loading->deaths->snapshot;
  }
  rules.options.limit = std::chrono::milliseconds(static_cast<std::int64_t>(options.patience.seconds() * 1e3));
  return rules;
}

std::string death_text(const std::string& name, const kernels::LoaderDeath& death) {
  const std::string begin =
      fmt::format("  step {}: the loader of {} died (process {}); ", death.step, name, death.process);
  const std::string time = duration_text(Duration::seconds(death.seconds));
  if (death.has_shadow) return begin + fmt::format("its shadow went on after {}\n", time);
  return begin + fmt::format("a new one went on after {}, which has read {} samples once more\n", time, death.repeated);
}

}  // namespace

ExecutionLoaders::ExecutionLoaders(const ExecuteOptions& options, const Work& work, std::int64_t first) {
  const std::optional<LoadingSpec>& stated = work.point->spec.loading;
  const LoadingSpec* loading = stated ? &*stated : nullptr;
  const std::vector<std::string> names = stated_names(loading);
  if (!names.empty() && names.size() != options.text.size()) {
    throw InputError(
        fmt::format("the study's loading has {} sources, but --text names {} files", names.size(), options.text.size()),
        "name a file for each source, in their order");
  }
  if (loading != nullptr && loading->deaths && loading->deaths->mtbf_s) {
    note("loaders are not killed at random (deaths.mtbf): state when they die (deaths.at), or kill them");
  }
  tokens_ = std::make_unique<exec::LoadedTokens>(read_sources(options, names), rules_of(options, loading, names));
  for (std::int64_t step = 0; step < first; ++step) {
    tokens_->expect(step, work.plan_of(0, step).sequence_tokens, true);
  }
}

std::string ExecutionLoaders::heading() {
  return "step,sequence,source,begin,bytes,hash\n";
}

std::string ExecutionLoaders::rows(std::int64_t step) {
  std::string rows;
  for (const exec::DeliveredSample& sample : tokens_->take_delivered(step)) {
    ++samples_;
    bytes_ += sample.tokens;
    rows += fmt::format("{},{},{},{},{},{:016x}\n", sample.step, sample.sequence,
                        csv_field(tokens_->sources()[sample.source].name), sample.sample.begin, sample.tokens,
                        sample.sample.hash);
  }
  return rows;
}

std::string ExecutionLoaders::summary() const {
  std::string text = fmt::format("\nloaders: {} samples of {} bytes from {} sources, each once\n", samples_,
                                 count_text(bytes_), tokens_->sources().size());
  for (std::size_t source = 0; source < tokens_->sources().size(); ++source) {
    for (const kernels::LoaderDeath& death : tokens_->deaths(source)) {
      text += death_text(tokens_->sources()[source].name, death);
    }
  }
  return text;
}

}  // namespace hdpsim::app
