#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/app/launcher.h"
#include "sim/base/units.h"

namespace hdpsim::app {

/// Collective operations of MPI in which all processes of a launch must take part: they cannot be interrupted, and do
/// not tell who is missing.
enum class Together { start, end };

/// Lives while the processes of a launch start or end MPI together. If one of them is stopped, has died or does not
/// come, MPI keeps the others for ever. The watch then ends this process: it says so on stderr, with what the machine
/// knows of the processes, and exits with code 3, upon which mpirun and srun end the others. Where they do not (mpirun
/// --enable-recovery), the others end by themselves, and only process 0 speaks unless it is the one that is missing.
///
/// A start has the user's patience, at least a minute: many processes, a busy machine or a slow file system take long,
/// and a healthy job must not be ended. An end has twice that time: once for the missing processes, and once for MPI.
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
