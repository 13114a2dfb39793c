#include "sim/app/opener.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "sim/app/environment.h"

namespace hdpsim::app {
namespace {

std::vector<std::string> openers() {
  std::vector<std::string> commands;
  std::istringstream browsers{std::string(environment_variable("BROWSER"))};
  for (std::string command; std::getline(browsers, command, ':');) {
    if (command.find_first_not_of(' ') != std::string::npos) commands.push_back(command);
  }
  const bool has_desktop = !environment_variable("DISPLAY").empty() || !environment_variable("WAYLAND_DISPLAY").empty();
  if (environment_variable("BROWSER").empty() && has_desktop) commands.emplace_back("xdg-open");
  return commands;
}

// The words of a command, with the address at its place or behind them.
std::vector<std::string> words_of(const std::string& command, const std::string& address) {
  std::vector<std::string> words;
  bool has_address = false;
  std::istringstream text(command);
  for (std::string word; text >> word; words.push_back(word)) {
    const std::size_t place = word.find("%s");
    if (place == std::string::npos) continue;
    word.replace(place, 2, address);
    has_address = true;
  }
  if (!has_address) words.push_back(address);
  return words;
}

/// How the program starts: in a session of its own, so that Ctrl-C here does not end it, and saying nothing here.
class Starter {
 public:
  Starter() {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID);
  }
  ~Starter() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  /// False if there is no such program.
  [[nodiscard]] bool starts(std::vector<std::string> words) const {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = 0;
    return posix_spawnp(&process, arguments.front(), &files_, &attributes_, arguments.data(), environ) == 0;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::string open_address(const std::string& address) {
  const Starter starter;
  const std::vector<std::string> commands = openers();
  const auto started = std::find_if(commands.begin(), commands.end(), [&](const std::string& command) {
    return starter.starts(words_of(command, address));
  });
  return started == commands.end() ? "" : *started;
}

}  // namespace hdpsim::app
