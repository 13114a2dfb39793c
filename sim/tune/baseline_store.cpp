#include "sim/tune/baseline_store.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/atomic_file.h"
#include "sim/base/fingerprint.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::string_view schema = "hdpsim.baseline/1";

std::optional<FoundBaseline> found_in(const std::string& object) {
  try {
    const Json json = parsed_json(object);
    if (json.at("schema") != schema) return std::nullopt;
    return FoundBaseline{json.at("choices"), json.at("study")};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::filesystem::path BaselineStore::file_of(std::string_view identity) const {
  const std::uint64_t first = fingerprint(identity);
  return folder_ / fmt::format("{:016x}{:016x}.json", first, fingerprint(identity, first));
}

std::optional<FoundBaseline> BaselineStore::load(std::string_view identity, const TellDamage& tell) const {
  const std::filesystem::path path = file_of(identity);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string text = text_of_kept(path);
  const auto object =
      text.ends_with('\n') ? Seal(identity).opened(std::string_view(text).substr(0, text.size() - 1)) : std::nullopt;
  auto found = object ? found_in(*object) : std::nullopt;
  if (!found) tell({{path.string(), 1, 1}, "this baseline is damaged, or of another search", {}});
  return found;
}

void BaselineStore::save(std::string_view identity, const FoundBaseline& found) const {
  const std::filesystem::path file = file_of(identity);
  if (output_ != nullptr) (void)output_->file((folder_.filename() / file.filename()).string());
  const Json json = {{"schema", schema}, {"choices", found.choices}, {"study", found.study}};
  write_file(file, Seal(identity).closed(json_line(json)));
}

}  // namespace hdpsim
