#include "sim/loading/impl/source_actors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace hdpsim {
namespace {

// A source whose loaders die more often than this while it prepares one batch never completes it.
constexpr int most_events_of_batch = 10'000;

DurationSum later(DurationSum at, Duration by) {
  at += by;
  return at;
}

}  // namespace

Bytes loader_state(const LoadingSpec& spec, const SourceSpec& source, std::int64_t loaders) {
  const std::int64_t alike = 1 + (spec.deaths ? spec.deaths->shadows : 0);
  return (source.access + spec.process_memory * source.processes.value_or(spec.processes)) * loaders * alike;
}

SourceActors::SourceActors(const LoadingSpec& spec) : spec_(spec), shares_(spec.sources.size()) {
  for (std::size_t entry = 0; entry < spec.sources.size(); ++entry) {
    const SourceSpec& source = spec.sources[entry];
    first_.push_back(sources_.size());
    for (std::int64_t number = 0; number < source.count; ++number) {
      sources_.push_back({.entry = entry, .number = number, .loaders = source.actors, .working = source.actors});
    }
    loaders_ += source.count * source.actors;
    state_ += loader_state(spec, source, source.actors) * source.count;
  }
  if (spec.deaths) stated_done_.resize(spec.deaths->stated.size());
}

void SourceActors::start(DurationSum at) {
  origin_ = at;
  if (!spec_.deaths || !spec_.deaths->mtbf_s) return;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    sources_[i].random.emplace(spec_.deaths->seed, "loader deaths", i);
    draw_death(sources_[i], at);
  }
}

std::string SourceActors::name_of(std::size_t source) const {
  const SourceSpec& entry = spec_.sources[sources_[source].entry];
  return entry.count == 1 ? entry.name : fmt::format("{} {}", entry.name, sources_[source].number + 1);
}

double SourceActors::processes_of(const Source& source) const {
  return static_cast<double>(source.working * spec_.sources[source.entry].processes.value_or(spec_.processes));
}

// Process seconds.
double SourceActors::cost_of(std::size_t entry, double samples, double tokens) const {
  const SourceSpec& source = spec_.sources[entry];
  const std::optional<double> rate = source.tokens_per_s ? source.tokens_per_s : spec_.tokens_per_s;
  return samples * source.sample.seconds() + (rate ? tokens / *rate : 0);
}

DurationSum SourceActors::prepare(DurationSum from, const LoadingJob& batch, bool is_rehearsal) {
  const std::vector<double> shares = spec_.shares_at(batch.step);
  const auto samples = static_cast<double>(batch.samples);
  const auto tokens = static_cast<double>(batch.tokens);
  std::optional<DurationSum> ready;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    const double work = cost_of(source.entry, samples * shares[source.entry], tokens * shares[source.entry]);
    Preparing preparing{std::max(from, source.free), work, work, batch.step};
    finish(i, preparing);
    source.free = preparing.at;
    if (!is_rehearsal && spec_.deaths) {
      source.since_snapshot_s = (batch.step + 1) % spec_.deaths->snapshot == 0 ? 0 : source.since_snapshot_s + work;
    }
    if (ready && preparing.at <= *ready) continue;
    ready = preparing.at;
    latest_ = i;
  }
  return ready.value_or(from);
}

std::optional<DurationSum> SourceActors::next_event(const Source& source) {
  std::optional<DurationSum> first = source.next_death;
  const auto also = [&](DurationSum at) { first = first ? std::min(*first, at) : at; };
  if (source.change) also(source.change->at);
  if (!source.stated_deaths.empty()) also(source.stated_deaths.front());
  return first;
}

// The rate changes at events alone. Those of a time in which the source had nothing to do come first.
void SourceActors::finish(std::size_t index, Preparing& batch) {
  Source& source = sources_[index];
  for (int events = 0; events < most_events_of_batch; ++events) {
    const DurationSum begin = std::max(batch.at, source.blocked);
    const DurationSum done = later(begin, Duration::seconds(batch.left_s / processes_of(source)));
    const std::optional<DurationSum> event = next_event(source);
    if (!event || *event >= done) {
      batch.at = done;
      return;
    }
    if (*event > begin) {
      batch.left_s = std::max(0.0, batch.left_s - (*event - begin).seconds() * processes_of(source));
      batch.at = *event;
    }
    happen(index, *event, batch);
  }
  throw QuantityOverflow("the loaders of a source die faster than they prepare a batch");
}

void SourceActors::happen(std::size_t index, DurationSum at, const Preparing& batch) {
  Source& source = sources_[index];
  if (source.change && source.change->at == at) {
    source.working = source.change->loaders;
    source.change.reset();
    source.blocked = std::max(source.blocked, later(at, spec_.autoscale->reshard));
  } else if (!source.stated_deaths.empty() && source.stated_deaths.front() == at) {
    source.stated_deaths.erase(source.stated_deaths.begin());
    die(index, 0, at, batch);
  } else {
    // While one is replaced, no other dies: times between failures are much longer.
    if (source.blocked <= at) {
      die(index, static_cast<std::int64_t>(source.random->below(static_cast<std::uint64_t>(source.working))), at,
          batch);
    }
    draw_death(source, std::max(at, source.blocked));
  }
}

void SourceActors::die(std::size_t index, std::int64_t loader, DurationSum at, const Preparing& batch) {
  const LoaderDeaths& deaths = *spec_.deaths;
  Source& source = sources_[index];
  // All loaders of a source repeat alike: each prepared its part of these batches.
  const double repeated = source.since_snapshot_s + batch.work_s - batch.left_s;
  const Duration replaced = deaths.restart + Duration::seconds(repeated / processes_of(source));
  std::erase_if(source.missing, [&](const Missing& missing) { return missing.until <= at; });
  const auto gone = std::count_if(source.missing.begin(), source.missing.end(),
                                  [&](const Missing& missing) { return missing.loader == loader; });
  const bool is_followed = gone < deaths.shadows;
  if (is_followed) source.missing.push_back({loader, later(at, replaced)});
  const Duration pause = is_followed ? deaths.promote : replaced;
  source.blocked = std::max(source.blocked, later(at, pause));
  tell(is_followed ? LoaderEvent::Kind::promoted : LoaderEvent::Kind::lost, index, at, batch.step, pause);
}

// Times between failures have no memory, so that they are drawn anew whenever the number of loaders changes.
void SourceActors::draw_death(Source& source, DurationSum from) {
  if (!source.random) return;
  const double mean_s = *spec_.deaths->mtbf_s / static_cast<double>(source.working);
  const double picoseconds = -mean_s * std::log1p(-source.random->uniform()) * 1e12;
  source.next_death = DurationSum::picoseconds(from.picoseconds() + static_cast<Int128>(picoseconds));
}

void SourceActors::begins(DurationSum at, const LoadingJob& batch, Duration time) {
  for (std::size_t i = 0; i < stated_done_.size(); ++i) {
    const LoaderDeaths::Stated& death = spec_.deaths->stated[i];
    if (stated_done_[i] || death.step != batch.step) continue;
    stated_done_[i] = true;
    for (std::size_t entry = 0; entry < spec_.sources.size(); ++entry) {
      if (spec_.sources[entry].name == death.source) sources_[first_[entry]].stated_deaths.push_back(at);
    }
  }
  if (!spec_.autoscale) return;
  const AutoscaleSpec& scaling = *spec_.autoscale;
  seen_ = std::min(seen_ + 1, scaling.window);
  const auto follow = [&](double& mean, double value) { mean += (value - mean) / static_cast<double>(seen_); };
  follow(mean_time_s_, time.seconds());
  follow(mean_samples_, static_cast<double>(batch.samples));
  follow(mean_tokens_, static_cast<double>(batch.tokens));
  if (mean_time_s_ <= 0) return;
  move_window(batch.step);
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::size_t entry = sources_[i].entry;
    const double share = shares_[entry] / static_cast<double>(to_step_ - from_step_);
    const auto processes = static_cast<double>(spec_.sources[entry].processes.value_or(spec_.processes));
    const double need =
        scaling.headroom * share * cost_of(entry, mean_samples_, mean_tokens_) / (processes * mean_time_s_);
    scale(i, need, at, batch.step);
  }
}

// Steps of a run that goes back to a checkpoint come again.
void SourceActors::move_window(std::int64_t step) {
  const std::int64_t to = step + spec_.autoscale->ahead + 1;
  const std::int64_t from = std::max<std::int64_t>(0, to - spec_.autoscale->window);
  if (from < from_step_ || from > to_step_ || to < to_step_) {
    std::fill(shares_.begin(), shares_.end(), 0.0);
    from_step_ = to_step_ = from;
  }
  const auto add = [&](std::int64_t of_step, double times) {
    const std::vector<double> shares = spec_.shares_at(of_step);
    for (std::size_t entry = 0; entry < shares.size(); ++entry) shares_[entry] += times * shares[entry];
  };
  while (to_step_ < to) add(to_step_++, 1);
  while (from_step_ < from) add(from_step_++, -1);
}

void SourceActors::scale(std::size_t index, double need, DurationSum at, std::int64_t step) {
  constexpr double rounding = 1e-9;
  const AutoscaleSpec& scaling = *spec_.autoscale;
  Source& source = sources_[index];
  const auto wanted =
      static_cast<std::int64_t>(std::clamp(std::ceil(need - rounding), 1.0, static_cast<double>(scaling.most)));
  source.unneeded_steps = wanted < source.loaders ? source.unneeded_steps + 1 : 0;
  const bool is_more = wanted > source.loaders;
  if (!is_more && source.unneeded_steps < scaling.window) return;
  source.unneeded_steps = 0;
  const SourceSpec& entry = spec_.sources[source.entry];
  loaders_ += wanted - source.loaders;
  state_ = state_ + loader_state(spec_, entry, wanted) - loader_state(spec_, entry, source.loaders);
  source.loaders = wanted;
  source.change = Change{is_more ? later(at, scaling.start) : at, wanted};
  tell(is_more ? LoaderEvent::Kind::added : LoaderEvent::Kind::removed, index, at, step, scaling.reshard);
}

void SourceActors::tell(LoaderEvent::Kind kind, std::size_t source, DurationSum at, std::int64_t step, Duration pause) {
  constexpr std::size_t most_events = 100'000;  // that nobody takes
  if (events_.size() >= most_events) return;
  events_.push_back({kind, step, (at - origin_).seconds(), name_of(source), sources_[source].loaders, pause});
}

}  // namespace hdpsim
