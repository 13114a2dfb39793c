#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace hdpsim {

/// The connection of a client as the HTTP library reads it, which keeps a line as long as it goes on and all headers
/// that come. So what precedes the body is read here first, up to a limit of bytes and of time, and is the
/// library's only as a whole. A header that asks for parts of an answer is dropped: the page has no use for one, and a
/// short request could ask for the whole answer a thousand times.
class Connection final : public httplib::Stream {
 public:
  static constexpr std::size_t most_head_bytes = 32 << 10;  // browsers send the cookies of all ports of this machine

  /// How long the client is waited for: for everything before the body, and for each part of the body and of the
  /// answer.
  struct Patience {
    std::chrono::milliseconds most;
    std::function<bool()> is_over;  ///< Asked again and again; true ends it.
  };

  Connection(socket_t socket, Patience patience) : socket_(socket), patience_(std::move(patience)) {}

  /// Reads what precedes the body. False if it is too long, which is answered, or does not come.
  [[nodiscard]] bool receive_head();

  [[nodiscard]] bool is_readable() const override { return given_ < received_.size() || is_ready(POLLIN, deadline()); }
  [[nodiscard]] bool is_writable() const override { return is_ready(POLLOUT, deadline()); }
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}  // all are of this machine
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Clock::time_point deadline() const { return Clock::now() + patience_.most; }
  [[nodiscard]] bool is_ready(short event, Clock::time_point until) const;

  socket_t socket_;
  Patience patience_;
  std::string received_;   ///< The head, and what came with its end.
  std::size_t given_ = 0;  ///< Bytes of it that the library has read.
};

}  // namespace hdpsim
