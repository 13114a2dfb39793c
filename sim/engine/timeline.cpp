#include "sim/engine/timeline.h"

#include <numeric>

namespace hdpsim {

std::string_view activity_name(Activity activity) {
  constexpr std::array<std::string_view, activity_count> names = {
      "attention",  "linear",    "cp_comm",   "tp_comm",   "offload_stall", "bubble",
      "group_wait", "grad_sync", "optimizer", "data_wait", "overhead"};
  return names.at(index_of(activity));
}

PassId pass_of(const InstructionRecord& record, const Pipeline& pipeline) {
  return pipeline.id_of(record.micro_batch, record.chunk, record.kind);
}

Activity activity_of(Stream stream) {
  if (stream == Stream::comm) return Activity::cp_comm;
  return stream == Stream::pool ? Activity::grad_sync : Activity::offload_stall;
}

Duration Breakdown::total() const {
  return std::accumulate(times_.begin(), times_.end(), Duration{});
}

Breakdown& Breakdown::operator+=(const Breakdown& other) {
  for (std::size_t i = 0; i < activity_count; ++i) times_[i] += other.times_[i];
  return *this;
}

Breakdown Breakdown::operator-(const Breakdown& other) const {
  Breakdown result;
  for (std::size_t i = 0; i < activity_count; ++i) result.times_[i] = times_[i] - other.times_[i];
  return result;
}

Breakdown Breakdown::repeated(std::int64_t times) const {
  Breakdown result;
  for (std::size_t i = 0; i < activity_count; ++i) result.times_[i] = times_[i] * times;
  return result;
}

Breakdown Timeline::mean() const {
  Breakdown mean;
  if (ranks.empty()) return mean;
  for (const Activity activity : all_activities) {
    Int128 sum = 0;
    for (const Breakdown& rank : ranks) sum += rank[activity].picoseconds();
    mean[activity] = Duration::picoseconds(static_cast<std::int64_t>(sum / static_cast<std::int64_t>(ranks.size())));
  }
  // The divisions lost less than one picosecond per activity; it matters least if waiting takes up the sum.
  mean[Activity::group_wait] += step_time - mean.total();
  return mean;
}

Duration Timeline::busy(std::size_t rank) const {
  const Breakdown& times = ranks.at(rank);
  return step_time - times[Activity::group_wait] - times[Activity::bubble];
}

}  // namespace hdpsim
