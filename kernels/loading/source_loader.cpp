#include "kernels/loading/source_loader.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

constexpr int most_deaths_of_a_sample = 3;

}  // namespace

SourceLoader::SourceLoader(std::string_view text, SourceOptions options) : text_(text), options_(options) {
  for (int i = 0; i <= options.shadows; ++i) loaders_.push_back(new_loader());
}

void SourceLoader::begin_step(std::int64_t step) {
  step_ = step;
  if (begun_++ < options_.snapshot) return;
  begun_ = 1;
  snapshot_ = place();
  since_.clear();
}

LoadedSample SourceLoader::deliver(std::span<char> bytes) {
  return next(bytes.size(), [&](LoaderProcess& loader) { return loader.deliver(bytes); });
}

LoadedSample SourceLoader::pass(std::uint64_t count) {
  return next(count, [&](LoaderProcess& loader) { return loader.pass(count); });
}

template <class Ask>
LoadedSample SourceLoader::next(std::uint64_t count, Ask ask) {
  std::optional<LoadedSample> sample = ask(*loaders_.front());
  for (int deaths = 1; !sample; ++deaths) {
    if (deaths > most_deaths_of_a_sample) throw DeviceError("loaders of a source die one after another");
    replace_loader();
    sample = ask(*loaders_.front());
  }
  if (sample->begin != place()) {
    throw DeviceError(fmt::format("a loader is at byte {}, where byte {} comes next", sample->begin, place()));
  }
  std::vector<std::size_t> dead;
  for (std::size_t i = 1; i < loaders_.size(); ++i) {
    const std::optional<LoadedSample> same = loaders_[i]->pass(count);
    if (same && *same != *sample) throw DeviceError("a shadow reads other samples than its loader");
    if (!same) dead.push_back(i);
  }
  since_.push_back({count, *sample});
  for (const std::size_t i : dead) loaders_[i] = new_loader();
  return *sample;
}

void SourceLoader::replace_loader() {
  const auto begin = std::chrono::steady_clock::now();
  LoaderDeath death{.step = step_, .process = loaders_.front()->id(), .has_shadow = loaders_.size() > 1};
  loaders_.pop_front();
  if (!death.has_shadow) {
    loaders_.push_back(new_loader());
    death.repeated = std::ssize(since_);
  }
  death.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (death.has_shadow) loaders_.push_back(new_loader());  // behind the one that serves already
  deaths_.push_back(death);
}

// At the place of the others: from the last snapshot it reads once more what came since.
std::unique_ptr<LoaderProcess> SourceLoader::new_loader() const {
  auto loader = std::make_unique<LoaderProcess>(text_, options_.limit);
  bool lives = loader->go_to(snapshot_);
  for (auto read = since_.begin(); lives && read != since_.end(); ++read) {
    const std::optional<LoadedSample> again = loader->pass(read->count);
    if (again && *again != read->sample) throw DeviceError("a new loader reads other samples than the one that died");
    lives = again.has_value();
  }
  return loader;  // if it has died, whoever asks it finds out
}

}  // namespace hdpsim::kernels
