#include "sim/program/pass_kind.h"

#include <array>

namespace hdpsim {

std::string_view pass_kind_name(PassKind kind) {
  constexpr std::array<std::string_view, pass_kinds> names = {"whole", "forward", "backward", "input gradient",
                                                              "weight gradient"};
  return names.at(static_cast<std::size_t>(kind));
}

bool keeps_activations(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::forward;
}

bool goes_backward(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::backward || kind == PassKind::input_gradient;
}

bool releases_activations(PassKind kind) {
  return kind == PassKind::whole || kind == PassKind::backward || kind == PassKind::weight_gradient;
}

bool sends_forward(PassKind kind) {
  return kind == PassKind::forward;
}

bool sends_backward(PassKind kind) {
  return kind == PassKind::backward || kind == PassKind::input_gradient;
}

}  // namespace hdpsim
