#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "sim/app/command.h"
#include "sim/base/atomic_file.h"
#include "sim/base/text.h"
#include "sim/study/new_study.h"

namespace hdpsim::app {
namespace {

struct NewOptions {
  std::string file;
  bool force = false;
  std::array<std::string, new_study_parts> answers;  // empty: nothing is said
};

NewStudyPart part_at(int number) {
  return static_cast<NewStudyPart>(number);
}

// Asks until the answer is right; an empty one leaves what is proposed, as if nothing had been asked.
void ask_for(NewStudyPart part, NewStudy& study) {
  note(fmt::format("\n{}", text_of(part).question));
  if (const auto names = study.names_of(part); !names.empty()) note(fmt::format("  {}", joined(names, ", ")));
  const std::string proposal = study.choice_of(part);
  while (true) {
    const auto line = ask(fmt::format("{} [{}]: ", text_of(part).name, proposal));
    if (!line) throw InputError("the input has ended before all questions were answered: nothing is written");
    if (line->empty() && !proposal.empty()) return;
    Diagnostics problems;
    study.answer(part, *line, problems);
    if (problems.empty()) return;
    complain(problems.text());
  }
}

void take_answers(const NewOptions& options, NewStudy& study) {
  Diagnostics problems;
  for (int i = 0; i < new_study_parts; ++i) {
    const std::string& text = options.answers.at(static_cast<std::size_t>(i));
    if (!text.empty()) study.answer(part_at(i), text, problems);
  }
  problems.throw_if_any();
  if (!can_ask()) return;
  for (int i = 0; i < asked_parts; ++i) {
    if (options.answers.at(static_cast<std::size_t>(i)).empty()) ask_for(part_at(i), study);
  }
}

// Its problems have the lines that the file would have.
std::string text_to_write(const NewStudy& study, const std::string& file) {
  try {
    return study.text(file);
  } catch (const InputError&) {
    note(fmt::format("{} was not written, since its study would have these problems:", file));
    throw;
  }
}

int new_command(const NewOptions& options, const Session& session) {
  std::error_code unknown;
  if (!options.force && std::filesystem::exists(std::filesystem::symlink_status(options.file, unknown))) {
    throw InputError(fmt::format("{} is there already", options.file), "--force replaces it");
  }
  Catalog catalog(session.data_folder);
  NewStudy study(catalog);
  take_answers(options, study);
  const std::string text = text_to_write(study, options.file);
  session.inputs.require_none_at(options.file);
  remove_left_overs(options.file);
  write_file(options.file, text);
  for (const std::string& guess : study.guesses()) {
    note(fmt::format("tokens per step: {} is {}: --tokens-per-step", study.choice_of(NewStudyPart::tokens_per_step),
                     guess));
  }
  note(fmt::format("wrote {}; next: hdpsim study {} --out {}", options.file, options.file,
                   std::filesystem::path(options.file).stem().string()));
  return 0;
}

}  // namespace

void add_new_command(Command app, Session& session) {
  const Command command = app.add_subcommand("new", "Write a study of your own, with a comment on every key");
  NewOptions& options = add_command(command, session, new_command);
  command.add_option("FILE", options.file, "The study to write, a YAML file").required();
  for (int i = 0; i < new_study_parts; ++i) {
    const NewStudyPartText& part = text_of(part_at(i));
    command
        .add_option(fmt::format("--{}", part.name), options.answers.at(static_cast<std::size_t>(i)),
                    std::string(part.question))
        .type_name("VALUE");
  }
  command.add_flag("--force", options.force, "Replace FILE if it is there");
  command.footer(
      "On a terminal it asks for the first six that are not given; elsewhere it takes the shipped ones that it would\n"
      "propose. A value is what the key of a study may have: a name, a file, a number, or YAML on one line.\n"
      "Examples:\n  hdpsim new mine.yaml\n"
      "  hdpsim new h100.yaml --cluster h100-rail --gpus 512 --model llama3-8b --lengths github --context 256Ki");
}

}  // namespace hdpsim::app
