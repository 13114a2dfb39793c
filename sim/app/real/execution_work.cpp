#include "sim/app/real/execution_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <string_view>

#include "kernels/exec/requirements.h"
#include "sim/app/check_file.h"
#include "sim/plan/plan_file.h"
#include "sim/run/step.h"
#include "sim/study/study.h"

namespace hdpsim::app {
namespace {

// A file that has the keys of a plan is read as one, so that its reader says what is missing, such as the schema.
bool is_plan_file(const std::string& path, const Value& document) {
  const bool has_keys = document.find("micro_batches") != nullptr && document.find("schedule") != nullptr;
  return has_keys || kind_of_file(path, document) == FileKind::plan;
}

// The plan of an empty batch is sound, as a replay may have one, but trains nothing.
Plan read_plan_to_train(const std::string& path) {
  Diagnostics diagnostics;
  std::optional<Plan> plan = load_sound_plan(path, diagnostics);
  diagnostics.throw_if_any();
  if (plan->sequence_tokens.empty()) {
    throw InputError(Position{path, 0, 0}, "the plan has no sequences: nothing would be trained",
                     "write a plan of a batch: hdpsim plan STUDY --out plan.json");
  }
  return std::move(*plan);
}

/// The study as its file states it. It may be wrong as it stands and right with another number of ranks.
class StatedStudy {
 public:
  StatedStudy(WrittenStudy written, const ExecuteOptions& options, Catalog& catalog)
      : written_(std::move(written)), overrides_(options.overrides), catalog_(catalog) {
    try {
      study_ = written_.resolved(overrides_, catalog_);
      mesh_ = chosen_point(*study_, options.point).spec.mesh;
    } catch (const InputError&) {
      problems_ = std::current_exception();
    }
  }

  /// Devices of a rank; 1 if the study is wrong.
  [[nodiscard]] std::int64_t rank_devices() const { return mesh_.tp * mesh_.pp; }

  /// The study on that number of ranks, if it is not 0: on its own cluster if that has them, else on one node of it
  /// with that many devices. InputError if it is wrong. Once.
  [[nodiscard]] Study take(std::int64_t ranks) {
    const bool has_them = problems_ == nullptr && mesh_.hdp == ranks;
    if (ranks != 0 && !has_them) {
      overrides_.push_back(fmt::format("cluster.gpus={}", ranks * rank_devices()));
      overrides_.push_back(fmt::format("cluster.node.gpus={}", ranks * rank_devices()));
      return written_.resolved(overrides_, catalog_);
    }
    if (problems_ != nullptr) std::rethrow_exception(problems_);
    return std::move(*study_);
  }

 private:
  WrittenStudy written_;
  std::vector<std::string> overrides_;
  Catalog& catalog_;
  std::optional<Study> study_;
  std::exception_ptr problems_;
  Mesh mesh_;
};

// The number of HDP ranks that the user asks for; 0 if the study decides.
std::int64_t wanted_ranks(const ExecuteOptions& options, const std::optional<int>& processes,
                          std::int64_t rank_devices) {
  if (!processes) return options.ranks;
  if (*processes % rank_devices != 0) {
    throw InputError(fmt::format("{} processes have been started, but a rank is {} of them", *processes, rank_devices),
                     "start a multiple of mesh.tp x mesh.pp");
  }
  const std::int64_t ranks = *processes / rank_devices;
  if (options.ranks == 0 || options.ranks == ranks) return ranks;
  throw InputError(fmt::format("--ranks is {}, but {} processes have been started", options.ranks, *processes),
                   rank_devices == 1 ? "leave --ranks out: each process is a rank"
                                     : fmt::format("leave --ranks out: {} processes are a rank", rank_devices));
}

void require_match(const Work& work, std::int64_t ranks, const std::string& file) {
  const Mesh& mesh = work.point->spec.mesh;
  if (work.plan && ranks != 0 && work.plan->ranks != ranks) {
    throw InputError(Position{file, 0, 0}, fmt::format("the plan is for {} ranks, not {}", work.plan->ranks, ranks));
  }
  if (ranks != 0 && mesh.hdp != ranks) {
    throw InputError(fmt::format("the study has {} HDP ranks, not {}", mesh.hdp, ranks), "leave out mesh.hdp");
  }
  kernels::exec::require_executable(work.point->spec.recipe);
  kernels::exec::require_executable(work.model(), mesh, work.point->spec.pipeline);
}

// Every policy of --plan once, in the order in which they are named; or all of them.
std::vector<std::size_t> chosen_policies(const Study& study, const ExecuteOptions& options) {
  std::vector<std::size_t> policies;
  if (options.all_plans) {
    policies.resize(study.plans.size());
    std::iota(policies.begin(), policies.end(), std::size_t{0});
    return policies;
  }
  const std::vector<std::string>& names = options.plans;
  if (names.empty()) return {chosen_plan(study, "")};
  for (const std::string& name : names) {
    const std::size_t policy = chosen_plan(study, name);
    if (std::find(policies.begin(), policies.end(), policy) != policies.end()) {
      throw InputError(fmt::format("--plan names '{}' twice", name), "to run it again and again, use --repeat");
    }
    policies.push_back(policy);
  }
  return policies;
}

// The folder of a plan: "static {cp: 8}" becomes "static-cp-8".
std::string folder_name(const std::string& plan) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  std::string name;
  for (const char c : plan) {
    if (allowed.find(c) != std::string_view::npos) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return name;
}

void require_one_training(const ExecuteOptions& options, const Work& work) {
  if (options.checkpoint.empty() || (work.plans() == 1 && options.runs == 1)) return;
  throw InputError("--checkpoint belongs to one training, not to steps that are run by several plans or several times",
                   "leave out --repeat, and all plans but one");
}

}  // namespace

std::string Work::plan_name(std::size_t which) const {
  return plan ? plan->policy : study.plans[policies.at(which)].name;
}

std::vector<std::string> Work::folder_names() const {
  std::vector<std::string> names;
  for (std::size_t which = 0; which < plans(); ++which) {
    const std::string name = folder_name(plan_name(which));
    const auto is_taken = [&](const std::string& other) {
      return std::find(names.begin(), names.end(), other) != names.end();
    };
    std::string own = name;
    for (int number = 2; is_taken(own); ++number) own = fmt::format("{}-{}", name, number);
    names.push_back(own);
  }
  return names;
}

Plan Work::plan_of(std::size_t which, std::int64_t step) const {
  if (!plan) {
    const std::size_t policy = policies.at(which);
    return make_plan(*point, policy, step, point->batches_of(policy).step(step));
  }
  Plan again = *plan;
  again.step += step;
  return again;
}

std::vector<double> Work::slowdowns(std::int64_t step) const {
  const PointSpec& spec = point->spec;
  return spec.conditions.faults.empty() ? std::vector<double>{}
                                        : fault_factors(spec.conditions, spec.cluster.devices, step);
}

Work read_work(const ExecuteOptions& options, const std::optional<int>& processes, Catalog& catalog) {
  Work work;
  Diagnostics found;
  Value document = load_document(options.file, found);
  if (document.is_null()) found.throw_if_any();
  const bool plan_given = is_plan_file(options.file, document);
  if (plan_given && options.study.empty()) {
    throw InputError(Position{options.file, 0, 0}, "a plan does not say for which model and data it is",
                     "name its study with --study");
  }
  if (!plan_given && !options.study.empty()) {
    throw InputError(Position{options.file, 0, 0}, "this is no plan, to which --study belongs",
                     "to run a study, leave --study out");
  }
  if (plan_given) {
    work.plan = read_plan_to_train(options.file);
    found = {};
    document = load_document(options.study, found);
  }
  StatedStudy stated({std::move(document), std::move(found)}, options, catalog);
  const std::int64_t ranks = wanted_ranks(options, processes, stated.rank_devices());
  const std::int64_t wanted = ranks == 0 && work.plan ? work.plan->ranks : ranks;
  work.study = stated.take(wanted);
  work.point = &chosen_point(work.study, options.point);
  if (!plan_given) work.policies = chosen_policies(work.study, options);
  require_match(work, wanted, options.file);
  require_one_training(options, work);
  return work;
}

}  // namespace hdpsim::app
