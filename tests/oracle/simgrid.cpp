#include "tests/oracle/simgrid.h"

#include <array>
#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "sim/base/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim::tests {
namespace {

std::string output_of(const std::string& command) {
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed");
  return text;
}

}  // namespace

SimgridReplay replay_in_simgrid(const SimgridTraffic& traffic) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "platform.xml", simgrid_platform(traffic));
  write_file(folder.path() / "messages.csv", simgrid_messages(traffic));
  // SimGrid tells every change of its configuration.
  const std::string command = HDPSIM_SIMGRID_REPLAY " " + folder.path().string() + " 2>/dev/null";
  SimgridReplay replay;
  std::istringstream line(output_of(command));
  line >> replay.messages >> replay.seconds >> replay.largest_difference;
  if (!line) throw std::runtime_error(command + " printed: " + line.str());
  return replay;
}

}  // namespace hdpsim::tests
