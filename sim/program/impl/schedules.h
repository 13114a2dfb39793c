#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "sim/program/schedule.h"
#include "sim/program/streamed_schedule.h"

namespace hdpsim {

// Each is defined in the file of its name in this folder.
std::unique_ptr<const Schedule> make_one_f_one_b(std::int64_t stages, std::int64_t virtual_stages);
std::unique_ptr<const Schedule> make_gpipe(std::int64_t stages, std::int64_t virtual_stages);
std::unique_ptr<const Schedule> make_interleaved(std::int64_t stages, std::int64_t virtual_stages);
/// Defined in interleaved.cpp.
std::unique_ptr<const Schedule> make_combined_1f1b(std::int64_t stages, std::int64_t virtual_stages);
std::unique_ptr<const Schedule> make_zb_h1(std::int64_t stages, std::int64_t virtual_stages);
std::unique_ptr<const Schedule> make_zb_v(std::int64_t stages, std::int64_t virtual_stages);
std::unique_ptr<const Schedule> make_dualpipe(std::int64_t stages, std::int64_t virtual_stages);
/// The schedule of every pipeline of one stage, whatever its study says.
std::unique_ptr<const Schedule> make_one_stage();

/// Kinds of passes of a schedule with a split backward.
inline constexpr std::array split_backward = {PassKind::forward, PassKind::input_gradient, PassKind::weight_gradient};

/// All schedules. The first one is the default; it runs chunks in order, on one stage, too.
inline constexpr std::array schedule_table = {
    ScheduleEntry{.name = "1f1b", .make = make_one_f_one_b, .runs_chunks_in_order = true},
    // It holds the activations of a whole step, so that `tune` only tries it on request.
    ScheduleEntry{.name = "gpipe", .make = make_gpipe, .tuned_with = 0},
    ScheduleEntry{.name = "interleaved", .make = make_interleaved, .takes_virtual_stages = true, .tuned_with = 2},
    ScheduleEntry{.name = "zb-h1", .make = make_zb_h1},
    ScheduleEntry{.name = "zb-v", .make = make_zb_v},
    ScheduleEntry{.name = "dualpipe", .make = make_dualpipe, .stages_multiple = 2},
    // Only experts gain by it, so that `tune` only tries it on request.
    ScheduleEntry{.name = "combined-1f1b", .make = make_combined_1f1b, .takes_virtual_stages = true, .tuned_with = 0},
    // Only their even stand-in is a Schedule.
    ScheduleEntry{.name = streamed_schedule, .make = make_one_f_one_b, .tuned_with = 0},
    ScheduleEntry{.name = drained_streamed_schedule, .make = make_one_f_one_b, .tuned_with = 0},
};

}  // namespace hdpsim
