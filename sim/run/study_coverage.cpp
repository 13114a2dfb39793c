#include "sim/run/study_coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/quantity_text.h"
#include "sim/cost/kernel_slowdown.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

bool is_measured(const DeviceProfile& profile) {
  const ProfileLabel label = profile.provenance.label;
  return label == ProfileLabel::measured || label == ProfileLabel::traced;
}

/// What a profile lacks for the traffic of one point.
class TrafficGaps {
 public:
  /// `message`: of a ring step of full ranks.
  TrafficGaps(const Mesh& mesh, std::int64_t devices_per_node, Bytes message, const DeviceProfile& profile)
      : mesh_(mesh), devices_per_node_(devices_per_node), message_(message), profile_(profile) {}

  void add_problems(std::set<std::string>& lines) const {
    const std::int64_t devices = mesh_.devices();
    if (devices > 1 && devices_per_node_ > 1) add_link(lines, LinkKind::nvlink, profile_.nvlink);
    if (devices > devices_per_node_) add_link(lines, LinkKind::network, profile_.network);
    if (mesh_.hdp > 1 && !kernel_slowdown(profile_)) {
      lines.insert("kernels that overlap with communication: never measured, taken to be as fast as alone");
    }
  }

 private:
  void add_link(std::set<std::string>& lines, LinkKind link, const std::optional<LinkProfile>& known) const {
    const char* where = link == LinkKind::nvlink ? "within a node" : "between nodes";
    if (!known || !known->send_recv) {
      lines.insert(fmt::format("messages {}: never measured, the cluster's rates are taken for achieved", where));
    } else if (mesh_.hdp > 1) {
      add_ring(lines, link, where);
    }
  }

  void add_ring(std::set<std::string>& lines, LinkKind link, const char* where) const {
    const auto& fits = profile_.fits.messages;
    const auto fit = std::find_if(fits.begin(), fits.end(), [&](const MessageFit& f) {
      return f.link == link && f.kind == MessageKind::send_recv;
    });
    if (fit == fits.end() || (message_ >= fit->least && message_ <= fit->most)) return;
    lines.insert(fmt::format("messages {}: a ring step sends {}, measured were {} ... {}", where, bytes_text(message_),
                             bytes_text(fit->least), bytes_text(fit->most)));
  }

  const Mesh& mesh_;
  std::int64_t devices_per_node_;
  Bytes message_;
  const DeviceProfile& profile_;
};

}  // namespace

void StudyCoverage::add(const std::shared_ptr<const DeviceProfile>& profile, const Coverage& coverage) {
  if (!is_measured(*profile)) return;
  Asked& asked = by_profile_[profile->name];
  asked.profile = profile;
  asked.coverage.add(coverage);
}

std::vector<std::string> StudyCoverage::warnings(const Study& study, const std::vector<Run>& runs) const {
  std::vector<std::string> all;
  for (const auto& entry : by_profile_) {
    const std::string& name = entry.first;
    const Asked& asked = entry.second;
    std::vector<std::string> lines = asked.coverage.warnings(*asked.profile);
    std::set<std::string> traffic;
    for (const StudyPoint& point : study.points) {
      const PointSpec& spec = point.spec;
      if (spec.profile->name != name) continue;
      const Bytes message = kv_bytes(of_attention(spec.model), spec.capacity, spec.mesh.tp);
      TrafficGaps(spec.mesh, spec.cluster.devices_per_node, message, *asked.profile).add_problems(traffic);
    }
    lines.insert(lines.end(), traffic.begin(), traffic.end());
    const bool offloads = std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
      return run.metrics.memory.host > Bytes{} && study.points[run.info.point].spec.profile->name == name;
    });
    if (offloads && !asked.profile->host_copies) {
      lines.emplace_back("copies to host memory: never measured, the cluster's PCIe rate is taken for achieved");
    }
    if (lines.empty()) continue;
    all.push_back(
        fmt::format("warning: parts of {} lie outside of what the profile {} was measured for:", study.name, name));
    for (const std::string& line : lines) all.push_back(fmt::format("  {}", line));
    all.emplace_back("  a longer `hdpsim calibrate`, with --model for the products of a model, covers more");
  }
  return all;
}

}  // namespace hdpsim
