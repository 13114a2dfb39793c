#pragma once

#include <string>
#include <vector>

namespace hdpsim::app {

/// The folder with the shipped configs, profiles and length tables: `../share/hdpsim` from the program's own folder in
/// an installation, wherever that is, or `share/hdpsim` in it in a build. Empty if neither exists.
[[nodiscard]] std::string shipped_data_folder();
/// Where it is looked for.
[[nodiscard]] std::vector<std::string> data_folder_places();

}  // namespace hdpsim::app
