// A loop whose later iterations repeat an earlier one, only later, is not run to its end. It takes as long, and waits
// for the same, as if it were. Seeded random loops.

#include <algorithm>
#include <array>

#include "sim/engine/impl/loop_schedule.h"
#include "sim/engine/impl/waiting.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

constexpr auto compute = static_cast<std::size_t>(Stream::compute);
constexpr std::array<Opcode, stream_count> opcodes = {Opcode::dense, Opcode::share, Opcode::offload, Opcode::prefetch,
                                                      Opcode::reduce};

std::uint32_t below(RandomStream& random, std::uint64_t bound) {
  return static_cast<std::uint32_t>(random.below(bound));
}

Instruction random_instruction(Stream stream, RandomStream& random) {
  Instruction instruction;
  instruction.opcode = opcodes[static_cast<std::size_t>(stream)];
  instruction.stream = stream;
  instruction.first_iteration = random.below(4) == 0 ? below(random, 5) : 0;
  instruction.last_skipped = random.below(4) == 0 ? below(random, 5) : 0;
  return instruction;
}

// The loop copies to the host, so that its iterations are not independent. Times are small, so that instructions often
// end together.
PricedProgram random_loop(RandomStream& random) {
  PricedProgram priced;
  Block& block = priced.program.blocks.emplace_back();
  block.iterations = 1 + below(random, 60);
  std::vector<Duration>& times = priced.times.emplace_back();
  const std::uint32_t size = 2 + below(random, 9);
  const std::uint32_t farthest = below(random, 3);
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto stream = i == 0 ? Stream::d2h : static_cast<Stream>(random.below(stream_count));
    Instruction& instruction = block.body.emplace_back(random_instruction(stream, random));
    for (std::uint64_t d = random.below(Instruction::most_dependencies + 1); d > 0; --d) {
      const std::uint32_t back = below(random, farthest + 1);
      if (back > 0) instruction.after(below(random, size), back);
      if (back == 0 && i > 0) instruction.after(below(random, i));
    }
    times.push_back(Duration::picoseconds(below(random, 8)));
  }
  return priced;
}

// All iterations one after another.
LoopTime run_to_its_end(const PricedProgram& priced) {
  const Block& block = priced.program.blocks.front();
  std::vector<std::vector<Duration>> ends;  // by iteration and instruction
  std::array<Duration, stream_count> free{};
  LoopTime time;
  for (std::int64_t iteration = 0; iteration < block.iterations; ++iteration) {
    ends.emplace_back(block.body.size());
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      const Instruction& instruction = block.body[i];
      if (!instruction.active(iteration, block.iterations)) continue;
      Duration& stream_free = free[static_cast<std::size_t>(instruction.stream)];
      const auto end_of = [&](const Dependency& needed) {
        const std::int64_t of = iteration - needed.iterations_back;
        return of < 0 ? Duration{} : ends[static_cast<std::size_t>(of)][needed.instruction];
      };
      const Start<Duration> start = start_of(instruction, block, stream_free, end_of);
      const Duration own = priced.times.front()[i];
      if (instruction.stream == Stream::compute) {
        time.breakdown[start.waited_for] += start.at - stream_free;
        time.breakdown[activity_of(instruction.opcode)] += own;
      }
      stream_free = ends.back()[i] = start.at + own;
    }
  }
  const Start<Duration> end = end_of_block(free);
  time.breakdown[end.waited_for] += end.at - free[compute];
  time.total = end.at;
  return time;
}

}  // namespace

TEST_CASE("a loop takes as long as its iterations one after another", "[property][loops]") {
  tests::for_seeds("loops", 2000, [](RandomStream& random) {
    const PricedProgram priced = random_loop(random);
    const BodyRange body{0, priced.program.blocks.front().body.size()};
    const LoopTime time = loop_time(priced, 0, body, 1, [](Bytes) { return Duration{}; });
    const LoopTime whole = run_to_its_end(priced);
    REQUIRE(time.total == whole.total);
    for (const Activity activity : all_activities) REQUIRE(time.breakdown[activity] == whole.breakdown[activity]);
  });
}

}  // namespace hdpsim
