#include "sim/explore/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/base/check.h"

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

class Server final : public HttpServer {
 public:
  Server(HttpService& service, int port) : service_(service), access_(new_token(), bound(port)) {
    server_.set_payload_max_length(most_bytes);
    server_.set_keep_alive_max_count(1);  // connections that wait for more would delay the end of the server
    server_.set_keep_alive_timeout(1);
    server_.set_read_timeout(5s);
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
        if (stop()) end();
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

  void end() {
    stopping_ = true;
    server_.stop();
  }

  httplib::Server::HandlerResponse check(const httplib::Request& request, httplib::Response& response) const {
    if (access_.permitted({.path = request.path,
                           .host = request.get_header_value("Host"),
                           .origin = request.get_header_value("Origin"),
                           .fetch_site = request.get_header_value("Sec-Fetch-Site")})) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.status = 403;
    response.set_header("Connection", "close");  // the rest of the request is not read
    response.set_content("This is not the address that hdpsim explore has printed.\n", "text/plain");
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
      if (stopping_ || (!lines.is_closed() && !sink.write(bytes.data(), bytes.size()))) lines.close();
    }
    sink.done();
  }

  HttpService& service_;
  httplib::Server server_;
  Access access_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace

std::unique_ptr<HttpServer> make_http_server(HttpService& service, int port) {
  return std::make_unique<Server>(service, port);
}

}  // namespace hdpsim
