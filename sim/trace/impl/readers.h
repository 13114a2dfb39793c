#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/impl/file_problems.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

// One reader per format; open_trace() and read_distribution() choose among them.
[[nodiscard]] std::unique_ptr<LengthSource> open_lines(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<LengthSource> open_csv(const std::filesystem::path& path, const TraceOptions& options);
[[nodiscard]] std::unique_ptr<LengthSource> open_jsonl(const std::filesystem::path& path, const TraceOptions& options);
[[nodiscard]] std::unique_ptr<LengthSource> open_npy(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<LengthSource> open_megatron(const std::filesystem::path& path);

[[nodiscard]] std::unique_ptr<LengthSource> open_edges(const std::filesystem::path& path, const EdgeOptions& options);

[[nodiscard]] std::vector<LengthBin> read_histogram(const std::filesystem::path& path);
[[nodiscard]] std::vector<QuantilePoint> read_quantiles(const std::filesystem::path& path);
[[nodiscard]] std::vector<TokenShareClass> read_mixture(const std::filesystem::path& path);

/// Whether the first line of a text is meant as one length: neither a header nor several numbers.
[[nodiscard]] bool begins_with_length(const std::filesystem::path& path);

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
