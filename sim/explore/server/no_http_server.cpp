#include "sim/base/check.h"
#include "sim/explore/http_server.h"

namespace hdpsim {

std::unique_ptr<HttpServer> make_http_server(HttpService&, int) {
  throw MachineError(
      "this program was built without a server of pages; builds with libcpp-httplib-dev have one, those "
      "with HDPSIM_STATIC do not");
}

}  // namespace hdpsim
