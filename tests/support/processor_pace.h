#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>
#include <unordered_map>
#include <vector>

namespace hdpsim::test {

/// Processor time of this thread, in seconds, for a piece of work that is always the same and of the kind that readers
/// of files do: texts are made, found again and put in order. A test that bounds what a command computes bounds it by a
/// multiple of this, measured in the same run, so that a slow or busy machine bounds it less. Some 20 ms in 2025.
[[nodiscard]] inline double pace_s() {
  const auto now_s = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  constexpr std::size_t texts = 40'000;
  const double begin_s = now_s();
  std::unordered_map<std::string, std::size_t> found;
  for (std::size_t i = 0; i < texts; ++i) ++found["a text of some length " + std::to_string(i * 7919 % texts)];
  std::vector<std::string> sorted;
  for (const auto& [text, count] : found) sorted.push_back(text + std::to_string(count));
  std::sort(sorted.begin(), sorted.end());
  const double took_s = now_s() - begin_s;
  return sorted.size() == texts ? took_s : 0;  // the result is used: no compiler leaves the work out
}

}  // namespace hdpsim::test
