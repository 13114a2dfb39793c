#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/study.h"

namespace hdpsim {

inline constexpr char tokens_subject[] = "data.tokens_per_step";
inline constexpr std::int64_t tokens_times = 4;  ///< By which the change of that subject multiplies tokens.

/// A change that the user of a study could make to it. Whether a study can be changed so, only its reader tells.
struct StudyChange {
  std::string subject;                   ///< What is chosen anew: changes of one subject exclude each other.
  std::vector<std::string> assignments;  ///< As after --set: {"mesh.tp=4"}.
  std::string remark{};                  ///< What they amount to, where keys do not say it: "without node 1".
};

/// The study of one point of a sweep, which compares its plans with nothing.
[[nodiscard]] Value study_of_point(const Study& study, std::size_t point);
/// The same with one of its plans alone.
[[nodiscard]] Value study_of_run(const Study& study, std::size_t point, std::size_t plan);

/// What is worth trying for the study of one run, which `spec` is read from: a framework's preset, what is offloaded,
/// recomputed and sharded, the mesh and its schedule, how groups share sequences, capacity and tokens a step, and what
/// is broken taken out of service. `tokens_held` are what a plan leaves on a rank, if that is more than the capacity.
/// At most about 45, of which many may be refused.
[[nodiscard]] std::vector<StudyChange> possible_changes(const Value& study, const PointSpec& spec,
                                                        const Catalog& catalog, std::int64_t tokens_held = 0);

/// What makes the plan of a study of one run in a small part of the time, and a little longer: for trying many changes,
/// whose plans are longer by about as much. Empty if its policy knows no quicker search, or if options of it are stated
/// that may not go with that.
[[nodiscard]] std::optional<StudyChange> quicker_search(const Value& study);

/// The changes with which a point has room whose `capacity: auto` finds none, the one with the most first: "mesh.tp=8
/// (12Ki tokens of a rank), or ...". Each was read as the study would be.
[[nodiscard]] std::string changes_with_room(const Value& study, const PointSpec& spec, Catalog& catalog);

/// The study with all of these changes, as `--set` would make them. Empty if its reader refuses it.
[[nodiscard]] std::optional<Study> changed_study(Value study, const std::vector<StudyChange>& changes,
                                                 Catalog& catalog);

}  // namespace hdpsim
