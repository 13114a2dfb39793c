#include "sim/profile/renamed_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

constexpr std::array renamed_profiles = {
    RenamedProfile{
        "a100-published", "bytescale-implied",
        "the device that ByteScale's figures imply, slower than an A100 in benchmarks; for an A100 write "
        "a100-sxm-published"},
};

}  // namespace

const RenamedProfile* find_renamed_profile(std::string_view name) {
  const auto found =
      std::find_if(renamed_profiles.begin(), renamed_profiles.end(), [&](const auto& row) { return row.old == name; });
  return found == renamed_profiles.end() ? nullptr : &*found;
}

std::string renamed_profile_note(std::string_view name) {
  const RenamedProfile* row = find_renamed_profile(name);
  return row == nullptr ? "" : fmt::format("the profile {} is called {} now: {}", row->old, row->name, row->meaning);
}

}  // namespace hdpsim
