#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "sim/base/atomic_file.h"

namespace hdpsim::kernels::exec {

/// The title of a checkpoint.
struct CheckpointTitle {
  std::uint64_t shape = 0;      ///< The fingerprint() of the model's shape_text().
  std::int64_t parameters = 0;  ///< As ParameterLayout counts them.
  std::int64_t updates = 0;     ///< Updates that Adam has made.
  std::int64_t next_step = 0;   ///< Next step of the study.
};

/// The state of Adam: three numbers per parameter. Parameters themselves are the master weights, rounded to the
/// element.
inline constexpr std::array<const char*, 3> checkpoint_tensors = {"master weights", "first moments", "second moments"};

/// Writes a checkpoint: the title, then each of checkpoint_tensors in full, fp32 in the order of the parameters, then a
/// checksum of all of it. The file is written under another name, forced to the disk and renamed when it is complete:
/// until then the old file at `path` stays whole. MachineError if it cannot be written; the unfinished file is removed.
class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path path, const CheckpointTitle& title);

  /// Writes the next numbers.
  void write(std::span<const float> numbers);
  /// Ends the file. Requires as many numbers as the title announces (checked).
  void finish();

 private:
  void write_bytes(const void* data, std::size_t bytes);

  AtomicFile file_;
  std::int64_t numbers_left_;
  std::uint64_t checksum_ = 0;
};

/// Reads checkpoints.
class CheckpointReader {
 public:
  /// UnsupportedInput if there is no checkpoint at `path`, or an incomplete one: of another length than its title
  /// announces.
  explicit CheckpointReader(std::filesystem::path path);

  [[nodiscard]] const CheckpointTitle& title() const { return title_; }
  /// Reads the whole file. UnsupportedInput if it does not have the checksum at its end.
  void verify();
  /// Reads numbers [begin, begin + numbers.size()) of a tensor of checkpoint_tensors; numbers behind its end are 0.
  void read(std::size_t tensor, std::int64_t begin, std::span<float> numbers);

 private:
  void read_bytes(std::uint64_t offset, void* data, std::size_t bytes);
  [[noreturn]] void refuse(const std::string& reason) const;

  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
  CheckpointTitle title_;
};

}  // namespace hdpsim::kernels::exec
