#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <tuple>

#include "sim/base/text.h"
#include "sim/cluster/impl/fabric_file.h"

namespace hdpsim {
namespace {

// Data of one lane in Gbit/s, as vendors name the rates: 4xHDR is 200.
constexpr std::array<std::pair<std::string_view, double>, 9> lane_rates = {{{"SDR", 2},
                                                                            {"DDR", 4},
                                                                            {"QDR", 8},
                                                                            {"FDR10", 10},
                                                                            {"FDR", 14},
                                                                            {"EDR", 25},
                                                                            {"HDR", 50},
                                                                            {"NDR", 100},
                                                                            {"XDR", 200}}};

// Of a word such as 4xHDR.
std::optional<Bandwidth> rate_of(std::string_view word) {
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  int width = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + x, width);
  const auto lane =
      std::find_if(lane_rates.begin(), lane_rates.end(), [&](auto& each) { return each.first == word.substr(x + 1); });
  if (error != std::errc{} || end != word.data() + x || width < 1 || width > 12 || lane == lane_rates.end()) {
    return std::nullopt;
  }
  constexpr double bytes_of_gigabit = 125e6;
  return Bandwidth::bytes_per_second(static_cast<std::int64_t>(width * lane->second * bytes_of_gigabit));
}

// The text between the quotes that begin at or behind `from`; empty if there are none.
std::string quoted(const std::string& line, std::size_t from) {
  const std::size_t open = line.find('"', from);
  const std::size_t close = open == std::string::npos ? open : line.find('"', open + 1);
  return close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
}

/// A NIC of a host, by what orders it.
struct Nic {
  std::string device;
  std::string port;
  std::string at_switch;
  friend bool operator<(const Nic& a, const Nic& b) {
    if (a.device != b.device) return is_before(a.device, b.device);
    return is_before(a.port, b.port);
  }
};

// Every cable between switches is listed by both of them, and every one to a host by its switch.
class DiscoveryReader {
 public:
  DiscoveryReader(const std::string& file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  ListedFabric read(const std::string& text) {
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) read_line(line, ++number);
    ListedFabric fabric;
    fabric.position = {file_, 0, 0};
    name_switches(fabric);
    add_cables(fabric);
    add_hosts(fabric);
    return fabric;
  }

 private:
  void read_line(const std::string& line, int number) {
    if (line.starts_with("Switch")) {
      current_ = quoted(line, 0);
      const std::size_t comment = line.find('#');
      descriptions_.emplace_back(current_, comment == std::string::npos ? "" : quoted(line, comment));
    } else if (line.starts_with("Ca") || line.starts_with("Rt")) {
      current_.clear();
    } else if (line.starts_with("[") && !current_.empty()) {
      read_port(line, number);
    }
  }

  // [17] "H-0c42a10300a1b2c3"[1](c42a10300a1b2c3)  # "node3 mlx5_1" lid 12 4xHDR
  void read_port(const std::string& line, int number) {
    const std::string other = quoted(line, 0);
    const std::size_t comment = line.find('#');
    const std::size_t bracket = line.find('[', line.find('"'));
    const std::size_t port_end = line.find(']', bracket);
    std::optional<Bandwidth> rate;
    std::istringstream words(comment == std::string::npos ? "" : line.substr(comment));
    for (std::string word; words >> word;) rate = rate ? rate : rate_of(word);
    if (other.empty() || port_end == std::string::npos || !rate) {
      diagnostics_.error({file_, number, 1}, "a port without the one at its other end, or without a rate such as 4xHDR",
                         "take the output of ibnetdiscover as it is");
      return;
    }
    if (other.starts_with("S-")) {
      if (current_ < other) ++cables_[{current_, other, *rate}];
      return;
    }
    const std::string description = quoted(line, comment);
    const std::size_t space = description.find(' ');
    if (space == std::string::npos || description.find("Aggregation Node") != std::string::npos) return;  // of a switch
    hosts_[description.substr(0, space)].push_back(
        {description.substr(space + 1), line.substr(bracket + 1, port_end - bracket - 1), current_});
  }

  // Names are in descriptions such as MF0;leaf01:MQM8700/U1; chips of one name keep theirs in full.
  void name_switches(ListedFabric& fabric) {
    std::map<std::string, int> uses;
    const auto short_name = [](const std::string& description) {
      const std::size_t begin = description.find(';');
      const std::size_t end = description.find(':', begin == std::string::npos ? 0 : begin);
      return begin == std::string::npos || end == std::string::npos ? description
                                                                    : description.substr(begin + 1, end - begin - 1);
    };
    for (const auto& [guid, description] : descriptions_) ++uses[short_name(description)];
    for (const auto& [guid, description] : descriptions_) {
      std::string name = short_name(description);
      if (name.empty() || uses[name] > 1) name = description.empty() ? guid : fmt::format("{} {}", description, guid);
      names_[guid] = name;
      fabric.switches.push_back(name);
    }
    if (descriptions_.empty()) diagnostics_.error({file_, 0, 0}, "no switch is listed");
  }

  void add_cables(ListedFabric& fabric) {
    for (const auto& [ends, count] : cables_) {
      const auto& [from, to, rate] = ends;
      if (names_.count(to) == 0) {
        diagnostics_.error({file_, 0, 0}, fmt::format("the switch '{}' is joined by a cable and not listed", to),
                           "take the output of ibnetdiscover as a whole");
        return;
      }
      fabric.cables.push_back({names_[from], names_[to], rate, count});
    }
  }

  // Hosts with another number of NICs than most are those of storage and management.
  void add_hosts(ListedFabric& fabric) {
    std::map<std::size_t, int> sizes;
    for (const auto& [name, nics] : hosts_) ++sizes[nics.size()];
    const auto usual =
        std::max_element(sizes.begin(), sizes.end(), [](auto& a, auto& b) { return a.second < b.second; });
    std::vector<std::string> left_out;
    for (auto& [name, nics] : hosts_) {
      if (nics.size() != usual->first) {
        left_out.push_back(name);
        continue;
      }
      std::sort(nics.begin(), nics.end());
      ListedFabric::Host host{name, {}};
      for (const Nic& nic : nics) host.attached.push_back(names_[nic.at_switch]);
      fabric.hosts.push_back(std::move(host));
    }
    std::sort(fabric.hosts.begin(), fabric.hosts.end(), [](auto& a, auto& b) { return is_before(a.name, b.name); });
    if (left_out.empty()) return;
    fabric.notes.push_back(
        fmt::format("left out: hosts that have not {} NICs ({})", usual->first, joined(left_out, ", ")));
  }

  std::string file_;
  Diagnostics& diagnostics_;
  std::string current_;                                            ///< The switch whose ports are being read.
  std::vector<std::pair<std::string, std::string>> descriptions_;  ///< Of switches, by GUID, in their order.
  std::map<std::string, std::string> names_;
  std::map<std::tuple<std::string, std::string, Bandwidth>, std::int64_t> cables_;
  std::map<std::string, std::vector<Nic>> hosts_;
};

}  // namespace

ListedFabric read_ibnetdiscover(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  return DiscoveryReader(file, diagnostics).read(text);
}

}  // namespace hdpsim
