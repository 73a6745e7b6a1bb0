// Divisors of a number: degrees that deal GPUs, layers or experts evenly.
//
// A pure function, and what keeps its values.
#pragma once

#include <map>
#include <vector>

namespace tessera {

/// Those of a positive number, ascending, 1 and the number among them.
std::vector<int> divisors(int number);

/// The same, kept: where one number is asked for often. One thread.
class Divisors {
 public:
  const std::vector<int>& of(int number);

 private:
  std::map<int, std::vector<int>> known_;
};

}  // namespace tessera
