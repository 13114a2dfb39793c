#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/cost/coverage.h"
#include "sim/engine/priced_program.h"
#include "sim/engine/serial_pass.h"

namespace hdpsim {

/// The priced programs of passes of known classes (PassClass), which the steps of a job share: lengths differ from step
/// to step, classes hardly. A class that is kept is not lowered and priced again; a pass of it adds its attention and
/// its copies of activations. Passes that differ in tokens share their instructions, too, so that a class costs the
/// memory of its numbers, about 1 KB. Keeps those that were asked for last, some thousands. Not for several threads at
/// once.
class PassForms {
 public:
  /// Begins a step of this context on this machine: classes of another one are forgotten. What a machine says of prices
  /// must not change between steps.
  void begin_step(const std::shared_ptr<const LoweringContext>& context, const Machine& machine);
  /// As price() of a pass of this class, but that dense and memory-bound work may be that of a pass with other tokens:
  /// only their times are those of this pass. The next call changes the result unless somebody still holds it. A class
  /// is kept when it is asked for again: hardly two long sequences have as many tokens. O(spans log spans +
  /// instructions) for a known class, without allocation.
  [[nodiscard]] std::shared_ptr<const PricedProgram> price(const PassClass& of, const Program& program, PassId id,
                                                           const std::vector<Hop>& hops);
  /// What a pass of this class takes on a device of nominal speed; empty unless it is a SerialForm's. O(spans log
  /// spans) for a known class.
  [[nodiscard]] std::optional<SerialPass> serial(const PassClass& of, const Program& program, PassId id);

 private:
  using SharedProgram = std::shared_ptr<PricedProgram>;
  // What the tokens of a class decide in its program.
  struct Numbers {
    std::vector<Duration> times;  // of all blocks, before price_pass()
    std::vector<Bytes> bytes;
    std::vector<Bytes> collectives;
    std::vector<Bytes> shares;
    EvidenceTimes evidence;
  };
  struct Known {
    SharedProgram* program = nullptr;  // of passes of any tokens, whose address does not change
    std::optional<SerialForm> serial;  // if it has one
    std::unique_ptr<Numbers> numbers;  // empty if it is serial, unless price() asked for them
    PassTraffic traffic;
    Coverage asked;
    bool is_counted = false;  // `asked`, for a pass that has no price yet
  };
  using KnownClasses = std::unordered_map<PassClass, Known, PassClassHash>;
  using KnownPrograms = std::unordered_map<PassClass, SharedProgram, PassClassHash>;
  static constexpr std::size_t generation = 8192;
  static constexpr std::size_t remembered = 1U << 14U;  // hashes of classes

  // Null for an unknown class.
  [[nodiscard]] Known* find(const PassClass& of);
  [[nodiscard]] Known& lower(const PassClass& of, const Program& program, PassId id);
  // Whether price() was asked for an unknown class before, as far as remembered; it is from now on.
  [[nodiscard]] bool is_asked_again(const PassClass& of);
  // Counts what a pass of the class asks for.
  void count(Known& known) const;
  [[nodiscard]] PricedProgram lowered(const Program& program, PassId id, Known& known) const;
  [[nodiscard]] static std::unique_ptr<Numbers> numbers_of(const PricedProgram& priced);
  // The program of a class, which nobody else holds.
  [[nodiscard]] static PricedProgram& own(SharedProgram& program);
  static void take(const Numbers& numbers, PricedProgram& priced);

  std::shared_ptr<const LoweringContext> context_;
  const Machine* machine_ = nullptr;
  KnownPrograms programs_;                                                          // by class of any tokens
  std::vector<std::uint64_t> asked_once_ = std::vector<std::uint64_t>(remembered);  // by the end of the hash
  KnownClasses newest_;
  KnownClasses older_;  // the generation before: what is not asked for again is forgotten with it
};

}  // namespace hdpsim
