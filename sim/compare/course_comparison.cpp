#include "sim/compare/course_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/first_problems.h"

namespace hdpsim {
namespace {

/// A micro-batch's passes in one direction on one rank, added up.
struct SummedPass {
  double begin_s = 0;
  CourseSeconds seconds{};
};
using PassKey = std::pair<std::int64_t, bool>;  // micro-batch, forward

std::map<PassKey, SummedPass> passes_of(const RankCourse& rank) {
  std::map<PassKey, SummedPass> passes;
  for (const PassCourse& pass : rank.passes) {
    const auto [at, is_new] =
        passes.try_emplace({pass.micro_batch, pass.is_forward}, SummedPass{pass.begin_s, CourseSeconds{}});
    for (std::size_t i = 0; i < course_activities; ++i) at->second.seconds.at(i) += pass.seconds.at(i);
  }
  return passes;
}

std::string pass_text(const PassKey& key) {
  return fmt::format("micro-batch {} {}", key.first, key.second ? "forward" : "backward");
}

// What is left and below a picosecond is rounding.
void take_from(double& whole, double part) {
  constexpr double picosecond = 1e-12;
  whole -= part;
  if (std::abs(whole) < picosecond) whole = 0;
}

class CourseJoin {
 public:
  CourseJoin(const StepCourse& predicted, const StepCourse& measured, Diagnostics& diagnostics)
      : predicted_(predicted), measured_(measured), problems_(diagnostics) {}

  CourseComparison run() {
    result_.step = measured_.step;
    result_.knows_passes = predicted_.has_passes && measured_.has_passes;
    for (const RankCourse& rank : measured_.ranks) add(rank);
    problems_.finish({measured_.ranks.empty() ? "" : measured_.ranks.front().file, 0, 0}, "such differences");
    for (ComparedRank& rank : result_.ranks) add_to_mean(rank.seconds);
    micro_batches();
    note_missing_ranks();
    return std::move(result_);
  }

 private:
  void add(const RankCourse& measured) {
    const auto own = std::find_if(predicted_.ranks.begin(), predicted_.ranks.end(),
                                  [&](const RankCourse& rank) { return rank.rank == measured.rank; });
    if (own == predicted_.ranks.end()) {
      problems_.error(
          {measured.file, 0, 0},
          fmt::format("it is of rank {}, the plan has ranks 0 to {}", measured.rank, std::ssize(predicted_.ranks) - 1),
          help);
      return;
    }
    ComparedRank rank{.rank = measured.rank, .seconds = {}, .between_passes = {}};
    rank.seconds.add(own->seconds, measured.seconds);
    if (result_.knows_passes) {
      rank.between_passes = rank.seconds;
      passes(*own, measured, rank);
    }
    result_.ranks.push_back(rank);
  }

  void passes(const RankCourse& predicted, const RankCourse& measured, ComparedRank& rank) {
    const auto planned = passes_of(predicted);
    const auto seen = passes_of(measured);
    for (const auto& [key, pass] : seen) {
      if (planned.contains(key)) continue;
      problems_.error({measured.file, 0, 0},
                      fmt::format("rank {} ran {}, which the plan does not give it", rank.rank, pass_text(key)), help);
    }
    const std::size_t first = result_.passes.size();
    for (const auto& [key, pass] : planned) {
      const auto same = seen.find(key);
      if (same == seen.end()) {
        problems_.error({measured.file, 0, 0},
                        fmt::format("rank {} did not run {}, which the plan gives it", rank.rank, pass_text(key)),
                        help);
        continue;
      }
      ComparedPass compared{.rank = rank.rank,
                            .micro_batch = key.first,
                            .is_forward = key.second,
                            .begin_s = {pass.begin_s, same->second.begin_s},
                            .seconds = {}};
      compared.seconds.add(pass.seconds, same->second.seconds);
      for (std::size_t i = 0; i < course_activities; ++i) {
        take_from(rank.between_passes.activities.at(i).predicted, compared.seconds.activities.at(i).predicted);
        take_from(rank.between_passes.activities.at(i).measured, compared.seconds.activities.at(i).measured);
      }
      result_.passes.push_back(compared);
    }
    std::stable_sort(
        result_.passes.begin() + static_cast<std::ptrdiff_t>(first), result_.passes.end(),
        [](const ComparedPass& a, const ComparedPass& b) { return a.begin_s.predicted < b.begin_s.predicted; });
  }

  void add_to_mean(const CoursePair& rank) {
    const double share = 1 / static_cast<double>(result_.ranks.size());
    for (std::size_t i = 0; i < course_activities; ++i) {
      result_.mean.activities.at(i).predicted += share * rank.activities.at(i).predicted;
      result_.mean.activities.at(i).measured += share * rank.activities.at(i).measured;
    }
  }

  void micro_batches() {
    for (const MicroBatchCourse& measured : measured_.micro_batches) {
      const auto own =
          std::find_if(predicted_.micro_batches.begin(), predicted_.micro_batches.end(),
                       [&](const MicroBatchCourse& each) { return each.micro_batch == measured.micro_batch; });
      if (own == predicted_.micro_batches.end()) continue;  // reported with the passes, or with the timelines
      result_.micro_batches.push_back(
          {measured.micro_batch, {own->begin_s, measured.begin_s}, {own->end_s, measured.end_s}});
    }
  }

  void note_missing_ranks() {
    std::string missing;
    std::int64_t count = 0;
    constexpr std::int64_t shown = 8;
    for (const RankCourse& rank : predicted_.ranks) {
      const bool is_there = std::any_of(measured_.ranks.begin(), measured_.ranks.end(),
                                        [&](const RankCourse& other) { return other.rank == rank.rank; });
      if (is_there) continue;
      if (count++ < shown) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank.rank);
    }
    if (count == 0) return;
    result_.notes.push_back(fmt::format("{} of the {} ranks of the plan {} not measured: {}{}.", count,
                                        predicted_.ranks.size(), count == 1 ? "was" : "were", missing,
                                        count > shown ? ", ..." : ""));
  }

  static constexpr const char* help = "give the plan of this very step: batch.plan.json() as a file, --plan FILE";

  const StepCourse& predicted_;
  const StepCourse& measured_;
  FirstProblems problems_;
  CourseComparison result_;
};

}  // namespace

Pair CoursePair::total() const {
  Pair sum;
  for (const Pair& pair : activities) {
    sum.predicted += pair.predicted;
    sum.measured += pair.measured;
  }
  return sum;
}

Pair CoursePair::computed() const {
  const auto of = [&](CourseActivity activity) { return activities.at(static_cast<std::size_t>(activity)); };
  const Pair attention = of(CourseActivity::attention);
  const Pair others = of(CourseActivity::computing);
  return {attention.predicted + others.predicted, attention.measured + others.measured};
}

void CoursePair::add(const CourseSeconds& predicted, const CourseSeconds& measured) {
  for (std::size_t i = 0; i < course_activities; ++i) {
    activities.at(i).predicted += predicted.at(i);
    activities.at(i).measured += measured.at(i);
  }
}

CourseComparison compare_courses(const StepCourse& predicted, const StepCourse& measured, Diagnostics& diagnostics) {
  return CourseJoin(predicted, measured, diagnostics).run();
}

}  // namespace hdpsim
