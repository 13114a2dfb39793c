#include "calib/measure/session.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "calib/measure/repeat.h"
#include "calib/measure/workload.h"
#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

using Clock = std::chrono::steady_clock;

/// Subject (its index) and round of every measurement: level after level, in a level round after round, and each round
/// shuffled. Whenever a session ends, what matters most has been measured, in all rounds.
std::vector<std::pair<std::size_t, int>> order_of(const std::vector<Planned>& plan, int rounds, std::uint64_t seed) {
  std::map<int, std::vector<std::size_t>> levels;
  for (std::size_t index = 0; index < plan.size(); ++index) levels[plan[index].level].push_back(index);
  std::vector<std::pair<std::size_t, int>> order;
  for (auto& [level, indices] : levels) {
    for (int round = 0; round < rounds; ++round) {
      RandomStream random(seed, fmt::format("order.{}", level), static_cast<std::uint64_t>(round));
      for (std::size_t i = indices.size(); i > 1; --i) std::swap(indices[i - 1], indices[random.below(i)]);
      for (const std::size_t index : indices) order.emplace_back(index, round);
    }
  }
  return order;
}

class Session {
 public:
  Session(Device& device, const std::vector<Planned>& plan, Journal& journal, const SessionOptions& options)
      : device_(device), plan_(plan), journal_(journal), options_(options) {
    for (const Measurement& measurement : journal.measurements()) {
      known_.emplace(subject_text(measurement.subject), measurement.round);
    }
  }

  SessionResult run() {
    std::vector<std::pair<std::size_t, int>> missing;
    for (const auto& [index, round] : order_of(plan_, options_.rounds, options_.seed)) {
      if (known_.contains({subject_text(plan_[index].subject), round})) continue;
      missing.emplace_back(index, round);
      expected_left_s_ += plan_[index].expected_s;
    }
    done_ = plan_.size() * static_cast<std::size_t>(options_.rounds) - missing.size();
    for (const auto& [index, round] : missing) {
      if (out_of_time()) break;
      if (!measure(plan_[index], round)) {
        result_.stopped = true;
        break;
      }
    }
    result_.left_out = plan_.size() * static_cast<std::size_t>(options_.rounds) - done_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  [[nodiscard]] bool out_of_time() const { return options_.time_limit_s > 0 && elapsed_s() >= options_.time_limit_s; }

  void tell(const Planned& planned) const {
    const double speed = expected_done_s_ > 0 ? elapsed_s() / expected_done_s_ : 1;
    options_.report({.done = done_,
                     .total = plan_.size() * static_cast<std::size_t>(options_.rounds),
                     .left_s = speed * expected_left_s_,
                     .subject = &planned.subject});
  }

  /// False if it was told to stop.
  bool measure(const Planned& planned, int round) {
    tell(planned);
    if (options_.stop()) return false;
    const Repeatable work = prepare(device_, options_.speed, planned.subject, options_.seed);
    const Repetition repetition = repeat(work, *options_.rule, options_.stop);
    result_.throttled += repetition.throttled;
    result_.impossible += repetition.impossible;
    if (repetition.timing) {
      journal_.add({planned.subject, round, *repetition.timing});
    } else if (!repetition.refusal.empty()) {
      result_.refusals.push_back(fmt::format("{}: {}", label_of(planned.subject), repetition.refusal));
    } else {
      return false;
    }
    ++done_;
    expected_left_s_ -= planned.expected_s;
    expected_done_s_ += planned.expected_s;
    return true;
  }

  Device& device_;
  const std::vector<Planned>& plan_;
  Journal& journal_;
  const SessionOptions& options_;
  std::set<std::pair<std::string, int>> known_;
  Clock::time_point start_ = Clock::now();
  std::size_t done_ = 0;
  double expected_left_s_ = 0;
  double expected_done_s_ = 0;
  SessionResult result_;
};

}  // namespace

SessionResult run_session(Device& device, const std::vector<Planned>& plan, Journal& journal,
                          const SessionOptions& options) {
  HDPSIM_CHECK(options.rule != nullptr, "a session without a stopping rule");
  return Session(device, plan, journal, options).run();
}

}  // namespace hdpsim::calib
