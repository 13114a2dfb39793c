#pragma once

#include <filesystem>
#include <string>

namespace hdpsim::app {

/// A folder of this process alone in the system's folder of temporary files, gone when the object is. What is left of a
/// process that was killed, the next one with a folder of the same kind removes: a lock tells whether its owner lives.
class ScratchFolder {
 public:
  /// `kind` is a part of the name. MachineError if the folder cannot be made.
  explicit ScratchFolder(const std::string& kind);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Removes the folder before the object ends.
  void remove() const;

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< Descriptor of a locked file in the folder.
};

}  // namespace hdpsim::app
