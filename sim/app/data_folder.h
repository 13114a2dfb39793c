#pragma once

#include <string>

namespace hdpsim::app {

/// The folder with the shipped configs, profiles and length tables: `../share/hdpsim` from the program's own folder, as
/// it is installed, wherever that is; or `share/hdpsim` in it, as it is built. Empty if there is neither.
[[nodiscard]] std::string shipped_data_folder();

}  // namespace hdpsim::app
