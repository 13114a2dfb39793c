#pragma once

#include <string>

namespace hdpsim::app {

/// Hands an address to the program that opens addresses for this user, and does not wait for it: the first of the
/// commands of $BROWSER that starts (separated by colons; %s stands for the address, which otherwise comes last), or
/// where that variable is not set xdg-open, if there is a desktop. Other users of the machine can read the address
/// among the arguments of that program. Returns the command that was started; empty if there is none.
[[nodiscard]] std::string open_address(const std::string& address);

}  // namespace hdpsim::app
