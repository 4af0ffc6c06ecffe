// Which rank of the mesh each process is. A launcher may deal its processes to hosts in turn; the mesh
// has those of a host one after the other, so that its last axes stay within a host.

#ifndef PARTITA_RT_COMMON_MESH_NODE_ORDER_H
#define PARTITA_RT_COMMON_MESH_NODE_ORDER_H

#include <string>
#include <vector>

namespace partita_rt {

/// Returns the rank on the mesh of each process, by the launcher's number. `nodes`: what names the
/// node that each is on. Nodes come in the order of their first processes, the processes of a node in
/// the launcher's: ranks are the launcher's numbers if those go node by node, and 0 is always 0.
std::vector<int> meshRanks(const std::vector<std::string> &nodes);

/// Returns the line that says so, for the launcher's numbers by rank; "" if all are the same.
std::string renumberedText(const std::vector<int> &launched);

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_MESH_NODE_ORDER_H
