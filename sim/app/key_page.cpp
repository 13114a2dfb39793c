#include "sim/app/key_page.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "sim/analysis/glossary.h"
#include "sim/cluster/cluster_config.h"
#include "sim/decide/prices.h"
#include "sim/document/key_schema.h"
#include "sim/profile/profile_file.h"
#include "sim/tasks/task_file.h"
#include "sim/validate/validation_set.h"

namespace hdpsim::app {
namespace {

// The meaning of a missing key: "`8Ki`", "all"; empty if there is none.
std::string default_text(const KeyText& key) {
  if (key.notes.required) return "required";
  if (!key.notes.otherwise.empty()) return std::string(key.notes.otherwise);
  return key.fallback.empty() ? "" : fmt::format("`{}`", key.fallback);
}

std::string row(const StudyKey& each) {
  const KeyText& key = *each.key;
  const std::string more = key.notes.see.empty() ? "" : fmt::format(" ([more](REFERENCE.md#{}))", key.notes.see);
  const std::string off =
      key.notes.mechanism.empty() ? "" : fmt::format("; `--without {}` turns it off", key.notes.mechanism);
  const std::string fixed = key.notes.fixed.empty() ? "" : fmt::format("; {} only the default", key.notes.fixed);
  const std::string formerly =
      key.notes.formerly.empty() ? "" : fmt::format("; in older files `{}`", key.notes.formerly);
  return fmt::format("| `{}` | {} | {} | {}{}{}{}{} |\n", each.path, key.shape.text(), default_text(key), key.sentence,
                     fixed, off, formerly, more);
}

std::vector<KeyText> study_keys() {
  std::vector<KeyText> keys;
  for (const StudySection& section : study_sections()) keys.push_back(section.text);
  return keys;
}

/// What the reference page and the schema of a file say besides its keys.
struct Reference {
  std::string_view name;
  std::string_view title;
  std::string_view about;
  std::string_view schema;
  std::vector<KeyText> (*keys)();
};

const Reference& reference_of(KeyedFile file) {
  static const std::array<Reference, 6> all = {{
      {"study", "Keys of a study",
       "Written by `hdpsim keys --format markdown` from the declarations that the reader uses; "
       "[README.md](README.md) says more\nof some. Below `plans` stand the policies with their options, at the end the "
       "[activities](#activities) and the kinds of\n[evidence](#evidence) that results name.",
       "A study of hdpsim", study_keys},
      {"cluster", "Keys of a cluster",
       "Written by `hdpsim keys --of cluster --format markdown` from the declarations that the reader uses; "
       "[README.md](README.md)\nsays more of some. `*` stands for a name that the file chooses. What is required is "
       "required of a cluster that is\nwritten out: a preset states it.",
       "A cluster of hdpsim", [] { return cluster_keys(); }},
      {"validation", "Keys of a validation set",
       "Written by `hdpsim keys --of validation --format markdown` from the declarations that the reader uses.",
       "A validation set of hdpsim", [] { return validation_keys(); }},
      {"profile", "Fields of a device profile",
       "Written by `hdpsim keys --of profile --format markdown` from the list by which profiles are read and written.",
       "A device profile of hdpsim", profile_keys},
      {"prices", "Keys of a file of prices",
       "Written by `hdpsim keys --of prices --format markdown` from the declarations that the reader uses.",
       "Prices for hdpsim decide", [] { return price_keys(); }},
      {"tasks", "Keys of a file of tasks",
       "Written by `hdpsim keys --of tasks --format markdown` from the declarations that the reader uses. `*` stands "
       "for a "
       "name that\nthe file chooses.",
       "Tasks for hdpsim tasks", [] { return task_file_keys(); }},
  }};
  return all.at(static_cast<std::size_t>(file));
}

// A table of names and what they mean.
template <class Names, class NameOf, class MeaningOf>
std::string glossary(std::string_view title, std::string_view lead, const Names& names, const NameOf& name_of,
                     const MeaningOf& meaning_of) {
  std::string text = fmt::format("\n## {}\n\n{}\n\n| name | meaning |\n|---|---|\n", title, lead);
  for (const auto& each : names) text += fmt::format("| `{}` | {} |\n", name_of(each), meaning_of(each));
  return text;
}

std::string activities_glossary() {
  return glossary(
      "Activities",
      "Every moment of every rank is booked as exactly one activity. The activities are the parts of \"where "
      "the time goes\"\n(means over ranks and steps that sum to the mean step time), of `breakdown_s` in "
      "`result.json`, and the columns\n`attention_s`, `linear_s`, ... of the tables.",
      all_activities, activity_name, activity_meaning);
}

std::string evidence_glossary() {
  constexpr std::array kinds = {Evidence::measured, Evidence::interpolated, Evidence::extrapolated, Evidence::formula};
  return glossary(
      "Evidence",
      "\"The time rests on\" says how much of the ranks' time has which evidence, from the strongest to the "
      "weakest. Kernels that\nare priced together count as the weakest evidence among them.",
      kinds, evidence_name, evidence_meaning);
}

}  // namespace

const std::vector<std::string>& keyed_file_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KeyedFile file : {KeyedFile::study, KeyedFile::cluster, KeyedFile::validation, KeyedFile::profile,
                                 KeyedFile::prices, KeyedFile::tasks}) {
      all.emplace_back(reference_of(file).name);
    }
    return all;
  }();
  return names;
}

std::vector<StudyKey> keys_of(KeyedFile file) {
  if (file == KeyedFile::study) return all_study_keys();
  static const std::vector<KeyText> of_profile = profile_keys();
  if (file == KeyedFile::profile) return collected(of_profile);
  if (file == KeyedFile::prices) return collected(price_keys());
  if (file == KeyedFile::tasks) return collected(task_file_keys());
  return collected(file == KeyedFile::cluster ? cluster_keys() : validation_keys());
}

std::string key_text(const std::vector<StudyKey>& keys) {
  std::string text;
  for (const StudyKey& each : keys) {
    const std::string otherwise = default_text(*each.key);
    text += fmt::format("{}: {}{}\n    {}\n", each.path, each.key->shape.text(),
                        otherwise.empty() ? "" : fmt::format(" ({})", otherwise), each.key->sentence);
  }
  return text;
}

std::string key_page(KeyedFile file) {
  const Reference& reference = reference_of(file);
  std::string page = fmt::format("# {}\n\n{}\n\n| key | values | default | meaning |\n|---|---|---|---|\n",
                                 reference.title, reference.about);
  for (const StudyKey& each : keys_of(file)) page += row(each);
  // A study's page is where the names of its results are looked up, too.
  return file == KeyedFile::study ? page + activities_glossary() + evidence_glossary() : page;
}

std::string key_schema(KeyedFile file) {
  // A study completes a preset key by key, so that no key of a cluster is required.
  return json_schema(reference_of(file).schema, reference_of(file).keys(), file == KeyedFile::cluster);
}

}  // namespace hdpsim::app
