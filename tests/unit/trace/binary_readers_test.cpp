#include <fmt/format.h>

#include "sim/trace/trace_file.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

using Tokens = std::vector<std::int64_t>;

Tokens read_binary(const std::filesystem::path& path) {
  return tokens_of(*open_trace(path));
}

/// A .npy file byte by byte: magic, version, length of the header, header, data.
std::string npy(int version, const std::string& descr, const std::string& shape, const std::string& data,
                const std::string& order = "False") {
  std::string header = fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
  header.append(63 - header.size() % 64, ' ');
  header += '\n';
  return "\x93NUMPY" + little(static_cast<std::uint64_t>(version), 2) + little(header.size(), version == 1 ? 2 : 4) +
         header + data;
}

std::string elements(const Tokens& values, int bytes) {
  std::string data;
  for (const std::int64_t value : values) data += little(static_cast<std::uint64_t>(value), bytes);
  return data;
}

std::string integers(const Tokens& sizes) {
  return elements(sizes, 4);
}

/// A Megatron-LM index byte by byte; pointers are where 2-byte tokens would be.
std::string index_of(const Tokens& sizes, const Tokens& document_indices, std::uint64_t version = 1, int type = 8) {
  std::string bytes("MMIDIDX\0\0", 9);
  bytes += little(version, 8) + little(static_cast<std::uint64_t>(type), 1);
  bytes += little(sizes.size(), 8) + little(document_indices.size(), 8) + integers(sizes);
  std::int64_t pointer = 0;
  for (const std::int64_t size : sizes) {
    bytes += little(static_cast<std::uint64_t>(pointer), 8);
    pointer += 2 * size;
  }
  return bytes + elements(document_indices, 8);
}

}  // namespace

TEST_CASE("npy: all versions and all widths of little-endian integers are read", "[trace]") {
  const TraceFolder folder;
  const Tokens values{1, 100, 77};
  for (const int version : {1, 2, 3}) {
    for (const auto& [descr, bytes] : {std::pair{"'<i2'", 2},
                                       {"'<i4'", 4},
                                       {"'<i8'", 8},
                                       {"'<u2'", 2},
                                       {"'<u4'", 4},
                                       {"'<u8'", 8},
                                       {"'|u1'", 1},
                                       {"'|i1'", 1}}) {
      CAPTURE(version, descr);
      CHECK(read_binary(folder.write("a.npy", npy(version, descr, "(3,)", elements(values, bytes)))) == values);
    }
  }
  CHECK(read_binary(folder.write("b.npy", npy(1, "'<u2'", "(1,)", elements({65535}, 2)))) == Tokens{65535});
}

TEST_CASE("npy: a header has 64 KiB at most", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](std::size_t bytes) {
    std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }";
    header.resize(bytes, ' ');
    const std::string text = "\x93NUMPY" + little(2, 2) + little(header.size(), 4) + header + elements({5}, 4);
    return folder.complaint([&] { return read_binary(folder.write("a.npy", text)); });
  };
  CHECK(said(65'536).empty());
  CHECK(said(65'537).starts_with("a.npy: error: the header has 65537 bytes\n"));
}

TEST_CASE("npy: more elements than a block of the reader come out in order", "[trace]") {
  const TraceFolder folder;
  Tokens values;
  for (std::int64_t i = 1; i <= 150'000; ++i) values.push_back(i);
  CHECK(read_binary(folder.write("a.npy", npy(1, "'<i4'", "(150000,)", elements(values, 4)))) == values);
}

TEST_CASE("npy: an array that holds no lengths says what it is and how to save one that does", "[trace]") {
  const TraceFolder folder;
  const std::string help = "        save a 1-D integer array: numpy.save(path, lengths.astype('<i8'))\n";
  const auto said = [&](const std::string& bytes) {
    return folder.complaint([&] { return read_binary(folder.write("a.npy", bytes)); });
  };
  CHECK(said(npy(1, "'<f8'", "(1,)", elements({1}, 8))) ==
        "a.npy: error: the elements are '<f8' (floats), not integers\n" + help);
  CHECK(said(npy(1, "'>i4'", "(1,)", elements({1}, 4))) ==
        "a.npy: error: the elements are '>i4' (big-endian)\n" + help);
  CHECK(said(npy(1, "'<i8'", "(1, 2)", elements({1, 2}, 8), "True")) ==
        "a.npy: error: the array has the shape (1, 2), not one dimension\n" + help +
            "a.npy: error: the array is in Fortran order\n" + help);
  CHECK(said(npy(1, "[('a', '<i4')]", "(1,)", elements({1}, 4))) ==
        "a.npy: error: the elements are [('a', '<i4')], not integers\n" + help);
  CHECK(said(npy(4, "'<i8'", "(1,)", elements({1}, 8))) ==
        "a.npy: error: the .npy format version 4.0 is unknown\n" + help);
  CHECK(said("PK\x03\x04 an .npz") == "a.npy: error: the file does not begin as a .npy file does\n" + help);
  CHECK(said("") == "a.npy: error: the file is empty\n" + help);
  CHECK(said(npy(1, "'<i8'", "(0,)", "")) == "a.npy: error: the file holds no lengths\n");
}

TEST_CASE("npy: a truncated file is refused at every byte, and so is one with more bytes", "[trace]") {
  const TraceFolder folder;
  const std::string whole = npy(1, "'<i4'", "(3,)", elements({5, 6, 7}, 4));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(folder.complaint([&] { return read_binary(folder.write("a.npy", whole.substr(0, size))); }).empty());
  }
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.npy", whole.substr(0, whole.size() - 1))); }) ==
        "a.npy: error: the file is truncated: it holds 2 of 3 lengths\n        write or copy it again\n");
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.npy", whole + "x")); }) ==
        "a.npy: error: 1 bytes follow the 3 lengths\n        a trace is one array a file\n");
}

TEST_CASE("npy: elements that are no lengths are told by their index", "[trace]") {
  const TraceFolder folder;
  const std::string help = "        a length is a whole number of tokens from 1 to 2^40\n";
  const auto path = folder.write("a.npy", npy(1, "'<i8'", "(4,)", elements({5, -6, 0, longest_length + 1}, 8)));
  CHECK(folder.complaint([&] { return read_binary(path); }) ==
        "a.npy: error: element 1: the length -6 is negative\n" + help + "a.npy: error: element 2: the length is 0\n" +
            help + "a.npy: error: element 3: the length 1099511627777 is above 2^40 tokens\n" + help);
  const auto huge = folder.write("b.npy", npy(1, "'<u8'", "(1,)", elements({-1}, 8)));
  CHECK(folder.complaint([&] { return read_binary(huge); }) ==
        "b.npy: error: element 0: the length 18446744073709551615 is above 2^40 tokens\n" + help);
}

TEST_CASE("megatron: the length of a document is the sum of its sequences", "[trace]") {
  const TraceFolder folder;
  CHECK(read_binary(folder.write("a.idx", index_of({10, 20, 30, 40}, {0, 1, 3, 4}))) == Tokens{10, 20 + 30, 40});
  const std::string modes(4, '\0');  // multimodal data carries one byte more a sequence
  CHECK(read_binary(folder.write("b.idx", index_of({10, 20, 30, 40}, {0, 1, 3, 4}) + modes)) == Tokens{10, 50, 40});
}

TEST_CASE("megatron: an index of more documents than a block of the reader comes out in order", "[trace]") {
  const TraceFolder folder;
  Tokens sizes;
  Tokens indices{0};
  for (std::int64_t i = 1; i <= 50'000; ++i) {
    sizes.push_back(i);
    indices.push_back(i);
  }
  CHECK(read_binary(folder.write("a.idx", index_of(sizes, indices))) == sizes);
}

TEST_CASE("megatron: a truncated index is refused at every byte", "[trace]") {
  const TraceFolder folder;
  const std::string whole = index_of({10, 20, 30}, {0, 1, 3});
  REQUIRE(whole.size() == 34 + 3 * (4 + 8) + 3 * 8);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(folder.complaint([&] { return read_binary(folder.write("a.idx", whole.substr(0, size))); }).empty());
  }
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.idx", whole.substr(0, whole.size() - 1))); }) ==
        "a.idx: error: the file is truncated: it has 93 bytes, too few for 3 sequences and 3 document indices\n"
        "        copy it again\n");
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.idx", whole.substr(0, 20))); }) ==
        "a.idx: error: the file is truncated: its header has 20 of 34 bytes\n        copy it again\n");
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.idx", whole + "x")); }) ==
        "a.idx: error: 1 bytes follow the document indices\n");
}

TEST_CASE("megatron: an index that contradicts itself says where", "[trace]") {
  const TraceFolder folder;
  const auto said = [&](const std::string& bytes) {
    return folder.complaint([&] { return read_binary(folder.write("a.idx", bytes)); });
  };
  const std::string help = "        a length is a whole number of tokens from 1 to 2^40\n";
  CHECK(said(index_of({10, 20}, {0, 1, 1, 2})) == "a.idx: error: document 1: the length is 0\n" + help);
  CHECK(said(index_of({10, -20}, {0, 1, 2})) ==
        "a.idx: error: sequence 1 has the size -20\na.idx: error: document 1: the length is 0\n" + help);
  CHECK(said(index_of({10, 20}, {0, 3})) == "a.idx: error: document 0 ends at sequence 3, not within 0 to 2\n");
  CHECK(said(index_of({10, 20}, {0, 2, 1})) == "a.idx: error: document 1 ends at sequence 1, not within 2 to 2\n");
  CHECK(said(index_of({10, 20}, {0, 1})) == "a.idx: error: 1 sequences belong to no document\n");
  CHECK(said(index_of({10, 20}, {1, 2})) == "a.idx: error: the first document begins at sequence 1, not 0\n");
  CHECK(said(index_of({10}, {0, 1}, 2, 99)) ==
        "a.idx: error: the index has version 2, not 1\na.idx: error: the index names the unknown token type 99\n");
  CHECK(said(index_of({}, {0})) == "a.idx: error: the file holds no lengths\n");
  CHECK(said("not an index, but long enough to hold its header") ==
        "a.idx: error: the file does not begin as a Megatron-LM index does\n"
        "        name the .idx file that Megatron-LM's preprocess_data.py writes\n");
}

TEST_CASE("megatron: counts of any size are compared with the file before they are believed", "[trace]") {
  const TraceFolder folder;
  std::string bytes("MMIDIDX\0\0", 9);
  bytes += little(1, 8) + little(4, 1) + little(UINT64_MAX, 8) + little(UINT64_MAX, 8);
  CHECK(folder.complaint([&] { return read_binary(folder.write("a.idx", bytes)); }) ==
        "a.idx: error: the file is truncated: it has 34 bytes, too few for 18446744073709551615 sequences and "
        "18446744073709551615 document indices\n"
        "        copy it again\n");
}

}  // namespace hdpsim
