#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/cluster/cluster_files.h"

using namespace hdpsim;
using Catch::Matchers::Contains;

namespace {

/// A node on two CPUs in the form of NCCL: `lines` are the bodies of its <cpu> elements.
std::string system_of(const std::vector<std::string>& cpus, const std::string& version = "1") {
  std::string text = fmt::format("<system version=\"{}\">\n", version);
  for (std::size_t i = 0; i < cpus.size(); ++i) text += fmt::format("<cpu numaid=\"{}\">\n{}</cpu>\n", i, cpus[i]);
  return text + "</system>\n";
}

std::string bridge(const std::string& inside, const std::string& speed = "16.0 GT/s PCIe") {
  return fmt::format("<pci class=\"0x060400\" link_speed=\"{}\" link_width=\"16\">\n{}</pci>\n", speed, inside);
}

std::string gpu(int dev, int sm, const std::string& nvlinks) {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
      "<gpu dev=\"{}\" sm=\"{}\" rank=\"{}\">{}</gpu></pci>\n",
      16 + dev, dev, sm, dev, nvlinks);
}

std::string to_switches(int count) {
  return fmt::format("<nvlink target=\"0000:c0:00.0\" count=\"{}\" tclass=\"0x068000\"/>", count);
}

std::string nic(const std::string& name, int dev, int megabits) {
  return fmt::format(
      "<pci link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"{}\" dev=\"{}\" speed=\"{}\" "
      "port=\"1\"/></nic></pci>\n",
      name, dev, megabits);
}

/// Two A100, each with a 200 Gbit/s NIC on its own CPU.
std::string two_gpus(const std::string& first_nvlinks, const std::string& second_nvlinks, int second_sm = 80) {
  return system_of({bridge(gpu(0, 80, first_nvlinks) + nic("mlx5_0", 0, 200'000)),
                    bridge(gpu(1, second_sm, second_nvlinks) + nic("mlx5_1", 1, 200'000))});
}

/// A cluster of `gpus` whose nodes `xml` describes; `more` adds keys to the node.
class Imported {
 public:
  explicit Imported(const std::string& xml, int gpus = 16, const std::string& more = "",
                    const std::string& device = "X") {
    std::ofstream(folder_.path() / "topo.xml") << xml;
    file_ = (folder_.path() / "cluster.yaml").string();
    text_ = fmt::format(
        "device: {}\ngpus: {}\nnode: {{nccl_topology: topo.xml, gpu_memory: 80 GB, host_memory: 1 TB{}}}\n"
        "tiers: {{tor: {{fan_in: 64}}}}\n",
        device, gpus, more);
  }
  [[nodiscard]] ClusterSpec spec() const {
    Diagnostics diagnostics;
    const auto spec = read_cluster(parse_document(file_, text_, diagnostics), shipped_clusters(), diagnostics);
    diagnostics.throw_if_any();
    return spec.value();
  }
  [[nodiscard]] std::string notes() const { return fmt::format("{}", fmt::join(spec().notes, "\n")); }
  /// Without the folder in front of file names.
  [[nodiscard]] std::string problems() const {
    Diagnostics diagnostics;
    (void)read_cluster(parse_document(file_, text_, diagnostics), shipped_clusters(), diagnostics);
    std::string text = diagnostics.text();
    const std::string folder = folder_.path().string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
    return text;
  }

 private:
  test::TemporaryFolder folder_;
  std::string file_;
  std::string text_;
};

ClusterSpec example(const std::string& name) {
  Diagnostics diagnostics;
  const auto file = shipped_clusters() / "examples" / name;
  const auto spec = read_cluster(load_document(file.string(), diagnostics), shipped_clusters(), diagnostics);
  diagnostics.throw_if_any();
  return spec.value();
}

}  // namespace

TEST_CASE("the topology of a node with NVSwitch gives the node of the shipped preset", "[nccl]") {
  const ClusterSpec read = example("h100-nvswitch.yaml");
  const ClusterSpec preset = cluster_from("{preset: h100-rail, gpus: 256}");
  CHECK(read.devices_per_node == 8);
  CHECK(read.nvlink == preset.nvlink);  // 18 links of 25 GB/s
  CHECK(read.nics_per_node == preset.nics_per_node);
  CHECK(read.nic == preset.nic);
  CHECK(read.ports_per_nic == 1);
  CHECK(read.pcie == preset.pcie);  // 32 GT/s over 16 lanes
  CHECK(read.devices_per_pcie_uplink == 1);
  CHECK_THAT(fmt::format("{}", fmt::join(read.notes, "\n")),
             Contains("8 gpus of sm 90 on 2 NUMA nodes") && Contains("18 links of 25 GB/s a gpu, over NVSwitch") &&
                 Contains("left out: slower NICs (mlx5_8)") && Contains("8 NICs of 400 Gbit/s"));
}

TEST_CASE("without NVLink the gpus of a switch share its uplink, and both ports of a NIC are read", "[nccl]") {
  const ClusterSpec read = example("l40s-pcie.yaml");
  CHECK_FALSE(read.has_nvlink());
  CHECK(read.pcie == 32_GBps);  // 16 GT/s over 16 lanes
  CHECK(read.devices_per_pcie_uplink == 2);
  CHECK(read.nics_per_node == 2);
  CHECK(read.nic == 200_Gbps);  // two ports of 100
  CHECK(read.ports_per_nic == 2);
}

TEST_CASE("interfaces of containers and bridges are no NICs, and said to be left out", "[nccl]") {
  const std::string made =
      "<nic><net name=\"veth1\" dev=\"2\" speed=\"400000\"/><net name=\"docker0\" dev=\"3\"/></nic>\n";
  const std::string gpus = bridge(gpu(0, 80, "") + nic("mlx5_0", 0, 200'000));
  const Imported with(system_of({gpus + made, bridge(gpu(1, 80, "") + nic("mlx5_1", 1, 200'000)) + made}));
  CHECK(with.spec().nics_per_node == 2);
  CHECK(with.spec().nic.gigabytes_per_second() == Approx(200.0 / 8));
  CHECK_THAT(with.notes(), Contains("left out: virtual interfaces (veth1, docker0)"));
}

TEST_CASE("gpus without an sm have that of the cluster's device, and another sm than its is told", "[nccl]") {
  std::string bare = two_gpus(to_switches(12), to_switches(12));
  for (std::size_t at = bare.find(" sm=\"80\""); at != std::string::npos; at = bare.find(" sm=\"80\""))
    bare.erase(at, 8);
  const Imported unknown(bare);
  CHECK(unknown.problems().find("the gpus have no 'sm'") == unknown.problems().rfind("the gpus have no 'sm'"));
  CHECK_THAT(unknown.problems(), Contains("the gpus have no 'sm', and the device of the cluster is not known"));
  const Imported known(bare, 16, "", "A100-80GB");
  CHECK(known.spec().nvlink.gigabytes_per_second() == Approx(12 * 25.0));
  const Imported other(two_gpus(to_switches(12), to_switches(12)), 16, "", "H100-80GB");
  CHECK_THAT(other.notes(), Contains("the device of the cluster is of sm 90, the gpus of the file are of sm 80"));
}

TEST_CASE("NICs without a speed have the one that NCCL assumes, and that is said", "[nccl]") {
  std::string bare = two_gpus("", "");
  const std::string speed = " speed=\"200000\"";
  for (std::size_t at = bare.find(speed); at != std::string::npos; at = bare.find(speed)) bare.erase(at, speed.size());
  CHECK_THAT(Imported(bare).notes(),
             Contains("NICs without a speed: 10 Gbit/s, as NCCL assumes; if not, write node.nics"));
  CHECK_THAT(Imported(two_gpus("", "")).notes(), !Contains("without a speed"));
}

/// What `nvidia-smi topo -m` prints: a row for each device, with its entries and what stands behind them.
std::string matrix_of(const std::vector<std::string>& devices, const std::vector<std::string>& rows) {
  std::string text =
      fmt::format("\x1b[4m\t{}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n", fmt::join(devices, "\t"));
  for (std::size_t i = 0; i < rows.size(); ++i) text += fmt::format("{}\t{}\n", devices[i], rows[i]);
  return text +
         "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
         "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_3\n";
}

// Two CPUs with two GPUs and a NIC each; `near` and `far` are the entries of GPUs on one and on different CPUs.
std::string four_gpus(const std::string& near, const std::string& far) {
  return matrix_of({"GPU0", "GPU1", "GPU2", "GPU3", "NIC0", "NIC1"},
                   {fmt::format(" X \t{}\t{}\t{}\tPXB\tSYS\t0-31\t0\tN/A", near, far, far),
                    fmt::format("{}\t X \t{}\t{}\tPXB\tSYS\t0-31\t0\tN/A", near, far, far),
                    fmt::format("{}\t{}\t X \t{}\tSYS\tPXB\t32-63\t1\tN/A", far, far, near),
                    fmt::format("{}\t{}\t{}\t X \tSYS\tPXB\t32-63\t1\tN/A", far, far, near),
                    "PXB\tPXB\tSYS\tSYS\t X \tSYS", "SYS\tSYS\tPXB\tPXB\tSYS\t X "});
}

TEST_CASE("what nvidia-smi prints of a node's topology states ways, and its device the rates that are assumed",
          "[nccl]") {
  const Imported switched(four_gpus("NV12", "NV12"), 16, "", "A100-80GB");
  const ClusterSpec read = switched.spec();
  CHECK(read.devices_per_node == 4);
  CHECK(read.nvlink == 25_GBps * 12);
  CHECK(read.nics_per_node == 2);
  CHECK(read.nic == 200_Gbps);
  CHECK(read.pcie == 32_GBps);
  CHECK(read.devices_per_pcie_uplink == 2);
  CHECK_THAT(switched.notes(), Contains("4 gpus of sm 80 on 2 NUMA nodes") && Contains("over NVSwitch") &&
                                   Contains("nvidia-smi states ways and no rates. Assumed: 32 GB/s of a GPU's PCIe "
                                            "link, and NICs of 200 Gbit/s; if not, write node.nics"));
  // An A100 has 12 links: four to each of three others need no switch, twelve to each do.
  const Imported direct(four_gpus("NV4", "NV4"), 16, "", "A100-80GB");
  CHECK(direct.spec().nvlink == 25_GBps * 12);
  CHECK_THAT(direct.notes(), Contains("directly") && Contains("no NVSwitch"));
  CHECK_FALSE(Imported(four_gpus("PIX", "SYS"), 16, "", "L40S-48GB").spec().has_nvlink());
}

TEST_CASE("bridges that join pairs are no switch of a node, which is said with both ways on", "[nccl]") {
  const std::string pairs = four_gpus("NV12", "SYS");
  CHECK_THAT(
      Imported(pairs, 16, "", "A100-80GB").problems(),
      Contains("topo.xml:2:1: error: gpu 0 has no NVLink to gpu 2: a node without NVSwitch must join all pairs") &&
          Contains("write node.nvlink with what a pair gets, or nvlink: null for PCIe alone"));
  CHECK(Imported(pairs, 16, ", nvlink: {bandwidth: 100 GB/s}", "A100-80GB").spec().nvlink == 100_GBps);
  CHECK_FALSE(Imported(pairs, 16, ", nvlink: null", "A100-80GB").spec().has_nvlink());
}

TEST_CASE("NICs that share no switch with a GPU are left out where others do", "[nccl]") {
  const std::string text =
      matrix_of({"GPU0", "NIC0", "NIC1"}, {" X \tPIX\tNODE\t0-31\t0\tN/A", "PIX\t X \tNODE", "NODE\tNODE\t X "});
  const Imported read(text, 4, "", "H100-80GB");
  CHECK(read.spec().nics_per_node == 1);
  CHECK_THAT(read.notes(), Contains("left out: NICs that share no PCIe switch with a gpu (mlx5_3)"));
}

TEST_CASE("a table of ways that is not whole, contradicts itself or is of an unknown device is told", "[nccl]") {
  const std::string whole = four_gpus("NV12", "NV12");
  CHECK_THAT(Imported(whole, 16, "", "X").problems(),
             Contains("those of the cluster's device are not known") && Contains("write its compute_capability"));
  const std::string cut = whole.substr(0, whole.find("GPU3\tNV12"));
  CHECK_THAT(Imported(cut, 16, "", "A100-80GB").problems(),
             Contains("topo.xml:1:1: error: the table has 6 devices and 3 rows"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    changed.replace(changed.find(from), from.size(), to);
    return Imported(changed, 16, "", "A100-80GB").problems();
  };
  CHECK_THAT(with("X \tNV12\tNV12\tNV12\tPXB", "X \tNV8\tNV12\tNV12\tPXB"),
             Contains("topo.xml:3:1: error: the way from GPU1 to GPU0 is NV12, and NV8 back"));
  CHECK_THAT(with("X \tNV12\tNV12\tNV12\tPXB", "X \tFAR\tNV12\tNV12\tPXB"),
             Contains("topo.xml:2:1: error: the way from GPU0 to GPU1 is 'FAR'"));
}

TEST_CASE("NVLinks count at the line rate of their generation", "[nccl]") {
  const auto rate = [](int sm, int links) {
    return Imported(system_of({bridge(gpu(0, sm, to_switches(links)) + gpu(1, sm, to_switches(links)))}), 2)
        .spec()
        .nvlink;
  };
  CHECK(rate(80, 12) == 300_GBps);
  CHECK(rate(60, 4) == 80_GBps);
  CHECK(rate(70, 6) == 150_GBps);
  CHECK(rate(86, 4) == Bandwidth::bytes_per_second(56'250'000'000));
  CHECK(rate(90, 18) == 450_GBps);
  CHECK(rate(100, 18) == 900_GBps);
}

TEST_CASE("what the user writes beside the topology is neither read from it nor checked", "[nccl]") {
  const std::string unequal = two_gpus(to_switches(12), to_switches(11));
  const Imported written(unequal, 16, ", nvlink: {bandwidth: 100 GB/s}, nics: {count: 1, bandwidth: 50 GB/s}");
  CHECK(written.spec().nvlink == 100_GBps);
  CHECK(written.spec().nics_per_node == 1);
  CHECK(written.spec().pcie == 32_GBps);
}

TEST_CASE("a NIC serves the gpus that hang nearest to it, and those of another one are named", "[nccl]") {
  // Both NICs on the first CPU: gpu 1 on the second one gets the second NIC, and no other is nearer.
  const std::string lopsided = system_of(
      {bridge(gpu(0, 80, "") + nic("mlx5_0", 0, 200'000) + nic("mlx5_1", 1, 200'000)), bridge(gpu(1, 80, ""))});
  CHECK_THAT(Imported(lopsided).notes(), !Contains("nearer"));
  // Two gpus beside one NIC, the other NIC on a CPU without gpus.
  const std::string apart =
      system_of({bridge(gpu(0, 80, "") + gpu(1, 80, "") + nic("near", 0, 200'000)), bridge(nic("far", 1, 200'000))});
  CHECK_THAT(Imported(apart).notes(), Contains("gpu 1 uses far here, on another CPU, though near is nearer"));
}

TEST_CASE("several NICs a gpu act as one, and a slow PCIe link holds a NIC back", "[nccl]") {
  const std::string four = system_of({bridge(gpu(0, 80, "") + nic("a", 0, 100'000) + nic("b", 1, 100'000)),
                                      bridge(gpu(1, 80, "") + nic("c", 2, 100'000) + nic("d", 3, 100'000))});
  CHECK(Imported(four).spec().nics_per_node == 2);
  CHECK(Imported(four).spec().nic == 200_Gbps);
  CHECK_THAT(Imported(four).notes(), Contains("2 NICs a gpu act as one"));
  // 8 GT/s over 16 lanes: 16 GB/s, less than 25.
  const std::string slow = system_of({bridge(gpu(0, 80, "") + nic("a", 0, 200'000), "8 GT/s")});
  CHECK(Imported(slow).spec().nic == 16_GBps);
  CHECK_THAT(Imported(slow).notes(), Contains("the PCIe link of a NIC is slower than the NIC"));
}

TEST_CASE("gpus joined directly make a node only if every pair has links, and the notes say what that means",
          "[nccl]") {
  const auto link_to = [](int dev) {
    return fmt::format("<nvlink target=\"0000:{:02x}:00.0\" count=\"4\" tclass=\"0x030200\"/>", 16 + dev);
  };
  const Imported pair(two_gpus(link_to(1), link_to(0)));
  CHECK(pair.spec().nvlink == 100_GBps);
  CHECK_THAT(pair.notes(), Contains("no NVSwitch"));
  const std::string chain =
      system_of({bridge(gpu(0, 80, link_to(1) + link_to(1)) + gpu(1, 80, link_to(0) + link_to(2)) +
                        gpu(2, 80, link_to(1) + link_to(1)) + nic("a", 0, 100'000))});
  CHECK_THAT(Imported(chain, 12).problems(), Contains("gpu 0 has no NVLink to gpu 2"));
}

TEST_CASE("links to the CPU over NVLink-C2C stand for PCIe", "[nccl]") {
  const std::string c2c = "<c2c bw=\"50000\" count=\"8\"/>";
  const Imported grace(two_gpus(to_switches(18) + c2c, to_switches(18) + c2c));
  CHECK(grace.spec().pcie == 400_GBps);
  CHECK(grace.spec().devices_per_pcie_uplink == 1);
}

TEST_CASE("PCIe links without a speed are Gen3, as NCCL has it, and said to be", "[nccl]") {
  const Imported silent(
      system_of({"<pci><pci busid=\"b\" link_speed=\"\" link_width=\"0\"><gpu dev=\"0\" sm=\"80\"/></pci></pci>\n"}),
      1);
  CHECK(silent.spec().pcie == 16_GBps);
  CHECK_THAT(silent.notes(), Contains("PCIe links without a speed"));
}

TEST_CASE("a topology that is none, or not of a node that can be simulated, is refused at its place", "[nccl]") {
  CHECK(Imported("gpus: 8\n").problems() == R"(topo.xml:1:1: error: not XML: No document element found
    1 | gpus: 8
        ^ dump it with NCCL_TOPO_DUMP_FILE=topo.xml, in a run over several nodes
)");
  CHECK_THAT(Imported("<system version=\"1\">\n  <cpu>\n</system>\n").problems(),
             Contains("topo.xml:3:") && Contains("error: not XML: Start-end tags mismatch"));
  CHECK_THAT(Imported("<topology/>\n").problems(),
             Contains("topo.xml:1:2: error: not a topology of NCCL: the file holds <topology>"));
  CHECK_THAT(Imported("<graphs version=\"1\"/>\n").problems(), Contains("this is what NCCL_GRAPH_DUMP_FILE writes"));
  CHECK_THAT(Imported(system_of({}, "2")).problems(), Contains("a topology of version '2'"));
  CHECK_THAT(Imported(system_of({""})).problems(), Contains("topo.xml:1:2: error: the topology has no gpu"));
  CHECK_THAT(Imported(system_of({bridge(gpu(0, 80, ""))})).problems(), Contains("error: the topology has no NIC"));
  CHECK(Imported(system_of({bridge(gpu(0, 80, ""))}), 1).problems().empty());  // one node needs none
  CHECK_THAT(Imported(two_gpus(to_switches(12), to_switches(12), 90)).problems(),
             Contains("unequal gpus: gpu 1 is of sm 90, gpu 0 of sm 80"));
  CHECK_THAT(Imported(two_gpus(to_switches(12), to_switches(11))).problems(),
             Contains("unequal gpus: gpu 1 has 11 NVLinks, gpu 0 has 12"));
  CHECK_THAT(Imported(system_of({bridge(gpu(0, 89, to_switches(4)) + nic("a", 0, 1000))})).problems(),
             Contains("no rate is known for the NVLinks of sm 89"));
  CHECK_THAT(
      Imported(system_of({bridge(gpu(0, 80, "") + gpu(1, 80, "") + nic("a", 0, 1000)),
                          bridge(gpu(2, 80, "") + nic("b", 1, 1000) + nic("c", 2, 1000) + nic("d", 3, 1000))}),
               12)
          .problems(),
      Contains("PCIe uplinks with 2 and with 1 gpus") && Contains("3 gpus cannot be divided evenly among 4 NICs"));
  CHECK_THAT(Imported(system_of({bridge("<pci busid=\"b\"><gpu dev=\"x\" sm=\"80\"/></pci>\n")})).problems(),
             Contains("topo.xml:4:") && Contains("'dev' of <gpu> is 'x', not a number from 0 to 1000000"));
  CHECK_THAT(Imported(system_of({bridge("<pci busid=\"b\"><gpu sm=\"80\"/></pci>\n")})).problems(),
             Contains("<gpu> has no 'dev'"));
}

TEST_CASE("numbers of a topology beyond what any machine has are refused, so that no sum of them can overflow",
          "[nccl]") {
  const auto refused = [](const std::string& inside) { return Imported(system_of({bridge(inside)}), 1).problems(); };
  const std::string endless(99, '9');
  CHECK_THAT(refused("<pci busid=\"b\" link_width=\"" + endless + "\"><gpu dev=\"0\" sm=\"80\"/></pci>\n"),
             Contains("'link_width' of <pci> is '9999") && Contains("', more than 64 lanes"));
  CHECK_THAT(refused("<pci link_width=\"inf\"><gpu dev=\"0\" sm=\"80\"/></pci>\n"),
             Contains("'link_width' of <pci> is 'inf', more than 64 lanes"));
  CHECK_THAT(refused(gpu(0, 80, to_switches(1001))),
             Contains("'count' of <nvlink> is '1001', not a number from 0 to 1000"));
  CHECK_THAT(refused(gpu(0, 80, "<c2c bw=\"10000001\" count=\"1\"/>")),
             Contains("'bw' of <c2c> is '10000001', not a number from 1 to 10000000"));
  CHECK_THAT(refused(gpu(0, 80, "") + nic("a", 0, 10'000'001)),
             Contains("'speed' of <net> is '10000001', not a number from 0 to 10000000"));
  CHECK_THAT(refused("<pci><gpu dev=\"" + endless + "\" sm=\"80\"/></pci>\n"), Contains("'dev' of <gpu> is '9999"));
}

TEST_CASE("a topology of more gpus or NICs than a node can have is given up, and told once", "[nccl]") {
  const auto refused = [](const std::string& inside) { return Imported(system_of({inside}), 1).problems(); };
  const auto many = [](const std::string& text) { return fmt::format("{}", fmt::join(std::vector(1026, text), "")); };
  const auto tells_once = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos && text.find(words) == text.rfind(words);
  };
  CHECK(tells_once(refused("<pci>" + many("<gpu dev=\"0\" sm=\"80\"/>") + "</pci>\n"), "more than 1024 of <gpu>"));
  CHECK(tells_once(refused("<pci>" + many("<nic><net dev=\"0\"/></nic>") + "</pci>\n"), "more than 1024 of <nic>"));
}

TEST_CASE("a topology that does not exist is told where it is named", "[nccl]") {
  CHECK_THAT(problems_of("{device: X, gpus: 8, node: {nccl_topology: nowhere.xml}}"),
             Contains("cluster.yaml:1:44: error: there is no file 'nowhere.xml'"));
}
