#include "sim/profile/physical_parameters.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/base/check.h"
#include "sim/profile/scaled_rates.h"

namespace hdpsim {
namespace {

using StartValue = std::optional<double>;

StartValue factor_if(bool known) {
  return known ? StartValue(1.0) : std::nullopt;
}

StartValue start_of_slowdown(const DeviceProfile& profile) {
  const auto& stated = profile.overheads.compute_beside_communication;
  if (stated) return stated->factor;
  return factor_if(profile.samples.interference.empty());  // what was measured kernel by kernel has no one factor
}

void set_time(Overhead& overhead, double seconds) {
  overhead.time = Duration::seconds(seconds);
  tell_fitted(overhead.source);
}

void set_slowdown(DeviceProfile& profile, double factor) {
  Slowdown& slowdown = profile.overheads.compute_beside_communication
                           ? *profile.overheads.compute_beside_communication
                           : profile.overheads.compute_beside_communication.emplace();
  slowdown.factor = factor;
  tell_fitted(slowdown.source);
}

bool has_attention(const DeviceProfile& profile) {
  return !profile.attention.empty() || !profile.fits.attention.empty();
}

bool has_link(const std::optional<LinkProfile>& link, LinkKind kind, const ProfileFits& fits) {
  return link || std::any_of(fits.messages.begin(), fits.messages.end(),
                             [kind](const MessageFit& fit) { return fit.link == kind; });
}

// The widths of the priors. Where no publication shows how much a figure differs between machines, the prior says that
// its width was chosen.
constexpr double hosts_apart = 0.895;  // ln(33 us / 13.5 us)
constexpr double products_apart = 0.18;
constexpr double attentions_apart = 0.34;  // ln 1.4
constexpr double memories_apart = 0.25;
constexpr double nodes_apart = 0.33;    // ln(208 / 149.7)
constexpr double fabrics_apart = 0.69;  // ln 2
constexpr double overheads_apart = 0.1;
constexpr double slowdowns_apart = 0.2;

std::vector<PhysicalParameter> all_parameters() {
  return {
      {.name = "host_issue",
       .unit = "x",
       .meaning = "the host's time to issue a kernel (`overheads.host_issue`), for which shorter kernels wait",
       .prior = "a factor of 2.4 either way: the hosts of an H100 and a GH200 take 13.5 and 33 us for one operation of "
                "PyTorch (NVIDIA/TransformerEngine#2053)",
       .width = hosts_apart,
       .least = 0.05,
       .most = 20,
       .start = [](const DeviceProfile& p) { return factor_if(p.overheads.host_issue.has_value()); },
       .apply =
           [](DeviceProfile& p, double value) {
             for (auto* time : {&p.overheads.host_issue, &p.overheads.host_loop, &p.overheads.host_narrow,
                                &p.overheads.host_dispatch}) {
               if (*time) set_time(**time, (*time)->time.seconds() * value);
             }
           }},
      {.name = "gemm",
       .unit = "x",
       .meaning = "the rate of matrix products (`gemm` and those of narrow formats); launches stay",
       .prior = "18 % either way: whole steps on devices of one type differ by as much (configs/validation, MosaicML)",
       .families = {CostFamily::gemm},
       .width = products_apart,
       .least = 0.3,
       .most = 3,
       .start =
           [](const DeviceProfile& p) {
             return factor_if(p.gemm || std::any_of(p.gemm_narrow.begin(), p.gemm_narrow.end(),
                                                    [](const auto& t) { return t.has_value(); }));
           },
       .ceiling = room_of_products,
       .apply = scale_products},
      {.name = "attention",
       .unit = "x",
       .meaning = "the rate of attention kernels, forward and backward (`attention` and its other implementations)",
       .prior = "a factor of 1.4 either way: implementations of one year differ by as much (arXiv 2307.08691, section "
                "4.1)",
       .families = {CostFamily::attention_forward, CostFamily::attention_backward},
       .width = attentions_apart,
       .least = 0.2,
       .most = 5,
       .start = [](const DeviceProfile& p) { return factor_if(has_attention(p)); },
       .ceiling = room_of_attention,
       .apply = scale_attention},
      {.name = "memory_bandwidth",
       .unit = "x",
       .meaning = "the bandwidth of kernels that memory bounds (`memory_bound`); their latency stays",
       .prior = "a quarter either way, chosen",
       .families = {CostFamily::memory_bound},
       .width = memories_apart,
       .least = 0.2,
       .most = 5,
       .start = [](const DeviceProfile& p) { return factor_if(p.memory_bound || !p.fits.memory_bound.empty()); },
       .ceiling = room_of_memory,
       .apply = scale_memory},
      {.name = "link_in_node",
       .unit = "x",
       .meaning = "the bandwidth of messages and collectives within a node (`links.nvlink`); latencies stay",
       .prior = "a factor of 1.4 either way: all-reduces of published A100 nodes reach 150 to 208 GB/s "
                "(calib/profiles/a100-*.yaml)",
       .families = {CostFamily::messages, CostFamily::collectives},
       .width = nodes_apart,
       .least = 0.05,
       .most = 5,
       .start = [](const DeviceProfile& p) { return factor_if(has_link(p.nvlink, LinkKind::nvlink, p.fits)); },
       .ceiling = [](const DeviceProfile& p) { return room_of_links(p.nvlink); },
       .apply = [](DeviceProfile& p, double value) { scale_links(p, LinkKind::nvlink, value); }},
      {.name = "link_between_nodes",
       .unit = "x",
       .meaning = "the bandwidth of messages and collectives between nodes (`links.network`); latencies stay",
       .prior = "a factor of 2 either way: published fabrics reach 45 to 96 % of their lines "
                "(calib/profiles/a100-*.yaml)",
       .families = {CostFamily::messages, CostFamily::collectives},
       .width = fabrics_apart,
       .least = 0.02,
       .most = 5,
       .start = [](const DeviceProfile& p) { return factor_if(has_link(p.network, LinkKind::network, p.fits)); },
       .ceiling = [](const DeviceProfile& p) { return room_of_links(p.network); },
       .apply = [](DeviceProfile& p, double value) { scale_links(p, LinkKind::network, value); }},
      {.name = "per_step",
       .unit = "s",
       .meaning = "time of the framework in every step (`overheads.per_step`)",
       .prior = "a tenth of the median step either way, never below zero, chosen",
       .shape = PriorShape::of_the_step,
       .width = overheads_apart,
       .most = 1,
       .start = [](const DeviceProfile& p) { return StartValue(p.overheads.per_step.time.seconds()); },
       .apply = [](DeviceProfile& p, double value) { set_time(p.overheads.per_step, value); }},
      {.name = "per_micro_batch",
       .unit = "s",
       .meaning = "time of the framework in every micro-batch (`overheads.per_micro_batch`)",
       .prior = "a tenth of the median time of a micro-batch either way, never below zero, chosen",
       .shape = PriorShape::of_the_micro_batch,
       .width = overheads_apart,
       .most = 1,
       .start = [](const DeviceProfile& p) { return StartValue(p.overheads.per_micro_batch.time.seconds()); },
       .apply = [](DeviceProfile& p, double value) { set_time(p.overheads.per_micro_batch, value); }},
      {.name = "kernel_slowdown",
       .unit = "x",
       .meaning = "how many times longer kernels take beside messages (`overheads.compute_beside_communication`)",
       .prior = "0.2 either way, never below 1: 1.19 on average and 1.4 at most on four devices (arXiv 2507.03114)",
       .shape = PriorShape::amount,
       .width = slowdowns_apart,
       .least = 1,
       .most = 3,
       .start = start_of_slowdown,
       .apply = set_slowdown},
  };
}

}  // namespace

const std::vector<PhysicalParameter>& fit_parameters() {
  static const std::vector<PhysicalParameter> all = all_parameters();
  return all;
}

std::vector<std::string> fit_parameter_names() {
  std::vector<std::string> names;
  for (const PhysicalParameter& parameter : fit_parameters()) names.emplace_back(parameter.name);
  return names;
}

const PhysicalParameter* find_fit_parameter(std::string_view name) {
  const std::vector<PhysicalParameter>& all = fit_parameters();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PhysicalParameter& p) { return p.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const PhysicalParameter& fit_parameter(std::string_view name) {
  const PhysicalParameter* found = find_fit_parameter(name);
  HDPSIM_CHECK(found != nullptr, "there is no parameter {}", name);
  return *found;
}

double fitted_value(const Provenance& provenance, std::string_view parameter) {
  if (!provenance.fit) return 1;
  const std::vector<FittedParameter>& all = provenance.fit->parameters;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FittedParameter& one) { return one.name == parameter; });
  return found == all.end() ? 1 : found->value;
}

}  // namespace hdpsim
