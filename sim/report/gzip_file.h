#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/atomic_file.h"

struct gzFile_s;

namespace hdpsim {

/// A gzip-compressed file that is written piece by piece and gets its name as a whole: an earlier file stays until
/// finish(). The same pieces give the same bytes. MachineError if the file cannot be written; an unfinished file leaves
/// nothing behind.
class GzipFile {
 public:
  explicit GzipFile(std::filesystem::path path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  AtomicFile target_;
  gzFile_s* file_ = nullptr;
};

}  // namespace hdpsim
