#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hdpsim {

/// Units of equal size, such as the pipelines of a job, that are divided among the free nodes of pods.
struct DivisionTask {
  std::int64_t units = 1;
  std::int64_t nodes = 1;          ///< Of each unit.
  std::vector<std::int64_t> free;  ///< Free nodes of each pod.
  double alpha = 0;                ///< The weight of the number of pods, in [0, 1]: see UnitDivision::cost.
};

/// How many nodes of each pod each unit has.
struct UnitDivision {
  using Share = std::pair<std::size_t, std::int64_t>;  ///< A pod, and the nodes of it.
  /// The shares of every unit, by ascending pod. Units of the same pods follow each other.
  std::vector<std::vector<Share>> units;
  std::int64_t pods = 0;    ///< Pods of which any unit has nodes.
  std::int64_t spread = 0;  ///< The most pods of one unit.
  /// alpha x pods + (1 - alpha) x spread: the objective of Arnold (arXiv 2509.15940, equations 4 to 10), with its
  /// parts of units rounded to whole nodes.
  double cost = 0;
  double least_cost = 0;  ///< No division costs less; below `cost` only where the search was given up.
};

/// The division of least cost; among those, one whose units are spread least. Needs as many free nodes as the units
/// have (checked).
///
/// The search is one over counts, because units are alike. Of the pods a division uses, the largest can be taken; and
/// among m pods whose free nodes suffice for u units, u units of at most T pods each can be divided if and only if the
/// pods fall into groups of u_g units and at most u_g (T - 1) + 1 pods, each with nodes for its units: fewer units
/// cannot connect more pods, and conversely one unit after another can use up T - 1 pods and a part of another one. So
/// one group suffices, and the answer is immediate, unless the pods are more than the units, small and many. Then
/// groups are searched for, in at most `most_tries` tries.
[[nodiscard]] UnitDivision divide_units(const DivisionTask& task, std::int64_t most_tries = 50'000);

}  // namespace hdpsim
