#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "sim/explore/access.h"

namespace hdpsim {

/// The reader of an answer that is written line by line. Safe from several threads.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;
  /// Sends a line; `text` has no line end.
  virtual void send(std::string_view text) = 0;
  /// Whether nobody reads any more: the page was closed or asks something else by now, or the server ends.
  [[nodiscard]] virtual bool is_closed() const = 0;
};

/// What is served. Its functions are called on threads of their own, side by side.
class HttpService {
 public:
  virtual ~HttpService() = default;
  /// The page. Browsers run those of its scripts alone that have the nonce, which is new for every request.
  [[nodiscard]] virtual std::string page(std::string_view nonce) = 0;
  /// Takes a file of lengths that was dropped on the page; `name` is the user's. Returns JSON.
  [[nodiscard]] virtual std::string take_lengths(const std::string& name, const std::string& bytes) = 0;
  /// Answers a question with lines of JSON. Throws nothing.
  virtual void answer(const std::string& question, AnswerStream& stream) = 0;
};

/// A server on 127.0.0.1 of one service: GET of `/TOKEN/` is its page, POST of `/TOKEN/ask` a question, POST of
/// `/TOKEN/lengths?name=NAME` a file. What Access does not permit gets 403, whatever it asks for, and 413 what is
/// longer than may be. No response permits another site anything (CORS).
class HttpServer {
 public:
  static constexpr std::size_t most_bytes = 64 << 20;  ///< Of a file.
  static constexpr std::size_t most_question_bytes = 1 << 20;

  virtual ~HttpServer() = default;
  [[nodiscard]] virtual std::string address() const = 0;
  /// Serves until `stop` returns true, which is asked every 20 ms from a thread of its own. The readers of answers that
  /// are under way are then gone; returns when these have ended.
  virtual void serve(const std::function<bool()>& stop) = 0;
};

/// A server on this port, or on a free one for 0. MachineError if there is no such port, or if the program was built
/// without a server. The service must outlive it.
[[nodiscard]] std::unique_ptr<HttpServer> make_http_server(HttpService& service, int port);

}  // namespace hdpsim
