#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hdpsim::fuzz {

/// What became of an input.
enum class Outcome {
  refused,   ///< Told what is wrong with it: InputError or MachineError.
  accepted,  ///< All figures that followed from it are sane.
  skipped,   ///< Right, but more work than one execution may be, by its own numbers.
};

/// An absurd figure. `kind` is the same for all inputs that show the same absurdity.
class Find : public std::logic_error {
 public:
  Find(std::string kind, const std::string& text) : std::logic_error(kind + ": " + text), kind_(std::move(kind)) {}
  [[nodiscard]] const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

// What one execution may compute, as a multiple of a piece of work that its process measures
// (tests/support/processor_pace.h).
inline constexpr double longest_reading = 50;      ///< Of a file.
inline constexpr double longest_simulation = 500;  ///< Of a small study, where mutations made it larger.

/// One kind of input that users hand in, and what is done with it.
struct Target {
  std::string_view name;                ///< Also the folder of its corpus.
  std::string_view extension;           ///< Of the files that it is given, and of its seeds.
  unsigned share;                       ///< Of an attack's executions, by how fast it is.
  double longest;                       ///< What one execution may compute, in the same multiples.
  std::vector<std::string_view> seeds;  ///< Folders and files of the sources, beside its corpus.
  /// What InputError and MachineError say is a refusal; every other exception is a find.
  Outcome (*run)(std::string_view input);
  /// One more seed, where what is attacked is written by the program itself.
  std::string (*own_seed)() = nullptr;
};

/// All of them.
[[nodiscard]] const std::vector<Target>& targets();
/// Null if there is none of that name.
[[nodiscard]] const Target* target_of(std::string_view name);
/// The inputs of a target that mutations begin with.
[[nodiscard]] std::vector<std::string> seeds_of(const Target& target);

/// Gives the input to the target, as a user's command would. `reason` gets why it is refused, unless it is null.
[[nodiscard]] Outcome execute(const Target& target, std::string_view input, std::string* reason = nullptr);

}  // namespace hdpsim::fuzz
