// One process of several: the main program of the tests that run under mpirun.

#include "tests/mpi/mpi_ranks.h"

#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>

#include "kernels/transport/mpi_transport.h"
#include "tests/support/catch_runner.h"

namespace hdpsim::kernels {
namespace {

std::unique_ptr<Transport> transport;
// Odd, so that most messages travel in several pieces and end in a short one.
constexpr std::size_t small_piece = 1021;

int run_tests(int argc, char** argv) {
  transport = make_mpi_transport(std::chrono::minutes(10), small_piece);  // ends what hangs
  const int failures = test::run_tests(argc, argv);
  transport.reset();
  return failures;
}

}  // namespace

Transport& mpi_transport() {
  return *transport;
}

}  // namespace hdpsim::kernels

int main(int argc, char** argv) {
#ifdef HDPSIM_MPI
  constexpr int without_mpi = 0;
#else
  constexpr int without_mpi = 1;
#endif
  if (argc > 1 && std::string_view(argv[1]) == "--has-mpi") return without_mpi;
  try {
    return hdpsim::kernels::run_tests(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
