// Malformed inputs before every reader of the torch-free program, made from valid documents.
//
// Each case states which key, at which place, is wrong and with what.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"

namespace tessera {

using Reader = std::function<void(const std::string& text, Problems& problems)>;

struct Case {
  std::string name;
  const Reader* reader;
  std::string text;
  std::string place;   // part of the problem's place, found or expected; empty = any
  std::string reason;  // part of found, expected or hint; empty = any
};

std::vector<Case> all_cases();

}  // namespace tessera
