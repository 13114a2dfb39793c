#pragma once

#include <optional>
#include <string>
#include <utility>

#include "sim/trace/impl/file_problems.h"
#include "sim/trace/length_source.h"

namespace hdpsim {

/// What all readers of files share: the contract of LengthSource::next() about mistakes in the file.
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
  /// The next length that is right; adds to problems() what is not on the way there.
  virtual std::optional<Length> read() = 0;

  void finish() {
    if (empty_ && problems_.empty()) problems_.add("the file holds no lengths");
    problems_.throw_if_any();
  }

  FileProblems problems_;
  bool empty_ = true;
};

}  // namespace hdpsim
