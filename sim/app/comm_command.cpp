#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "calib/measure/nccl_tests.h"
#include "sim/app/command.h"
#include "sim/app/named_cluster.h"
#include "sim/base/division.h"
#include "sim/base/output_folder.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/text.h"
#include "sim/network/collective_pace.h"
#include "sim/network/fair_share_network.h"
#include "sim/profile/renamed_profiles.h"
#include "sim/report/comm_report.h"
#include "sim/report/simgrid_files.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {
namespace {

struct CommOptions {
  std::string what;
  std::string cluster = "h100-rail";
  std::string profile;
  std::int64_t gpus = 8;
  std::string least = "8";
  std::string most = "128M";
  double factor = 2;
  std::string size = "64M";
  std::int64_t seed = 1;
  std::string algorithm;
  std::string protocol;
  std::vector<std::string> background;
  std::string compare;
  std::string simgrid;
  Format format = Format::table;
};

/// A size such as `8`, `64K`, `32M`, `8G`, in binary multiples, as nccl-tests reads them.
double size_of(const std::string& text, const std::string& option) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  const std::map<std::string_view, double> units{{"", 1}, {"K", 1024}, {"M", 1048576}, {"G", 1073741824}};
  const auto found = units.find(unit);
  if (error != std::errc{} || found == units.end() || !(number >= 1)) {
    throw InputError(fmt::format("{} {} is no size", option, text), "write 8, 64K, 32M or 8G");
  }
  constexpr double most = 1e18;
  if (number > most / found->second) throw InputError(fmt::format("{} {} is more than {:g} bytes", option, text, most));
  return number * found->second;
}

// Parses PATTERN@FIRST-LAST.
Traffic background_of(const std::string& text) {
  const InputError wrong(fmt::format("--background {} is no traffic", text),
                         "write a pattern and who takes part: permutation@0-1023");
  const std::size_t at = text.find('@');
  const std::size_t dash = text.find('-', at);
  if (at == std::string::npos || dash == std::string::npos) throw wrong;
  const std::vector<std::string> names = traffic_pattern_names();
  const std::string pattern = text.substr(0, at);
  if (std::find(names.begin(), names.end(), pattern) == names.end()) throw wrong;
  Traffic traffic{.pattern = traffic_pattern(pattern)};
  std::int64_t last = 0;
  const auto read = [&](std::size_t begin, std::size_t end, std::int64_t& number) {
    const auto result = std::from_chars(text.data() + begin, text.data() + end, number);
    if (result.ec != std::errc{} || result.ptr != text.data() + end) throw wrong;
  };
  read(at + 1, dash, traffic.first);
  read(dash + 1, text.size(), last);
  if (traffic.first < 0 || last <= traffic.first || last >= limits::most_devices) throw wrong;
  traffic.devices = last - traffic.first + 1;
  return traffic;
}

/// The cluster with as many GPUs as the command needs.
ClusterSpec cluster_of(const CommOptions& options, const std::vector<Traffic>& background, const Catalog& catalog) {
  std::int64_t needed = options.gpus;
  for (const Traffic& traffic : background) needed = std::max(needed, traffic.first + traffic.devices);
  ClusterSpec as_written = named_cluster(options.cluster, {}, catalog);
  const std::int64_t per_node = as_written.devices_per_node;
  const bool takes_part = as_written.devices_per_tray && needed > per_node && needed % per_node != 0;
  if (takes_part) return named_cluster(options.cluster, needed, catalog);
  if (as_written.devices >= needed) return as_written;
  return named_cluster(options.cluster, rounded_up(needed, per_node), catalog);
}

constexpr std::string_view no_profile = "none";

// The one that is named or else, as in a study, that of the cluster's device. Empty: the bare fabric.
std::optional<DeviceProfile> profile_of(const CommOptions& options, const ClusterSpec& cluster, Catalog& catalog) {
  if (options.profile == no_profile) return std::nullopt;
  Diagnostics diagnostics;
  if (options.profile.empty()) {
    const auto own = profile_of_device(cluster.device, {}, catalog, diagnostics);
    if (own != nullptr) return *own;
    note(
        fmt::format("note: not one shipped profile is of a {}: rates are those of the bare fabric; --profile names one",
                    cluster.device));
    return std::nullopt;
  }
  const auto profile = catalog.profile(Value::scalar(options.profile), diagnostics);
  diagnostics.throw_if_any();
  if (const std::string renamed = renamed_profile_note(options.profile); !renamed.empty()) note(renamed);
  return *profile;
}

std::optional<CollectiveKind> collective_of(const std::string& name) {
  for (std::size_t kind = 0; kind < collective_kinds; ++kind) {
    if (collective_name(static_cast<CollectiveKind>(kind)) == name) return static_cast<CollectiveKind>(kind);
  }
  return std::nullopt;
}

/// Medians of the runs of this collective by size.
std::map<std::int64_t, double> measured_times(const CommOptions& options, CollectiveKind kind) {
  std::map<std::int64_t, double> times;
  if (options.compare.empty()) return times;
  Diagnostics diagnostics;
  const auto runs = calib::read_nccl_tests(options.compare, diagnostics,
                                           {.collective = collective_name(kind), .ranks = options.gpus});
  diagnostics.throw_if_any();
  const std::map<calib::MessageKind, CollectiveKind> kinds{
      {calib::MessageKind::all_reduce, CollectiveKind::all_reduce},
      {calib::MessageKind::all_gather, CollectiveKind::all_gather},
      {calib::MessageKind::reduce_scatter, CollectiveKind::reduce_scatter},
      {calib::MessageKind::all_to_all, CollectiveKind::all_to_all},
      {calib::MessageKind::send_recv, CollectiveKind::send_recv}};
  for (const calib::NcclTestsRun& run : runs) {
    const auto found = kinds.find(run.kind);
    if (found == kinds.end() || found->second != kind || run.ranks != options.gpus) continue;
    for (const calib::MessageTiming& timing : run.timings) times[timing.bytes] = timing.timing.median_s;
  }
  if (times.empty()) {
    throw InputError(fmt::format("{} holds no {} of {} ranks", options.compare, collective_name(kind), options.gpus));
  }
  return times;
}

std::int64_t check_whole_nodes(const ClusterSpec& cluster, std::int64_t ranks) {
  const std::int64_t per_node = std::min(ranks, cluster.devices_per_node);
  if (ranks % per_node != 0) {
    throw InputError(fmt::format("{} gpus are not a whole number of nodes of {}", ranks, per_node),
                     fmt::format("write -g {}", ranks / per_node * per_node));
  }
  return ranks / per_node;
}

/// What --algo and --proto say.
template <class Choice>
std::optional<Choice> chosen(const std::string& text, CollectiveKind kind,
                             std::optional<Choice> (*find)(std::string_view name)) {
  if (text.empty()) return std::nullopt;
  if (const std::optional<Choice> found = find(text)) return found;
  throw InputError(fmt::format("{} has no such algorithm and protocol here", collective_name(kind)));
}

NcclChoice choice_of(const CommOptions& options, CollectiveKind kind) {
  return {chosen(options.algorithm, kind, find_algorithm), chosen(options.protocol, kind, find_protocol)};
}

std::string algorithm_words() {
  std::vector<std::string_view> words;
  for (const CollectiveAlgorithm algorithm : choosable_algorithms()) words.push_back(algorithm_name(algorithm));
  return joined(words, ", ");
}

/// Row by row what CollectiveModel says, and what other traffic makes of it.
class CommRows {
 public:
  CommRows(const CommOptions& options, CollectiveKind kind, const ClusterSpec& cluster, const DeviceProfile& profile,
           const std::vector<Traffic>& background)
      : kind_(kind),
        choice_(choice_of(options, kind)),
        links_(cluster, {}),
        model_(links_, profile, {consecutive_devices(0, options.gpus)}),
        pace_(links_, consecutive_devices(0, options.gpus), background),
        has_background_(!background.empty()) {}

  [[nodiscard]] CommRow row(std::int64_t bytes, std::optional<double> measured_s) {
    const auto alone = model_.estimate(kind_, Bytes(bytes), choice_);
    if (!alone) throw InputError(fmt::format("{} has no such algorithm and protocol here", collective_name(kind_)));
    const CollectivePace::Pace& pace = pace_.pace(kind_, *alone);
    CommRow row{.bytes = bytes,
                .collective = *alone,
                .seconds = alone->latency_s + static_cast<double>(bytes) * pace.seconds_a_byte,
                .measured_s = measured_s,
                .bottleneck = pace.bottleneck};
    if (has_background_) row.alone_s = alone->latency_s + static_cast<double>(bytes) * alone->seconds_a_byte;
    return row;
  }

 private:
  CollectiveKind kind_;
  NcclChoice choice_;
  ClusterLinks links_;
  CollectiveModel model_;
  CollectivePace pace_;
  bool has_background_;
};

/// From -b to -e by the factor -f.
std::vector<std::int64_t> sizes_of(const CommOptions& options) {
  constexpr std::size_t most_sizes = 10'000;
  if (!(options.factor > 1)) throw InputError("the factor -f must be above 1");
  const double most = size_of(options.most, "-e");
  std::vector<std::int64_t> sizes;
  double bytes = size_of(options.least, "-b");
  if (bytes > most) throw InputError(fmt::format("-b {} is above -e {}", options.least, options.most), "raise -e");
  while (bytes <= most) {
    if (sizes.size() == most_sizes) {
      throw InputError(fmt::format("the factor -f makes more than {} sizes", most_sizes), "write -f 2");
    }
    sizes.push_back(static_cast<std::int64_t>(bytes));
    bytes *= options.factor;
  }
  return sizes;
}

std::string profile_name(const std::optional<DeviceProfile>& profile) {
  return profile ? profile->name : "";
}

LinkEfficiency efficiency_of(const std::optional<DeviceProfile>& profile) {
  return profile ? message_efficiency(*profile) : LinkEfficiency{};
}

CommReport collective_report(const CommOptions& options, CollectiveKind kind, const ClusterSpec& cluster,
                             const std::optional<DeviceProfile>& profile, const std::vector<Traffic>& background) {
  const std::vector<std::int64_t> sizes = sizes_of(options);
  const std::int64_t nodes = check_whole_nodes(cluster, options.gpus);
  const DeviceProfile known = profile.value_or(DeviceProfile{});
  const std::string left_out = why_no_in_network_reduction(cluster);
  if (!left_out.empty()) note(fmt::format("note: {}: {}", cluster.name, left_out));
  CommRows rows(options, kind, cluster, known, background);
  CommReport report{.kind = kind,
                    .ranks = options.gpus,
                    .nodes = nodes,
                    .cluster = cluster.name,
                    .profile = profile_name(profile),
                    .rows = {}};
  const auto measured = measured_times(options, kind);
  for (const auto& [bytes, seconds] : measured) report.rows.push_back(rows.row(bytes, seconds));
  if (!measured.empty()) return report;
  for (const std::int64_t bytes : sizes) report.rows.push_back(rows.row(bytes, std::nullopt));
  return report;
}

TrafficReport traffic_report(const CommOptions& options, const ClusterSpec& cluster,
                             const std::optional<DeviceProfile>& profile, const std::vector<Traffic>& background) {
  constexpr std::size_t shown = 10;
  const LinkEfficiency efficiency = efficiency_of(profile);
  const ClusterLinks links(cluster, efficiency);
  TrafficReport report;
  report.cluster = cluster.name;
  report.profile = profile_name(profile);
  report.traffic = {.pattern = traffic_pattern(options.what),
                    .devices = options.gpus,
                    .bytes = size_of(options.size, "--size"),
                    .seed = static_cast<std::uint64_t>(options.seed)};
  report.result = simulate_traffic(links, report.traffic, background);
  const auto network = make_fair_share_network(cluster, efficiency);
  report.busiest = busiest_links({report.result.links, {}}, report.result.last_s, *network, shown);
  return report;
}

// SimGrid needs messages that begin and end, one by one.
void check_simgrid(const CommOptions& options) {
  if (options.simgrid.empty()) return;
  const std::vector<std::string> names = traffic_pattern_names();
  const bool is_pattern = std::find(names.begin(), names.end(), options.what) != names.end();
  if (!is_pattern || options.what == "all_to_all") {
    throw InputError(fmt::format("{} is not simulated message by message: there is nothing for SimGrid", options.what),
                     "write --simgrid with permutation, incast, ring or bisection");
  }
  if (!options.background.empty()) {
    throw InputError("--simgrid cannot be combined with --background", "traffic without end never ends in SimGrid");
  }
}

void write_simgrid(OutputFolder& folder, const ClusterLinks& links, const TrafficReport& report) {
  folder.remove_earlier();
  const SimgridTraffic traffic = simgrid_traffic(links, messages_of(report.traffic), report.result.arrivals_s);
  folder.write("platform.xml", simgrid_platform(traffic));
  folder.write("messages.csv", simgrid_messages(traffic));
  note(fmt::format("wrote {0}/platform.xml and {0}/messages.csv", folder.path().string()));
}

int report(const CommOptions& options, const ClusterSpec& cluster, const std::optional<DeviceProfile>& profile,
           const std::vector<Traffic>& background, std::optional<OutputFolder>& folder) {
  const bool as_json = options.format == Format::json;
  const Format told = as_json ? Format::json : Format::table;
  if (const auto kind = collective_of(options.what)) {
    const CommReport report = collective_report(options, *kind, cluster, profile, background);
    print(as_json ? comm_json(report, version) : comm_table(report), told);
  } else {
    const TrafficReport report = traffic_report(options, cluster, profile, background);
    if (folder) write_simgrid(*folder, ClusterLinks(cluster, efficiency_of(profile)), report);
    print(as_json ? traffic_json(report, version) : traffic_table(report), told);
  }
  return 0;
}

int comm_command(const CommOptions& options, const Session& session) {
  check_simgrid(options);
  // Wrong sizes are told even where what is asked for does not read them.
  (void)sizes_of(options);
  (void)size_of(options.size, "--size");
  Catalog catalog(session.data_folder);
  std::vector<Traffic> background;
  for (const std::string& text : options.background) background.push_back(background_of(text));
  const ClusterSpec cluster = cluster_of(options, background, catalog);
  const std::optional<DeviceProfile> profile = profile_of(options, cluster, catalog);
  if (profile && !cluster.device.empty() && profile->provenance.device != cluster.device) {
    note(fmt::format("the profile is of a {}, the cluster has {}", profile->provenance.device, cluster.device));
  }
  std::optional<OutputFolder> folder;
  if (!options.simgrid.empty()) {
    folder.emplace(options.simgrid, OutputUse{"simgrid", session.command_line, {"platform.xml", "messages.csv"}},
                   &session.inputs);
  }
  try {
    return report(options, cluster, profile, background, folder);
  } catch (const QuantityOverflow& overflow) {
    throw InputError(fmt::format("{} of {} GPUs of {}: {}", options.what, options.gpus, cluster.name, overflow.what()),
                     "use smaller sizes, or faster links");
  }
}

std::vector<std::string> what_names() {
  std::vector<std::string> all = traffic_pattern_names();
  for (std::size_t kind = 0; kind < collective_kinds; ++kind) {
    all.emplace_back(collective_name(static_cast<CollectiveKind>(kind)));
  }
  return all;
}

}  // namespace

void add_comm_command(Command app, Session& session) {
  const Command command =
      app.add_subcommand("comm", "Benchmark the simulated fabric: collectives as nccl-tests has them, traffic");
  CommOptions& options = add_command(command, session, comm_command);
  command.add_option("WHAT", options.what, "A collective of nccl-tests or a pattern of messages")
      .required()
      .one_of(what_names());
  command.add_option("--cluster", options.cluster, "A shipped cluster or a cluster file (default: h100-rail)")
      .type_name("NAME|FILE");
  command
      .add_option("--profile", options.profile,
                  "Achievable share of link bandwidth, and rates of collectives (default: the profile of the "
                  "cluster's device); none: the bare fabric and NCCL's model")
      .type_name("NAME|FILE");
  add_count(command, "-g,--gpus", options.gpus, "GPUs that take part, from the first one on (default: 8)", 2,
            limits::most_devices);
  command.add_option("-b,--minbytes", options.least, "Smallest size (default: 8)").type_name("SIZE");
  command.add_option("-e,--maxbytes", options.most, "Largest size (default: 128M)").type_name("SIZE");
  command.add_option("-f,--stepfactor", options.factor, "From one size to the next (default: 2)");
  command.add_option("--size", options.size, "Message size of traffic patterns (default: 64M)").type_name("SIZE");
  add_count(command, "--seed", options.seed, "Random seed of a permutation (default: 1)", 0);
  command.add_option("--algo", options.algorithm, "Only this algorithm: " + algorithm_words()).type_name("NAME");
  command.add_option("--proto", options.protocol, "Only this protocol: ll, ll128, simple").type_name("NAME");
  command
      .add_option("--background", options.background, "Other traffic that goes on for ever; may be given several times")
      .type_name("PATTERN@FIRST-LAST")
      .one_at_a_time();
  command.add_option("--compare", options.compare, "Output of nccl-tests (text or JSON) to compare with")
      .type_name("FILE");
  command.add_option("--simgrid", options.simgrid, "Write the messages of a pattern and their links for SimGrid")
      .type_name("DIR");
  add_format(command, options.format);
  command.footer(
      "Examples:\n  hdpsim comm all_reduce --cluster h100-rail -g 1024 -b 8 -e 8G -f 2\n"
      "  hdpsim comm permutation --cluster a100-rail-3tier -g 4096 --size 64M");
}

}  // namespace hdpsim::app
