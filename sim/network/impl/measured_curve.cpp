#include <algorithm>

#include "sim/base/check.h"
#include "sim/cost/fitted_transfer.h"
#include "sim/network/impl/collective_choices.h"

namespace hdpsim {
namespace {

std::optional<MessageKind> message_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return MessageKind::all_reduce;
    case CollectiveKind::all_gather:
      return MessageKind::all_gather;
    case CollectiveKind::reduce_scatter:
      return MessageKind::reduce_scatter;
    case CollectiveKind::all_to_all:
      return MessageKind::all_to_all;
    case CollectiveKind::send_recv:
      return MessageKind::send_recv;
    case CollectiveKind::broadcast:
      break;
  }
  return std::nullopt;
}

// If the fit is a curve, the latency is that of the smallest messages.
double latency_s(const MessageFit& fit, double seconds) {
  if (fit.curve) return fit.curve->latency.seconds();
  for (const MessageLine& line : fit.lines) seconds = std::min(seconds, line.latency.seconds());
  return seconds;
}

bool is_sample(const DeviceProfile& profile, const MessageFit& fit, std::int64_t bytes) {
  return std::any_of(profile.samples.messages.begin(), profile.samples.messages.end(), [&](const MessageSample& one) {
    return one.link == fit.link && one.kind == fit.kind && one.ranks == fit.ranks && one.bytes.count() == bytes;
  });
}

// Null: none was measured.
const MessageFit* fit_of(const CollectiveQuestion& question) {
  const std::optional<MessageKind> kind = message_kind(question.kind);
  if (!kind || question.profile.provenance.device != question.cluster.device) return nullptr;
  const LinkKind link = question.span.nodes > 1 ? LinkKind::network : LinkKind::nvlink;
  return message_fit(question.profile.fits, link, *kind, question.span.ranks);
}

}  // namespace

std::optional<MeasuredSizes> measured_sizes(const CollectiveQuestion& question) {
  const MessageFit* fit = fit_of(question);
  if (fit == nullptr) return std::nullopt;
  return MeasuredSizes{fit->least.count(), fit->most.count()};
}

CollectiveTerms measured_curve(const CollectiveQuestion& question) {
  const MessageFit* fit = fit_of(question);
  HDPSIM_CHECK(fit != nullptr, "no curve of {} was measured", collective_name(question.kind));
  const double seconds = fitted_seconds(*fit, static_cast<double>(question.bytes));
  CollectiveTerms terms;
  terms.basis = CollectiveBasis::measured;
  terms.evidence = is_sample(question.profile, *fit, question.bytes) ? Evidence::measured : Evidence::interpolated;
  terms.algorithm = plain_algorithm(question.kind);
  terms.start_s = latency_s(*fit, seconds);
  terms.seconds_a_byte = (seconds - terms.start_s) / static_cast<double>(question.bytes);
  return terms;
}

}  // namespace hdpsim
