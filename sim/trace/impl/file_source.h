#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sim/trace/impl/file_problems.h"
#include "sim/trace/length_source.h"

namespace hdpsim {

/// The common part of all readers of files: the contract of LengthSource::next() about mistakes in the file.
class FileSource : public LengthSource {
 public:
  explicit FileSource(std::string file) : problems_(std::move(file)) {}

  [[nodiscard]] std::optional<Length> next() final {
    std::optional<Length> length = read();
    if (length) {
      empty_ = false;
    } else {
      finish();
    }
    return length;
  }

 protected:
  FileProblems& problems() { return problems_; }

 private:
  /// The next valid length; adds invalid ones on the way to problems().
  virtual std::optional<Length> read() = 0;

  void finish() {
    if (empty_ && problems_.empty()) problems_.add("the file holds no lengths");
    problems_.throw_if_any();
  }

  FileProblems problems_;
  bool empty_ = true;
};

}  // namespace hdpsim
