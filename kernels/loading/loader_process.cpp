#include "kernels/loading/loader_process.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "kernels/loading/line_stream.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

enum class Order : std::uint64_t { go_to, deliver, pass };

struct Request {
  Order order = Order::pass;
  std::uint64_t value = 0;  ///< A place, or bytes.
};

bool send_all(int socket, const void* data, std::size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t bytes) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t received = ::recv(socket, next, bytes, 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    next += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

// Calls `use` with the pieces of a sample: at the end of the text it goes on with the beginning.
template <class Use>
void for_each_piece(std::string_view text, std::uint64_t begin, std::uint64_t count, Use use) {
  while (count > 0) {
    const std::string_view piece = text.substr(begin, count);
    use(piece);
    count -= piece.size();
    begin = 0;
  }
}

// ---- In the loader. Other threads of the process that was copied may have held any lock, such as the allocator's:
// only calls that are safe in a signal handler are made.

bool answer(int socket, std::string_view text, const Request& request, std::uint64_t& place) {
  if (request.order == Order::go_to) {
    place = request.value;
    return true;
  }
  BytesHash hash;
  for_each_piece(text, place, request.value, [&](std::string_view piece) { hash.add(piece); });
  const LoadedSample sample{place, next_line(text, place, request.value), hash.value()};
  bool sent = send_all(socket, &sample, sizeof sample);
  if (request.order == Order::deliver) {
    for_each_piece(text, place, request.value,
                   [&](std::string_view piece) { sent = sent && send_all(socket, piece.data(), piece.size()); });
  }
  place = sample.next;
  return sent;
}

[[noreturn]] void serve(int socket, std::string_view text) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGTERM, SIGQUIT}) std::signal(signal, SIG_DFL);
  std::signal(SIGINT, SIG_IGN);  // a terminal sends it to all processes; the one that trains decides
  if (socket > 3) close_range(3, static_cast<unsigned>(socket) - 1, 0);
  close_range(static_cast<unsigned>(socket) + 1, ~0U, 0);
  std::uint64_t place = 0;
  Request request;
  while (receive_all(socket, &request, sizeof request) && answer(socket, text, request, place)) {
  }
  _exit(0);
}

}  // namespace

LoaderProcess::LoaderProcess(std::string_view text, std::chrono::milliseconds limit) {
  if (text.empty()) throw std::logic_error("a loader of no text");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw DeviceError(fmt::format("no socket for a loader: {}", std::strerror(errno)));
  }
  process_ = fork();
  if (process_ == 0) serve(ends[1], text);
  close(ends[1]);
  socket_ = ends[0];
  if (process_ < 0) {
    const int error = errno;
    close(socket_);
    throw DeviceError(fmt::format("no process for a loader: {}", std::strerror(error)));
  }
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(limit).count();
  const timeval most{microseconds / 1'000'000, microseconds % 1'000'000};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

LoaderProcess::~LoaderProcess() {
  kill();
  close(socket_);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool LoaderProcess::go_to(std::uint64_t place) {
  const Request request{Order::go_to, place};
  return send_all(socket_, &request, sizeof request);
}

std::optional<LoadedSample> LoaderProcess::deliver(std::span<char> bytes) {
  const Request request{Order::deliver, bytes.size()};
  LoadedSample sample;
  if (!send_all(socket_, &request, sizeof request) || !receive_all(socket_, &sample, sizeof sample) ||
      !receive_all(socket_, bytes.data(), bytes.size())) {
    return std::nullopt;
  }
  BytesHash hash;
  hash.add({bytes.data(), bytes.size()});
  if (hash.value() != sample.hash) throw DeviceError("a loader delivered other bytes than it read");
  return sample;
}

std::optional<LoadedSample> LoaderProcess::pass(std::uint64_t count) {
  const Request request{Order::pass, count};
  LoadedSample sample;
  if (!send_all(socket_, &request, sizeof request) || !receive_all(socket_, &sample, sizeof sample))
    return std::nullopt;
  return sample;
}

void LoaderProcess::kill() const {
  ::kill(process_, SIGKILL);
}

}  // namespace hdpsim::kernels
