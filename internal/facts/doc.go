// SPDX-License-Identifier: Apache-2.0

// Package facts finds out what policies decide by: which machines there are, from the management plane, where nodes cannot
// write, and what a requester may do, from the API server. An answer is Known, Absent or Unknown, with its source and age. Not
// being able to tell is Unknown, never a no.
package facts
