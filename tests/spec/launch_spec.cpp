#include <future>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Contains;

// All wait for a minute: side by side.
TEST_CASE("a job ends, and says so, if a process is stopped before it starts or does not start", "[launch][mpi]") {
  if (is_without_mpi()) return;
  const Workplace of_study;
  of_study.write("lost", "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then exec sleep 1000000; fi\nexec \"$@\"\n");
  std::future<Outcome> study = std::async(std::launch::async, [&] {
    return of_study.hdpsim("study configs/studies/tiny.yaml --out out", mpirun("-n 2") + " sh lost");
  });
  const Workplace of_survivors;
  of_survivors.write("died", "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then kill -KILL $$; fi\nexec \"$@\"\n");
  std::future<Outcome> survived = std::async(std::launch::async, [&] {
    return of_survivors.hdpsim("execute configs/studies/real.yaml --set cluster.gpus=3 --plan static --patience 1s",
                               mpirun("-n 3 --enable-recovery") + " sh died");
  });
  const Workplace of_training;
  of_training.write("held", "if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then kill -STOP $$; fi\nexec \"$@\"\n");
  const Outcome trained =
      of_training.hdpsim("execute configs/studies/real.yaml --plan static --patience 1s", mpirun("-n 2") + " sh held");
  const Outcome simulated = study.get();

  CAPTURE(trained.err, simulated.err);
  CHECK(trained.code == 3);
  CHECK_THAT(trained.err, Contains("error: process 0 has waited 60 s for the 2 processes to start together") &&
                              Contains("process 0: hdpsim, ") && Contains(", is there") &&
                              Contains("process 1: sh, ") && Contains(", is stopped"));
  CHECK(simulated.code == 3);
  CHECK_THAT(simulated.err, Contains("error: process 0 has waited 60 s for the 2 processes to start together") &&
                                Contains("process 1: sleep, "));
  CHECK_FALSE(fs::exists(of_study.folder() / "out"));

  // mpirun lets those who live go on, and only the one that died is missing.
  const std::string told = survived.get().err;
  CAPTURE(told);
  CHECK_THAT(told, Contains("for the 3 processes to start together") && Contains("process 1: is not here") &&
                       Contains("process 2: hdpsim, "));
  CHECK_THAT(told, !Contains("process 0: is not here") && !Contains("process 2: is not here"));
}

}  // namespace
}  // namespace hdpsim::spec
