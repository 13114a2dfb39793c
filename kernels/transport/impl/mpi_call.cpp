#ifdef HDPSIM_MPI

#include "kernels/transport/impl/mpi_call.h"

namespace hdpsim::kernels {

bool start_mpi() {
  int finalized = 0;
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  if (finalized != 0) throw DeviceError("MPI has ended in this process and cannot start again");
  int initialized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  int provided = MPI_THREAD_SINGLE;
  if (initialized != 0) {
    check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  } else {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  }
  if (provided < MPI_THREAD_SERIALIZED) throw DeviceError("MPI_Init_thread: threads are not supported (SERIALIZED)");
  return initialized == 0;
}

}  // namespace hdpsim::kernels

#endif
