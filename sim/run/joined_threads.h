#pragma once

#include <thread>
#include <utility>
#include <vector>

namespace hdpsim {

/// Threads that end before their scope does: std::jthread, which libc++ has from version 18 on.
class JoinedThreads {
 public:
  JoinedThreads() = default;
  ~JoinedThreads() {
    for (std::thread& thread : threads_) thread.join();
  }
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;

  template <class Work>
  void begin(Work work) {
    threads_.emplace_back(std::move(work));
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace hdpsim
