#include "sim/app/fitted_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/profile/profile_file.h"

namespace hdpsim::app {

std::filesystem::path measured_profile_path(const std::string& out, const std::string& name,
                                            const std::string& device) {
  const std::filesystem::path path = out.empty() ? "." : out;
  if (path.extension() == ".yaml" || path.extension() == ".yml") {
    if (!name.empty()) throw InputError("--name and a file in --out name the profile twice", "leave one out");
    return path;
  }
  std::string file = name.empty() ? device + "-measured" : name;
  if (name.empty()) {
    std::transform(file.begin(), file.end(), file.begin(), [](unsigned char c) { return std::tolower(c); });
  }
  return path / (file + ".yaml");
}

void FittedOutput::require_file(const std::string& out) {
  const std::filesystem::path extension = std::filesystem::path(out).extension();
  if (out.empty() || extension == ".yaml" || extension == ".yml") return;
  throw InputError(fmt::format("--out {}: the fitted profile is a file", out), "write --out fitted.yaml");
}

FittedOutput::FittedOutput(std::string out, const Session& session) : out_(std::move(out)), session_(session) {
  require_file(out_);
  if (out_.empty()) return;
  const std::filesystem::path path = out_;
  session_.inputs.require_none_at(path);
  prepare_folder(path.has_parent_path() ? path.parent_path() : ".");
  claim_.emplace(path, session_.command_line);
  remove_left_overs(path);
}

void FittedOutput::write(const DeviceProfile& profile) const {
  if (out_.empty()) return;
  session_.inputs.require_none_at(out_);
  write_file(out_, profile_text(profile));
  note(fmt::format("the profile is in {}", out_));
}

}  // namespace hdpsim::app
