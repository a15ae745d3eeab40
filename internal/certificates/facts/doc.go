// SPDX-License-Identifier: Apache-2.0

// Package facts finds out what policies decide by: which machines there are, from sources that nodes cannot write (and one weak
// one that they can, which says so), and what a requester may do, from the API server. An answer is Known, Absent or Unknown, with
// its source and age. Not being able to tell is Unknown, never a no.
//
// A Source is one of three kinds. A Watch is told each change by an API server: Muster's Machines, those of Cluster API, Nodes. A
// static list is read from a file or a ConfigMap. And some must be asked, DNS about each machine and EC2 about each name, too: these remember
// Answers, and what is asked for the first time is Unknown until a Change tells. Combine makes one inventory of several.
package facts
