#include <fmt/format.h>
#include <zlib.h>

#include "sim/base/check.h"
#include "sim/document/compression.h"
#include "sim/trace/trace.h"
#include "sim/trace/trace_file.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

using Tokens = std::vector<std::int64_t>;

Tokens read(const std::filesystem::path& path, const TraceOptions& options = {}) {
  return tokens_of(*open_trace(path, options));
}

std::string gzipped(std::string_view text) {
  const TraceFolder folder;
  const gzFile file = gzopen(folder.at("a.gz").c_str(), "wb");
  static_cast<void>(gzwrite(file, text.data(), static_cast<unsigned>(text.size())));
  static_cast<void>(gzclose(file));
  return folder.read("a.gz");
}

}  // namespace

TEST_CASE("one length a line: blank lines, comments, blanks, CR LF and a byte order mark are no lengths", "[trace]") {
  const TraceFolder folder;
  CHECK(read(folder.write("a.txt", "5\n7\n")) == Tokens{5, 7});
  CHECK(read(folder.write("b.txt", "\xEF\xBB\xBF# lengths\r\n\r\n  5 \r\n7\t\r\n1099511627776")) ==
        Tokens{5, 7, longest_length});
}

TEST_CASE("every wrong line of a file is told at once, with its place, its text and how to write it", "[trace]") {
  const TraceFolder folder;
  const auto path =
      folder.write("a.txt", "12\n-3\n0\n  4Ki\n12.5\n512.0\nabc\n1099511627777\n99999999999999999999\n8\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.txt:2:1: error: the length -3 is negative; a length is a whole number of tokens from 1 to 2^40\n"
        "a.txt:3:1: error: the length is 0; a length is a whole number of tokens from 1 to 2^40\n"
        "a.txt:4:3: error: the length \"4Ki\" is not a whole number; write 4096\n"
        "a.txt:5:1: error: the length \"12.5\" is not a whole number; a length is a whole number of tokens from 1 to "
        "2^40\n"
        "a.txt:6:1: error: the length \"512.0\" is not a whole number; write 512\n"
        "a.txt:7:1: error: the length \"abc\" is not a whole number; a length is a whole number of tokens from 1 to "
        "2^40\n"
        "a.txt:8:1: error: the length 1099511627777 is above 2^40 tokens; a length is a whole number of tokens from 1 "
        "to 2^40\n"
        "a.txt:9:1: error: the length 99999999999999999999 is above 2^40 tokens; a length is a whole number of tokens "
        "from 1 to 2^40\n");
}

TEST_CASE("of many problems the first twenty are told and the others counted", "[trace]") {
  const TraceFolder folder;
  std::string text;
  for (int i = 0; i < 32; ++i) text += "0\n";
  const std::string said = folder.complaint([&] { return read(folder.write("a.txt", text)); });
  CHECK(said.find("a.txt:20:1: error: the length is 0; ") != std::string::npos);
  CHECK(said.ends_with("a.txt:21:1: error: and 12 more problems from here on\n"));
  const std::string one_more = folder.complaint([&] { return read(folder.write("b.txt", text.substr(0, 42))); });
  CHECK(one_more.find("and 1 more problem from here on\n") != std::string::npos);
  CHECK(folder.complaint([&] { return read(folder.write("c.txt", text.substr(0, 40))); }).find("more") ==
        std::string::npos);
}

TEST_CASE("the thousandth problem ends the reading", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](int wrong) {
    std::string text;
    for (int i = 0; i < wrong; ++i) text += "0\n";
    return folder.complaint([&] { return read(folder.write("a.txt", text)); });
  };
  CHECK(said(999).find("a.txt:21:1: error: and 979 more problems from here on\n") != std::string::npos);
  CHECK(said(1000).find("a.txt:21:1: error: and at least 980 more problems from here on\n") != std::string::npos);
  CHECK(said(1000) == said(2000));
}

TEST_CASE("a line may have 16 MiB", "[trace]") {
  const TraceFolder folder;
  constexpr std::size_t most = std::size_t{16} << 20;
  const auto said = [&](std::size_t blanks) {
    return folder.complaint([&] { return read(folder.write("a.txt", "7\n" + std::string(blanks, ' ') + "8\n")); });
  };
  CHECK(said(most - 1).empty());
  CHECK(said(most + (1 << 16)).starts_with("a.txt:2:1: error: the line is longer than 16 MiB\n"));
}

TEST_CASE("ten million lines may hold nothing", "[trace]") {
  const TraceFolder folder;
  std::string text = "7\n" + std::string(10'000'000, '\n');
  CHECK(read(folder.write("a.txt", text)) == Tokens{7});
  text += "# one more\n";
  const std::string said = folder.complaint([&] { return read(folder.write("a.txt", text)); });
  CHECK(said.starts_with("a.txt:10000002:1: error: more than 10000000 lines hold nothing\n"));
}

TEST_CASE("csv: a table has 10,000 columns at most", "[trace]") {
  const TraceFolder folder;
  const auto table = [&](int columns) {
    std::string header = "length";
    std::string row = "5";
    for (int i = 1; i < columns; ++i) {
      header += fmt::format(",c{}", i);
      row += ",0";
    }
    return folder.write("a.csv", header + "\n" + row + "\n");
  };
  CHECK(read(table(10'000)) == Tokens{5});
  CHECK(folder.complaint([&] { return read(table(10'001)); }).find("error: more than 10000 values in a row") !=
        std::string::npos);
}

TEST_CASE("csv: an open quote takes no more than a mebibyte of the file", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](std::size_t lines) {
    const std::string text = "length,note\n5,\"" + std::string(lines, '\n') + "\"\n";
    return folder.complaint([&] { return read(folder.write("a.csv", text)); });
  };
  CHECK(said(1 << 20).empty());
  CHECK(said((1 << 20) + 2).find("a.csv:2:3: error: the quote is never closed") != std::string::npos);
}

TEST_CASE("jsonl: what is nested in a line is passed over, 64 levels deep at most", "[trace]") {
  const TraceFolder folder;
  const auto line = [&](int lists) {
    return folder.write("a.jsonl", "{\"text\": " + std::string(lists, '[') + "{\"length\": 3}" +
                                       std::string(lists, ']') + ", \"length\": 5}\n");
  };
  CHECK(read(line(0)) == Tokens{5});
  CHECK(read(line(62)) == Tokens{5});
  CHECK(folder.complaint([&] { return read(line(63)); })
            .starts_with("a.jsonl:1:1: error: the line is nested in more than 64 levels"));
}

TEST_CASE("jsonl: a line has 10,000 fields at most", "[trace]") {
  const TraceFolder folder;
  const auto line = [&](int fields) {
    std::string text = "{\"length\": 5";
    for (int i = 1; i < fields; ++i) text += fmt::format(", \"f{}\": 1", i);
    return folder.write("a.jsonl", text + "}\n");
  };
  CHECK(read(line(10'000)) == Tokens{5});
  CHECK(folder.complaint([&] { return read(line(10'001)); }).find("error: the line has more than 10000 fields") !=
        std::string::npos);
}

TEST_CASE("a text may have a header line, and fields between tabs, semicolons or bars", "[trace]") {
  const TraceFolder folder;
  CHECK(read(folder.write("a.txt", "num_tokens\n500\n700\n90000\n")) == Tokens{500, 700, 90000});
  CHECK(read(folder.write("a.tsv", "id\tnum_tokens\n0\t500\n1\t700\n")) == Tokens{500, 700});
  CHECK(read(folder.write("b.tsv", "name\tlength\n\t5\n\"a\tb\"\t7\n")) == Tokens{5, 7});
  CHECK(read(folder.write("a.csv", "id;length\n0;500\n1;700\n")) == Tokens{500, 700});
  CHECK(read(folder.write("b.csv", "id|length\n0|500\n")) == Tokens{500});
  CHECK(read(folder.write("b.txt", "id  length\n0  500\n11 700 \n")) == Tokens{500, 700});
  CHECK(read(folder.write("c.csv", "Request tokens\n500\n700\n")) == Tokens{500, 700});  // one name
  const auto said = [&](const std::string& name, const std::string& text) {
    return folder.complaint([&] { return read(folder.write(name, text)); });
  };
  CHECK(
      said("d.txt", "7 # seven\n8\n").starts_with("d.txt:1:1: error: the length \"7 # seven\" is not a whole number"));
  CHECK_THAT(said("d.csv", "1024,500\n2048,300\n"),
             Catch::Contains("d.csv:1:1: error: the first line does not name the columns"));
  CHECK_THAT(said("e.txt", "1024 500\n2048 300\n"),
             Catch::Contains("e.txt:1:1: error: the first line does not name the columns"));
}

TEST_CASE("two columns that may be the parts of a document are told how to be added up", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.jsonl", "{\"prompt_len\": 300, \"output_len\": 900}\n");
  CHECK_THAT(folder.complaint([&] { return read(path); }),
             Catch::Contains("which column holds the lengths?") &&
                 Catch::Contains("if a document is both, prompt_len+output_len"));
  CHECK(read(path, {.column = "prompt_len+output_len"}) == Tokens{1200});
}

TEST_CASE("a list of tokens is as long as it has tokens, whatever stands beside it", "[trace]") {
  const TraceFolder folder;
  const std::string lines =
      "{\"input_ids\": [11, 12, 13], \"attention_mask\": [1, 1, 1], \"id\": \"a\"}\n"
      "{\"input_ids\": [14], \"attention_mask\": [1], \"id\": \"b\"}\n";
  CHECK(read(folder.write("a.jsonl", lines)) == Tokens{3, 1});
  CHECK(read(folder.write("a.jsonl", lines), {.column = "attention_mask"}) == Tokens{3, 1});
  CHECK(read(folder.write("b.jsonl", "{\"tokens\": [[1, 2], [3]], \"length\": 9}\n")) == Tokens{9});
  const auto said = [&](const std::string& line, const TraceOptions& options = {}) {
    return folder.complaint([&] { return read(folder.write("c.jsonl", line), options); });
  };
  CHECK_THAT(said("{\"lengths\": [5, 6, 7]}\n"), Catch::Contains("by its name of lengths, and not of tokens"));
  CHECK_THAT(said("{\"seq_lens\": [5, 6, 7]}\n", {.column = "seq_lens"}), Catch::Contains("by its name of lengths"));
  for (const char* list : {"[[1, 2], [3]]", "[{\"a\": 1}]", "[1, \"2\"]", "[1, 2.5]", "[]", "[1, [2], 3]"}) {
    CAPTURE(list);
    CHECK_THAT(said(fmt::format("{{\"input_ids\": {}}}\n", list)), Catch::Contains("a list, but not one of tokens"));
  }
}

TEST_CASE("indices of shards and Arrow files are refused with what writes their lengths", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& name, const std::string& text) {
    return folder.complaint([&] { return read(folder.write(name, text)); });
  };
  CHECK_THAT(said("index.json", "{\"version\": 2, \"shards\": [{\"samples\": 4093}]}\n"),
             Catch::Contains("an index of MDS shards tells no lengths") && Catch::Contains("StreamingDataset"));
  CHECK_THAT(said("sizes.json", "{\"00000.tar\": 1234}\n"), Catch::Contains("an index of tar shards"));
  CHECK_THAT(said("list.json", "[1, 2]\n"), Catch::Contains("write one object a line to a .jsonl"));
  CHECK_THAT(said("a.arrow", "x"), Catch::Contains("Dataset.from_file('a.arrow')"));
}

TEST_CASE("a compression that is not read is told with what decompresses it", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& name, const TraceOptions& options = {}) {
    return folder.complaint([&] { return read(folder.write(name, "x"), options); });
  };
  CHECK(said("a.jsonl.lz4") ==
        "a.jsonl.lz4: error: LZ4 is not read\n"
        "        decompress it: lz4 -d a.jsonl.lz4, or compress it with gzip\n");
  CHECK_THAT(said("a.txt.7z", {.format = TraceFormat::lines}), Catch::Contains("decompress it: 7z x a.txt.7z"));
  CHECK(is_named_as_lengths("a.jsonl.zst"));
  CHECK(is_named_as_lengths("a.csv.gz"));
  CHECK(is_named_as_lengths("a.parquet"));
  CHECK_FALSE(is_named_as_lengths("rank0.json.gz"));
}

TEST_CASE("a file that is not there, empty, a folder or of an unknown extension says so", "[trace]") {
  const TraceFolder folder;
  folder.write("lengths.txt", "5\n");
  folder.write("empty.txt", "\n# nothing\n");
  folder.write("a.list", "5\n");
  const auto said = [&](const std::string& name) { return folder.complaint([&] { return read(folder.at(name)); }); };
  CHECK(said("length.txt") == "length.txt: error: there is no such file\n        did you mean 'lengths.txt'?\n");
  CHECK(said("empty.txt") == "empty.txt: error: the file holds no lengths\n");
  CHECK(said("a.list") ==
        "a.list: error: the extension does not name a known format\n"
        "        name one of the formats lines, csv, jsonl, npy, megatron, histogram, quantiles, mixture, edges\n");
  std::filesystem::create_directory(folder.at("b.txt"));
  CHECK(said("b.txt") == "b.txt: error: is a directory\n        name a file in it\n");
  CHECK(read(folder.at("a.list"), {.format = TraceFormat::lines}) == Tokens{5});
}

TEST_CASE("a text in UTF-16, or with line ends of CR alone, is refused with what makes it readable", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& bytes) {
    return folder.complaint([&] { return read(folder.write("a.csv", bytes)); });
  };
  const std::string utf16 = "a.csv:1:1: error: this text is UTF-16\n        save it as UTF-8\n";
  CHECK(said(std::string("\xFF\xFE\x35\0\x0A\0", 6)) == utf16);
  CHECK(said(std::string("\xFE\xFF\0\x35\0\x0A", 6)) == utf16);
  CHECK(said("length\r5\r6\r") ==
        "a.csv:1:1: error: the lines of this text end with CR alone\n"
        "        end them with LF, as tr '\\r' '\\n' does\n");
  CHECK(read(folder.write("one.txt", "5\r")) == Tokens{5});
}

TEST_CASE("a data frame is refused with the command that converts it", "[trace]") {
  const TraceFolder folder;
  CHECK(folder.complaint([&] { return read(folder.write("docs.parquet", "PAR1")); }) ==
        "docs.parquet: error: Parquet is not read\n"
        "        convert it: python3 -c \"import pandas; "
        "pandas.read_parquet('docs.parquet')[['COLUMN']].to_csv('lengths.csv', index=False)\"\n");
}

TEST_CASE("texts are read compressed, of every format, and binary files are not", "[trace]") {
  const TraceFolder folder;
  const Tokens three{5, 6, 7};
  CHECK(read(folder.write("a.csv.gz", gzipped("id,length\n1,5\n2,6\n3,7\n"))) == three);
  CHECK(read(folder.write("a.txt.gz", gzipped("5\n6\n7\n"))) == three);
  CHECK(read(folder.write("a.jsonl.gz", gzipped("{\"length\": 5}\n{\"length\": 6}\n{\"length\": 7}\n"))) == three);
  CHECK(folder.complaint([&] { return read(folder.write("a.npy.gz", gzipped("x"))); }) ==
        "a.npy.gz: error: only texts are read compressed\n        decompress it: gunzip\n");
}

// "5\n6\n7\n", as `zstd`, `bzip2` and `xz` compress it.
const std::string zstd_bytes("\x28\xb5\x2f\xfd\x04\x58\x31\x00\x00\x35\x0a\x36\x0a\x37\x0a\xac\xfe\xcc\x57", 19);
const std::string bzip2_bytes(
    "\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x47\x2c\xc7\xc6\x00\x00\x01\xc8\x00\x00\x10\x03\x80\x20\x00\x21\x9a\x68"
    "\x33\x4d\x1c\xb7\x8b\xb9\x22\x9c\x28\x48\x23\x96\x63\xe3\x00",
    43);
const std::string xz_bytes(
    "\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x16\x00\x00\x00\x74\x2f\xe5\xa3\x01\x00\x05\x35"
    "\x0a\x36\x0a\x37\x0a\x00\x00\x00\xbf\x1d\x09\x4d\x17\x22\x5b\xec\x00\x01\x1e\x06\xc1\x2f\xa4\x1d\x1f\xb6\xf3\x7d"
    "\x01\x00\x00\x00\x00\x04\x59\x5a",
    64);

TEST_CASE("texts are read from every compression of which the build has the library, and else it says what has it",
          "[trace]") {
  const TraceFolder folder;
  struct Row {
    const char* name;
    const std::string* bytes;
    const char* package;
  };
  for (const Row& row : {Row{"a.txt.zst", &zstd_bytes, "libzstd-dev"},
                         {"a.txt.bz2", &bzip2_bytes, "libbz2-dev"},
                         {"a.txt.xz", &xz_bytes, "liblzma-dev"}}) {
    CAPTURE(row.name);
    const auto path = folder.write(row.name, *row.bytes);
    if (!is_read(*compression_of(path))) {
      CHECK_THAT(folder.complaint([&] { return read(path); }),
                 Catch::Contains("this build does not read") && Catch::Contains(row.package));
      continue;
    }
    CHECK(read(path) == Tokens{5, 6, 7});
    // Streams one behind the other are one text.
    CHECK(read(folder.write(row.name, *row.bytes + *row.bytes)) == Tokens{5, 6, 7, 5, 6, 7});
    for (std::size_t length = 1; length < row.bytes->size(); ++length) {
      CAPTURE(length);
      const auto cut = folder.write(row.name, row.bytes->substr(0, length));
      CHECK_THAT(folder.complaint([&] { return read(cut); }), Catch::Contains("its compression is damaged"));
    }
    CHECK_THAT(folder.complaint([&] { return read(folder.write(row.name, "5\n6\n7\n")); }),
               Catch::Contains("its compression is damaged"));
    CHECK_THAT(folder.complaint([&] { return read(folder.write(row.name, "")); }),
               Catch::Contains("the file holds no lengths"));
    ListedLengths one(std::vector<Length>{{5, {}}});
    CHECK_THAT(folder.complaint([&] { return write_trace(one, folder.at(row.name)); }),
               Catch::Contains("nothing is written compressed"));
  }
}

TEST_CASE("a compressed file that is cut short or changed is told, at every byte", "[trace]") {
  const TraceFolder folder;
  std::string text;
  for (int i = 1; i <= 100; ++i) text += fmt::format("{}\n", i * i);
  const std::string whole = gzipped(text);
  constexpr std::size_t header = 10;
  for (std::size_t length = header; length < whole.size(); ++length) {
    CAPTURE(length);
    const auto cut = folder.write("cut.txt.gz", whole.substr(0, length));
    CHECK_THAT(folder.complaint([&] { return read(cut); }), Catch::Contains("its compression is damaged"));
  }
}

TEST_CASE("a file that is there and cannot be read is the machine's refusal", "[trace]") {
  // Address 0 of this process is mapped nowhere, so that the kernel refuses to read it, even to root.
  CHECK_THROWS_AS(read("/proc/self/mem", {.format = TraceFormat::lines}), MachineError);
}

TEST_CASE("csv: the length column is the named one, or `length`, or `tokens`, or the only one", "[trace]") {
  const TraceFolder folder;
  CHECK(read(folder.write("a.csv", "id,tokens,length\n1,2,3\n4,5,6\n")) == Tokens{3, 6});
  CHECK(read(folder.at("a.csv"), {.column = "id"}) == Tokens{1, 4});
  CHECK(read(folder.write("b.csv", "id,tokens\n1,2\n")) == Tokens{2});
  CHECK(read(folder.write("c.csv", "prompt\n7\n")) == Tokens{7});
}

TEST_CASE("csv: quoted values may hold commas, quotes and line ends", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv",
                                 "# a comment\r\n"
                                 "\"the \"\"text\"\"\", length ,step\r\n"
                                 "\"a, b\", 5 ,0\r\n"
                                 "\r\n"
                                 "\"two\nlines\"  ,\"6\",1\r\n");
  const auto source = open_trace(path);
  CHECK(source->next() == Length{5, 0});
  CHECK(source->next() == Length{6, 1});
  CHECK_FALSE(source->next().has_value());
}

TEST_CASE("csv: a missing column is told with those that there are", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "time,ContextTokens,words\n0,5,6\n");
  const TraceOptions misspelt{.column = "ContextToken", .step_column = "iteration"};
  CHECK(folder.complaint([&] { return read(path, misspelt); }) ==
        "a.csv:1:1: error: there is no column 'ContextToken'; did you mean 'ContextTokens'? the columns are: time, "
        "ContextTokens, words\n"
        "a.csv:1:1: error: there is no column 'iteration'; the columns are: time, ContextTokens, words\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.csv:1:1: error: which column holds the lengths?; name it with --column, or as column in data.lengths; the "
        "columns are: time, ContextTokens, words\n");
  const TraceOptions as_csv{.format = TraceFormat::csv};
  CHECK(
      folder.complaint([&] { return read(folder.write("b.csv", "512\n77\n"), as_csv); }) ==
      "b.csv:1:1: error: the first line does not name a column; a file of one length a line has the format 'lines'\n");
}

TEST_CASE("a column or a field that is there twice is refused where it is asked for", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "length,words,length\n5,6,7\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.csv:1:1: error: the column 'length' is here more than once; rename all but one of them\n");
  CHECK(read(path, {.column = "words"}) == Tokens{6});
  CHECK(folder.complaint([&] { return read(folder.write("a.jsonl", "{\"length\": 5, \"length\": 6}\n")); }) ==
        "a.jsonl:1:1: error: the field 'length' is here more than once; remove all but one of them\n");
}

TEST_CASE("a usual name is recognised where there is one alone, and it is told which was taken", "[trace]") {
  const TraceFolder folder;
  const auto taken = [&](const std::string& header, const TraceOptions& options = {}) {
    const auto source = open_trace(folder.write("a.csv", header + "\n1,5,9\n"), options);
    const auto first = source->next();
    return fmt::format("{} of {}", first->tokens, source->column());
  };
  CHECK(taken("doc_id,n_tokens,source") == "5 of n_tokens");
  CHECK(taken("doc_id,Num_Tokens,source") == "5 of Num_Tokens");
  CHECK(taken("seq_len,text,source") == "1 of seq_len");
  CHECK(taken("doc_id,input_length,output_length") == "14 of input_length+output_length");
  // Nothing is to be told of a column that was named, or that there is no doubt about.
  CHECK(taken("doc_id,n_tokens,source", {.column = "n_tokens"}) == "5 of ");
  CHECK(taken("n_tokens,length,seq_len") == "5 of ");
  CHECK_THAT(folder.complaint([&] { return read(folder.write("b.csv", "n_tokens,seq_len\n1,2\n")); }),
             Catch::Contains("which column holds the lengths?"));
  const auto jsonl = open_trace(folder.write("a.jsonl", "{\"id\": 1, \"num_tokens\": 5}\n"));
  CHECK(jsonl->next() == Length{5});
  CHECK(jsonl->column() == "num_tokens");
  CHECK(collect(*open_trace(folder.at("a.jsonl"))).column == "num_tokens");
}

TEST_CASE("the columns of published traces are known: a document is a prompt and what was generated", "[trace]") {
  const TraceFolder folder;
  const Tokens expected{5 + 6, 7 + 0};  // a request that failed generated nothing
  CHECK(read(folder.write("azure.csv",
                          "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                          "2024-05-10 00:00:00.009930+00:00,5,6\n2024-05-10 00:00:00.017335+00:00,7,0\n")) == expected);
  CHECK(read(folder.write("burst.csv",
                          "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                          "5,GPT-4,5,6,11,Conversation log\n45,ChatGPT,7,0,7,API log\n")) == expected);
  CHECK(read(folder.write("servegen.csv", "request_id,timestamp,input_tokens,output_tokens\n0,0.5,5,6\n1,1.2,7,0\n")) ==
        expected);
  CHECK(read(folder.write("vidur.csv", "arrived_at,num_prefill_tokens,num_decode_tokens\n0,5,6\n0.2,7,0\n")) ==
        expected);
  CHECK(read(folder.write(
            "mooncake.jsonl",
            "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 6, \"hash_ids\": [0]}\n"
            "{\"timestamp\": 3052, \"input_length\": 7, \"output_length\": 0, \"hash_ids\": [0, 1]}\n")) == expected);
  CHECK(read(folder.at("azure.csv"), {.column = "ContextTokens"}) == Tokens{5, 7});
}

TEST_CASE("columns may be added up by name; their sum must be a length", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "a,b,a+b\n1,2,9\n0,4,9\n");
  CHECK(read(path, {.column = "a + b"}) == Tokens{1 + 2, 0 + 4});
  CHECK(read(path, {.column = "a+b"}) == Tokens{9, 9});  // a column of that name comes first
  CHECK(folder.complaint([&] { return read(path, {.column = "a+weight+b"}); }) ==
        "a.csv:1:1: error: there is no column 'weight'; the columns are: a, b, a+b\n");
  const auto wrong = folder.write("b.csv", "a,b\n0,0\n-1,2\n1099511627776,1\n");
  CHECK(folder.complaint([&] { return read(wrong, {.column = "b+a"}); }) ==
        "b.csv:2:3: error: the length is 0; a length is a whole number of tokens from 1 to 2^40\n"
        "b.csv:3:1: error: the length -1 is negative; a length is a whole number of tokens from 1 to 2^40\n"
        "b.csv:4:15: error: the length 1099511627777 is above 2^40 tokens; a length is a whole number of tokens from 1 "
        "to 2^40\n");
}

TEST_CASE("csv: wrong values and ragged rows are told together", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv",
                                 "name,step,length\n"
                                 "\"x\ny\",-1,0\n"
                                 "a,1\n"
                                 "a,b,1,77\n"
                                 "\"q\"z,2,9\n"
                                 "a,,\n"
                                 "a,3,9\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.csv:3:4: error: the step -1 is negative; a step is a whole number from 0\n"
        "a.csv:3:7: error: the length is 0; a length is a whole number of tokens from 1 to 2^40\n"
        "a.csv:4:4: error: the row has 2 values, the header 3\n"
        "a.csv:5:9: error: the row has 4 values, the header 3; put a value with a comma in it in double quotes\n"
        "a.csv:6:4: error: there is text after the closing quote; a quote inside a quoted value is written twice\n"
        "a.csv:7:3: error: the step is missing; a step is a whole number from 0\n"
        "a.csv:7:4: error: the length is missing; a length is a whole number of tokens from 1 to 2^40\n");
}

TEST_CASE("csv: a quote that is never closed is told where it opens", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.csv", "name,length\na,5\n\"b,6\nc,7\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.csv:3:1: error: the quote is never closed; a quote inside a quoted value is written twice\n");
  CHECK(folder.complaint([&] { return read(folder.write("b.csv", "")); }) ==
        "b.csv: error: the file is empty\n        the first line names the columns\n");
  CHECK(folder.complaint([&] { return read(folder.write("c.csv", "length\n")); }) ==
        "c.csv: error: the file holds no lengths\n");
}

TEST_CASE("jsonl: a named field of every line, with its step", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.jsonl",
                                 "{\"timestamp\": 0, \"input_length\": 6758, \"hash_ids\": [0, 1]}\n"
                                 "\n"
                                 "{\"timestamp\": 30, \"input_length\": 7322, \"hash_ids\": []}\n");
  CHECK(read(path, {.column = "input_length"}) == Tokens{6758, 7322});
  const auto stepped = open_trace(path, {.column = "input_length", .step_column = "timestamp"});
  CHECK(stepped->next() == Length{6758, 0});
  CHECK(stepped->next() == Length{7322, 30});
  CHECK(read(folder.write("b.ndjson", "{\"length\": 5}\n{\"length\": 6, \"more\": true}")) == Tokens{5, 6});
}

TEST_CASE("jsonl: every wrong line is told at the value that is wrong", "[trace]") {
  const TraceFolder folder;
  const auto path = folder.write("a.jsonl",
                                 "{\"id\": 1, \"length\": 5}\n"
                                 "{\"id\": 2, \"length\": -5}\n"
                                 "{\"id\": 3, \"length\": \"5\"}\n"
                                 "{\"id\": 4, \"length\": 5.5}\n"
                                 "{\"id\": 5, \"lenght\": 5}\n"
                                 "{\"id\": 6, \"length\" 5}\n"
                                 "[7, 5]\n"
                                 "{\"id\": 8, \"length\": 36893488147419103232}\n");
  CHECK(folder.complaint([&] { return read(path); }) ==
        "a.jsonl:2:21: error: the length -5 is negative; a length is a whole number of tokens from 1 to 2^40\n"
        "a.jsonl:3:21: error: 'length' is of type string, not a number; write the number without quotes\n"
        "a.jsonl:4:21: error: the length \"5.5\" is not a whole number; a length is a whole number of tokens from 1 to "
        "2^40\n"
        "a.jsonl:5:1: error: there is no field 'length'; the fields are: id, lenght\n"
        "a.jsonl:6:20: error: the line is not JSON; every line is one object such as {\"length\": 4096}\n"
        "a.jsonl:7:1: error: the line is not a JSON object; write {\"length\": 4096}\n"
        "a.jsonl:8:21: error: the length 36893488147419103232 is above 2^40 tokens; a length is a whole number of "
        "tokens from 1 to 2^40\n");
}

TEST_CASE("a trace is collected with its steps", "[trace]") {
  const TraceFolder folder;
  const LengthTrace trace = collect(*open_trace(folder.write("a.csv", "step,length\n4,10\n4,11\n9,12\n")));
  CHECK(trace.tokens == Tokens{10, 11, 12});
  CHECK(trace.steps == Tokens{4, 4, 9});
  ListedLengths half({{5, 1}, {6, {}}});
  CHECK(folder.complaint([&] { return collect(half); }) == "error: 1 of 2 lengths have a step\n");
}

}  // namespace hdpsim
