#include <fmt/format.h>

#include "sim/analysis/glossary.h"
#include "sim/analysis/memory_verdict.h"
#include "sim/results/run_figures.h"

namespace hdpsim {

const FigureTable<Breakdown>& breakdown_figures() {
  static const FigureTable<Breakdown> figures([](auto& all) {
    for (const Activity activity : all_activities) {
      const std::string name(activity_name(activity));
      all.add({fmt::format("{}_s", name), name, "", std::string(activity_meaning(activity))},
              [=](const Breakdown& breakdown) { return breakdown[activity]; });
    }
  });
  return figures;
}

const FigureTable<BusyTimes>& busy_figures() {
  static const FigureTable<BusyTimes> figures([](auto& all) {
    const std::string what = "time in which a rank of the step waits for no other; in runs the mean over the steps";
    all.add({"busy_min_s", "min", "", fmt::format("least {}", what)}, at(&BusyTimes::min));
    all.add({"busy_mean_s", "mean", "", fmt::format("mean {}", what)}, at(&BusyTimes::mean));
    all.add({"busy_max_s", "max", "", fmt::format("longest {}", what)}, at(&BusyTimes::max));
    all.add(
        {"busy_std_s", "std", "", "standard deviation over the ranks of that time; in runs the mean over the steps"},
        at(&BusyTimes::deviation));
  });
  return figures;
}

const FigureTable<MemoryUse>& peak_figures() {
  static const FigureTable<MemoryUse> figures([](auto& all) {
    all.add({"device_peak_gb", "device_peak", "", "memory of the fullest device at its fullest moment"},
            at(&MemoryUse::device));
    all.add({"host_peak_gb", "host_peak", "", "the most that any device has in its share of the host's memory"},
            at(&MemoryUse::host));
    all.add({"device_at_most_gb", "device_at_most", "",
             "memory of the fullest device where the allocator leaves the largest gaps that were measured"},
            [](const MemoryUse& memory) { return with_largest_gaps(memory); });
  });
  return figures;
}

const FigureTable<ConnectionUse>& connection_figures() {
  static const FigureTable<ConnectionUse> figures([](auto& all) {
    all.add({"peers", "peers", "devices", "the most devices that one device exchanges keys and values with in a step"},
            at(&ConnectionUse::peers));
    all.add({"groups", "groups", "groups", "distinct groups of two or more ranks in a step; in runs the most"},
            at(&ConnectionUse::groups));
  });
  return figures;
}

const FigureTable<LoaderUse>& loader_figures() {
  static const FigureTable<LoaderUse> figures([](auto& all) {
    all.add({"loaders", "loaders", "loaders", "loaders of all sources, or of all ranks; in runs the most"},
            at(&LoaderUse::loaders));
    all.add({"loader_gb", "memory_gb", "",
             "host memory of all that loads, of the whole job: open files, processes, samples; in runs the most"},
            at(&LoaderUse::memory, &LoaderMemory::all));
    all.add({"loader_node_gb", "node_gb", "", "host memory of it on the node that has the most; in runs the most"},
            at(&LoaderUse::memory, &LoaderMemory::node));
    all.add({"loader_elsewhere_gb", "elsewhere_gb", "",
             "host memory of it for which nodes have no room, on other hosts; in runs the most"},
            at(&LoaderUse::memory, &LoaderMemory::elsewhere));
    all.add({"loader_connections", "connections", "connections",
             "connections between loaders, data constructors and clients; in runs the most"},
            at(&LoaderUse::connections));
  });
  return figures;
}

FigureText connection_memory_text() {
  return {
      "connections_gb", "memory_gb.connections", "",
      "memory of the channels to peers on the device with most of them, a part of its peak; empty where the profile "
      "has no `memory_per_peer`"};
}

FigureText events_text() {
  return {"events", "events", "events", "events of the simulation"};
}

}  // namespace hdpsim
