#include <algorithm>
#include <filesystem>

#include "kernels/spec/error.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/units.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {

namespace fs = std::filesystem;

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> joined;
    for (const auto& group : {reader_targets(), study_targets(), search_targets(), kept_targets(), timeline_targets(),
                              trace_targets(), comm_targets()}) {
      joined.insert(joined.end(), group.begin(), group.end());
    }
    return joined;
  }();
  return all;
}

const Target* target_of(std::string_view name) {
  const auto found = std::find_if(targets().begin(), targets().end(), [&](const Target& t) { return t.name == name; });
  return found == targets().end() ? nullptr : &*found;
}

std::vector<std::string> seeds_of(const Target& target) {
  const fs::path sources = HDPSIM_SOURCE_DIR;
  std::vector<fs::path> folders = {sources / "tests/fuzz/corpus" / target.name};
  for (const std::string_view folder : target.seeds) folders.push_back(sources / folder);
  std::vector<fs::path> paths;
  for (const fs::path& folder : folders) {
    if (fs::is_regular_file(folder)) paths.push_back(folder);
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == target.extension) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  if (target.own_seed != nullptr) seeds.push_back(target.own_seed());
  for (const fs::path& path : paths) seeds.push_back(text_of(path));
  return seeds;
}

Outcome execute(const Target& target, std::string_view input, std::string* reason) {
  const auto require_text = [&](const std::exception& error) {
    if (*error.what() == '\0') throw Find("refusal", "without a word");
    if (reason != nullptr) *reason = error.what();
    return Outcome::refused;
  };
  try {
    return target.run(input);
  } catch (const InputError& error) {
    return require_text(error);
  } catch (const QuantityOverflow& error) {
    return require_text(error);
  } catch (const MachineError& error) {
    return require_text(error);
  } catch (const kernels::UnsupportedInput& error) {
    return require_text(error);
  }
}

}  // namespace hdpsim::fuzz

extern "C" int LLVMFuzzerInitialize(const int* count, char*** arguments);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {
const hdpsim::fuzz::Target* chosen = nullptr;
}

extern "C" int LLVMFuzzerInitialize(const int* count, char*** arguments) {
  constexpr std::string_view option = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument.starts_with(option)) chosen = hdpsim::fuzz::target_of(argument.substr(option.size()));
  }
  HDPSIM_CHECK(chosen != nullptr, "--target=NAME, one of tests/fuzz/corpus");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)hdpsim::fuzz::execute(*chosen, {reinterpret_cast<const char*>(data), size});
  return 0;
}
