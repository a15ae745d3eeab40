// SPDX-License-Identifier: Apache-2.0

// Package facts looks up the facts that policies decide by: machines, from sources that nodes cannot write (and one
// weak source that they can, nodeStatus, which says so), and permissions of requesters, from the API server. An answer
// is Known, Absent or Unknown, with its source and age. A lookup that fails is Unknown, never Absent.
//
// There are three kinds of Source. A Watch follows objects of an API server: Muster's Machines, Cluster API's Machines,
// Nodes. A static list is read from a file or a ConfigMap. DNS and EC2 are queried, DNS for each machine, EC2 for each
// name too: these sources cache Answers, and a first lookup is Unknown until a Change announces the answer. Combine
// makes one inventory of several sources.
package facts
