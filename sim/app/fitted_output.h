#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/app/command.h"
#include "sim/base/atomic_file.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::app {

/// The path of a profile of measured kernels: what --out names or, if that is a folder (empty: this one), NAME.yaml in
/// it. Without a name the device's: h200-141gb-measured. InputError if both are names.
[[nodiscard]] std::filesystem::path measured_profile_path(const std::string& out, const std::string& name,
                                                          const std::string& device);

/// The file to which a calibration that measures nothing writes its profile, if --out names one. It is this process's
/// from the start of the work on.
class FittedOutput {
 public:
  /// InputError unless `out` is empty or a .yaml file.
  static void require_file(const std::string& out);
  /// `out` may be empty. InputError if it is no .yaml file or was read; MachineError if it cannot be written, or
  /// another process is about to write it. `session` must outlive this object.
  FittedOutput(std::string out, const Session& session);
  /// Writes the profile and says where it is. InputError if the file has been read meanwhile.
  void write(const DeviceProfile& profile) const;

 private:
  std::string out_;
  const Session& session_;
  std::optional<FileClaim> claim_;
};

}  // namespace hdpsim::app
