#include "kernels/exec/impl/gather.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <type_traits>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

// ---- One rank's log as bytes

template <class T>
void append(std::vector<std::byte>& bytes, const T* values, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* const first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

template <class T>
void append(std::vector<std::byte>& bytes, const std::vector<T>& values) {
  const std::uint64_t count = values.size();
  append(bytes, &count, 1);
  append(bytes, values.data(), values.size());
}

std::vector<std::byte> packed(const RankLog& log) {
  std::vector<std::byte> bytes;
  append(bytes, log.records);
  append(bytes, log.waits);
  append(bytes, &log.booked, 1);
  append(bytes, &log.processor, 1);
  append(bytes, &log.end, 1);
  return bytes;
}

class Unpacker {
 public:
  explicit Unpacker(const std::vector<std::byte>& bytes) : next_(bytes.data()) {}
  template <class T>
  void read(T* values, std::size_t count) {
    if (count == 0) return;
    std::memcpy(static_cast<void*>(values), next_, count * sizeof(T));
    next_ += count * sizeof(T);
  }
  template <class T>
  void read(std::vector<T>& values) {
    std::uint64_t count = 0;
    read(&count, 1);
    values.resize(count);
    read(values.data(), count);
  }

 private:
  const std::byte* next_;
};

RankLog unpacked(const std::vector<std::byte>& bytes) {
  RankLog log;
  Unpacker unpacker(bytes);
  unpacker.read(log.records);
  unpacker.read(log.waits);
  unpacker.read(&log.booked, 1);
  unpacker.read(&log.processor, 1);
  unpacker.read(&log.end, 1);
  return log;
}

// ---- All ranks' logs as a timeline

class Assembler {
 public:
  Assembler(const Program& program, const std::vector<RankLog>& logs)
      : program_(program), plan_(program.plan()), pipeline_(program.pipeline()), logs_(logs) {}

  Timeline run() {
    for (const RankLog& log : logs_) timeline_.step_time = std::max(timeline_.step_time, log.end.since_start());
    note_exchanges();
    note_neighbours();
    note_intervals();
    for (const RankLog& log : logs_) {
      timeline_.ranks.push_back(breakdown(log));
      timeline_.instructions.insert(timeline_.instructions.end(), log.records.begin(), log.records.end());
    }
    return std::move(timeline_);
  }

 private:
  /// The key: rank, pass, block, iteration, instruction.
  using Key = std::tuple<HdpRank, PassId, std::uint32_t, std::uint32_t, std::uint32_t>;

  void note_exchanges() {
    for (const RankLog& log : logs_) {
      for (const InstructionRecord& record : log.records) {
        if (record.opcode == Opcode::exchange) posted_[key(record.rank, record)] = record.begin;
      }
      // A rank comes to a collective when it has packed what it sends.
      for (const ExchangeWait& wait : log.waits) {
        const InstructionRecord& record = log.records[wait.record];
        if (record.opcode == Opcode::share) posted_[key(record.rank, record)] = wait.begin;
      }
    }
  }

  [[nodiscard]] Key key(HdpRank rank, const InstructionRecord& record) const {
    return {rank, pass_of(record, pipeline_), record.block, record.iteration, record.instruction};
  }

  void note_neighbours() {
    for (std::size_t id = 0; id < plan_.micro_batches.size(); ++id) {
      const std::vector<HdpRank>& group = plan_.micro_batches[id].group;
      const GroupSharing sharing = program_.sharing(plan_.micro_batches[id]);
      const auto party = static_cast<std::size_t>(sharing.party());
      for (std::size_t i = 0; i < group.size(); ++i) {
        const auto first = group.begin() + static_cast<std::ptrdiff_t>(i / party * party);
        neighbours_[{MicroBatchId(id), group[i]}] = {
            .before = group[sharing.before(i)],
            .party = {first, first + static_cast<std::ptrdiff_t>(party)},
        };
      }
    }
  }

  void note_intervals() {
    const MicroBatchInterval never{Instant::at(timeline_.step_time), Instant{}};
    timeline_.micro_batches.assign(plan_.micro_batches.size(), never);
    if (!pipeline_.has_whole_passes()) timeline_.passes.assign(pipeline_.passes(), never);
    for (const RankLog& log : logs_) {
      for (const InstructionRecord& record : log.records) {
        extend(timeline_.micro_batches[record.micro_batch.index()], record);
        if (!pipeline_.has_whole_passes()) extend(timeline_.passes[pass_of(record, pipeline_).index()], record);
      }
    }
  }

  static void extend(MicroBatchInterval& interval, const InstructionRecord& record) {
    interval.begin = std::min(interval.begin, record.begin);
    interval.end = std::max(interval.end, record.end);
  }

  Breakdown breakdown(const RankLog& log) const {
    Breakdown times = log.booked;
    for (const ExchangeWait& wait : log.waits) {
      const Instant posted = posted_by_peers(log.records[wait.record]);
      const Duration for_peer = std::clamp(posted, wait.begin, wait.end) - wait.begin;
      times[Activity::group_wait] += for_peer;
      times[Activity::cp_comm] += (wait.end - wait.begin) - for_peer;
    }
    const Duration unbooked = log.end.since_start() - times.total();
    HDPSIM_CHECK(unbooked >= Duration{}, "a rank has booked {} ps more than passed", -unbooked.picoseconds());
    times[Activity::overhead] += unbooked;
    const Activity at_the_end = pipeline_.stages() > 1 ? Activity::bubble : Activity::group_wait;
    times[at_the_end] += timeline_.step_time - log.end.since_start();
    return times;
  }

  // When the rank before in the ring, or the last of those that run a collective, was there.
  Instant posted_by_peers(const InstructionRecord& record) const {
    const Neighbours& neighbours = neighbours_.at({record.micro_batch, record.rank});
    if (record.opcode == Opcode::exchange) return posted_.at(key(neighbours.before, record));
    Instant last;
    for (const HdpRank peer : neighbours.party) last = std::max(last, posted_.at(key(peer, record)));
    return last;
  }

  struct Neighbours {
    HdpRank before;              ///< Of the ring.
    std::vector<HdpRank> party;  ///< The ranks that run the group's collectives together.
  };

  const Program& program_;
  const Plan& plan_;
  const Pipeline& pipeline_;
  const std::vector<RankLog>& logs_;
  Timeline timeline_;
  std::map<Key, Instant> posted_;
  std::map<std::pair<MicroBatchId, HdpRank>, Neighbours> neighbours_;
};

std::vector<RankLog> received(Transport& transport, const RankLog& own, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::vector<std::byte>> bytes(sizes.size());
  std::vector<Receive> receives;
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) {
    bytes[rank].resize(sizes[rank]);
    receives.push_back({static_cast<int>(rank), bytes[rank].data(), bytes[rank].size()});
  }
  transport.wait(transport.start({}, receives));
  std::vector<RankLog> logs = {own};
  for (std::size_t rank = 1; rank < sizes.size(); ++rank) logs.push_back(unpacked(bytes[rank]));
  return logs;
}

}  // namespace

Timeline assemble(const Program& program, const std::vector<RankLog>& logs) {
  return Assembler(program, logs).run();
}

// Logs are sent from host memory, as the transports of CPUs require.
std::vector<RankLog> gather_logs(Transport& transport, const RankLog& log) {
  const std::vector<std::byte> bytes = packed(log);
  const std::uint64_t size = bytes.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(transport.size()));
  transport.all_gather(&size, sizes.data(), sizeof(size));
  if (transport.rank() == 0) return received(transport, log, sizes);
  const Send send{0, bytes.data(), bytes.size()};
  transport.wait(transport.start({&send, 1}, {}));
  return {};
}

}  // namespace hdpsim::kernels::exec
