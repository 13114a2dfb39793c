#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calib/fit/samples.h"
#include "calib/measure/subject.h"
#include "sim/base/diagnostic.h"

namespace hdpsim::calib {

/// The schema of samples that other programs measure with kernels of their own.
inline constexpr char samples_schema[] = "hdpsim.samples/1";

/// What holds for all measurements of a file: its first line. Zeros and empty texts are not known.
struct SampleHeader {
  Position position;
  Circumstances circumstances;
  std::string through;  ///< Whose kernels they are, in a word: "PyTorch"; "hdpsim" in a journal of this program.
  std::string program;  ///< What measured: "hdpsim.torch.calibrate".
  std::map<std::string, std::string> kernels;   ///< Whose they are, by family: attention: "flash-attn 2.8.1".
  std::map<std::string, std::string> software;  ///< Versions: torch: "2.9.0".
  double host_issue_s = 0;                      ///< Time of the host to issue an operation.
  double launch_s = 0;                          ///< Time of an empty kernel.
  std::int64_t ring_gradient_bytes = 0;         ///< Of an element of the gradients that a ring sends around.
};

/// The samples of a program, in one file or merged from several.
struct SampleFile {
  SampleHeader header;
  std::vector<Measurement> measurements;  ///< At least one.
};

/// Reads a file of samples: JSON lines, the header and a line a measurement, as configs/schemas/samples.schema.json has
/// them; or the journal of a calibration of this program (NAME.samples.jsonl), whose kernels are hdpsim's own. All
/// problems are reported with their lines; the result is then empty. MachineError if the file cannot be read.
[[nodiscard]] std::optional<SampleFile> read_sample_file(const std::string& path, Diagnostics& diagnostics);

/// Whether a file begins as one of samples does, or as the journal of a calibration. False if there is none.
[[nodiscard]] bool holds_samples(const std::string& path);

/// The same for a text in memory that is no journal; `file` is the name that diagnostics carry.
[[nodiscard]] std::optional<SampleFile> parse_samples(const std::string& file, const std::string& text,
                                                      Diagnostics& diagnostics);

/// The samples of several files (of ranks, or of runs) as one. What one of them lacks, others say; of the host's times
/// the median counts. Every difference in what devices and kernels are is reported at the later file. At least one.
[[nodiscard]] SampleFile merged_samples(const std::vector<SampleFile>& files, Diagnostics& diagnostics);

}  // namespace hdpsim::calib
