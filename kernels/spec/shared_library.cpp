#include "kernels/spec/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

SharedLibrary::SharedLibrary(std::string purpose, std::initializer_list<const char*> names)
    : purpose_(std::move(purpose)) {
  std::string reason;
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    if (reason.empty()) reason = dlerror();
  }
  throw DeviceError(
      fmt::format("{}, but none of {} can be opened ({}): install it, or add its folder to LD_LIBRARY_PATH", purpose_,
                  fmt::join(names, ", "), reason));
}

bool SharedLibrary::has(const char* symbol) const {
  return dlsym(handle_, symbol) != nullptr;
}

void* SharedLibrary::address(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) {
    throw DeviceError(fmt::format("{}, but {} has no {}: it is too old", purpose_, name_, symbol));
  }
  return found;
}

}  // namespace hdpsim::kernels
