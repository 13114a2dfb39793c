#include "sim/explore/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/explore/server/connection.h"

namespace hdpsim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_connections = 32;  // a browser keeps six for a page

/// Lines on their way from the thread that answers to the one that writes to the connection.
class Lines final : public AnswerStream {
 public:
  void send(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    (waiting_ += text) += '\n';
    changed_.notify_all();
  }
  [[nodiscard]] bool is_closed() const override { return closed_; }

  void close() { closed_ = true; }
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  /// What has been sent since the last call; waits a moment for it. Empty at the end.
  std::optional<std::string> take() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 50ms, [&] { return ended_ || !waiting_.empty(); });
    if (ended_ && waiting_.empty()) return std::nullopt;
    return std::exchange(waiting_, {});
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::string waiting_;
  bool ended_ = false;
  std::atomic<bool> closed_ = false;
};

/// A page may do nothing but what it was made for: no script, picture or connection from anywhere else, and no frame
/// of another site around it.
void set_page_headers(const std::string& nonce, httplib::Response& response) {
  response.set_header("Content-Security-Policy",
                      fmt::format("default-src 'none'; script-src 'nonce-{}'; style-src 'unsafe-inline'; "
                                  "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                                  "frame-ancestors 'none'",
                                  nonce));
  response.set_header("Cross-Origin-Opener-Policy", "same-origin");
}

/// The library's server, each of whose connections carries one request that is as short as one may be.
class GuardedServer final : public httplib::Server {
 public:
  void end() {
    stopping_ = true;
    stop();
  }
  [[nodiscard]] bool is_ending() const { return stopping_; }

 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, {5s, [this] { return is_ending(); }});
    bool is_closed = false;
    const bool answered = connection.receive_head() && process_request(connection, true, is_closed, nullptr);
    (void)shutdown(socket, SHUT_RDWR);
    (void)close(socket);
    return answered;
  }

  std::atomic<bool> stopping_ = false;
};

std::vector<std::string> values_of(const httplib::Request& request, const char* header) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < request.get_header_value_count(header); ++i) {
    values.push_back(request.get_header_value(header, i));
  }
  return values;
}

/// Why a request is refused whose body is still to be read; `what` is its path below the token. Bodies are plain, and
/// their length is known before they are kept.
std::optional<int> refusal(const httplib::Request& request, std::string_view what) {
  if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
  if (request.method != "POST") return 405;
  if (request.has_header("Transfer-Encoding") || request.get_header_value_count("Content-Length") != 1) return 411;
  if (request.has_header("Content-Encoding") || request.is_multipart_form_data()) return 415;
  const auto length = request.get_header_value<std::uint64_t>("Content-Length");
  if (length > (what == "ask" ? HttpServer::most_question_bytes : HttpServer::most_bytes)) return 413;
  return std::nullopt;
}

class Server final : public HttpServer {
 public:
  Server(HttpService& service, int port) : service_(service), access_(new_token(), bound(port)) {
    server_.set_payload_max_length(most_bytes);
    server_.set_tcp_nodelay(true);
    server_.new_task_queue = [] { return new httplib::ThreadPool(most_connections); };
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"X-Frame-Options", "DENY"}});
    server_.set_pre_routing_handler([this](const auto& request, auto& response) { return check(request, response); });
    // What check() has let through is "/TOKEN/" and what is asked for.
    server_.Get("/[^/]*/", [this](const auto&, auto& response) { send_page(response); });
    server_.Post("/[^/]*/lengths", [this](const auto& request, auto& response) { take_lengths(request, response); });
    server_.Post("/[^/]*/ask", [this](const auto& request, auto& response) { answer(request.body, response); });
  }

  [[nodiscard]] std::string address() const override { return access_.address(); }

  void serve(const std::function<bool()>& stop) override {
    std::atomic<bool> over = false;
    std::jthread watch([&] {
      while (!over) {
        if (stop()) server_.end();
        std::this_thread::sleep_for(20ms);
      }
    });
    server_.listen_after_bind();
    over = true;
  }

 private:
  // In place of the library's own option, with which several servers share a port: a port is free again as soon as its
  // server ends, whatever connections the system still remembers.
  int bound(int port) {
    server_.set_socket_options([](socket_t socket) {
      constexpr int yes = 1;
      (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    const int taken = port == 0 ? server_.bind_to_any_port("127.0.0.1") : port;
    if (taken <= 0 || (port != 0 && !server_.bind_to_port("127.0.0.1", port))) {
      throw MachineError(port == 0 ? "no port of 127.0.0.1 is free" : fmt::format("port {} is in use", port));
    }
    return taken;
  }

  httplib::Server::HandlerResponse check(const httplib::Request& request, httplib::Response& response) const {
    const auto what = access_.permitted({.path = request.path,
                                         .hosts = values_of(request, "Host"),
                                         .origins = values_of(request, "Origin"),
                                         .fetch_sites = values_of(request, "Sec-Fetch-Site")});
    const std::optional<int> status = what ? refusal(request, *what) : 403;
    if (!status) return httplib::Server::HandlerResponse::Unhandled;
    response.status = *status;
    response.set_header("Connection", "close");  // the rest of the request is not read
    response.set_content(what ? "The page of hdpsim explore asks for nothing like this.\n"
                              : "This is not the address that hdpsim explore has printed.\n",
                         "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  }

  void send_page(httplib::Response& response) {
    const std::string nonce = new_token();
    set_page_headers(nonce, response);
    response.set_content(service_.page(nonce), "text/html; charset=utf-8");
  }

  void take_lengths(const httplib::Request& request, httplib::Response& response) {
    response.set_content(service_.take_lengths(request.get_param_value("name"), request.body), "application/json");
  }

  void answer(const std::string& question, httplib::Response& response) {
    response.set_chunked_content_provider("application/x-ndjson", [this, question](std::size_t, auto& sink) {
      write_answer(question, sink);
      return true;
    });
  }

  // Empty lines in between find out whether anybody reads: a connection that is closed refuses the second one.
  void write_answer(const std::string& question, httplib::DataSink& sink) {
    Lines lines;
    const std::jthread answering([&] {
      service_.answer(question, lines);
      lines.end();
    });
    while (const std::optional<std::string> text = lines.take()) {
      const std::string_view bytes = text->empty() ? std::string_view("\n") : std::string_view(*text);
      if (server_.is_ending() || (!lines.is_closed() && !sink.write(bytes.data(), bytes.size()))) lines.close();
    }
    sink.done();
  }

  HttpService& service_;
  GuardedServer server_;
  Access access_;
};

}  // namespace

std::unique_ptr<HttpServer> make_http_server(HttpService& service, int port) {
  return std::make_unique<Server>(service, port);
}

}  // namespace hdpsim
