#include "sim/app/command.h"

namespace hdpsim::app {

void add_commands(Command app, Session& session) {
  add_new_command(app, session);
  add_import_command(app, session);
  add_study_command(app, session);
  add_replay_command(app, session);
  add_tune_command(app, session);
  add_plan_command(app, session);
  add_import_plan_command(app, session);
  add_explain_command(app, session);
  add_decide_command(app, session);
  add_tasks_command(app, session);
  add_explore_command(app, session);
  add_check_command(app, session);
  add_keys_command(app, session);
  add_columns_command(app, session);
  add_trace_command(app, session);
  add_calibrate_command(app, session);
  add_compress_command(app, session);
  add_comm_command(app, session);
  add_execute_command(app, session);
  add_compare_command(app, session);
  add_cluster_command(app, session);
  add_list_command(app, session);
  add_validate_command(app, session);
  add_completion_command(app, session);
  add_manual_command(app, session);
}

}  // namespace hdpsim::app
