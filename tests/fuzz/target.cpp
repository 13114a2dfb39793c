#include "tests/fuzz/target.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "calib/measure/nccl_tests.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/cluster/impl/nccl_topology.h"
#include "sim/report/timeline_file.h"
#include "sim/study/check_file.h"

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

template <FileKind kind>
void check(std::string_view input) {
  static InputFile file(target().extension);
  static Catalog catalog(HDPSIM_SOURCE_DIR);
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
    NamedReader{{"lengths_text", ".txt"}, check<FileKind::lengths>},
    NamedReader{{"lengths_csv", ".csv"}, check<FileKind::lengths>},
    NamedReader{{"lengths_jsonl", ".jsonl"}, check<FileKind::lengths>},
    NamedReader{{"lengths_npy", ".npy"}, check<FileKind::lengths>},
    NamedReader{{"lengths_megatron", ".idx"}, check<FileKind::lengths>},
    NamedReader{{"nccl_topology", ".xml"},
                [](std::string_view input) {
                  Diagnostics diagnostics;
                  (void)read_nccl_topology("topology.xml", std::string(input), diagnostics);
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

const NamedReader& own_reader() {
  for (const NamedReader& reader : readers) {
    if (reader.target.name == HDPSIM_FUZZ_TARGET) return reader;
  }
  std::abort();
}

}  // namespace

Target target() {
  return own_reader().target;
}

void read(std::string_view input) {
  try {
    own_reader().read(input);
  } catch (const InputError&) {  // as it should be
  } catch (const MachineError&) {
  }
}

}  // namespace hdpsim::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  hdpsim::fuzz::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
