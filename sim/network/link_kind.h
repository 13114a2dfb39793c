#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// The kind of a link, which is its name without numbers: `node 3 nic 2 out` is one of `node # nic # out`.
[[nodiscard]] std::string link_kind(std::string_view name);

}  // namespace hdpsim
