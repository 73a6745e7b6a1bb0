// Maximum flow of bytes from classes of demands to the holders that can send them.
//
// For sender_balance.cc alone. A plain object of one thread; counts are bytes.
#pragma once

#include <vector>

#include "cost_models/layout/sender_balance.h"
#include "cost_models/spec/units.h"

namespace tessera {

/// The flow (Dinic 1970). Nodes: classes, then holders; the super source and the sink are implied
/// by `left` and `room`.
class SenderFlow {
 public:
  /// The flow from those of `classes` that `active` names to the holders that are not `closed`.
  SenderFlow(const std::vector<DemandClass>& classes, const std::vector<int>& active,
             const std::vector<char>& closed);

  struct Link {
    int holder = 0;
    bool near = false;
    Bytes flow;
  };

  /// Places as much of every class as fits; links that are not near only with `far`.
  void augment(bool far);
  /// After augment: is `node` (class, or classes + holder) reachable from an unplaced byte?
  bool reached(int node) const { return depth_[static_cast<std::size_t>(node)] >= 0; }
  bool satisfied() const;

  std::vector<Bytes> left;               // of a class: bytes that are not yet placed
  std::vector<Bytes> room;               // of a holder: bytes that it may still send
  std::vector<std::vector<Link>> links;  // by class

 private:
  struct User {
    int demand = 0, link = 0;
  };

  bool levels();
  Bytes push_class(int c, Bytes limit);
  Bytes push_holder(int h, Bytes limit);

  int classes_;
  bool far_ = true;
  std::vector<int> depth_;
  std::vector<std::size_t> next_class_, next_holder_;
  std::vector<std::vector<User>> users_;  // by holder
};

/// Makes the links with flow a forest: every cycle is emptied in the direction that keeps more near
/// bytes; what a class sends and a holder gives in all stays the same. Shares by class, rooted at
/// holders: the parent holder first, then the children.
std::vector<std::vector<SenderShare>> forest_shares(SenderFlow& flow);

}  // namespace tessera
