#include "sim/trace/trace.h"

#include "sim/base/input_files.h"

namespace hdpsim {
namespace {

bool is_distribution(const std::filesystem::path& path, const TraceOptions& options) {
  return holds_distribution(detect_format(path, options));
}

bool makes_quantiles(const WriteOptions& write) {
  return write.format == TraceFormat::quantiles;
}

}  // namespace

std::unique_ptr<LengthSource> open_lengths(const std::filesystem::path& path, const TraceOptions& options,
                                           const DrawOptions& draw) {
  if (!is_distribution(path, options)) return open_trace(path, options);
  return make_drawn_lengths(read_distribution(path, options), draw.seed, draw.count);
}

std::int64_t convert(const std::filesystem::path& from, const TraceOptions& options, const std::filesystem::path& to,
                     const WriteOptions& write, const DrawOptions& draw) {
  InputFiles inputs;
  InputFiles::record(from);
  inputs.require_none_at(to);
  if (makes_quantiles(write) && is_distribution(from, options)) {
    write_quantiles(*read_distribution(from, options), to, write.points);
    return 0;
  }
  return write_trace(*open_lengths(from, options, draw), to, write);
}

}  // namespace hdpsim
