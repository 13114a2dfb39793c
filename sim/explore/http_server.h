#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// Who may use the page of a local server. Every program on the machine, and every web page that its user has open, can
/// connect to a port of 127.0.0.1, so that a request has to show that it comes from the server's own page: its path
/// begins with the token, it was sent to a name of this machine (a web site can let its own name point here), and no
/// other site has sent it.
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
