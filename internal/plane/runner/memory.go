// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// Memory describes how a process is held to the memory of its spec. Figures are in bytes.
type Memory struct {
	// Limit that is in force; 0 if none is.
	Limit int64 `json:"limit,omitempty"`
	// Problem says why the limit of the spec is not in force.
	Problem string `json:"problem,omitempty"`
	// Ended counts the times that the kernel ended it at its limit since this supervisor has been running.
	Ended int `json:"ended,omitempty"`
	// Last is the last of them.
	Last MemoryEnd `json:"last,omitzero"`
}

// MemoryEnd is an end of a process at its limit.
type MemoryEnd struct {
	// At is when it was noticed.
	At time.Time `json:"at"`
	// Limit that it reached, and the most that it used at a time.
	Limit int64 `json:"limit"`
	Used  int64 `json:"used"`
}
