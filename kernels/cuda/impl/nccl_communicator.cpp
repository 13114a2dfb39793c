#include "kernels/cuda/impl/nccl_communicator.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "kernels/cuda/impl/runtime.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {

using nccl::Result;

NcclCommunicator::NcclCommunicator(const nccl::UniqueId& id, int rank, int size, const Settings& settings)
    : api_(nccl::Api::instance()), rank_(rank), size_(size), settings_(settings) {
  use_device(settings_.device);
  nccl::Config config;
  config.blocking = 0;
  if (settings_.most_thread_blocks > 0) {
    config.min_ctas = 1;
    config.max_ctas = settings_.most_thread_blocks;
  }
  try {
    finish(api_.init_rank(&comm_, size, id, rank, &config), "ncclCommInitRankConfig");
  } catch (const DeviceError& error) {
    abort();
    throw DeviceError(fmt::format("rank {} of {} cannot join the others through NCCL: {}", rank, size, error.what()));
  }
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ == nullptr) return;
  try {
    use_device(settings_.device);
    finish(api_.finalize(comm_), "ncclCommFinalize");
    begun(api_.destroy(comm_), "ncclCommDestroy");
  } catch (const std::exception&) {  // A peer has gone: there is nobody left for an orderly shutdown.
    abort();
  }
}

void NcclCommunicator::abort() {
  if (comm_ == nullptr) return;
  cudaSetDevice(settings_.device);
  api_.abort(comm_);
  comm_ = nullptr;
}

std::string NcclCommunicator::error_text(Result result, const char* call) const {
  const char* const detail = api_.last_error(comm_);
  return fmt::format("{}: {}{}{}", call, api_.error_string(result), detail != nullptr && *detail != 0 ? ": " : "",
                     detail != nullptr ? detail : "");
}

void NcclCommunicator::begun(Result result, const char* call) const {
  if (result != Result::success && result != Result::in_progress) throw DeviceError(error_text(result, call));
}

void NcclCommunicator::finish(Result result, const char* call) const {
  const auto deadline = std::chrono::steady_clock::now() + settings_.limit;
  begun(result, call);
  while (result == Result::in_progress) {
    begun(api_.async_error(comm_, &result), "ncclCommGetAsyncError");
    begun(result, call);
    if (result == Result::success) break;
    if (std::chrono::steady_clock::now() >= deadline) {
      throw DeviceError(fmt::format("{} is not done after {:g} s: a peer has not come", call,
                                    std::chrono::duration<double>(settings_.limit).count()));
    }
    std::this_thread::yield();
  }
}

std::optional<std::string> NcclCommunicator::failure() {
  if (comm_ == nullptr) return "the communicator was aborted";
  Result state = Result::success;
  const Result answer = api_.async_error(comm_, &state);
  for (const Result result : {answer, state}) {
    if (result != Result::success && result != Result::in_progress) return error_text(result, "NCCL");
  }
  return std::nullopt;
}

void NcclCommunicator::queue_messages(std::span<const Send> sends, std::span<const Receive> receives) const {
  for (const Send& send : sends) {
    if (send.bytes == 0) continue;  // skipped on both ends, because sizes match
    begun(api_.send(send.data, send.bytes, nccl::DataType::int8, send.peer, comm_, settings_.stream), "ncclSend");
  }
  for (const Receive& receive : receives) {
    if (receive.bytes == 0) continue;
    begun(api_.receive(receive.data, receive.bytes, nccl::DataType::int8, receive.peer, comm_, settings_.stream),
          "ncclRecv");
  }
}

void NcclCommunicator::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  use_device(settings_.device);
  begun(api_.group_start(), "ncclGroupStart");
  try {
    queue_messages(sends, receives);
  } catch (const DeviceError&) {
    api_.group_end();  // The group belongs to the thread: it must not outlive this communicator.
    throw;
  }
  finish(api_.group_end(), "ncclGroupEnd");
}

void NcclCommunicator::all_reduce(float* data, std::size_t count) {
  use_device(settings_.device);
  finish(api_.all_reduce(data, data, count, nccl::DataType::float32, nccl::Reduction::sum, comm_, settings_.stream),
         "ncclAllReduce");
}

void NcclCommunicator::all_gather(const void* mine, void* all, std::size_t bytes_per_rank) {
  use_device(settings_.device);
  finish(api_.all_gather(mine, all, bytes_per_rank, nccl::DataType::int8, comm_, settings_.stream), "ncclAllGather");
}

void NcclCommunicator::reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) {
  use_device(settings_.device);
  finish(api_.reduce_scatter(all, mine, count_per_rank, nccl::DataType::float32, nccl::Reduction::sum, comm_,
                             settings_.stream),
         "ncclReduceScatter");
}

}  // namespace hdpsim::kernels::cuda
