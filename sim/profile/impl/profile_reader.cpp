#include "sim/profile/impl/profile_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/profile/impl/measured_reader.h"
#include "sim/profile/profile_file.h"

namespace hdpsim {

namespace {
constexpr std::string_view profile_schema = "hdpsim.profile/1";
constexpr std::int64_t bf16 = 2;
constexpr std::int64_t fp32 = 4;
constexpr double fp8_speed = 2;  // tensor cores multiply fp8 twice as fast as bf16: H100 and B200 data sheets
}  // namespace

DeviceProfile ProfileReader::profile(const Value& document) {
  DeviceProfile profile;
  MapReader map(document, "the profile", diagnostics_);
  if (const Value* schema = map.require("schema")) {
    (void)read_choice(*schema, "schema", {std::string(profile_schema)}, diagnostics_);
  }
  if (const Value* value = map.require("provenance")) profile.provenance = provenance(*value);
  label_ = profile.provenance.label;
  if (const Value* value = map.find("elements")) {
    profile.element_bytes = read_choice(*value, "type of elements", {"bf16", "fp32"}, diagnostics_) == 1 ? fp32 : bf16;
  }
  if (const Value* value = map.require("datasheet")) profile.datasheet = datasheet(*value);
  peak_ = profile.datasheet.peak;
  if (const Value* value = map.find("attention")) profile.attention = attention(*value);
  for (std::size_t i = 0; i < other_attentions; ++i) {
    const Value* value = map.find(other_attention_key(static_cast<OtherAttention>(i)));
    if (value != nullptr) profile.other_attention[i] = attention(*value);
  }
  if (const Value* value = map.find("gemm")) profile.gemm = gemm(*value, peak_);
  if (const Value* value = map.find("gemm_fp8"))
    profile.gemm_fp8 = gemm(*value, FlopRate(fp8_speed * peak_.per_second()));
  if (const Value* value = map.find("memory_bound")) profile.memory_bound = memory_bound(*value);
  if (const Value* value = map.find("links")) links(*value, profile);
  if (const Value* value = map.find("host_copies")) profile.host_copies = host_copies(*value);
  if (const Value* value = part(map, "overheads")) profile.overheads = overheads(*value);
  if (const Value* value = map.find("connections")) profile.connections = connections(*value);
  if (const Value* value = map.find("backward_ring")) profile.backward_ring = backward_ring(*value);
  measured_parts(map, profile);
  map.finish();
  return profile;
}

void ProfileReader::measured_parts(MapReader& map, DeviceProfile& profile) {
  const Value* samples = map.find("samples");
  const Value* fits = map.find("fits");
  if (label_ != ProfileLabel::measured) {
    for (const Value* value : {samples, fits}) {
      if (value != nullptr) diagnostics_.error(value->position, "only a profile with the label 'measured' has these");
    }
    return;
  }
  MeasuredReader reader(diagnostics_);
  if (samples != nullptr) profile.samples = reader.samples(*samples);
  if (fits != nullptr) profile.fits = reader.fits(*fits);
}

Provenance ProfileReader::provenance(const Value& value) {
  Provenance provenance;
  MapReader map(value, "the provenance", diagnostics_);
  if (const Value* label = map.require("label")) {
    const auto choice = read_choice(*label, "label", {"measured", "published", "datasheet"}, diagnostics_);
    if (choice) provenance.label = static_cast<ProfileLabel>(*choice);
  }
  provenance.source = text(map, "source");
  provenance.device = text(map, "device");
  provenance.devices = map.optional_in<std::int64_t>("devices", positive_range).value_or(1);
  provenance.device_name = map.optional<std::string>("device_name", "");
  provenance.driver = map.optional<std::string>("driver", "");
  provenance.cuda = map.optional<std::string>("cuda", "");
  provenance.nccl = map.optional<std::string>("nccl", "");
  provenance.clocks = map.optional<std::string>("clocks", "");
  provenance.date = map.optional<std::string>("date", "");
  provenance.commit = map.optional<std::string>("commit", "");
  map.finish();
  return provenance;
}

Datasheet ProfileReader::datasheet(const Value& value) {
  MapReader map(value, "the data sheet", diagnostics_);
  Datasheet sheet;
  sheet.peak = positive<FlopRate>(map, "peak");
  sheet.memory_bandwidth = positive<Bandwidth>(map, "memory_bandwidth");
  sheet.memory = positive<Bytes>(map, "memory");
  sheet.multiprocessors = count(map, "multiprocessors");
  sheet.source = source(map);
  map.finish();
  return sheet;
}

MemoryBoundRate ProfileReader::memory_bound(const Value& value) {
  MapReader map(value, "'memory_bound'", diagnostics_);
  MemoryBoundRate rate;
  rate.latency = time(map, "latency");
  rate.bandwidth = positive<Bandwidth>(map, "bandwidth");
  rate.source = source(map);
  map.finish();
  return rate;
}

void ProfileReader::links(const Value& value, DeviceProfile& profile) {
  MapReader map(value, "'links'", diagnostics_);
  if (const Value* nvlink = map.find("nvlink")) profile.nvlink = link(*nvlink, "'nvlink'");
  if (const Value* network = map.find("network")) profile.network = link(*network, "'network'");
  map.finish();
}

LinkProfile ProfileReader::link(const Value& value, const std::string& what) {
  MapReader map(value, what, diagnostics_);
  LinkProfile link;
  if (const Value* rate = part(map, "send_recv")) link.send_recv = send_recv(*rate);
  if (const Value* rate = map.find("all_gather")) link.all_gather = collective(*rate);
  if (const Value* rate = map.find("reduce_scatter")) link.reduce_scatter = collective(*rate);
  if (const Value* rate = map.find("all_reduce")) link.all_reduce = collective(*rate);
  if (const Value* rate = map.find("all_to_all")) link.all_to_all = collective(*rate);
  map.finish();
  return link;
}

SendRecvRate ProfileReader::send_recv(const Value& value) {
  MapReader map(value, "'send_recv'", diagnostics_);
  SendRecvRate rate;
  rate.latency = time(map, "latency");
  rate.bandwidth = positive<Bandwidth>(map, "bandwidth");
  rate.line_rate = positive<Bandwidth>(map, "line_rate");
  rate.source = source(map);
  if (rate.line_rate > Bandwidth{} && rate.bandwidth > rate.line_rate) {
    diagnostics_.error(value.find("bandwidth")->position,
                       fmt::format("a bandwidth of {:g} GB/s is more than the line rate of {:g} GB/s",
                                   rate.bandwidth.gigabytes_per_second(), rate.line_rate.gigabytes_per_second()));
  }
  if (rate.line_rate > Bandwidth{} && rate.bandwidth > Bandwidth{} &&
      rate.efficiency() < limits::least_link_efficiency) {
    diagnostics_.error(value.find("bandwidth")->position,
                       fmt::format("a bandwidth of {:g} GB/s is less than {:g} of the line rate of {:g} GB/s",
                                   rate.bandwidth.gigabytes_per_second(), limits::least_link_efficiency,
                                   rate.line_rate.gigabytes_per_second()));
  }
  map.finish();
  return rate;
}

CollectiveRate ProfileReader::collective(const Value& value) {
  MapReader map(value, "a collective", diagnostics_);
  CollectiveRate rate;
  rate.latency = time(map, "latency");
  rate.step_latency = time(map, "step_latency");
  rate.bandwidth = positive<Bandwidth>(map, "bandwidth");
  rate.line_rate = positive<Bandwidth>(map, "line_rate");
  rate.source = source(map);
  map.finish();
  return rate;
}

HostCopies ProfileReader::host_copies(const Value& value) {
  MapReader map(value, "'host_copies'", diagnostics_);
  HostCopies copies;
  copies.latency = time(map, "latency");
  copies.d2h = positive<Bandwidth>(map, "d2h");
  copies.h2d = positive<Bandwidth>(map, "h2d");
  copies.d2h_both = positive<Bandwidth>(map, "d2h_both");
  copies.h2d_both = positive<Bandwidth>(map, "h2d_both");
  copies.source = source(map);
  map.finish();
  return copies;
}

Overheads ProfileReader::overheads(const Value& value) {
  MapReader map(value, "'overheads'", diagnostics_);
  Overheads overheads;
  if (const Value* step = part(map, "per_step")) overheads.per_step = overhead(*step, "'per_step'");
  if (const Value* micro_batch = part(map, "per_micro_batch")) {
    overheads.per_micro_batch = overhead(*micro_batch, "'per_micro_batch'");
  }
  if (const Value* launch = part(map, "kernel_launch")) {
    overheads.kernel_launch = overhead(*launch, "'kernel_launch'");
  }
  if (const Value* issue = map.find("host_issue")) overheads.host_issue = overhead(*issue, "'host_issue'");
  if (const Value* beside = map.find("compute_beside_communication")) {
    overheads.compute_beside_communication = slowdown(*beside);
  }
  map.finish();
  return overheads;
}

Overhead ProfileReader::overhead(const Value& value, const std::string& what) {
  MapReader map(value, what, diagnostics_);
  Overhead overhead;
  overhead.time = time(map, "time");
  overhead.source = source(map);
  map.finish();
  return overhead;
}

Slowdown ProfileReader::slowdown(const Value& value) {
  MapReader map(value, "'compute_beside_communication'", diagnostics_);
  Slowdown slowdown;
  slowdown.factor = map.required_in<double>("factor", positive_range).value_or(1);
  slowdown.source = source(map);
  map.finish();
  return slowdown;
}

ConnectionCosts ProfileReader::connections(const Value& value) {
  MapReader map(value, "'connections'", diagnostics_);
  ConnectionCosts costs;
  costs.first_contact = optional_positive<Duration>(map, "first_contact");
  costs.memory_per_peer = optional_positive<Bytes>(map, "memory_per_peer");
  if (const Value* communicator_cost = map.find("communicator")) costs.communicator = communicator(*communicator_cost);
  costs.source = source(map);
  if (!costs.first_contact && !costs.memory_per_peer && !costs.communicator) {
    map.error("'connections' states no cost", "give 'first_contact', 'memory_per_peer' or 'communicator'");
  }
  map.finish();
  return costs;
}

CommunicatorCost ProfileReader::communicator(const Value& value) {
  MapReader map(value, "'communicator'", diagnostics_);
  CommunicatorCost cost;
  cost.base = time(map, "base");
  cost.per_rank = time(map, "per_rank");
  map.finish();
  return cost;
}

BackwardRing ProfileReader::backward_ring(const Value& value) {
  MapReader map(value, "'backward_ring'", diagnostics_);
  BackwardRing ring;
  if (const Value* bytes = map.require("dkv_bytes_per_element")) {
    const auto choice = read_choice(*bytes, "key-value gradient of so many bytes:", {"2", "4"}, diagnostics_);
    ring.dkv_bytes_per_element = choice == 1 ? fp32 : bf16;
  }
  ring.source = source(map);
  map.finish();
  return ring;
}

std::string ProfileReader::source(MapReader& map) {
  // Our own measurements have one source, the provenance; every published figure names its own.
  if (label_ == ProfileLabel::measured) return map.optional<std::string>("source", "");
  return text(map, "source");
}

const Value* ProfileReader::part(MapReader& map, std::string_view key) {
  return label_ == ProfileLabel::measured ? map.find(key) : map.require(key);
}

}  // namespace hdpsim
