#include "calib/measure/impl/sample_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace hdpsim::calib {
namespace {

// The rate of a link that a kind of message determines.
template <class Visit>
void each_collective(const Visit& visit) {
  visit(MessageKind::all_gather, &LinkProfile::all_gather);
  visit(MessageKind::reduce_scatter, &LinkProfile::reduce_scatter);
  visit(MessageKind::all_reduce, &LinkProfile::all_reduce);
  visit(MessageKind::all_to_all, &LinkProfile::all_to_all);
}

class MissingParts {
 public:
  MissingParts(DeviceProfile& profile, const DeviceProfile& like, const SampleHeader& header)
      : profile_(profile), like_(like), header_(header) {}

  std::vector<std::string> run() {
    attention();
    products();
    raise_peak();
    memory_bound();
    copies();
    link("nvlink", LinkKind::nvlink, profile_.nvlink, like_.nvlink);
    link("network", LinkKind::network, profile_.network, like_.network);
    slowdowns();
    overheads();
    if (header_.ring_gradient_bytes == 0) {
      profile_.backward_ring = like_.backward_ring;
      state_source(profile_.backward_ring.source, "backward_ring");
    }
    take("connections", profile_.connections, like_.connections);
    take("spread", profile_.spread, like_.spread);
    return std::move(kept_);
  }

 private:
  void state_source(std::string& source, const std::string& part) {
    source = source.empty() ? fmt::format("of {}", like_.name) : fmt::format("of {}: {}", like_.name, source);
    kept_.push_back(part);
  }

  template <class Part>
  void take(const std::string& name, std::optional<Part>& part, const std::optional<Part>& other) {
    if (part || !other) return;
    part = other;
    state_source(part->source, name);
  }

  // Every mask, direction and head dimension is a kernel of its own.
  void attention() {
    const auto kind = [](const auto& item) { return std::tuple(item.causal, item.backward, item.head_dim); };
    const std::vector<AttentionCurve> own = profile_.attention;
    const auto is_measured = [&](const auto& item) {
      return std::any_of(own.begin(), own.end(), [&](const auto& curve) { return kind(curve) == kind(item); });
    };
    std::string_view part = own.empty() ? "attention" : "attention of other masks, directions and head dimensions";
    for (const AttentionCurve& curve : like_.attention) {
      if (is_measured(curve)) continue;
      profile_.attention.push_back(curve);
      std::string& source = profile_.attention.back().source;
      source = source.empty() ? fmt::format("of {}", like_.name) : fmt::format("of {}: {}", like_.name, source);
      if (!part.empty()) kept_.emplace_back(std::exchange(part, std::string_view{}));
    }
    std::copy_if(like_.fits.attention.begin(), like_.fits.attention.end(), std::back_inserter(profile_.fits.attention),
                 [&](const AttentionFit& fit) { return !is_measured(fit); });
    profile_.other_attention = like_.other_attention;
    if (std::any_of(like_.other_attention.begin(), like_.other_attention.end(),
                    [](const auto& curves) { return !curves.empty(); })) {
      kept_.emplace_back("attention of other libraries");
    }
  }

  void products() {
    if (!profile_.gemm) profile_.fits.gemm = like_.fits.gemm;
    take("gemm", profile_.gemm, like_.gemm);
    profile_.gemm_narrow = like_.gemm_narrow;
    if (std::any_of(like_.gemm_narrow.begin(), like_.gemm_narrow.end(), [](const auto& table) { return !!table; })) {
      kept_.emplace_back("products in narrow formats");
    }
  }

  // A peak that was measured on a busy machine may be below what kept kernels reach.
  void raise_peak() {
    const bool is_kept = std::any_of(kept_.begin(), kept_.end(), [](const std::string& part) {
      return part == "gemm" || part.starts_with("attention") || part.starts_with("products");
    });
    if (!is_kept || profile_.datasheet.peak >= like_.datasheet.peak) return;
    profile_.datasheet.peak = like_.datasheet.peak;
    profile_.datasheet.source += fmt::format("; peak raised to that of {}, of which kernels are kept", like_.name);
  }

  void memory_bound() {
    if (!profile_.fits.memory_bound.empty()) return;
    profile_.fits.memory_bound = like_.fits.memory_bound;
    profile_.samples.memory_bound = like_.samples.memory_bound;
    take("memory_bound", profile_.memory_bound, like_.memory_bound);
  }

  void copies() {
    if (profile_.host_copies || !like_.host_copies) return;
    profile_.fits.copies = like_.fits.copies;
    profile_.samples.copies = like_.samples.copies;
    take("host_copies", profile_.host_copies, like_.host_copies);
  }

  // Kinds of messages that were not measured, or the link as a whole.
  void link(const std::string& name, LinkKind kind, std::optional<LinkProfile>& own,
            const std::optional<LinkProfile>& other) {
    if (!other) return;
    const bool is_whole = !own;
    const std::size_t before = kept_.size();
    if (is_whole) own.emplace();
    take_rate(name, kind, MessageKind::send_recv, own->send_recv, other->send_recv);
    each_collective(
        [&](MessageKind message, auto rate) { take_rate(name, kind, message, (*own).*rate, (*other).*rate); });
    take(name + " dispatch", own->dispatch, other->dispatch);
    if (is_whole) {
      kept_.resize(before);
      kept_.push_back(name);
    }
  }

  template <class Rate>
  void take_rate(const std::string& link_name, LinkKind link, MessageKind kind, std::optional<Rate>& own,
                 const std::optional<Rate>& other) {
    if (own || !other) return;
    const auto is_it = [&](const auto& item) { return item.link == link && item.kind == kind; };
    const auto& fits = like_.fits.messages;
    std::copy_if(fits.begin(), fits.end(), std::back_inserter(profile_.fits.messages), is_it);
    const auto& samples = like_.samples.messages;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(profile_.samples.messages), is_it);
    take(fmt::format("{} {}", link_name, message_kind_name(kind)), own, other);
  }

  // Of kernels beside messages and copies: pairs that were measured say all that a profile needs.
  void slowdowns() {
    if (!profile_.samples.interference.empty()) return;
    profile_.samples.interference = like_.samples.interference;
    if (!profile_.samples.interference.empty()) kept_.emplace_back("interference");
    take("compute_beside_communication", profile_.overheads.compute_beside_communication,
         like_.overheads.compute_beside_communication);
  }

  void overheads() {
    Overheads& own = profile_.overheads;
    const Overheads& other = like_.overheads;
    const auto time = [&](const char* name, Overhead& mine, const Overhead& theirs) {
      if (mine.time > Duration{} || !(theirs.time > Duration{})) return;
      mine = theirs;
      state_source(mine.source, name);
    };
    time("per_step", own.per_step, other.per_step);
    time("per_micro_batch", own.per_micro_batch, other.per_micro_batch);
    time("kernel_launch", own.kernel_launch, other.kernel_launch);
    take("host_issue", own.host_issue, other.host_issue);
    take("host_loop", own.host_loop, other.host_loop);
    take("host_narrow", own.host_narrow, other.host_narrow);
    take("host_dispatch", own.host_dispatch, other.host_dispatch);
  }

  DeviceProfile& profile_;
  const DeviceProfile& like_;
  const SampleHeader& header_;
  std::vector<std::string> kept_;
};

}  // namespace

std::vector<std::string> take_missing_parts(DeviceProfile& profile, const DeviceProfile& like,
                                            const SampleHeader& header) {
  return MissingParts(profile, like, header).run();
}

}  // namespace hdpsim::calib
