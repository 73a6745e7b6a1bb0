// The module that knows libparquet (libtessera_parquet.so, opened by parquet_rows.cc).
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "cost_models/documents/document.h"
#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

/// A value that no document has; of a number where it stands in its row.
struct UnknownType {
  std::string type;
};
struct UnknownNumber {
  std::string value;
  const char* expected = nullptr;
  std::string path = {};
};

template <class Array>
std::string_view text_at(const arrow::Array& array, std::int64_t i) {
  return static_cast<const Array&>(array).GetView(i);
}

template <class Array>
Node integer_at(const arrow::Array& array, std::int64_t i) {
  return node_of(static_cast<std::int64_t>(static_cast<const Array&>(array).Value(i)));
}

/// NaN is pandas' missing value.
Node number_at(double value) {
  if (std::isnan(value)) return {};
  if (std::isinf(value)) {
    throw UnknownNumber{arrow::DoubleScalar(value).ToString(), "a finite number"};
  }
  return node_of(value);
}

Node unsigned_at(std::uint64_t value) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > kMost) {
    throw UnknownNumber{std::to_string(value), "an integer of 64 bits with a sign"};
  }
  return node_of(static_cast<std::int64_t>(value));
}

Node node_at(const arrow::Array& array, std::int64_t i);

/// A value below a name, or a number of an item.
Node member_at(const arrow::Array& array, std::int64_t i, const std::string& name) {
  try {
    return node_at(array, i);
  } catch (UnknownNumber& value) {
    value.path.insert(0, "/" + name);
    throw;
  }
}

template <class Array>
Node list_at(const arrow::Array& array, std::int64_t i) {
  const auto& lists = static_cast<const Array&>(array);
  Node list = list_node();
  for (std::int64_t at = lists.value_offset(i); at < lists.value_offset(i + 1); ++at) {
    list.items.push_back(
        member_at(*lists.values(), at, std::to_string(at - lists.value_offset(i))));
  }
  return list;
}

Node struct_at(const arrow::StructArray& array, std::int64_t i) {
  Node map = map_node();
  for (int field = 0; field < array.num_fields(); ++field) {
    const std::string& name = array.struct_type()->field(field)->name();
    add(map, name, member_at(*array.field(field), i, name));
  }
  return map;
}

Node node_at(const arrow::Array& array, std::int64_t i) {
  if (array.IsNull(i)) return {};
  switch (array.type_id()) {
    case arrow::Type::NA:
      return {};
    case arrow::Type::BOOL:
      return node_of(static_cast<const arrow::BooleanArray&>(array).Value(i));
    case arrow::Type::INT8:
      return integer_at<arrow::Int8Array>(array, i);
    case arrow::Type::INT16:
      return integer_at<arrow::Int16Array>(array, i);
    case arrow::Type::INT32:
      return integer_at<arrow::Int32Array>(array, i);
    case arrow::Type::INT64:
      return integer_at<arrow::Int64Array>(array, i);
    case arrow::Type::UINT8:
      return integer_at<arrow::UInt8Array>(array, i);
    case arrow::Type::UINT16:
      return integer_at<arrow::UInt16Array>(array, i);
    case arrow::Type::UINT32:
      return integer_at<arrow::UInt32Array>(array, i);
    case arrow::Type::UINT64:
      return unsigned_at(static_cast<const arrow::UInt64Array&>(array).Value(i));
    case arrow::Type::FLOAT:
      return number_at(static_cast<const arrow::FloatArray&>(array).Value(i));
    case arrow::Type::DOUBLE:
      return number_at(static_cast<const arrow::DoubleArray&>(array).Value(i));
    case arrow::Type::DATE32:
    case arrow::Type::DATE64:
    case arrow::Type::TIMESTAMP:
    case arrow::Type::DECIMAL128:
    case arrow::Type::DECIMAL256:
      return node_of(array.GetScalar(i).ValueOrDie()->ToString());
    case arrow::Type::STRING:
      return node_of(text_at<arrow::StringArray>(array, i));
    case arrow::Type::LARGE_STRING:
      return node_of(text_at<arrow::LargeStringArray>(array, i));
    case arrow::Type::STRING_VIEW:
      return node_of(text_at<arrow::StringViewArray>(array, i));
    case arrow::Type::LIST:
      return list_at<arrow::ListArray>(array, i);
    case arrow::Type::LARGE_LIST:
      return list_at<arrow::LargeListArray>(array, i);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_at<arrow::FixedSizeListArray>(array, i);
    case arrow::Type::STRUCT:
      return struct_at(static_cast<const arrow::StructArray&>(array), i);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return node_at(*coded.dictionary(), coded.GetValueIndex(i));
    }
    default:
      throw UnknownType{array.type()->ToString()};
  }
}

/// Columns of the file below these names.
std::vector<int> leaves_of(const parquet::FileMetaData& file,
                           const std::vector<std::string>& columns) {
  std::vector<int> leaves;
  for (int i = 0; i < file.num_columns(); ++i) {
    const std::string root = file.schema()->Column(i)->path()->ToDotVector().front();
    if (std::ranges::find(columns, root) != columns.end()) leaves.push_back(i);
  }
  return leaves;
}

/// The path of the first name that stands twice in a group: in the file, below the columns asked
/// for, or in a struct.
std::optional<std::string> double_name(const parquet::schema::GroupNode& group,
                                       const std::vector<std::string>* columns,
                                       const std::string& path) {
  std::set<std::string> names;
  for (int i = 0; i < group.field_count(); ++i) {
    const auto& field = *group.field(i);
    if (columns != nullptr && std::ranges::find(*columns, field.name()) == columns->end()) continue;
    std::string here = path + "/" + field.name();
    if (!names.insert(field.name()).second) return here;
    if (!field.is_group()) continue;
    const auto& below = static_cast<const parquet::schema::GroupNode&>(field);
    if (auto found = double_name(below, nullptr, here)) return found;
  }
  return std::nullopt;
}

/// One row group after the other, so that a file need not fit into memory twice. `refused`: what no
/// document has, where it stands.
arrow::Status read_groups(const std::string& file, const std::vector<std::string>& columns,
                          const std::function<bool(std::int64_t, const Node&)>& take,
                          std::optional<Problem>& refused) {
  ARROW_ASSIGN_OR_RAISE(auto input, arrow::io::ReadableFile::Open(file));
  ARROW_ASSIGN_OR_RAISE(auto reader, parquet::arrow::OpenFile(input, arrow::default_memory_pool()));
  const parquet::FileMetaData& metadata = *reader->parquet_reader()->metadata();
  const std::vector<int> leaves = leaves_of(metadata, columns);
  if (const auto twice = double_name(*metadata.schema()->group_node(), &columns, "")) {
    refused = {.place = *twice, .found = "two columns of this name", .expected = "every name once"};
    return arrow::Status::OK();
  }
  std::int64_t row = 0;
  for (int group = 0; group < reader->num_row_groups(); ++group) {
    ARROW_ASSIGN_OR_RAISE(auto table, reader->ReadRowGroup(group, leaves));
    ARROW_ASSIGN_OR_RAISE(auto batch, table->CombineChunksToBatch());
    for (std::int64_t i = 0; i < batch->num_rows(); ++i) {
      Node values = map_node();
      ++row;
      for (int column = 0; column < batch->num_columns(); ++column) {
        const std::string& name = batch->column_name(column);
        try {
          add(values, name, member_at(*batch->column(column), i, name));
        } catch (const UnknownType& unknown) {
          refused = {.place = name,
                     .found = "a column of type " + unknown.type,
                     .expected = "texts, numbers, booleans, dates, lists and structs"};
          return arrow::Status::OK();
        } catch (const UnknownNumber& value) {
          refused = {.place = "row " + std::to_string(row) + " (" + value.path + ")",
                     .found = value.value,
                     .expected = value.expected};
          return arrow::Status::OK();
        }
      }
      if (!take(row, values)) return arrow::Status::OK();
    }
  }
  return arrow::Status::OK();
}

}  // namespace

/// read_parquet of parquet_rows.h.
extern "C" __attribute__((visibility("default"))) void tessera_read_parquet(
    const std::filesystem::path& file, const std::vector<std::string>& columns,
    const std::function<bool(std::int64_t, const Node&)>& take, Problems& problems) {
  const auto refuse = [&](std::string found, const char* expected) {
    problems.push_back({.file = file.string(), .found = std::move(found), .expected = expected});
  };
  try {
    std::optional<Problem> unknown;
    const arrow::Status status = read_groups(file.string(), columns, take, unknown);
    if (!status.ok()) refuse(status.message(), "a Parquet file");
    if (unknown) {
      unknown->file = file.string();
      problems.push_back(*std::move(unknown));
    }
  } catch (const parquet::ParquetException& error) {
    refuse(error.what(), "a Parquet file");
  }
}

}  // namespace tessera
