#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/cost/coverage.h"
#include "sim/engine/priced_program.h"

namespace hdpsim {

/// The priced programs of passes of known classes (PassClass), which the steps of a job share: lengths differ from step
/// to step, classes hardly. A class is lowered and priced once; a pass of it adds its attention. Passes that differ in
/// tokens share their instructions, too, so that a class costs the memory of its numbers, about 1 KB. Keeps those that
/// were asked for last, some thousands. Not for several threads at once.
class PassForms {
 public:
  /// Begins a step of this context on this machine: classes of another one are forgotten. What a machine says of prices
  /// must not change between steps.
  void begin_step(const std::shared_ptr<const LoweringContext>& context, const Machine& machine);
  /// As price() of a pass of this class, but that dense and memory-bound work is that of a pass with other tokens: only
  /// their times are those of this pass. The next call changes the result unless somebody still holds it. O(spans log
  /// spans + instructions) for a known class, without allocation.
  [[nodiscard]] std::shared_ptr<const PricedProgram> price(const PassClass& of, const Program& program, PassId id,
                                                           const std::vector<Hop>& hops);

 private:
  // What depends on the tokens of a class.
  struct Numbers {
    std::vector<Duration> times;  // of all blocks, before price_pass()
    std::vector<Bytes> bytes;
    std::vector<Bytes> collectives;
    std::vector<Bytes> shares;
    EvidenceTimes evidence;
    PassTraffic traffic;
    Coverage asked;
  };
  using KnownNumbers = std::unordered_map<PassClass, Numbers, PassClassHash>;
  using KnownPrograms = std::unordered_map<PassClass, std::shared_ptr<PricedProgram>, PassClassHash>;
  static constexpr std::size_t generation = 4096;

  [[nodiscard]] const Numbers& numbers(const PassClass& of, const Program& program, PassId id);
  [[nodiscard]] Numbers lowered(const PassClass& of, const Program& program, PassId id);
  static void take(const Numbers& numbers, PricedProgram& priced);

  std::shared_ptr<const LoweringContext> context_;
  const Machine* machine_ = nullptr;
  KnownPrograms programs_;  // by class of any tokens
  KnownNumbers newest_;
  KnownNumbers older_;  // the generation before: what is not asked for again is forgotten with it
};

}  // namespace hdpsim
