#include "tests/fuzz/scratch_files.h"

#include <unistd.h>

#include <fstream>
#include <iterator>

#include "sim/base/diagnostic.h"

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;

/// Removed by the process that made it alone, not by its children.
class OwnFolder {
 public:
  OwnFolder() : owner_(getpid()) {
    const fs::path folder = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path_ = folder / ("hdpsim-fuzz-" + std::to_string(owner_));
    fs::create_directories(path_);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  ~OwnFolder() {
    std::error_code ignored;
    if (owner_ == getpid()) fs::remove_all(path_, ignored);
  }

  /// Of a child it is a folder within.
  [[nodiscard]] fs::path path() const {
    if (owner_ == getpid()) return path_;
    fs::path own = path_ / std::to_string(getpid());
    fs::create_directories(own);
    return own;
  }

 private:
  pid_t owner_;
  fs::path path_;
};

Catalog catalog_of_shipped_files() {
  Catalog catalog(HDPSIM_SOURCE_DIR);
  Diagnostics diagnostics;
  for (const auto& entry : fs::directory_iterator(catalog.profiles())) {
    if (entry.path().extension() == ".yaml") {
      (void)catalog.profile(Value::scalar(entry.path().stem().string()), diagnostics);
    }
  }
  diagnostics.throw_if_any();
  return catalog;
}

}  // namespace

fs::path scratch() {
  static const OwnFolder folder;
  return folder.path();
}

fs::path empty_scratch(std::string_view name) {
  fs::path folder = scratch() / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string file_with(std::string_view name, std::string_view text) {
  const fs::path path = scratch() / name;
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
  return path.string();
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const Catalog& shipped_catalog() {
  static const Catalog catalog = catalog_of_shipped_files();
  return catalog;
}

Study study_of(std::string_view text) {
  Catalog catalog = shipped_catalog();
  return load_study(file_with("study.yaml", text), {}, catalog);
}

}  // namespace hdpsim::fuzz
