#include "sim/app/command.h"
#include "sim/app/named_cluster.h"
#include "sim/report/cluster_report.h"

namespace hdpsim::app {
namespace {

struct ShowOptions {
  std::string cluster;
  std::string format = "table";
};

int run_show(const ShowOptions& options, const Session& session) {
  const ClusterReport report = report_cluster(named_cluster(options.cluster, {}, Catalog(session.data_folder)));
  const bool as_json = options.format == "json";
  print(as_json ? cluster_json(report, version) : cluster_table(report), as_json ? Format::json : Format::table);
  return 0;
}

}  // namespace

void add_cluster_command(Command app, Session& session) {
  const Command cluster = app.add_subcommand("cluster", "Look at a cluster as it will be simulated");
  cluster.require_subcommand();
  cluster.footer("Example:\n  hdpsim cluster show gb200-nvl72");
  const Command show =
      cluster.add_subcommand("show", "Nodes, NICs, tiers, links with their rates, bisection bandwidth");
  ShowOptions& options = add_command(show, session, run_show);
  show.add_option("CLUSTER", options.cluster, "A shipped cluster or a cluster file").required().type_name("NAME|FILE");
  show.add_option("--format", options.format, "What to print: table or json")
      .one_of({"table", "json"})
      .type_name("FORMAT");
  show.footer("Example:\n  hdpsim cluster show h100-rail");
}

}  // namespace hdpsim::app
