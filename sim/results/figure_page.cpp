#include "sim/results/figure_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/diagnostic.h"
#include "sim/base/text.h"
#include "sim/results/run_figures.h"

namespace hdpsim {
namespace {

/// A figure and the files that have it in the same meaning.
struct Meaning {
  FigureText text;
  std::vector<std::string> files;
  [[nodiscard]] const std::string& name() const { return text.column.empty() ? text.path : text.column; }
};

std::vector<Meaning> meanings_of(const FigureSection& section) {
  std::vector<Meaning> meanings;
  for (const FigureFile& file : section.files) {
    for (const FigureText& text : file.figures) {
      const auto is_same = [&](const Meaning& each) {
        return !text.column.empty() && each.text.column == text.column && each.text.sentence == text.sentence;
      };
      auto same = std::find_if(meanings.begin(), meanings.end(), is_same);
      if (same == meanings.end()) same = meanings.insert(meanings.end(), {text, {}});
      if (!text.column.empty()) same->files.push_back(file.name);
    }
  }
  return meanings;
}

std::string row(const Meaning& meaning, const FigureSection& section) {
  const FigureText& text = meaning.text;
  const auto code = [](const std::string& name) { return name.empty() ? "" : fmt::format("`{}`", name); };
  const std::string place = section.json.empty() ? "" : fmt::format(" {} |", code(text.path));
  return fmt::format("| {} | {} |{} {} | {} |\n", code(text.column), joined(meaning.files, ", "), place, text.unit,
                     text.sentence);
}

std::string table_head(const FigureSection& section) {
  if (section.json.empty()) return "| column | files | unit | meaning |\n|---|---|---|---|\n";
  return fmt::format("| column | files | place in `{}` | unit | meaning |\n|---|---|---|---|---|\n", section.json);
}

// "mfu: share, in runs.csv and as mfu in result.json"
std::string lines(const Meaning& meaning, const FigureSection& section) {
  const FigureText& text = meaning.text;
  std::vector<std::string> places = meaning.files;
  if (!text.path.empty()) places.push_back(fmt::format("{} in {}", text.path, section.json));
  return fmt::format("{}: {}{}\n    {}\n", meaning.name(), text.unit.empty() ? "" : text.unit + ", ",
                     joined(places, ", "), text.sentence);
}

template <class Row>
FigureFile file_of_table(std::string name, const FigureTable<Row>& figures) {
  FigureFile file{std::move(name), figures.texts()};
  for (FigureText& text : file.figures) text.path.clear();
  return file;
}

}  // namespace

FigureSection study_figures() {
  return {.title = "A study",
          .note =
              "Every row begins with `point`, the swept values and `plan`. Places are those below a run: "
              "`runs[].mfu`.",
          .json = "result.json",
          .files = {{"runs.csv", run_figures().texts()},
                    file_of_table("steps.csv", step_figures()),
                    file_of_table("ranks.csv", rank_figures()),
                    file_of_table("links.csv", link_figures()),
                    file_of_table("memory.csv", memory_figures()),
                    file_of_table("timing.csv", timing_figures())}};
}

std::string figure_text(const std::vector<FigureSection>& sections, const std::vector<std::string>& names) {
  std::string text;
  std::vector<std::string> known;
  std::vector<std::string> unknown = names;
  for (const FigureSection& section : sections) {
    for (const Meaning& meaning : meanings_of(section)) {
      const auto is_its = [&](const std::string& name) {
        const std::string& path = meaning.text.path;
        return name == meaning.text.column || name == path || path.starts_with(fmt::format("{}.", name));
      };
      if (names.empty() || std::any_of(names.begin(), names.end(), is_its)) text += lines(meaning, section);
      std::erase_if(unknown, is_its);
      known.push_back(meaning.name());
    }
  }
  Diagnostics problems;
  for (const std::string& name : unknown) {
    const std::string near = suggestion(name, known);
    problems.error({}, fmt::format("no result has a figure '{}'", name),
                   near.starts_with("did you mean") ? near : "hdpsim columns names them all");
  }
  problems.throw_if_any();
  return text;
}

std::string figure_page(const std::vector<FigureSection>& sections) {
  std::string page =
      "# Columns of results\n\nWritten by `hdpsim columns --format markdown` from the declarations that the files are "
      "written from; [README.md](README.md)\nsays more of some. A column `NAME_s` whose NAME is an activity, such as "
      "`cp_comm_s`, has the time that is booked as it: the\nmean over the ranks, of a run also over its steps. s are "
      "seconds, GB 10^9 bytes; shares are from 0 to 1.\n";
  for (const FigureSection& section : sections) {
    page += fmt::format("\n## {}\n\n{}\n\n{}", section.title, section.note, table_head(section));
    for (const Meaning& meaning : meanings_of(section)) page += row(meaning, section);
  }
  return page;
}

}  // namespace hdpsim
