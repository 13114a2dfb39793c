#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/catalog.h"

namespace hdpsim {

/// What a user says in a word of a study that does not exist yet. The order of the first six is the order in which a
/// person is asked.
enum class NewStudyPart : std::uint8_t {
  cluster,
  gpus,
  model,
  lengths,
  context,
  tokens_per_step,
  steps,
  plans,
  profile,
};
inline constexpr int new_study_parts = 9;
inline constexpr int asked_parts = 6;

/// How a part is called, and what it is.
struct NewStudyPartText {
  std::string_view name;      ///< Of its option, without the dashes, and in messages: "tokens-per-step".
  std::string_view question;  ///< "Tokens of one optimizer step"
};
[[nodiscard]] const NewStudyPartText& text_of(NewStudyPart part);

/// A study in the making. It holds what its user has said of it, each part checked as soon as it is said; the rest it
/// chooses from that.
class NewStudy {
 public:
  explicit NewStudy(Catalog& catalog) : catalog_(catalog) {}

  /// Takes what the user says of a part: a name of names_of(), a path (relative to the working folder), a number, or
  /// whatever else the study's key may have, as YAML on one line: `{preset: h100-rail, node: {gpus: 4}}`. Plans are
  /// separated by commas. Problems are reported at the place in the answer, with suggestions, and nothing is taken.
  void answer(NewStudyPart part, const std::string& text, Diagnostics& diagnostics);
  /// What it chooses of a part of which the user has said nothing, in the words of an answer. It depends on the parts
  /// that have been answered. Empty for a profile if there is none of the cluster's device.
  [[nodiscard]] std::string choice_of(NewStudyPart part) const;
  /// The shipped things that an answer may name, sorted; empty for numbers.
  [[nodiscard]] std::vector<std::string> names_of(NewStudyPart part) const;

  /// What its user should know of what it has guessed, a sentence each; empty where it was said.
  [[nodiscard]] std::vector<std::string> guesses() const;

  /// The text of the study for a file of that name: all parts, each under the sentence by which its key is declared,
  /// and paths relative to the file's folder. Its mesh has the least tensor parallelism, or
  /// else the shortest pipeline, or else recomputation, with which a micro-batch of the usual capacity fits.
  /// InputError, with the problems of the mesh that has the most room and their places in that text, if none makes a
  /// study of it.
  [[nodiscard]] std::string text(const std::filesystem::path& file) const;

 private:
  void check(NewStudyPart part, const Value& value, Diagnostics& diagnostics);
  /// The answer, or what is chosen.
  [[nodiscard]] Value said(NewStudyPart part) const;
  [[nodiscard]] std::int64_t gpus() const;
  [[nodiscard]] std::vector<std::string> profiles_of_device() const;
  [[nodiscard]] Value study(const std::filesystem::path& file) const;  ///< Without its mesh.
  [[nodiscard]] std::map<std::string, std::string> remarks() const;

  Catalog& catalog_;
  std::vector<Value> answers_ = std::vector<Value>(new_study_parts);
};

}  // namespace hdpsim
