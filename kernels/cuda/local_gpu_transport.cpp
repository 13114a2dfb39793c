#include "kernels/cuda/local_gpu_transport.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/cuda/impl/local_world.h"
#include "kernels/cuda/impl/stream_queues.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

struct Rank {
  Rank(int device, AttentionPath path) : backend(make_cuda_backend(device, path)), queues(launch_of(*backend)) {}

  std::unique_ptr<Backend> backend;
  cuda::StreamQueues queues;
  std::unique_ptr<cuda::LocalTransport> transport;
};

}  // namespace

void run_local_gpu_ranks(int ranks, const std::function<void(Backend&, Transport&)>& work, int device,
                         AttentionPath path, std::chrono::milliseconds limit) {
  if (ranks < 1) throw UnsupportedInput("local-gpu: less than one rank");
  std::vector<std::unique_ptr<Rank>> all(static_cast<std::size_t>(ranks));
  for (auto& rank : all) rank = std::make_unique<Rank>(device, path);
  std::vector<cuda::Queues*> queues(all.size());
  std::ranges::transform(all, queues.begin(), [](const auto& rank) { return &rank->queues; });
  const auto world = std::make_shared<cuda::LocalWorld>(queues, limit);
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](Rank& rank) {
    try {
      work(*rank.backend, *rank.transport);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    rank.transport.reset();  // Ranks that wait for this one learn that it has left.
  };
  for (int rank = 0; rank < ranks; ++rank) {
    Rank& self = *all[static_cast<std::size_t>(rank)];
    self.transport = std::make_unique<cuda::LocalTransport>(world, rank, *self.backend, self.queues);
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(all.size());
    for (const auto& rank : all) threads.emplace_back([&run, &self = *rank] { run(self); });
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace hdpsim::kernels
