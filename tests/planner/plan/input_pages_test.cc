// What users read about input files against what is read: every property of a schema is described,
// and the tables of docs/inputs name the keys of the schemas, which schema_test.cc holds against
// the readers, and no others.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/workload.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr const char* kSchemas[] = {"calibration", "cluster", "metrics", "plan",
                                    "rules",       "run",     "workload"};

json schema(const std::string& name) {
  std::ifstream stream(std::string(TESSERA_SOURCE_DIR) + "/docs/schemas/" + name + ".schema.json");
  return json::parse(stream);
}

using Visit = std::function<void(const std::string& path, const json& property)>;

/// Every property of a schema: "a.b" inside maps, "a[].b" inside lists, "a.NAME" where keys are
/// free.
void visit(const json& node, const std::string& path, const Visit& found) {
  const json properties = node.value("properties", json::object());
  for (const auto& [key, property] : properties.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    found(inner, property);
    visit(property, inner, found);
  }
  const json more = node.value("additionalProperties", json());
  if (more.is_object()) visit(more, path + ".NAME", found);
  if (node.contains("items")) visit(node.at("items"), path + "[]", found);
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    const json choices = node.value(choice, json::array());
    for (const json& each : choices) visit(each, path, found);
  }
}

/// Keys that are phases stand once in a page, as PHASE.
std::string with_phase(const std::string& path) {
  std::stringstream parts(path);
  std::string whole, part, before;
  for (; std::getline(parts, part, '.'); before = part) {
    if ((before == "memory" || before == "phases_s") && phase_from(part)) part = "PHASE";
    whole += (whole.empty() ? "" : ".") + part;
  }
  return whole;
}

/// The first cells of the tables whose first column is headed "key".
std::vector<std::string> keys_of_page(const std::string& name) {
  std::ifstream page(std::string(TESSERA_SOURCE_DIR) + "/docs/inputs/" + name + ".md");
  std::vector<std::string> keys;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| key |", 0) == 0) in_table = true;
    if (line.empty()) in_table = false;
    const std::size_t end = line.find('`', 3);
    if (in_table && line.rfind("| `", 0) == 0 && end != std::string::npos) {
      keys.push_back(line.substr(3, end - 3));
    }
  }
  return keys;
}

TEST(InputPages, EveryPropertyOfASchemaIsDescribed) {
  for (const char* name : kSchemas) {
    int properties = 0;
    visit(schema(name), "", [&](const std::string& path, const json& property) {
      const std::string text = property.value("description", "");
      EXPECT_GE(text.size(), 4U) << name << " " << path;
      EXPECT_TRUE(text.ends_with('.')) << name << " " << path;
      ++properties;
    });
    EXPECT_GT(properties, 1) << name;
  }
}

TEST(InputPages, NameEveryKeyOnceAndNoOther) {
  for (const char* name : {"cluster", "plan", "run", "workload"}) {
    std::set<std::string> read;
    visit(schema(name), "",
          [&](const std::string& path, const json&) { read.insert(with_phase(path)); });
    const std::vector<std::string> told = keys_of_page(name);
    for (const std::string& key : told) EXPECT_TRUE(read.contains(key)) << name << " " << key;
    for (const std::string& key : read) {
      EXPECT_EQ(std::count(told.begin(), told.end(), key), 1) << name << " " << key;
    }
  }
}

/// How many cells a row of a table has; "\|" is a part of one.
std::int64_t cells_of(const std::string& row) {
  std::int64_t cells = -1;
  for (std::size_t i = 0; i < row.size(); ++i) {
    cells += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1 : 0;
  }
  return cells;
}

TEST(InputPages, EveryRowHasAsManyCellsAsItsHead) {
  int rows = 0;
  for (const char* name : {"cluster", "plan", "run", "workload"}) {
    std::ifstream page(std::string(TESSERA_SOURCE_DIR) + "/docs/inputs/" + name + ".md");
    std::int64_t head = 0;
    for (std::string line; std::getline(page, line);) {
      if (!line.starts_with('|')) {
        head = 0;
        continue;
      }
      if (head == 0) head = cells_of(line);
      EXPECT_EQ(cells_of(line), head) << name << ": " << line;
      ++rows;
    }
  }
  EXPECT_GT(rows, 300);
}

/// The row of a key in the tables of a page.
std::string row_of(const std::string& page_name, const std::string& key) {
  std::ifstream page(std::string(TESSERA_SOURCE_DIR) + "/docs/inputs/" + page_name + ".md");
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `" + key + "` |", 0) == 0) return line;
  }
  return {};
}

TEST(InputPages, NameEveryWordThatAKeyTakes) {
  int words = 0;
  for (const char* name : {"cluster", "plan", "run", "workload"}) {
    visit(schema(name), "", [&](const std::string& path, const json& property) {
      const std::string row = row_of(name, with_phase(path));
      for (const json& word : property.value("enum", json::array())) {
        if (!word.is_string()) continue;
        EXPECT_NE(row.find("`" + word.get<std::string>() + "`"), std::string::npos)
            << name << " " << path << " takes " << word;
        ++words;
      }
    });
  }
  EXPECT_GT(words, 100);
}

/// A file of nothing but this key: "{a: {b: [{c: null}]}}" for "a.b[].c".
std::string only(const std::string& path) {
  const std::size_t dot = path.find('.');
  std::string key = path.substr(0, dot);
  const bool list = key.ends_with("[]");
  if (list) key.resize(key.size() - 2);
  const std::string inner = dot == std::string::npos ? "null" : only(path.substr(dot + 1));
  return "{" + key + ": " + (list ? "[" + inner + "]" : inner) + "}";
}

bool says_unknown(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.found.find("unknown key") != std::string::npos;
  });
}

TEST(InputPages, ReadersKnowEveryKeyOfTheSchemas) {
  const auto unknown_to_cluster = [](const std::string& text) {
    Problems problems;
    parse_cluster_spec(text, "cluster.yaml", problems);
    return says_unknown(problems);
  };
  const auto unknown_to_workload = [](const std::string& text) {
    Problems problems;
    parse_workload(text, "workload.yaml", problems);
    return says_unknown(problems);
  };
  visit(schema("cluster"), "", [&](const std::string& path, const json&) {
    EXPECT_FALSE(unknown_to_cluster(only(path))) << only(path);
    EXPECT_TRUE(unknown_to_cluster(only(path + "x"))) << only(path + "x");
  });
  visit(schema("workload"), "", [&](const std::string& path, const json&) {
    EXPECT_FALSE(unknown_to_workload(only(path))) << only(path);
    EXPECT_TRUE(unknown_to_workload(only(path + "x"))) << only(path + "x");
  });
}

}  // namespace
}  // namespace tessera
