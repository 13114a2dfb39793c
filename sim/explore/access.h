#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// Who may use the page of a local server. Every program on the machine, and every web page that its user has open, can
/// reach a port of 127.0.0.1, so that a request has to show that it comes from the server's own page: its path begins
/// with the token, it was sent to a name of this machine (a web site can let its own name point here), and no other
/// site has sent it.
class Access {
 public:
  /// A request as far as it decides, with every value that it has of a header: what reads it behind may look at another
  /// than the first.
  struct Request {
    std::string path;
    std::vector<std::string> hosts;
    std::vector<std::string> origins;
    std::vector<std::string>
        fetch_sites;  ///< Sec-Fetch-Site: the relation to the sender's site, as the browser sees it.
  };

  Access(std::string token, int port) : token_(std::move(token)), port_(port) {}

  /// "http://127.0.0.1:8080/TOKEN/"
  [[nodiscard]] std::string address() const;
  /// The path of a permitted request, which has one host and no header twice, below the token: "" for "/TOKEN/". Empty
  /// for all others. The time that this takes does not depend on how much of the token is right.
  [[nodiscard]] std::optional<std::string> permitted(const Request& request) const;

 private:
  [[nodiscard]] bool is_own(std::string_view authority) const;

  std::string token_;
  int port_;
};

/// A new token: 256 random bits of the system in hexadecimal digits. MachineError if it has none.
[[nodiscard]] std::string new_token();

}  // namespace hdpsim
