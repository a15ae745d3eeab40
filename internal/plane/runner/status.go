// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// State is where a process is in its life.
type State string

// The states; the package comment draws how one follows another.
const (
	Waiting  State = "Waiting"  // for what it needs
	Starting State = "Starting" // it runs and has not answered yet
	Ready    State = "Ready"    // it serves
	Unready  State = "Unready"  // it runs, served before, and does not answer now
	Backoff  State = "Backoff"  // it ended, and is started again in a while
)

// Status is the state of one process.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	PID   int    `json:"pid,omitempty"`
	// User of the host that it runs as, or would: its supervisor's, or its own.
	User uint32 `json:"user"`
	// Started is when the process was started, maybe by a supervisor before this; zero if none runs.
	Started time.Time `json:"started,omitzero"`
	// Restarts counts the times that it had to be started again, also by supervisors before this: as long as a process
	// of the same spec runs.
	Restarts int `json:"restarts"`
	// Since is when it came into its state.
	Since time.Time `json:"since"`
	// Message says why, for a state that is not Ready.
	Message string `json:"message,omitempty"`
	// Memory is how it is held to the memory of its spec.
	Memory Memory `json:"memory,omitzero"`
}
