#include "sim/cluster/impl/fabric_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

namespace hdpsim {
namespace {

std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  return end - at;
}

/// NICs below each switch of a tree, whose cables lead up from `from` to `to`.
class Below {
 public:
  Below(const ListedFabric& fabric, std::size_t nodes, std::int64_t nics) : fabric_(fabric) {
    for (std::size_t i = 0; i < nodes; ++i) own_[fabric.hosts[i].attached.front()] += nics;
  }
  [[nodiscard]] std::int64_t of(const std::string& name) const {
    const auto own = own_.find(name);
    std::int64_t sum = own == own_.end() ? 0 : own->second;
    for (const ListedFabric::Cable& cable : fabric_.cables) {
      if (cable.to == name) sum += of(cable.from);
    }
    return sum;
  }

 private:
  const ListedFabric& fabric_;
  std::map<std::string, std::int64_t> own_;
};

Value text_value(std::string text, const Position& position) {
  Value value = Value::scalar(std::move(text), position);
  value.quoted = true;
  return value;
}

}  // namespace

bool is_before(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const std::size_t m = digits_at(a, i);
    const std::size_t n = digits_at(b, j);
    if (m > 0 && n > 0) {
      std::string_view x = a.substr(i, m);
      std::string_view y = b.substr(j, n);
      while (x.size() > 1 && x.front() == '0') x.remove_prefix(1);
      while (y.size() > 1 && y.front() == '0') y.remove_prefix(1);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i += m;
      j += n;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

Value graph_of(ListedFabric& fabric, std::int64_t nodes, std::int64_t nics, Bandwidth nic, Diagnostics& diagnostics) {
  const auto listed = static_cast<std::int64_t>(fabric.hosts.size());
  if (nodes > listed) {
    diagnostics.error(fabric.position,
                      fmt::format("the file has {} hosts that can be nodes, the cluster has {} nodes", listed, nodes),
                      "write as many gpus as these hosts have");
    return {};
  }
  if (nodes < listed) {
    fabric.notes.push_back(fmt::format("the nodes are the first {} of {} hosts: {} to {}", nodes, listed,
                                       fabric.hosts.front().name,
                                       fabric.hosts[static_cast<std::size_t>(nodes) - 1].name));
  }
  const Position& at = fabric.position;
  const Below below(fabric, static_cast<std::size_t>(nodes), nics);
  Value switches = Value::map(at);
  for (const std::string& name : fabric.switches) switches.set(name, Value{});
  Value cables = Value::sequence(at);
  for (const ListedFabric::Cable& cable : fabric.cables) {
    const std::int64_t count = cable.rate ? cable.count : below.of(cable.from);
    if (count == 0) continue;
    Value map = Value::map(at);
    map.set("from", text_value(cable.from, at));
    map.set("to", text_value(cable.to, at));
    const double gigabits = cable.rate.value_or(nic).gigabytes_per_second() * 8;
    map.set("bandwidth", Value::scalar(fmt::format("{:.9g} Gbit/s", gigabits), at));
    map.set("count", Value::scalar(fmt::format("{}", count), at));
    cables.items.push_back(std::move(map));
  }
  Value attached = Value::map(at);
  for (std::int64_t i = 0; i < nodes; ++i) {
    const std::vector<std::string>& names = fabric.hosts[static_cast<std::size_t>(i)].attached;
    const bool is_one = std::set<std::string>(names.begin(), names.end()).size() == 1;
    for (std::size_t k = 0; k < (is_one ? 1 : names.size()); ++k) {
      attached.set(is_one ? fmt::format("{}", i) : fmt::format("{} nic {}", i, k), text_value(names[k], at));
    }
  }
  Value graph = Value::map(at);
  graph.set("switches", std::move(switches));
  graph.set("cables", std::move(cables));
  graph.set("nodes", std::move(attached));
  return graph;
}

}  // namespace hdpsim
