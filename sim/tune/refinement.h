#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/study/sharing_choice.h"
#include "sim/study/study.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

/// What a search knows of a candidate from the closed form of its probe step.
struct BoundedCandidate {
  bool can_run = false;
  double bound_s = 0;    ///< The step, ...
  double sharing_s = 0;  ///< ... and how long a mean rank waits in it for keys and values.
};

/// Choices that are tried beside candidates near the best alone, because they multiply a space in which most gain
/// nothing by them: how groups share a sequence (`mesh.cp_comm_type`, `mesh.cp_cut`) and what the pool shards
/// (`mesh.zero`). A space that names one of these keys has no such choices of it.
///
/// 1. What cannot run without a pipeline is tried with all states sharded.
/// 2. Of every plan, candidates whose step without the waiting for keys would be at most a tenth above the best closed
///    form of the plan are tried with the other exchanges, in ascending order of that time and at most `most_refined`;
/// 3. the best of each plan then with the other cuts of their exchange,
/// 4. and with the other levels of ZeRO.
class Refinement {
 public:
  /// `space` has the candidates without such choices.
  Refinement(const Study& study, const std::vector<Candidate>& space);

  /// The candidates that the search should look at next, to be appended to the space in this order; none: that was all.
  /// What it asks for depends only on what it is given. `known` tells of all candidates of the space.
  [[nodiscard]] std::vector<Candidate> next(const std::vector<Candidate>& space,
                                            const std::vector<BoundedCandidate>& known);

  /// A text of all that next() depends on besides its arguments.
  [[nodiscard]] std::string identity() const;

 private:
  enum class Stage : std::uint8_t { memory, exchanges, cuts, sharding, done };
  /// What a candidate of the space is made of.
  struct Origin {
    std::size_t base = 0;  ///< Index of the candidate without such choices.
    SharingChoice sharing;
    std::int64_t zero = 0;
    bool is_refined = false;  ///< Whether its exchanges have been tried.
  };
  using Known = std::vector<BoundedCandidate>;

  [[nodiscard]] std::vector<std::size_t> of_plan(const std::string& plan, const Known& known) const;
  [[nodiscard]] std::vector<std::size_t> best_of(const std::string& plan, const Known& known) const;
  void ask(std::size_t base, const SharingChoice& sharing, std::int64_t zero);
  void try_sharding_all(const std::vector<Candidate>& space, const Known& known);
  void try_exchanges(const std::string& plan, const Known& known);
  void try_cuts(const std::string& plan, const Known& known);
  void try_levels(const std::string& plan, const Known& known);
  [[nodiscard]] std::vector<Candidate> asked_of(const std::vector<Candidate>& space);

  SharingChoice own_;
  std::int64_t own_zero_ = 0;
  std::vector<SharingChoice> sharings_;  // none: the space names them
  std::int64_t levels_ = 0;              // of ZeRO; 0: the space names them
  std::set<std::string> plans_;
  std::vector<std::string> plan_of_;  // by candidate without such choices
  Stage stage_ = Stage::memory;
  std::vector<Origin> origins_;  // by candidate of the space
  std::vector<Origin> asked_;
  std::set<std::tuple<std::size_t, KeyExchange, std::size_t, std::int64_t>> seen_;
  std::map<std::string, std::size_t> refined_;  // candidates by plan
};

}  // namespace hdpsim
