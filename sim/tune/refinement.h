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
  bool has_closed_form = false;  ///< Otherwise the times are not known.
  double bound_s = 0;            ///< The step, ...
  double sharing_s = 0;          ///< ... how long a mean rank waits in it for keys and values, ...
  double bubble_s = 0;           ///< ... and a mean stage for others.
};

/// Choices that are tried for candidates near the best alone, because they multiply a space in which most gain
/// nothing by them: how a pipeline runs (`mesh.schedule` with `mesh.virtual_stages`, `mesh.placement`), how groups
/// share a sequence (`mesh.cp_comm_type`, `mesh.cp_cut`) and what the pool shards (`mesh.zero`). A space that names one
/// of these keys has no such choices of it.
///
/// 1. What cannot run without a pipeline is tried with all states sharded.
/// 2. Of every plan, candidates whose step without the waiting for keys, and with half of that for other stages, would
///    be `near` the best closed form of the plan are tried with the other exchanges, in ascending order of that time
///    and at most `most_refined` (search_rules.h). Half is about what another schedule saves.
/// 3. The same with the other schedules, by the step with half of the waiting for other stages,
///    `within_reach_of_schedules` of the best;
/// 4. the best pipelines of each plan then with the other placements,
/// 5. the best of each plan with the other cuts of their exchange,
/// 6. and with the other levels of ZeRO.
/// Of candidates whose closed forms are equal, 2 and 3 take one.
class Refinement {
 public:
  /// `space` has the candidates without such choices.
  Refinement(const Study& study, const std::vector<Candidate>& space);

  /// The candidates that the search should look at next, to be appended to the space in this order; none: that was all.
  /// What it asks for depends only on what it is given. `known` tells of all candidates of the space.
  [[nodiscard]] std::vector<Candidate> next(const std::vector<Candidate>& space,
                                            const std::vector<BoundedCandidate>& known);

  /// The other schedules and placements of these candidates, as from next().
  [[nodiscard]] std::vector<Candidate> other_pipelines(const std::vector<Candidate>& space,
                                                       const std::vector<std::size_t>& candidates);

  /// The most candidates that next() still asks for, but for what cannot run without all states sharded.
  [[nodiscard]] double most_left() const;

  /// A text of all that next() depends on besides its arguments.
  [[nodiscard]] std::string identity() const;

 private:
  enum class Stage : std::uint8_t { memory, exchanges, schedules, placements, cuts, sharding, done };
  /// A schedule with its virtual stages.
  struct ScheduleChoice {
    std::string name;
    std::string virtual_stages;
    friend bool operator==(const ScheduleChoice&, const ScheduleChoice&) = default;
  };
  /// What is chosen of a candidate here; default values are the study's own.
  struct Choice {
    std::size_t schedule = 0;   ///< Index into schedules_.
    std::size_t placement = 0;  ///< Index into placements_.
    SharingChoice sharing;
    std::int64_t zero = 0;
    friend bool operator==(const Choice&, const Choice&) = default;
  };
  /// What a candidate of the space is made of.
  struct Origin {
    std::size_t base = 0;  ///< Index of the candidate without such choices.
    Choice choice;
  };
  using Known = std::vector<BoundedCandidate>;
  using Numbers = std::vector<std::size_t>;

  [[nodiscard]] Numbers of_plan(const std::string& plan, const Known& known) const;
  [[nodiscard]] Numbers best_of(Numbers candidates, std::size_t count, const Known& known) const;
  template <class Alone>
  [[nodiscard]] Numbers nearest(Numbers waiting, double last_s, const Alone& alone_s, std::set<double>& tried) const;
  void ask(std::size_t base, const Choice& choice);
  void ask_schedules(std::size_t candidate);
  void ask_placements(std::size_t candidate);
  void try_sharding_all(const std::vector<Candidate>& space, const Known& known);
  void try_schedules(const std::string& plan, const Known& known);
  void try_placements(const std::string& plan, const Known& known);
  void try_exchanges(const std::string& plan, const Known& known);
  void try_cuts(const std::string& plan, const Known& known);
  void try_levels(const std::string& plan, const Known& known);
  [[nodiscard]] std::vector<Candidate> asked_of(const std::vector<Candidate>& space);

  Choice own_;
  std::vector<ScheduleChoice> schedules_;  // the study's first, which is alone where the space names them
  std::vector<std::string> placements_;    // the same
  std::vector<SharingChoice> sharings_;    // none: the space names them
  std::int64_t levels_ = 0;                // of ZeRO; 0: the space names them
  std::set<std::string> plans_;
  std::vector<std::string> plan_of_;  // by candidate without such choices
  std::vector<bool> has_pipeline_;    // the same
  Stage stage_ = Stage::memory;
  std::vector<Origin> origins_;  // by candidate of the space
  std::vector<Origin> asked_;
  std::set<std::tuple<std::size_t, std::size_t, std::size_t, KeyExchange, std::size_t, std::int64_t>> seen_;
  std::map<std::string, std::set<double>> scheduled_;  // times of candidates whose schedules were tried, by plan
  std::map<std::string, std::set<double>> refined_;    // the same of exchanges
};

}  // namespace hdpsim
