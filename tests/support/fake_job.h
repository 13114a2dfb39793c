#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/impl/communicator_transport.h"
#include "kernels/cuda/impl/local_world.h"
#include "kernels/cuda/impl/queues.h"
#include "tests/support/deferred_backend.h"
#include "tests/support/fake_communicator.h"
#include "tests/support/fake_queues.h"
#include "tests/support/reference_backend.h"

namespace hdpsim::kernels::cuda {

/// The devices and queues of one virtual rank of a job on a fake device.
struct FakeRank {
  FakeRank(FakeDevice& device, std::size_t rank, std::size_t ranks, Element element)
      : backend(device, rank, ranks + rank, std::make_unique<ReferenceBackend>(element)),
        queues(device, rank),
        copy_queues(device, rank, ranks + rank),
        copies(copy_queues, [element](std::size_t bytes) { return ReferenceBackend(element).allocate(bytes); }) {}
  DeferredBackend backend;
  FakeQueues queues;
  FakeQueues copy_queues;
  QueueCopies copies;  ///< Copies to and from the host.
  std::unique_ptr<Transport> transport;
};

struct FakeJob {
  std::size_t ranks = 1;
  unsigned seed = 1;
  std::chrono::milliseconds limit{60'000};
  Element element = Element::fp32;
  bool by_communicator = false;  ///< Whether ranks communicate as over NCCL, instead of as virtual ranks of one GPU.
};

/// Runs `work` on one thread per rank, on one device. Returns what each rank throws, "" for a rank that does not.
inline std::vector<std::string> run(const FakeJob& job, const std::function<void(FakeRank&)>& work) {
  FakeDevice device(job.ranks * 6, job.seed, job.by_communicator ? job.limit : std::chrono::milliseconds{});
  FakeFabric fabric(device, job.ranks);
  std::vector<std::unique_ptr<FakeRank>> all;
  std::vector<Queues*> queues;
  for (std::size_t rank = 0; rank < job.ranks; ++rank) {
    queues.push_back(&all.emplace_back(std::make_unique<FakeRank>(device, rank, job.ranks, job.element))->queues);
  }
  const auto world = std::make_shared<LocalWorld>(queues, job.limit);
  std::vector<std::string> errors(job.ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < job.ranks; ++rank) {
      FakeRank& self = *all[rank];
      const int number = static_cast<int>(rank);
      if (job.by_communicator) {
        self.transport = std::make_unique<CommunicatorTransport>(
            std::make_unique<FabricCommunicator>(fabric, number, self.queues), self.backend, self.queues, job.limit);
      } else {
        self.transport = std::make_unique<LocalTransport>(world, number, self.backend, self.queues);
      }
      threads.emplace_back([&self, &work, &error = errors[rank]] {
        try {
          work(self);
        } catch (const std::exception& thrown) {
          error = thrown.what();
        }
        self.transport.reset();
      });
    }
  }
  device.finish();
  return errors;
}

}  // namespace hdpsim::kernels::cuda
