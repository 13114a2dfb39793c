// A ring of three processes of which rank 1 fails in its third round, in the way that the argument names. The others
// must end in an error, soon.
//   throws     an exception leaves the ring     killed  the process dies at once
//   stuck      it computes for ever             leaves  it ends its transport, as if all were done
//   shorter    it sends fewer bytes than are expected
//   attention  the ring is one of attention, and its second kernel throws

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/transport/mpi_transport.h"
#include "tests/support/reference_backend.h"
#include "tests/support/ring_laws.h"

namespace hdpsim::kernels {
namespace {

// True where the rank is to leave its ring.
bool fail(const std::string& how) {
  if (how == "throws") throw std::runtime_error("rank 1 has had enough");
  if (how == "killed") raise(SIGKILL);
  if (how == "stuck") std::this_thread::sleep_for(std::chrono::hours(1));
  return how == "leaves";
}

void ring(const std::string& how) {
  const auto transport = make_mpi_transport(std::chrono::seconds(2));
  const int next = (transport->rank() + 1) % transport->size();
  const int previous = (transport->rank() + transport->size() - 1) % transport->size();
  const std::vector<char> out(1 << 20);
  std::vector<char> in(1 << 20);
  for (int round = 1; round <= 5; ++round) {
    const bool fails = transport->rank() == 1 && round == 3;
    if (fails && fail(how)) return;
    const Send send{next, out.data(), fails ? out.size() / 2 : out.size()};
    const Receive receive{previous, in.data(), in.size()};
    transport->wait(transport->start({&send, 1}, {&receive, 1}));
  }
}

class FailingBackend final : public ReferenceBackend {
 public:
  using ReferenceBackend::run;
  void run(const AttentionForward& op) override {
    if (++launches_ == 2) fail("throws");
    ReferenceBackend::run(op);
  }

 private:
  int launches_ = 0;
};

void ring_of_attention() {
  const RingCase ring_case{.lengths = {60}, .members = {0, 1, 2}};
  const WholeAttention whole(ring_case);
  LawReport report;
  const auto transport = make_mpi_transport(std::chrono::seconds(2));
  FailingBackend failing;
  ReferenceBackend sound;
  RingRank(transport->rank() == 1 ? failing : sound, *transport).check(ring_case, whole, report);
}

}  // namespace
}  // namespace hdpsim::kernels

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
#ifdef HDPSIM_MPI
  if (how == "--has-mpi") return 0;
#else
  if (how == "--has-mpi") return 1;
#endif
  try {
    how == "attention" ? hdpsim::kernels::ring_of_attention() : hdpsim::kernels::ring(how);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
