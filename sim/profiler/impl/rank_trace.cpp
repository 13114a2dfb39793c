#include "sim/profiler/impl/rank_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hdpsim {
namespace {

constexpr std::size_t most_events = 20'000'000;  // of a kind, in one trace: some 2 GB of memory

constexpr std::size_t longest_name = 4096;            // of a kernel: what templates add behind it says nothing
constexpr std::size_t most_text_bytes = 100'000'000;  // of names and groups in one trace

constexpr std::array<std::string_view, 8> launches = {
    "cudaLaunchKernel", "cudaLaunchKernelExC",   "cuLaunchKernel",           "cuLaunchKernelEx",
    "hipLaunchKernel",  "hipModuleLaunchKernel", "hipExtModuleLaunchKernel", "cudaLaunchCooperativeKernel"};
constexpr std::array<std::string_view, 10> waits = {
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy", "cudaFree", "cudaMalloc",
    "hipDeviceSynchronize",  "hipStreamSynchronize",  "hipEventSynchronize",  "hipMemcpy"};

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What all ranks together hold for all-gather, reduce-scatter and all-to-all, the buffer for all-reduce, the message
/// for send/recv: In and Out are the elements of one rank.
std::int64_t message_bytes(MessageKind kind, const ProfilerEvent& event) {
  const std::int64_t in = std::max<std::int64_t>(0, event.elements_in);
  const std::int64_t out = std::max<std::int64_t>(0, event.elements_out);
  const std::int64_t elements = kind == MessageKind::all_gather       ? out
                                : kind == MessageKind::reduce_scatter ? in
                                                                      : std::max(in, out);
  std::int64_t bytes = 0;
  return __builtin_mul_overflow(elements, bytes_of_type(event.type), &bytes) ? 0 : bytes;
}

}  // namespace

void require_room(std::size_t count, const ProfilerEvent& event) {
  if (count < most_events) return;
  throw InputError(event.position, fmt::format("the trace has more than {} events of one kind", most_events),
                   "profile fewer steps");
}

void RankTrace::add(ProfilerEvent& event) {
  if (event.category == "kernel" || event.category == "gpu_memcpy" || event.category == "gpu_memset") {
    add_kernel(event);
  } else if (event.category == "cpu_op") {
    add_operation(event);
  } else if (event.category == "cuda_runtime" || event.category == "cuda_driver" || event.category == "hip_runtime") {
    add_call(event);
  } else if (event.category == "user_annotation" && event.name.starts_with("ProfilerStep#")) {
    steps_s.push_back(us * event.duration_us);
  }
}

void RankTrace::add_kernel(ProfilerEvent& event) {
  require_room(kernels.size(), event);
  if (kernels.empty()) device_ = event.device;
  if (event.device != device_) {
    throw InputError(event.position,
                     fmt::format("a kernel of device {} among those of device {}", event.device, device_),
                     "take traces of processes that have a GPU each");
  }
  KernelKind kind;
  if (event.category == "kernel") {
    kind = kernel_kind(event.name);
  } else {
    kind.kind = event.category == "gpu_memcpy" ? KernelClass::copy : KernelClass::fill;
  }
  RankKernel kernel{.begin = event.begin_us,
                    .end = event.begin_us + event.duration_us,
                    .external_id = event.external_id,
                    .correlation = event.correlation,
                    .stream = static_cast<std::int32_t>(event.stream >= 0 ? event.stream : event.thread),
                    .bytes = std::max<std::int64_t>(0, event.bytes)};
  if (kind.kind == KernelClass::collective) kernel.message = message_of(event);
  kernel.name = name_of(event, kind);
  kernels.push_back(kernel);
}

void RankTrace::keep_text(std::size_t bytes, const ProfilerEvent& event) {
  text_bytes_ += bytes;
  if (text_bytes_ <= most_text_bytes) return;
  throw InputError(event.position,
                   fmt::format("the trace has more than {} MB of different names", most_text_bytes / 1'000'000),
                   "is it a trace of kernels?");
}

std::uint32_t RankTrace::name_of(ProfilerEvent& event, KernelKind kind) {
  std::string& text = event.name;
  if (text.size() > longest_name) text = text.substr(0, longest_name);  // also without its memory
  const auto [at, is_new] = name_index_.try_emplace(text, static_cast<std::uint32_t>(names.size()));
  if (is_new) {
    keep_text(text.size(), event);
    names.push_back({std::move(text), kind});
  }
  return at->second;
}

std::uint32_t RankTrace::message_of(const ProfilerEvent& event) {
  NamedMessage message;
  message.kind = message_kind_of(event.category == "kernel" ? event.name : event.collective);
  if (!message.kind) message.kind = message_kind_of(event.collective);
  if (message.kind) message.bytes = message_bytes(*message.kind, event);
  message.ranks = message.kind == MessageKind::send_recv && event.group_size > 0 ? 2 : event.group_size;
  message.group = event.group + event.group_ranks;
  message.group_ranks = event.group_ranks;
  const auto [at, is_new] = message_index_.try_emplace(message, static_cast<std::uint32_t>(messages.size()));
  if (is_new) {
    keep_text(message.group.size() + message.group_ranks.size(), event);
    messages.push_back(std::move(message));
  }
  return at->second;
}

void RankTrace::add_operation(ProfilerEvent& event) {
  if (event.external_id < 0) return;
  if (!event.collective.empty()) {
    require_room(message_of_id.size(), event);
    message_of_id.insert_or_assign(event.external_id, message_of(event));
  }
  if (event.dims.empty()) return;
  ++inputs;
  OperationShape shape = shape_of(event);
  if (std::holds_alternative<std::monostate>(shape)) return;
  require_room(shape_of_id.size(), event);
  const auto [at, is_new] = shape_index_.try_emplace(shape, static_cast<std::uint32_t>(shapes.size()));
  if (is_new) shapes.push_back(std::move(shape));
  shape_of_id.insert_or_assign(event.external_id, at->second);
}

void RankTrace::add_call(const ProfilerEvent& event) {
  RankCall::Kind kind = RankCall::Kind::launch;
  if (event.name == "cudaGraphLaunch" || event.name == "cuGraphLaunch" || event.name == "hipGraphLaunch") {
    kind = RankCall::Kind::graph;
  } else if (is_among(waits, event.name)) {
    kind = RankCall::Kind::wait;
  } else if (!is_among(launches, event.name)) {
    return;
  }
  require_room(calls.size(), event);
  calls.push_back({event.begin_us, event.begin_us + event.duration_us, event.thread, event.correlation, kind});
}

}  // namespace hdpsim
