#include "sim/profiler/profiler_readers.h"

#include <filesystem>
#include <fstream>

#include "sim/profiler/recording.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

constexpr char head[] =
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n";

/// What a file with this text holds. InputError of read_nsys(), with the name of the file alone.
std::vector<ProfilerEvent> events(const std::string& text) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "trace.csv";
  std::ofstream(path, std::ios::binary) << text;
  std::vector<ProfilerEvent> result;
  static_cast<void>(read_nsys(path, [&](ProfilerEvent& event) { result.push_back(event); }));
  return result;
}

TEST_CASE("kernels, copies and fills of Nsight Systems are read in the units of their columns", "[profiler]") {
  const auto read =
      events(std::string("\nProcessing [x.sqlite] with [cuda_gpu_trace.py]...\n") + head +
             "1000000,2500,12,132,1,1,384,1,1,168,0.0,0.2,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,\"void gemm<int, "
             "\"\"x\"\">(float)\"\n"
             "2000000,1000000,13,,,,,,,,,,4.0,4000.0,Pinned,Device,NVIDIA H100 80GB HBM3 (0),1,,13,[CUDA memcpy "
             "Host-to-Device]\n"
             "4000000,800,14,,,,,,,,,,0.000,340.000,Device,,NVIDIA H100 80GB HBM3 (0),1,,7,[CUDA memset]\n");
  REQUIRE(read.size() == 3);
  CHECK(read[0].category == "kernel");
  CHECK(read[0].name == "void gemm<int, \"x\">(float)");
  CHECK(read[0].begin_us == Approx(1000));
  CHECK(read[0].duration_us == Approx(2.5));
  CHECK(read[0].stream == 7);
  CHECK(read[0].correlation == 12);
  CHECK(read[1].category == "gpu_memcpy");
  CHECK(read[1].name == "Memcpy HtoD (Pinned -> Device)");
  CHECK(read[1].bytes == 4'000'000);
  CHECK(read[2].category == "gpu_memset");
}

TEST_CASE("a recording of Nsight Systems has classes, activities and copies, and names the device", "[profiler]") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "trace.csv")
      << head << "0,1000000,1,1,1,1,1,1,1,1,0,0,,,,,NVIDIA H100 80GB HBM3 (0),1,,7,nvjet_tst_128x256\n"
      << "1500000,1000000,2,,,,,,,,,,50.0,1,Device,Pinned,NVIDIA H100 80GB HBM3 (0),1,,9,[CUDA memcpy "
         "Device-to-Host]\n";
  const Recording recording = read_recording({folder.path() / "trace.csv"});
  CHECK(recording.devices.at(0).name == "NVIDIA H100 80GB HBM3");
  CHECK(recording.classes[static_cast<std::size_t>(KernelClass::product)].kernels == 1);
  CHECK(recording.ranks.at(0).seconds[static_cast<std::size_t>(DeviceActivity::idle)] == Approx(0.5e-3));
  REQUIRE(recording.copies.size() == 1);
  CHECK(recording.copies.begin()->first == TracedCopy{CopyKind::d2h, 50'000'000});
  CHECK(recording.copies.begin()->second.quantile(0.5) == Approx(1e-3));
}

TEST_CASE("all wrong rows are told with line and column", "[profiler]") {
  const std::string rows = std::string(head) +
                           "soon,2500,12,1,1,1,1,1,1,1,0,0,,,,,A (0),1,,7,k\n"
                           "1,-5,12,1,1,1,1,1,1,1,0,0,,,,,A (0),1,,7,k\n"
                           "1,5,12,1\n"
                           "1,600000000001,12,1,1,1,1,1,1,1,0,0,,,,,A (0),1,,7,k\n"
                           "1,5,12,1,1,1,1,1,1,1,0,0,,,,,A (0),1,,7,k\n"
                           "1,5,12,1,1,1,1,1,1,1,0,0,,,,,B (1),1,,7,k\n";
  CHECK_THROWS_WITH(events(rows),
                    Contains("trace.csv:2:1: error: 'soon' is no time") &&
                        Contains("trace.csv:3:3: error: a row that cannot be: its duration is negative") &&
                        Contains("trace.csv:4:1: error: 4 fields where the head has 21") &&
                        Contains("trace.csv:5:3: error: a row that cannot be: it runs on a device for more "
                                 "than ten minutes") &&
                        Contains("trace.csv:7:") && Contains("a row of 'B (1)' among rows of 'A (0)'"));
}

TEST_CASE("other reports and other files are told with the command that makes the right one", "[profiler]") {
  CHECK_THROWS_WITH(events("Time (%),Total Time (ns),Instances,Avg (ns),Name\n1,2,3,4,k\n"),
                    Contains("another report of Nsight Systems") && Contains("cuda_gpu_trace"));
  CHECK_THROWS_WITH(events("length\n5\n"), Contains("it has no head"));
  CHECK_THROWS_WITH(read_recording({"report.sqlite"}), Contains("files of Nsight Systems are read as CSV"));
}

}  // namespace
}  // namespace hdpsim
