#pragma once

#include "sim/tasks/slice_data.h"
#include "sim/tasks/task_policies.h"

namespace hdpsim {

/// Gives every slice of a plan its devices (TaskSlice::placed), wave by wave. Lanes of a round have consecutive
/// devices, the largest lane first.
///
/// `local`, after Spindle (arXiv 2409.03365, section 3.4): in a wave a run that goes on with as many devices stays
/// where it is. Of the other slices those with most devices come first, among equal ones those that read most. A slice
/// is put into one island (the devices of a node), where that has as many free: the one that has most of what the slice
/// reads and of its parameters, the fullest among equal ones. In an island it gets the devices that have most of these,
/// and among equal ones those with most free memory; devices without room are taken only if there are no others. What
/// fits no island takes the islands with most of its data.
void place_slices(const SliceData& data, SlicePlacing placing, TaskPlan& plan);

}  // namespace hdpsim
