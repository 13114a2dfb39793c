#include "sim/explore/http_server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr std::string_view scheme = "http://";

template <class Holds>
bool is_none_or(const std::vector<std::string>& values, const Holds& holds) {
  return values.empty() || (values.size() == 1 && holds(values.front()));
}

// Compares all characters, whichever differs first.
bool equal_in_constant_time(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  }
  return difference == 0;
}

}  // namespace

std::string Access::address() const {
  return fmt::format("http://127.0.0.1:{}/{}/", port_, token_);
}

std::optional<std::string> Access::permitted(const Request& request) const {
  const std::string_view path = request.path;
  const std::size_t end = path.find('/', 1);
  if (!path.starts_with('/') || end == std::string_view::npos) return std::nullopt;
  if (!equal_in_constant_time(path.substr(1, end - 1), token_)) return std::nullopt;
  const bool has_one_host = request.hosts.size() == 1 && is_own(request.hosts.front());
  const bool is_own_request = is_none_or(request.origins, [this](std::string_view origin) {
    return origin.starts_with(scheme) && is_own(origin.substr(scheme.size()));
  });
  const bool is_own_site =
      is_none_or(request.fetch_sites, [](std::string_view site) { return site == "same-origin" || site == "none"; });
  if (!has_one_host || !is_own_request || !is_own_site) return std::nullopt;
  return std::string(path.substr(end + 1));
}

bool Access::is_own(std::string_view authority) const {
  return authority == fmt::format("127.0.0.1:{}", port_) || authority == fmt::format("localhost:{}", port_);
}

std::string new_token() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw MachineError("the system has no random numbers for the address of the page");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace hdpsim
