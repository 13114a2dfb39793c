#include "sim/app/data_folder.h"

#include <filesystem>
#include <system_error>

namespace hdpsim::app {

namespace fs = std::filesystem;

std::vector<std::string> data_folder_places() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  const fs::path folder = program.parent_path();
  return {(folder.parent_path() / "share/hdpsim").string(), (folder / "share/hdpsim").string()};
}

std::string shipped_data_folder() {
  for (const std::string& place : data_folder_places()) {
    std::error_code failed;
    const fs::path folder = fs::canonical(place, failed);
    if (!failed && fs::is_directory(folder / "configs", failed)) return folder.string();
  }
  return {};
}

}  // namespace hdpsim::app
