#include "sim/explore/http_server.h"

#include <set>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const std::string token(64, 'a');
const Access access(token, 8080);

Access::Request good() {
  return {.path = "/" + token + "/ask", .hosts = {"127.0.0.1:8080"}, .origins = {}, .fetch_sites = {}};
}

TEST_CASE("a request with the token to a name of this machine is permitted", "[access]") {
  CHECK(access.address() == "http://127.0.0.1:8080/" + token + "/");
  CHECK(access.permitted(good()) == "ask");
  Access::Request page = good();
  page.path = "/" + token + "/";
  page.fetch_sites = {"none"};  // an address that a person opens
  CHECK(access.permitted(page) == "");
  Access::Request own = good();
  own.hosts = {"localhost:8080"};
  own.origins = {"http://localhost:8080"};
  own.fetch_sites = {"same-origin"};
  CHECK(access.permitted(own) == "ask");
}

TEST_CASE("a request without the whole token is refused", "[access]") {
  Access::Request request = good();
  for (const std::string& path : {std::string("/"), std::string("/ask"), std::string(), "/" + token, token + "/ask",
                                  "/" + token.substr(1) + "/ask", "/" + token + "a/ask", "//" + token + "/ask",
                                  "/" + std::string(63, 'a') + "b/ask", "/b" + std::string(63, 'a') + "/ask"}) {
    CAPTURE(path);
    request.path = path;
    CHECK_FALSE(access.permitted(request));
  }
}

TEST_CASE("a request to another host is refused, as of a site whose name points to this machine", "[access]") {
  Access::Request request = good();
  for (const char* host : {"", "example.com", "example.com:8080", "127.0.0.1", "127.0.0.1:80801", "localhost:80",
                           "127.0.0.1:8080.example.com", "[::1]:8080"}) {
    CAPTURE(host);
    request.hosts = {host};
    CHECK_FALSE(access.permitted(request));
  }
}

TEST_CASE("a request that another site has sent is refused", "[access]") {
  for (const char* origin : {"null", "http://example.com", "https://127.0.0.1:8080", "http://127.0.0.1:8081",
                             "http://127.0.0.1:8080.example.com", "file://", "http://"}) {
    CAPTURE(origin);
    Access::Request request = good();
    request.origins = {origin};
    CHECK_FALSE(access.permitted(request));
  }
  for (const char* site : {"cross-site", "same-site", "nonsense"}) {
    CAPTURE(site);
    Access::Request request = good();
    request.fetch_sites = {site};
    CHECK_FALSE(access.permitted(request));
  }
}

TEST_CASE("a header that stands twice is refused, whichever of its values is right", "[access]") {
  const std::string own = "127.0.0.1:8080";
  for (const auto& hosts : {std::vector<std::string>{own, "example.com"}, {"example.com", own}, {own, own}, {}}) {
    Access::Request request = good();
    request.hosts = hosts;
    CHECK_FALSE(access.permitted(request));
  }
  Access::Request request = good();
  request.origins = {"http://" + own, "http://example.com"};
  CHECK_FALSE(access.permitted(request));
  request = good();
  request.fetch_sites = {"same-origin", "cross-site"};
  CHECK_FALSE(access.permitted(request));
}

TEST_CASE("tokens have 256 bits and differ", "[access]") {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) {
    const std::string made = new_token();
    CHECK(made.size() == 64);
    CHECK(made.find_first_not_of("0123456789abcdef") == std::string::npos);
    tokens.insert(made);
  }
  CHECK(tokens.size() == 100);
}

}  // namespace
}  // namespace hdpsim
