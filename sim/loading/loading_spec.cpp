#include "sim/loading/loading_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_processes = 1e7;
constexpr double most_prefetch = 1000;
constexpr double most_sources = 100'000;
constexpr double most_loaders = 10'000;
constexpr double most_weight = 1e9;
constexpr Range steps{0, 1e9};
constexpr Between<Bytes> bytes_per_token{1_B, Bytes(1'000'000'000)};
constexpr Between<Bytes> held{Bytes(0), limits::memory.most};
constexpr double least_mtbf_s = 60;
constexpr double most_mtbf_years = 1000;

const KeyTable<WeightPoint>& weight_table() {
  static const auto made = [] {
    KeyTable<WeightPoint> point("a point of the drift");
    point.count("step", steps, at(&WeightPoint::step), "from this step on", {.required = true});
    point.number("weight", {0, most_weight}, at(&WeightPoint::weight), "the weight at that step", {.required = true});
    return point;
  }();
  return made;
}

void read_drift(const Value& value, SourceSpec& source, Diagnostics& diagnostics) {
  if (!value.is_sequence() || value.items.empty()) {
    diagnostics.error(value.position, "'drift' must be a list of points",
                      "write drift: [{step: 0, weight: 3}, {step: 1000, weight: 1}]");
    return;
  }
  for (const Value& item : value.items) {
    WeightPoint point;
    const KeyReading reading = weight_table().read(item, point, diagnostics);
    if (!reading.is_right("step") || !item.is_map() || item.find("step") == nullptr) continue;
    if (!source.drift.empty() && point.step <= source.drift.back().step) {
      diagnostics.error(item.position,
                        fmt::format("the drift is at step {} after step {}", point.step, source.drift.back().step),
                        "state its points in the order of their steps");
    }
    source.drift.push_back(point);
  }
}

const KeyTable<SourceSpec>& source_table() {
  static const auto made = [] {
    KeyTable<SourceSpec> source("a source");
    source.text("name", at(&SourceSpec::name), "for tables and messages", {.required = true});
    source.count("count", {1, most_sources}, at(&SourceSpec::count), "sources like this one", {.unit = "sources"});
    source.number("weight", {0, most_weight}, at(&SourceSpec::weight),
                  "its share of the samples is its weight over the sum of all");
    source.add({"drift",
                list_shape(map_shape(weight_table().texts())),
                "",
                "weights by step in place of `weight`: straight from point to point, constant outside of them",
                {.otherwise = "none"}},
               read_drift);
    source.quantity("bytes_per_token", bytes_per_token, at(&SourceSpec::bytes_per_token),
                    "as `loading.bytes_per_token`, of this source", {.otherwise = "the loading's"});
    source.quantity("sample", limits::time, at(&SourceSpec::sample),
                    "what a process needs to prepare a sample, besides what its tokens take");
    source.count("tokens_per_s", {1, 1e15}, at(&SourceSpec::tokens_per_s), "what one process prepares in a second",
                 {.unit = "tokens", .otherwise = "the loading's"});
    source.quantity("access", held, at(&SourceSpec::access),
                    "memory of its open files: indices, metadata, sockets, buffers of readers");
    source.count("actors", {1, most_loaders}, at(&SourceSpec::actors), "its loaders at the beginning (`actors`)",
                 {.unit = "loaders"});
    source.count("processes", {1, most_processes}, at(&SourceSpec::processes), "of each of its loaders (`actors`)",
                 {.unit = "processes", .otherwise = "the loading's"});
    return source;
  }();
  return made;
}

void read_sources(const Value& value, LoadingSpec& spec, Diagnostics& diagnostics) {
  if (!value.is_sequence() || value.items.empty()) {
    diagnostics.error(value.position, "'sources' must be a list of sources, and not empty",
                      "write sources: [{name: web, weight: 3}, {name: books, count: 40}]");
    return;
  }
  std::set<std::string> names;
  std::int64_t count = 0;
  for (const Value& item : value.items) {
    SourceSpec source;
    (void)source_table().read(item, source, diagnostics);
    if (!source.name.empty() && !names.insert(source.name).second) {
      diagnostics.error(item.position, fmt::format("there are two sources '{}'", source.name), "rename one");
    }
    if (const Value* weight = item.is_map() ? item.find("weight") : nullptr; weight && !source.drift.empty()) {
      diagnostics.error(weight->position, "a source has 'weight' or 'drift'", "remove one");
    }
    count += source.count;
    spec.sources.push_back(std::move(source));
  }
  if (static_cast<double>(count) > most_sources) {
    diagnostics.error(value.position, fmt::format("{} sources are more than {}", count, most_sources));
    spec.sources.clear();
  }
}

const KeyTable<AutoscaleSpec>& autoscale_table() {
  static const auto made = [] {
    KeyTable<AutoscaleSpec> scaling("the autoscaling");
    scaling.count(
        "window", {1, 1e6}, at(&AutoscaleSpec::window),
        "steps over which the shares of the sources are averaged; a loader goes when it was not needed for so "
        "many",
        {.unit = "steps"});
    scaling.count("ahead", {0, 1e6}, at(&AutoscaleSpec::ahead),
                  "steps of the mix to come that are known: the window ends with them", {.unit = "steps"});
    scaling.number("headroom", {1, 100}, at(&AutoscaleSpec::headroom), "loaders for so many times the mean");
    scaling.quantity("start", limits::time, at(&AutoscaleSpec::start), "until a new loader works");
    scaling.quantity("reshard", limits::time, at(&AutoscaleSpec::reshard),
                     "for which a source prepares nothing, as its files are dealt out anew");
    scaling.count("most", {1, most_loaders}, at(&AutoscaleSpec::most), "loaders of a source", {.unit = "loaders"});
    return scaling;
  }();
  return made;
}

const KeyTable<LoaderDeaths::Stated>& death_table() {
  static const auto made = [] {
    KeyTable<LoaderDeaths::Stated> death("a death");
    death.count("step", steps, at(&LoaderDeaths::Stated::step), "a loader dies as this step begins",
                {.required = true});
    death.text("source", at(&LoaderDeaths::Stated::source), "the source, or the first of those with this name",
               {.required = true});
    return death;
  }();
  return made;
}

void read_mtbf(const Value& value, LoaderDeaths& deaths, Diagnostics& diagnostics) {
  constexpr double year_s = 365 * 86400.0;
  const Parsed<double> seconds = parse_seconds(value.text);
  if (!value.is_scalar() || !seconds.value) {
    diagnostics.error(value.position, value.is_scalar() ? seconds.error : "'mtbf' must be a time", seconds.help);
  } else if (*seconds.value < least_mtbf_s || *seconds.value > most_mtbf_years * year_s) {
    diagnostics.error(value.position, fmt::format("'mtbf' is {}, it must be from {} s to {} years", value.text,
                                                  least_mtbf_s, most_mtbf_years));
  } else {
    deaths.mtbf_s = seconds.value;
  }
}

void read_deaths(const Value& value, LoaderDeaths& deaths, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    diagnostics.error(value.position, "'at' must be a list of deaths", "write at: [{step: 10, source: web}]");
  }
  for (const Value& item : value.items) {
    (void)death_table().read(item, deaths.stated.emplace_back(), diagnostics);
  }
}

const KeyTable<LoaderDeaths>& deaths_table() {
  static const auto made = [] {
    KeyTable<LoaderDeaths> deaths("the deaths");
    KeyShape time = shape_of(KeyShape::Kind::text);
    time.unit = "a time";
    time.limits = fmt::format("from {} s to {} years", least_mtbf_s, most_mtbf_years);
    deaths.add({"mtbf",
                std::move(time),
                "",
                "mean time between failures of one loader",
                {.otherwise = "none die but those of `at`"}},
               read_mtbf);
    deaths.add({"at", list_shape(map_shape(death_table().texts())), "", "deaths at steps", {.otherwise = "none"}},
               read_deaths);
    deaths.count("snapshot", {1, 1e9}, at(&LoaderDeaths::snapshot),
                 "steps from one snapshot of a loader to the next; what it prepared since is prepared again",
                 {.unit = "steps"});
    deaths.quantity("restart", limits::time, at(&LoaderDeaths::restart),
                    "until a new loader has started and begins to repeat");
    deaths.quantity("promote", limits::time, at(&LoaderDeaths::promote),
                    "until a shadow takes over: what the plan in flight takes once more");
    deaths.count("shadows", {0, 100}, at(&LoaderDeaths::shadows),
                 "of each loader: it takes over without repeating anything, and a new one begins to follow",
                 {.unit = "shadows"});
    deaths.count("seed", {0, 9e15}, at(&LoaderDeaths::seed), "the seed of what is drawn");
    return deaths;
  }();
  return made;
}

void add_costs(KeyTable<LoadingSpec>& loading) {
  loading.quantity("bytes_per_token", bytes_per_token, at(&LoadingSpec::bytes_per_token),
                   "as stored, and as held in host memory", {.required = true});
  loading.quantity("storage", limits::bandwidth, at(&LoadingSpec::storage), "the rate of all readers together",
                   {.otherwise = "takes no time"});
  loading.quantity("network", limits::bandwidth, at(&LoadingSpec::network), "the rate of a node, for data",
                   {.otherwise = "takes no time"});
  loading.count("tokens_per_s", {1, 1e15}, at(&LoadingSpec::tokens_per_s), "what one process prepares in a second",
                {.unit = "tokens", .otherwise = "takes no time"});
  loading.count("processes", {1, most_processes}, at(&LoadingSpec::processes),
                "processes of each loader (`spmd`, `actors`), or of all sources together (`remote`)",
                {.unit = "processes"});
  loading.count("prefetch", {0, most_prefetch}, at(&LoadingSpec::prefetch),
                "batches loaded ahead; 0: a batch is loaded when its step is due", {.unit = "batches"});
  loading.quantity("planner", limits::time, at(&LoadingSpec::planner), "how long planning a step takes");
  loading.quantity("planner_sample", limits::time, at(&LoadingSpec::planner_sample),
                   "in addition to `planner`, for each sample of the step");
  loading.quantity("planner_compare", limits::time, at(&LoadingSpec::planner_compare),
                   "in addition, for each comparison of sorting them: samples x log2(samples)");
  loading.flag("plan_ahead", at(&LoadingSpec::plan_ahead),
               "planning is hidden behind the steps as loading is; `false`: each step waits for its plan");
}

void add_sources(KeyTable<LoadingSpec>& loading) {
  loading.add({"sources",
               list_shape(map_shape(source_table().texts())),
               "",
               "the data sets that loaders keep open (`spmd`, `actors`)",
               {.otherwise = "one, without memory of its own"}},
              read_sources);
  loading.quantity("process_memory", held, at(&LoadingSpec::process_memory),
                   "of a process of a loader, besides what it loads and keeps open");
  loading.word("clients", "who asks for data", {{"rank", false}, {"device", true}}, at(&LoadingSpec::each_device),
               "who asks for data, and with `spmd` has a loader: each HDP rank, which passes data on to its other "
               "devices, or each device");
  loading.word("reads", "what a loader reads", {{"batch", true}, {"share", false}}, at(&LoadingSpec::whole_batch),
               "what a loader of `spmd` reads: the whole batch, or only what its rank trains, as where that is known "
               "before lengths are");
}

void add_actors(KeyTable<LoadingSpec>& loading) {
  loading.count("constructors", {0, most_loaders}, at(&LoadingSpec::constructors),
                "data constructors, which make batches of the loaders' samples; 0: clients ask all loaders (`actors`)",
                {.unit = "constructors", .otherwise = "one a node"});
  loading.quantity("connection", limits::time, at(&LoadingSpec::connection),
                   "of a step, for each of the connections at the end that has the most (`actors`)");
  loading.quantity("node_room", limits::memory, at(&LoadingSpec::node_room),
                   "memory of a node for loading; loaders that have no room are on other hosts (`actors`)",
                   {.otherwise = "any"});
  loading.add({"autoscale",
               map_shape(autoscale_table().texts()),
               "",
               "loaders of each source follow its share of the samples (`actors`)",
               {.otherwise = "their numbers stay"}},
              [](const Value& value, LoadingSpec& spec, Diagnostics& diagnostics) {
                (void)autoscale_table().read(value, spec.autoscale.emplace(), diagnostics);
              });
  loading.add({"deaths",
               map_shape(deaths_table().texts()),
               "",
               "loaders that die, and how they are replaced (`actors`)",
               {.otherwise = "none"}},
              [](const Value& value, LoadingSpec& spec, Diagnostics& diagnostics) {
                (void)deaths_table().read(value, spec.deaths.emplace(), diagnostics);
              });
}

const KeyTable<LoadingSpec>& loading_table() {
  static const auto made = [] {
    KeyTable<LoadingSpec> loading("the loading");
    loading.word(
        "style", "style of loading",
        {{"spmd", LoaderStyle::spmd}, {"remote", LoaderStyle::remote}, {"actors", LoaderStyle::actors}},
        at(&LoadingSpec::style),
        "`spmd`: each rank's loader reads and prepares the whole batch; `remote`: sources, a scheduler, clients; "
        "`actors`: loaders of each source, a planner, data constructors",
        {.required = true});
    add_costs(loading);
    add_sources(loading);
    add_actors(loading);
    return loading;
  }();
  return made;
}

// Reports keys that have no meaning in the style.
void check_style(const Value& value, const LoadingSpec& spec, Diagnostics& diagnostics) {
  const auto refuse = [&](const char* key, const char* style) {
    if (const Value* found = value.find(key)) {
      diagnostics.error(found->position, fmt::format("'{}' needs loading of the style '{}'", key, style),
                        fmt::format("remove it, or write style: {}", style));
    }
  };
  if (spec.style != LoaderStyle::actors) {
    for (const char* key : {"constructors", "connection", "node_room", "autoscale", "deaths"}) refuse(key, "actors");
  }
  if (spec.style != LoaderStyle::spmd) refuse("reads", "spmd");
  if (spec.style == LoaderStyle::remote) {
    for (const char* key : {"sources", "process_memory"}) refuse(key, "actors");
  }
  if (spec.style == LoaderStyle::actors && value.find("sources") == nullptr) {
    diagnostics.error(value.position, "loading of the style 'actors' needs 'sources'",
                      "write sources: [{name: web, weight: 3}, {name: books, count: 40}]");
  }
}

// Between two points all weights go straight, so that a sum of nothing shows at one of the points.
void check_mix(const Value& sources, const LoadingSpec& spec, Diagnostics& diagnostics) {
  std::set<std::int64_t> turns{0};
  for (const SourceSpec& source : spec.sources) {
    for (const WeightPoint& point : source.drift) turns.insert(point.step);
  }
  for (const std::int64_t step : turns) {
    const bool any = std::any_of(spec.sources.begin(), spec.sources.end(),
                                 [&](const SourceSpec& source) { return source.weight_at(step) > 0; });
    if (any) continue;
    diagnostics.error(sources.position, fmt::format("at step {} the weights of the sources sum to nothing", step),
                      "give one a weight above 0");
    return;
  }
}

void check_deaths(const Value& list, const LoadingSpec& spec, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const SourceSpec& source : spec.sources) names.push_back(source.name);
  for (const Value& item : list.items) {
    const Value* name = item.is_map() ? item.find("source") : nullptr;
    if (name != nullptr && !names.empty()) (void)read_choice(*name, "source", names, diagnostics);
  }
}

}  // namespace

double SourceSpec::weight_at(std::int64_t step) const {
  if (drift.empty()) return weight;
  const auto after = std::find_if(drift.begin(), drift.end(), [&](const WeightPoint& at) { return at.step > step; });
  if (after == drift.begin()) return drift.front().weight;
  if (after == drift.end()) return drift.back().weight;
  const WeightPoint& before = *(after - 1);
  const double part = static_cast<double>(step - before.step) / static_cast<double>(after->step - before.step);
  return before.weight + part * (after->weight - before.weight);
}

std::vector<double> LoadingSpec::shares_at(std::int64_t step) const {
  std::vector<double> shares;
  double sum = 0;
  for (const SourceSpec& source : sources) {
    shares.push_back(source.weight_at(step));
    sum += shares.back() * static_cast<double>(source.count);
  }
  for (double& share : shares) share /= sum;
  return shares;
}

const std::vector<KeyText>& loading_keys() {
  return loading_table().texts();
}

LoadingSpec read_loading(const Value& value, Diagnostics& diagnostics) {
  LoadingSpec spec;
  const std::size_t before = diagnostics.count();
  const KeyReading reading = loading_table().read(value, spec, diagnostics);
  const bool is_read = diagnostics.count() == before;
  if (!value.is_map()) return spec;
  if (reading.is_right("style") && value.find("style") != nullptr) check_style(value, spec, diagnostics);
  if (is_read && !spec.sources.empty()) check_mix(*value.find("sources"), spec, diagnostics);
  const Value* deaths = value.find("deaths");
  const Value* stated = deaths != nullptr && deaths->is_map() ? deaths->find("at") : nullptr;
  if (stated != nullptr) check_deaths(*stated, spec, diagnostics);
  return spec;
}

}  // namespace hdpsim
