#include "sim/study/production_options.h"

#include <fmt/format.h>

#include <string>

#include "sim/study/long_times.h"

namespace hdpsim {
namespace {

using LogRange = Stragglers::LogRange;

constexpr Range slowdowns{1, 1000};

const KeyTable<LogRange>& slowdown_table() {
  static const auto made = [] {
    KeyTable<LogRange> keys("the slowdown");
    keys.number("from", slowdowns, at(&LogRange::from), "the least", {.required = true});
    keys.number("to", slowdowns, at(&LogRange::to), "the most", {.required = true});
    return keys;
  }();
  return made;
}

const KeyTable<LogRange>& duration_table() {
  static const auto made = [] {
    KeyTable<LogRange> keys("the duration");
    add_long_time(keys, "from", false, at(&LogRange::from), "the shortest", {.required = true});
    add_long_time(keys, "to", false, at(&LogRange::to), "the longest", {.required = true});
    return keys;
  }();
  return made;
}

// A range that has been read is one, too, if `from` is not more than `to`.
template <class Member>
void add_log_range(KeyTable<Stragglers>& keys, const std::string& name, const KeyTable<LogRange>& ends, Member member,
                   const std::string& sentence) {
  keys.add({name, map_shape(ends.texts()), "", sentence, {.required = true}},
           [=, &ends](const Value& value, Stragglers& stragglers, Diagnostics& diagnostics) {
             LogRange& range = member(stragglers);
             const KeyReading reading = ends.read(value, range, diagnostics);
             const Value* to = value.find("to");
             if (to == nullptr || !reading.is_right("from") || !reading.is_right("to") || range.from <= range.to)
               return;
             diagnostics.error(to->position, fmt::format("{} ends below where it begins", name),
                               "exchange 'from' and 'to'");
           });
}

const KeyTable<Stragglers>& straggler_table() {
  static const auto made = [] {
    KeyTable<Stragglers> keys("the stragglers");
    add_long_time(keys, "device_mtbf", false, at(&Stragglers::device_mtbf_s),
                  "mean time from one slow spell of a device to its next", {.required = true});
    add_log_range(keys, "slowdown", slowdown_table(), at(&Stragglers::slowdown),
                  "how many times longer the kernels of a slow device take; the logarithm is uniformly distributed");
    add_log_range(keys, "duration", duration_table(), at(&Stragglers::duration_s),
                  "how long a spell lasts; the logarithm is uniformly distributed");
    keys.number("threshold", slowdowns, at(&Stragglers::threshold), "a device that is less slow is not found");
    keys.count("detect", {0, 1e6}, at(&Stragglers::detect),
               "after how many steps it is known that a device is slow, or no longer is", {.unit = "steps"});
    keys.word(
        "answer", "answer",
        {{"none", StragglerAnswer::none},
         {"replan", StragglerAnswer::replan},
         {"relayout", StragglerAnswer::relayout},
         {"drop", StragglerAnswer::drop},
         {"replace", StragglerAnswer::replace}},
        at(&Stragglers::answer),
        "what then happens: `none`, nothing; `replan`, policies plan for the speeds of the devices, and no state "
        "moves (a static mesh and policies that know no speeds plan as before); `relayout`, pipelines get other "
        "tensor-parallel groups, stages, layers and micro-batches, and states move (Malleus, arXiv 2410.13333); "
        "`drop`, "
        "the job restarts without the node, on fewer ranks, until the device is as before; `replace`, the job writes a "
        "checkpoint and restarts with a spare in place of the node");
    const Range batches{1, 1e6};
    keys.add(
        {"batches",
         either_shape({word_shape({"all"}), count_shape(batches, "batches")}),
         "all",
         "how many batches are simulated whenever other devices are slow or known; the steps of the others take as "
         "many times longer as those together",
         {}},
        [batches](const Value& value, Stragglers& stragglers, Diagnostics& diagnostics) {
          if (value.text == "all") return;
          stragglers.batches = read_in<std::int64_t>(value, "'batches'", batches, diagnostics);
        });
    add_long_time(keys, "stop", true, at(&Stragglers::stop_s),
                  "how long the job stops for the answer; with `relayout`, without the time in which states move", {});
    return keys;
  }();
  return made;
}

const KeyTable<ProductionOptions>& production_table() {
  static const auto made = [] {
    KeyTable<ProductionOptions> keys("the production run");
    add_long_time(keys, "time", false, at(&ProductionOptions::time_s),
                  "how long the job runs; the batches of `data.steps` are trained in turn", {.required = true});
    keys.count("seed", {0, 9e15}, at(&ProductionOptions::seed), "the seed of when which devices become slow");
    keys.add({"stragglers",
              map_shape(straggler_table().texts()),
              "",
              "devices that become slow for a while",
              {.otherwise = "none", .mechanism = "stragglers"}},
             [](const Value& value, ProductionOptions& production, Diagnostics& diagnostics) {
               (void)straggler_table().read(value, production.stragglers.emplace(), diagnostics);
             });
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& production_keys() {
  return production_table().texts();
}

ProductionOptions read_production(const Value& value, Diagnostics& diagnostics) {
  ProductionOptions production;
  (void)production_table().read(value, production, diagnostics);
  return production;
}

}  // namespace hdpsim
