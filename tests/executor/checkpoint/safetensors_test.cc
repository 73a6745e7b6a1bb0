#include "executor/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>

#include "cost_models/documents/problem.h"
#include "tests/executor/python_oracle.h"

namespace tessera {
namespace {

std::string length_of(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

std::string file_with(const std::string& header, std::size_t data_bytes) {
  return length_of(header.size()) + header + std::string(data_bytes, '\x01');
}

std::optional<SafetensorsFile> parse(const std::string& bytes, Problems& problems) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "w.safetensors", problems);
}

TEST(Safetensors, ReadsAHandMadeFile) {
  // 8 bytes of length, then the header as the reference writes it, then one F32 [2] and one U8 [3].
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"U8","shape":[1,3],"data_offsets":[8,11]}}  )";
  const std::string bytes =
      length_of(header.size()) + header + std::string("\0\0\x80\x3f\0\0\0\xc0\x07\x08\x09", 11);
  Problems problems;
  const auto file = parse(bytes, problems);
  ASSERT_TRUE(file) << to_string(problems.at(0));
  EXPECT_EQ(file->metadata.at("format"), "pt");
  ASSERT_EQ(file->tensors.size(), 2u);
  float values[2];
  std::memcpy(values, file->tensors[0].data.data(), 8);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(values[1], -2.0f);
  EXPECT_EQ(file->tensors[1].shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(file->tensors[1].data[2], std::byte{9});
}

TEST(Safetensors, AcceptsScalarsEmptyTensorsAndAnyOrderOfTheHeader) {
  Problems problems;
  const auto file = parse(file_with(R"({"b":{"dtype":"F32","shape":[],"data_offsets":[2,6]},)"
                                    R"("a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},)"
                                    R"("e":{"dtype":"I64","shape":[0,5],"data_offsets":[2,2]}})",
                                    6),
                          problems);
  ASSERT_TRUE(file) << to_string(problems.at(0));
  EXPECT_EQ(file->tensors.front().name, "a");
  EXPECT_EQ(file->tensors.back().name, "b");
  EXPECT_TRUE(parse(file_with("{}", 0), problems));
}

struct Malformed {
  const char* what;
  std::string bytes;
  std::string place;  // of the first problem
  std::string says;   // part of its text
};

std::string one(const std::string& entry, std::size_t data_bytes) {
  return file_with(R"({"t":)" + entry + "}", data_bytes);
}

const std::string kGood = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

const Malformed kMalformed[] = {
    {"empty file", "", "header", "at least 8 bytes"},
    {"seven bytes", "1234567", "header", "at least 8 bytes"},
    {"no header", length_of(0), "header", "JSON object"},
    {"header beyond the limit", length_of(100'000'001) + "{}", "header", "100000000"},
    {"header of 2^63", length_of(1ull << 63) + "{}", "header", "100000000"},
    {"header of 2^64 - 1", length_of(~0ull) + "{}", "header", "100000000"},
    {"header beyond the file", length_of(99) + "{}", "header", "that follow"},
    {"leading space", file_with(" {}", 0), "header", "no '{'"},
    {"an array", file_with("[]", 0), "header", "no '{'"},
    {"cut JSON", file_with(R"({"t":)", 0), "1:", "JSON"},
    {"text after the object", file_with("{}{}", 0), "1:", "JSON"},
    {"invalid UTF-8", file_with("{\"\xff\":1}", 0), "1:", ""},
    {"duplicate tensor", file_with(R"({"t":)" + kGood + R"(,"t":)" + kGood + "}", 8),
     "1:", "again"},
    {"duplicate key in a tensor",
     one(R"({"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8), "1:", "again"},
    {"depth", one(R"({"dtype":[[[[[[[]]]]]]]})", 0), "1:", "levels"},
    {"tensor is a number", one("3", 0), "t", "an object per tensor"},
    {"no dtype", one(R"({"shape":[2],"data_offsets":[0,8]})", 8), "t", "no dtype"},
    {"no shape", one(R"({"dtype":"F32","data_offsets":[0,8]})", 8), "t", "no shape"},
    {"no offsets", one(R"({"dtype":"F32","shape":[2]})", 8), "t", "no data_offsets"},
    {"unknown key", one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1]})", 8), "t",
     "'stride'"},
    {"unknown dtype", one(R"({"dtype":"F7","shape":[2],"data_offsets":[0,8]})", 8), "t", "F7"},
    {"torch's spelling", one(R"({"dtype":"float32","shape":[2],"data_offsets":[0,8]})", 8), "t",
     "float32"},
    {"dtype is a number", one(R"({"dtype":3,"shape":[2],"data_offsets":[0,8]})", 8), "t", "3"},
    {"negative size", one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8), "t", "-2"},
    {"fractional size", one(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})", 8), "t", "2"},
    {"shape overflows",
     one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})", 8), "t",
     "2^63"},
    {"shape x dtype overflows",
     one(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})", 0), "t", "2^63"},
    {"one offset", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})", 8), "t",
     "[begin, end]"},
    {"offsets reversed", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8), "t",
     "begin <= end"},
    {"offsets past the end", one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,16]})", 8), "t",
     "begin <= end <= 8"},
    {"negative offset", one(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})", 8), "t",
     "at least 0"},
    {"bytes do not match the shape", one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", 8),
     "t", "12 bytes"},
    {"does not start at 0", one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})", 8), "t",
     "hole"},
    {"hole",
     file_with(R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("t":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})",
               5),
     "t", "hole"},
    {"overlap",
     file_with(R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("t":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
               3),
     "t", "overlap"},
    {"the same bytes twice",
     file_with(R"({"s":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
               R"("t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
               2),
     "t", "overlap"},
    {"bytes after the last tensor", one(kGood, 9), "", "where the last tensor ends"},
    {"bytes without a tensor", file_with("{}", 1), "", "where the last tensor ends"},
    {"metadata is a list", file_with(R"({"__metadata__":[]})", 0), "__metadata__", "strings"},
    {"metadata holds a number", file_with(R"({"__metadata__":{"n":1}})", 0), "__metadata__.n",
     "a string"},
};

TEST(Safetensors, EveryBrokenRuleIsItsOwnProblemWithFileAndTensor) {
  ASSERT_GE(std::size(kMalformed), 20u);
  for (const Malformed& malformed : kMalformed) {
    Problems problems;
    EXPECT_FALSE(parse(malformed.bytes, problems)) << malformed.what;
    ASSERT_FALSE(problems.empty()) << malformed.what;
    EXPECT_EQ(problems[0].file, "w.safetensors") << malformed.what;
    EXPECT_TRUE(problems[0].place.starts_with(malformed.place))
        << malformed.what << ": " << to_string(problems[0]);
    EXPECT_NE(to_string(problems[0]).find(malformed.says), std::string::npos)
        << malformed.what << ": " << to_string(problems[0]);
  }
}

TEST(Safetensors, EveryProblemOfAFileComesAtOnce) {
  Problems problems;
  EXPECT_FALSE(parse(file_with(R"({"a":1,"b":{"dtype":"F9","shape":[],"data_offsets":[0,0]},)"
                               R"("c":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})",
                               2),
                     problems));
  EXPECT_EQ(problems.size(), 3u);
}

TEST(Safetensors, EveryTruncationOfAFileIsRefused) {
  const std::string whole =
      file_with(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Problems problems;
    EXPECT_FALSE(parse(whole.substr(0, length), problems)) << length;
    EXPECT_FALSE(problems.empty()) << length;
  }
}

const std::vector<TensorSpec> kSpecs{{"wide", DType::int64, {2}},
                                     {"matrix", DType::fp32, {2, 2}},
                                     {"half", DType::bf16, {3}},
                                     {"bytes", DType::uint8, {5}}};

TEST(Safetensors, WhatTheWriterStreamsTheReaderReadsBack) {
  TemporaryFolder folder;
  const auto path = folder.path / "x.safetensors";
  Problems problems;
  auto writer = SafetensorsWriter::create(path, kSpecs, {{"format", "pt"}}, problems);
  ASSERT_TRUE(writer);
  std::string data;
  for (int i = 0; i < 16 + 16 + 6 + 5; ++i) data += static_cast<char>(i);
  const auto bytes = std::as_bytes(std::span(data));
  ASSERT_TRUE(writer->write(bytes.first(7), problems));
  ASSERT_TRUE(writer->write(bytes.subspan(7), problems));
  EXPECT_FALSE(std::filesystem::exists(path)) << "visible before it is complete";
  ASSERT_TRUE(writer->publish(problems));

  const auto file = open_safetensors(path, problems);
  ASSERT_TRUE(file) << to_string(problems.at(0));
  ASSERT_EQ(file->tensors.size(), kSpecs.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < kSpecs.size(); ++i) {
    EXPECT_EQ(static_cast<const TensorSpec&>(file->tensors[i]), kSpecs[i]);
    const auto& view = file->tensors[i].data;
    EXPECT_EQ(std::memcmp(view.data(), data.data() + offset, view.size()), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) %
                  static_cast<std::uintptr_t>(size_of(kSpecs[i].dtype)),
              0u);
    offset += view.size();
  }
}

TEST(Safetensors, AFileIsNoneBeforeItsHeaderWhichTheDataMayTell) {
  TemporaryFolder folder;
  Problems problems;
  const std::map<std::string, std::string> announced{{"format", "pt"}, {"sum", "-----"}};
  auto writer =
      SafetensorsWriter::create(folder.path / "x.safetensors", kSpecs, announced, problems);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(std::vector<std::byte>(16 + 16 + 6 + 5), problems));
  const auto unfinished = std::filesystem::directory_iterator(folder.path)->path();
  EXPECT_FALSE(open_safetensors(unfinished, problems));
  EXPECT_EQ(problems.at(0).place, "header");
  problems.clear();
  writer->set_metadata("sum", "12345");
  ASSERT_TRUE(writer->publish(problems));
  const auto file = open_safetensors(folder.path / "x.safetensors", problems);
  ASSERT_TRUE(file) << to_string(problems.at(0));
  EXPECT_EQ(file->metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"sum", "12345"}}));
}

TEST(Safetensors, AWriterThatIsDroppedLeavesNothing) {
  TemporaryFolder folder;
  Problems problems;
  {
    auto writer = SafetensorsWriter::create(folder.path / "x.safetensors", kSpecs, {}, problems);
    ASSERT_TRUE(writer);
    const std::byte some[4]{};
    ASSERT_TRUE(writer->write(some, problems));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

TEST(Safetensors, AFullDiskIsAProblemThatNamesTheFile) {
  Problems problems;
  EXPECT_FALSE(SafetensorsWriter::create("/nonexistent/x.safetensors", kSpecs, {}, problems));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].file, "/nonexistent/x.safetensors");
}

TEST(MappedFile, RefusesFoldersPipesAndAbsentFiles) {
  TemporaryFolder folder;
  Problems problems;
  EXPECT_FALSE(MappedFile::open(folder.path, problems));
  EXPECT_FALSE(MappedFile::open(folder.path / "absent", problems));
  EXPECT_FALSE(MappedFile::open("/dev/zero", problems));
  EXPECT_EQ(problems.size(), 3u);
  std::ofstream(folder.path / "empty").close();
  const auto empty = MappedFile::open(folder.path / "empty", problems);
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->bytes().empty());
}

}  // namespace
}  // namespace tessera
