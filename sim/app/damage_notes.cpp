#include "sim/app/damage_notes.h"

#include <fmt/format.h>

#include "sim/app/command.h"

namespace hdpsim::app {

TellDamage damage_notes(const std::string& remedy) {
  constexpr int most_told = 20;
  return [remedy, told = 0](const Diagnostic& part) mutable {
    if (++told <= most_told) note(fmt::format("{}; it is {}", damage_text(part), remedy));
    if (told == most_told + 1) note(fmt::format("further damaged parts are not named; they are {}, too", remedy));
  };
}

}  // namespace hdpsim::app
