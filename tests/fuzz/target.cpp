#include "tests/fuzz/target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "calib/measure/nccl_tests.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/cluster/impl/nccl_node.h"
#include "sim/report/timeline_file.h"
#include "sim/run/check_file.h"

namespace hdpsim::fuzz {
namespace {

namespace fs = std::filesystem;

/// A file of its own for each process, in memory where the system has a place for that.
class InputFile {
 public:
  explicit InputFile(std::string_view extension) {
    const fs::path folder = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    path_ = folder / ("hdpsim-fuzz-" + std::to_string(getpid()) + std::string(extension));
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  std::string holding(std::string_view input) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(input.data(), static_cast<std::streamsize>(input.size()));
    return path_.string();
  }

 private:
  fs::path path_;
};

using Reader = void (*)(std::string_view input);

/// Knows the shipped profiles, which take far longer to read than the inputs that name them.
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

/// Each input has a catalog of its own: one that was shared would remember what an input named, and answer the next
/// one, whose file has the same path, without reading; and it would grow.
template <FileKind kind>
void check(std::string_view input) {
  static InputFile file(target().extension);
  static const Catalog shipped = catalog_of_shipped_files();
  Catalog catalog = shipped;
  (void)check_file(file.holding(input), kind, catalog);
}

struct NamedReader {
  Target target;
  Reader read;
};

constexpr std::array readers = {
    NamedReader{{"study", ".yaml"}, check<FileKind::study>},
    NamedReader{{"plan", ".json"}, check<FileKind::plan>},
    NamedReader{{"cluster", ".yaml"}, check<FileKind::cluster>},
    NamedReader{{"model", ".json"}, check<FileKind::model>},
    NamedReader{{"profile", ".yaml"}, check<FileKind::profile>},
    NamedReader{{"validation", ".yaml"}, check<FileKind::validation>},
    NamedReader{{"lengths_text", ".txt"}, check<FileKind::lengths>},
    NamedReader{{"lengths_csv", ".csv"}, check<FileKind::lengths>},
    NamedReader{{"lengths_jsonl", ".jsonl"}, check<FileKind::lengths>},
    NamedReader{{"lengths_npy", ".npy"}, check<FileKind::lengths>},
    NamedReader{{"lengths_megatron", ".idx"}, check<FileKind::lengths>},
    NamedReader{{"nccl_topology", ".xml"},
                [](std::string_view input) {
                  Diagnostics diagnostics;
                  const auto topology = read_nccl_topology("topology.xml", std::string(input), diagnostics);
                  diagnostics.throw_if_any();
                  (void)node_of_topology(*topology, Value::map(), true, diagnostics);
                  diagnostics.throw_if_any();
                }},
    NamedReader{{"nccl_tests", ".txt"},
                [](std::string_view input) {
                  Diagnostics diagnostics;
                  (void)calib::parse_nccl_tests("all_reduce.txt", std::string(input), diagnostics);
                  diagnostics.throw_if_any();
                }},
    NamedReader{{"timeline", ".jsonl"},
                [](std::string_view input) { (void)read_timeline("timeline.jsonl", std::string(input)); }},
};

const NamedReader* chosen = nullptr;

}  // namespace

bool choose_target(const char* const* begin, const char* const* end) {
  for (const NamedReader& reader : readers) {
    const std::string option = fmt::format("--target={}", reader.target.name);
    if (std::find(begin, end, option) != end) chosen = &reader;
  }
  return chosen != nullptr;
}

Target target() {
  return chosen->target;
}

void read(std::string_view input) {
  try {
    chosen->read(input);
  } catch (const InputError&) {  // as it should be
  } catch (const MachineError&) {
  }
}

}  // namespace hdpsim::fuzz

extern "C" int LLVMFuzzerInitialize(const int* count, char*** arguments) {
  HDPSIM_CHECK(hdpsim::fuzz::choose_target(*arguments, *arguments + *count), "--target=NAME, one of tests/fuzz/corpus");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hdpsim::fuzz::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
