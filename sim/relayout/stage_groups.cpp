#include "sim/relayout/stage_groups.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/relayout/min_max_split.h"

namespace hdpsim {
namespace {

/// A pipeline of the layout before its layers are dealt.
struct Place {
  const SlowPipeline* slow = nullptr;  ///< Null: it has usual groups alone.
  std::int64_t stages = 0;
  std::vector<const HomeGroup*> usual;

  [[nodiscard]] std::int64_t missing() const {
    return stages - (slow == nullptr ? 0 : std::ssize(slow->slow)) - std::ssize(usual);
  }
};

// Places of the pipelines with slow groups.
std::vector<Place> places_of(const RelayoutJob& job, const GroupShare& share, const std::vector<HomeGroup>& slow) {
  std::vector<Place> places(static_cast<std::size_t>(job.pipelines));
  for (const SlowPipeline& each : share.slow) {
    auto place = places.begin() + slow[each.slow.front()].pipeline;
    if (place->slow != nullptr) {
      place = std::find_if(places.begin(), places.end(), [](const Place& other) { return other.slow == nullptr; });
    }
    *place = {&each, each.stages, {}};
  }
  return places;
}

// Pipelines without slow groups have the more stages, the more usual groups they had.
void deal_stages(std::vector<Place>& places, const GroupShare& share, std::int64_t usual,
                 const std::vector<std::int64_t>& had) {
  std::vector<std::size_t> others;
  for (std::size_t p = 0; p < places.size(); ++p) {
    if (places[p].slow == nullptr) others.push_back(p);
  }
  for (const SlowPipeline& each : share.slow) usual -= each.stages - std::ssize(each.slow);
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) { return had[a] > had[b]; });
  for (std::size_t i = 0; i < others.size(); ++i) {
    places[others[i]].stages = usual_stages(usual, std::ssize(others), static_cast<std::int64_t>(i));
  }
}

void deal_usual_groups(std::vector<Place>& places, const std::vector<HomeGroup>& usual) {
  std::vector<const HomeGroup*> left;
  for (const HomeGroup& each : usual) {
    Place& home = places[static_cast<std::size_t>(each.pipeline)];
    if (home.missing() > 0) {
      home.usual.push_back(&each);
    } else {
      left.push_back(&each);
    }
  }
  auto next = left.begin();
  for (Place& place : places) {
    while (place.missing() > 0) place.usual.push_back(*next++);
    std::stable_sort(place.usual.begin(), place.usual.end(),
                     [](const HomeGroup* a, const HomeGroup* b) { return a->stage < b->stage; });
  }
  HDPSIM_CHECK(next == left.end(), "groups without a pipeline");
}

PipelineLayout pipeline_of(const RelayoutJob& job, const Place& place, const std::vector<HomeGroup>& slow) {
  PipelineLayout pipeline;
  std::vector<double> slowdowns;
  std::vector<std::int64_t> cuts;
  if (place.slow != nullptr) {
    for (const std::size_t each : place.slow->slow) {
      pipeline.stages.push_back({slow[each].group});
      slowdowns.push_back(slow[each].group.slowdown);
      cuts.push_back(slow[each].group.cut);
    }
  }
  for (const HomeGroup* each : place.usual) pipeline.stages.push_back({each->group});
  const std::vector<std::int64_t> layers = stage_layers(job, slowdowns, cuts, place.stages);
  for (std::size_t s = 0; s < pipeline.stages.size(); ++s) pipeline.stages[s].layers = layers.at(s);
  return pipeline;
}

}  // namespace

Relayout layout_of(const RelayoutJob& job, const GroupShare& share, const std::vector<HomeGroup>& slow,
                   const std::vector<HomeGroup>& usual) {
  std::vector<std::int64_t> had(static_cast<std::size_t>(job.pipelines));
  for (const HomeGroup& each : usual) ++had[static_cast<std::size_t>(each.pipeline)];
  std::vector<Place> places = places_of(job, share, slow);
  deal_stages(places, share, std::ssize(usual), had);
  deal_usual_groups(places, usual);
  Relayout layout;
  std::vector<SplitPart> parts;
  for (const Place& place : places) {
    const PipelineLayout& pipeline = layout.pipelines.emplace_back(pipeline_of(job, place, slow));
    parts.push_back({.cost = pipeline.slowest_stage(), .least = place.stages});
  }
  const auto micro_batches = min_max_split(job.micro_batches, parts);
  HDPSIM_CHECK(micro_batches, "a share without micro-batches for each stage");
  for (std::size_t p = 0; p < places.size(); ++p) layout.pipelines[p].micro_batches = (*micro_batches)[p];
  return layout;
}

}  // namespace hdpsim
