#include "calib/measure/measurement_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "calib/measure/collect.h"
#include "calib/measure/repeat.h"
#include "calib/measure/summary.h"
#include "calib/measure/workload.h"
#include "sim/base/check.h"
#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

using Clock = std::chrono::steady_clock;

/// The same indices in an order drawn from the seed.
std::vector<std::size_t> shuffled(std::vector<std::size_t> indices, std::uint64_t seed, int level, int round) {
  RandomStream random(seed, fmt::format("order.{}", level), static_cast<std::uint64_t>(round));
  for (std::size_t i = indices.size(); i > 1; --i) std::swap(indices[i - 1], indices[random.below(i)]);
  return indices;
}

/// Subject (its index) and round of every measurement: level after level, in a level round after round, and each round
/// shuffled, but one round of the essential subjects first. Whenever a session ends, the most important subjects have
/// been measured, in all rounds.
std::vector<std::pair<std::size_t, int>> order_of(const std::vector<Planned>& plan, int rounds, std::uint64_t seed) {
  std::map<int, std::vector<std::size_t>> levels;
  for (std::size_t index = 0; index < plan.size(); ++index) levels[plan[index].level].push_back(index);
  std::vector<std::pair<std::size_t, int>> order;
  for (const auto& [level, indices] : levels) {
    for (int round = 0; round < rounds; ++round) {
      for (const std::size_t index : shuffled(indices, seed, level, round)) order.emplace_back(index, round);
    }
  }
  std::stable_partition(order.begin(), order.end(), [&](const auto& measurement) {
    return plan[measurement.first].essential && measurement.second == 0;
  });
  return order;
}

// How long postponed measurements wait when nothing else is left.
constexpr std::chrono::milliseconds pause{100};
constexpr int most_pauses = 300;

// The rest of the time limit is for doubtful subjects.
constexpr double settled_share = 0.9;
constexpr int most_rounds_of_doubt = 6;

constexpr int no_level = -1;  // level of rounds that repeat unsettled subjects, whatever their own

class Session {
 public:
  Session(Device& device, const std::vector<Planned>& plan, SampleJournal& journal, const SessionOptions& options)
      : device_(device), plan_(plan), journal_(journal), options_(options), medians_(plan.size()) {
    for (std::size_t index = 0; index < plan.size(); ++index) {
      index_of_.emplace(subject_text(plan[index].subject), index);
    }
    for (const Measurement& measurement : journal.measurements()) {
      const auto found = index_of_.find(subject_text(measurement.subject));
      if (found != index_of_.end()) medians_[found->second].emplace(measurement.round, measurement.timing.median_s);
    }
  }

  SessionResult run() {
    std::vector<std::pair<std::size_t, int>> missing;
    for (const auto& [index, round] : order_of(plan_, options_.rounds, options_.seed)) {
      if (medians_[index].contains(round)) {
        ++done_;
      } else {
        missing.emplace_back(index, round);
      }
    }
    const std::size_t regular = done_ + missing.size();
    const bool complete = measure_all(missing);
    result_.left_out = regular - done_;
    if (complete) {
      deadline_s_ = settled_share * options_.time_limit_s;
      for (int round = options_.rounds; round < options_.most_rounds; ++round) {
        if (!repeat_unsettled(round)) break;
      }
      deadline_s_ = options_.time_limit_s;
      for (int round = 0; round < most_rounds_of_doubt && !result_.stopped; ++round) {
        if (!repeat_doubtful(options_.most_rounds + round)) break;
      }
    }
    result_.unsettled = disagreed();
    return std::move(result_);
  }

 private:
  [[nodiscard]] double elapsed_s() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  [[nodiscard]] bool out_of_time() const { return deadline_s_ > 0 && elapsed_s() >= deadline_s_; }

  void report(const Planned& planned) const {
    const double elapsed = elapsed_s();
    const double speed = expected_done_s_ > 0 ? elapsed / expected_done_s_ : 1;
    Progress progress{.done = done_, .total = total_, .left_s = speed * expected_left_s_, .subject = &planned.subject};
    // There are as many rounds as there is time for.
    if (options_.least_rounds > options_.rounds && options_.time_limit_s > 0 && measured_ > 0) {
      progress.left_s = std::max(0.0, options_.time_limit_s - elapsed);
      progress.total = done_ + static_cast<std::size_t>(static_cast<double>(measured_) / elapsed * progress.left_s);
    }
    options_.report(progress);
  }

  /// False if time ran out or the session was stopped before all were measured.
  bool measure_all(const std::vector<std::pair<std::size_t, int>>& measurements) {
    total_ = done_ + measurements.size();
    expected_left_s_ = 0;
    for (const auto& [index, round] : measurements) expected_left_s_ += plan_[index].expected_s;
    std::deque<std::pair<std::size_t, int>> queue(measurements.begin(), measurements.end());
    std::set<std::pair<std::size_t, int>> postponed;
    std::size_t put_off = 0;  // postponed in succession
    int pauses = 0;
    while (!queue.empty()) {
      const auto [index, round] = queue.front();
      const bool cannot_do_without = plan_[index].essential && round == 0;
      if (out_of_time() && !cannot_do_without) return false;
      if (options_.stop()) return stopped();
      queue.pop_front();
      const Outcome outcome = measure(index, round);
      if (outcome == Outcome::stopped) return stopped();
      if (outcome == Outcome::done) {
        put_off = 0;
        if (cannot_do_without && out_of_time()) result_.beyond_limit_s = elapsed_s() - options_.time_limit_s;
        continue;
      }
      if (postponed.emplace(index, round).second) ++result_.postponed;
      queue.emplace_back(index, round);
      if (++put_off < queue.size()) continue;
      if (++pauses > most_pauses) return true;  // other rounds have settled it
      std::this_thread::sleep_for(pause);
      put_off = 0;
    }
    return true;
  }

  bool stopped() {
    result_.stopped = true;
    return false;
  }

  bool repeat_unsettled(int round) {
    std::vector<std::pair<std::size_t, int>> again;
    for (const std::size_t index : shuffled(unsettled(), options_.seed, no_level, round)) {
      if (!medians_[index].contains(round)) again.emplace_back(index, round);
    }
    return measure_all(again);
  }

  /// Also false if there was nothing to repeat.
  bool repeat_doubtful(int round) {
    std::vector<std::pair<std::size_t, int>> again;
    for (const Subject& subject : options_.doubtful(journal_)) {
      const auto found = index_of_.find(subject_text(subject));
      if (found != index_of_.end() && !medians_[found->second].contains(round))
        again.emplace_back(found->second, round);
    }
    return !again.empty() && measure_all(again);
  }

  [[nodiscard]] std::vector<std::size_t> unsettled() const {
    std::vector<std::size_t> found;
    for (std::size_t index = 0; index < plan_.size(); ++index) {
      const std::size_t rounds = medians_[index].size();
      const bool enough = static_cast<int>(rounds) >= options_.least_rounds;
      if (rounds >= 2 && !(enough && agreed(index))) found.push_back(index);
    }
    return found;
  }

  /// Whether at least two rounds of a subject agree.
  [[nodiscard]] bool agreed(std::size_t index) const {
    std::vector<double> medians;
    for (const auto& [round, median] : medians_[index]) medians.push_back(median);
    return uncertainty_of_quantile(medians, quantile_of_rounds(plan_[index].subject)) <= options_.agreement;
  }

  [[nodiscard]] std::size_t disagreed() const {
    std::size_t count = 0;
    for (std::size_t index = 0; index < plan_.size(); ++index) {
      if (medians_[index].size() >= 2 && !agreed(index)) ++count;
    }
    return count;
  }

  enum class Outcome { done, postponed, stopped };

  Outcome measure(std::size_t index, int round) {
    const Planned& planned = plan_[index];
    report(planned);
    if (!device_.is_as_found(planned.subject)) return Outcome::postponed;
    const Repeatable work =
        prepare(device_, options_.speed, planned.subject, options_.seed + static_cast<std::uint64_t>(round));
    const Repetition repetition = [&] {
      const std::unique_ptr<Neighbours> neighbours = device_.neighbours_at_work(planned.subject);
      return repeat(work, *options_.rule, options_.stop);
    }();
    result_.throttled += repetition.throttled;
    result_.impossible += repetition.impossible;
    if (!device_.is_as_found(planned.subject)) return Outcome::postponed;
    if (repetition.timing) {
      journal_.add({planned.subject, round, *repetition.timing, repetition.emptying_s});
      medians_[index].emplace(round, repetition.timing->median_s);
    } else if (!repetition.refusal.empty()) {
      result_.refusals.push_back(fmt::format("{}: {}", label_of(planned.subject), repetition.refusal));
    } else {
      return Outcome::stopped;
    }
    ++done_;
    ++measured_;
    expected_left_s_ -= planned.expected_s;
    expected_done_s_ += planned.expected_s;
    return Outcome::done;
  }

  Device& device_;
  const std::vector<Planned>& plan_;
  SampleJournal& journal_;
  const SessionOptions& options_;
  std::map<std::string, std::size_t> index_of_;  ///< Indices into the plan by subject text.
  std::vector<std::map<int, double>> medians_;   ///< By index in the plan and round, in seconds.
  Clock::time_point start_ = Clock::now();
  double deadline_s_ = options_.time_limit_s;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
  std::size_t measured_ = 0;  ///< Measurements of done_ that this session made.
  double expected_left_s_ = 0;
  double expected_done_s_ = 0;
  SessionResult result_;
};

}  // namespace

SessionResult run_session(Device& device, const std::vector<Planned>& plan, SampleJournal& journal,
                          const SessionOptions& options) {
  HDPSIM_CHECK(options.rule != nullptr, "a session without a stopping rule");
  return Session(device, plan, journal, options).run();
}

}  // namespace hdpsim::calib
