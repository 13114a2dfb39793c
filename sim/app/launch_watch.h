#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/app/launcher.h"
#include "sim/base/units.h"

namespace hdpsim::app {

/// What all processes of a launch do together in MPI's own time: nobody can interrupt it, or be told who is missing.
enum class Together { start, end };

/// Lives as long as the processes of a launch start or end MPI together. Where one of them is stopped, has died or has
/// not come, MPI keeps the others for ever. The watch ends this process then: it says so on stderr, with what the
/// machine knows of the processes, and exits with code 3, upon which mpirun and srun end the others.
///
/// A start has the user's patience, and a minute at least: many processes, a busy machine or a slow file system take
/// long, and a healthy job must not be ended. An end has twice of it: for those who do not come, and for MPI.
class LaunchWatch {
 public:
  LaunchWatch(const Launch& launch, Together what, Duration patience);
  ~LaunchWatch();
  LaunchWatch(const LaunchWatch&) = delete;
  LaunchWatch& operator=(const LaunchWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace hdpsim::app
