#include "sim/report/simgrid_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/text.h"
#include "sim/page/page.h"

namespace hdpsim {
namespace {

// SimGrid's zones with full routing keep a table of all pairs of their hosts: 2 MiB for this many messages. Many small
// zones cost it more, because it looks names up zone by zone.
constexpr std::size_t messages_per_zone = 256;

std::string sender(const SimgridTraffic& traffic, std::size_t message) {
  return fmt::format("message {} from {}", message, traffic.messages[message].from);
}

std::string receiver(const SimgridTraffic& traffic, std::size_t message) {
  return fmt::format("message {} to {}", message, traffic.messages[message].to);
}

class PlatformWriter {
 public:
  explicit PlatformWriter(const SimgridTraffic& traffic) : traffic_(traffic) {}

  std::string text() {
    write("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n");
    write("<platform version=\"4.1\">\n<zone id=\"traffic\" routing=\"None\">\n");
    write_links();
    for (std::size_t first = 0; first < traffic_.messages.size(); first += messages_per_zone) {
      write_zone(first, std::min(first + messages_per_zone, traffic_.messages.size()));
    }
    write("</zone>\n</platform>\n");
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void write(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    append(text_, format, std::forward<Arguments>(arguments)...);
  }

  void write_links() {
    write("<zone id=\"links\" routing=\"None\">\n");
    for (const SimgridTraffic::Link& link : traffic_.links) {
      write("<link id=\"{}\" bandwidth=\"{}Bps\" latency=\"0s\"/>\n", escaped_markup(link.name), link.bytes_per_s);
    }
    write("</zone>\n");
  }

  void write_zone(std::size_t first, std::size_t end) {
    write("<zone id=\"messages from {}\" routing=\"Full\">\n", first);
    for (std::size_t message = first; message < end; ++message) {
      write("<host id=\"{}\" speed=\"1Gf\"/><host id=\"{}\" speed=\"1Gf\"/>\n",
            escaped_markup(sender(traffic_, message)), escaped_markup(receiver(traffic_, message)));
    }
    for (std::size_t message = first; message < end; ++message) write_route(message);
    write("</zone>\n");
  }

  void write_route(std::size_t message) {
    write("<route src=\"{}\" dst=\"{}\" symmetrical=\"NO\">", escaped_markup(sender(traffic_, message)),
          escaped_markup(receiver(traffic_, message)));
    for (const FairShare::Link link : traffic_.messages[message].transfer.links) {
      write("<link_ctn id=\"{}\"/>", escaped_markup(traffic_.links[link].name));
    }
    write("</route>\n");
  }

  const SimgridTraffic& traffic_;
  std::string text_;
};

}  // namespace

SimgridTraffic simgrid_traffic(const ClusterLinks& links, std::span<const Message> messages,
                               std::span<const double> arrivals_s) {
  HDPSIM_CHECK(messages.size() == arrivals_s.size(), "{} messages and {} arrivals", messages.size(), arrivals_s.size());
  SimgridTraffic traffic;
  constexpr FairShare::Link unused = UINT32_MAX;
  std::vector<FairShare::Link> place(links.count(), unused);  // index of each link in use
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Route route = links.route(messages[i].from, messages[i].to);
    SimgridTraffic::Message& message = traffic.messages.emplace_back();
    message.from = fmt::format("gpu {}", messages[i].from.index());
    message.to = fmt::format("gpu {}", messages[i].to.index());
    message.transfer.bytes = messages[i].bytes;
    message.latency_s = route.latency.seconds();
    message.arrival_s = arrivals_s[i];
    for (const auto& [link, share] : route.binding_links()) {
      if (share < 1) throw InputError("SimGrid has one way for a message, and this fabric spreads it over several");
      if (place[link.index()] == unused) {
        place[link.index()] = static_cast<FairShare::Link>(traffic.links.size());
        traffic.links.push_back({links.name(link), static_cast<double>(links.rate(link).bytes_per_second())});
      }
      message.transfer.links.push_back(place[link.index()]);
    }
  }
  return traffic;
}

std::string simgrid_platform(const SimgridTraffic& traffic) {
  return PlatformWriter(traffic).text();
}

std::string simgrid_messages(const SimgridTraffic& traffic) {
  std::string text = "sender,receiver,bytes,latency_s,arrival_s\n";
  for (std::size_t i = 0; i < traffic.messages.size(); ++i) {
    const SimgridTraffic::Message& message = traffic.messages[i];
    text += fmt::format("{},{},{:.0f},{},{}\n", sender(traffic, i), receiver(traffic, i), message.transfer.bytes,
                        message.latency_s, message.arrival_s);
  }
  return text;
}

}  // namespace hdpsim
