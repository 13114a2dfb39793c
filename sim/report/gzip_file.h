#pragma once

#include <filesystem>
#include <string_view>

#include "sim/base/atomic_file.h"

struct gzFile_s;

namespace hdpsim {

/// A gzip-compressed file that is written piece by piece and put in its place as a whole: what was there stays until
/// finish(). The same pieces give the same bytes. MachineError if the file cannot be written; nothing is left behind
/// by a file that was not finished.
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
