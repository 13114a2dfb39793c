#include "sim/app/data_folder.h"

#include <filesystem>
#include <system_error>

namespace hdpsim::app {

std::string shipped_data_folder() {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  for (const char* place : {"../share/hdpsim", "share/hdpsim"}) {
    const fs::path folder = fs::canonical(program.parent_path() / place, failed);
    if (!failed && fs::is_directory(folder / "configs", failed)) return folder.string();
  }
  return {};
}

}  // namespace hdpsim::app
