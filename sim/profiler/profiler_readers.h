#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// The dimensions of one input of an operation; those of a list of tensors are empty.
using InputDims = std::vector<std::int64_t>;

/// An event with a duration ("ph": "X") of a trace in the Trace Event Format, with the arguments that PyTorch's
/// profiler (Kineto) writes. What the event does not say is 0, -1 or empty.
struct ProfilerEvent {
  Position position;
  std::string category;  ///< "kernel", "gpu_memcpy", "cpu_op", "cuda_runtime", "user_annotation", ...
  std::string name;
  double begin_us = 0;
  double duration_us = 0;
  std::int64_t thread = -1;  ///< The stream of kernels.
  std::int64_t external_id = -1;
  std::int64_t correlation = -1;
  std::int64_t stream = -1;
  std::int64_t device = -1;
  std::int64_t bytes = -1;

  std::vector<InputDims> dims;  ///< "Input Dims": one for each input.
  std::vector<std::string> types;
  std::vector<std::string> concrete;  ///< "Concrete Inputs": numbers and truth values among the inputs, as text.

  std::string collective;
  std::string type;  ///< Of the elements of a collective.
  std::string group;
  std::string group_ranks;
  std::int64_t group_size = 0;
  std::int64_t elements_in = -1;
  std::int64_t elements_out = -1;
};

/// A device, as the trace describes it ("deviceProperties").
struct ProfiledDevice {
  std::string name;
  std::int64_t multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  friend bool operator==(const ProfiledDevice&, const ProfiledDevice&) = default;
};

/// What a trace says besides its events.
struct ProfilerHeader {
  std::vector<ProfiledDevice> devices;
  std::string nccl;                  ///< Version, of "distributedInfo".
  std::optional<std::int64_t> rank;  ///< Of the process, of "distributedInfo".
  std::string schema;                ///< Of traces that hdpsim wrote itself.
};

/// Is called with every event, in the order of the file. `named` is what the event names itself, valid until it
/// returns.
using TakeEvent = std::function<void(ProfilerEvent& event)>;
/// Is called now and then with the share of the file that has been read, from 0 to 1.
using ReportShare = std::function<void(double share)>;

/// Reads a trace of PyTorch's profiler, plain or compressed (.gz), as a stream: in memory is one event at a time, so
/// that files of any size can be read. Builds of PyTorch without Kineto, such as Debian's, write a list of events that
/// have no category: those of CPUs get that of operations. InputError with file, line and column: text that is no JSON,
/// or ends early, or is damaged; a document without "traceEvents"; events of kernels, operations and calls whose name,
/// times or arguments have a wrong type (the first 20 of these). MachineError if the file cannot be read.
[[nodiscard]] ProfilerHeader read_kineto(
    const std::filesystem::path& path, const TakeEvent& take, const ReportShare& report = [](double) {});

/// Reads what `nsys stats --report cuda_gpu_trace --format csv` of Nsight Systems prints, of one device, line by line:
/// kernels, copies and fills with their times, as a trace of PyTorch's profiler has them. It has neither shapes, nor
/// launches, nor what collectives move. Lines before the head are skipped. InputError with file, line and column: no
/// head, or another report's; rows with too few fields or with fields that are no numbers (the first 20 of these); rows
/// of a second device. MachineError if the file cannot be read.
[[nodiscard]] ProfilerHeader read_nsys(
    const std::filesystem::path& path, const TakeEvent& take, const ReportShare& report = [](double) {});

/// Why an event cannot last so long; empty if it can. Nothing on a device lasts longer than the ten minutes after which
/// PyTorch ends a job that waits for a collective: such times are of another unit, or the file is damaged.
[[nodiscard]] constexpr std::string_view problem_of_duration(double duration_us, bool is_on_device) {
  constexpr double longest_us = 600e6;
  if (duration_us < 0) return "its duration is negative";
  if (is_on_device && duration_us > longest_us) return "it runs on a device for more than ten minutes";
  return {};
}

}  // namespace hdpsim
