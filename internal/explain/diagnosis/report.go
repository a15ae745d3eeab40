// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"time"

	"muster.dev/muster/internal/explain/cause"
)

// Verdict is what a report says in a word.
type Verdict string

// The verdicts.
const (
	// Healthy means that the object is as it should be, and nothing says otherwise.
	Healthy Verdict = "Healthy"
	// OnItsWay means that the object is not yet as it should be, within the time that it may take, and nothing is wrong.
	OnItsWay Verdict = "OnItsWay"
	// Found means that the cause is known.
	Found Verdict = "Cause"
	// NotKnown means that something is wrong, and the catalogue has no cause for the evidence.
	NotKnown Verdict = "NotKnown"
)

// StepState is how far a step is.
type StepState string

// The states of a step.
const (
	StepDone       StepState = "done"
	StepWaiting    StepState = "waiting" // it is next
	StepFailed     StepState = "failed"  // it is next, and a cause keeps the object from it
	StepNotReached StepState = "not reached"
	StepNotNeeded  StepState = "not needed"
	StepNotSeen    StepState = "not seen" // a later step is done or failed, and nothing records this step
)

// Step is one step of a report.
type Step struct {
	Step  cause.Step `json:"step"`
	State StepState  `json:"state"`
	// Time when it was done; zero for a step whose time nobody records.
	Time time.Time `json:"time,omitzero"`
}

// Finding is a cause that was found.
type Finding struct {
	Cause    cause.ID   `json:"cause"`
	Title    string     `json:"title"`
	Step     cause.Step `json:"step,omitempty"`
	Sentence string     `json:"sentence"`
	// Fix with the names of the object filled in.
	Fix      string     `json:"fix"`
	Evidence []Evidence `json:"evidence"`
	// Consequences are causes that were found, too, and follow from this one.
	Consequences []cause.ID `json:"consequences,omitempty"`
}

// Report says what is wrong with an object.
type Report struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Verdict Verdict   `json:"verdict"`
	At      time.Time `json:"at"`
	Steps   []Step    `json:"steps,omitempty"`
	Causes  []Finding `json:"causes,omitempty"`
	// Other is evidence of trouble that no cause of the catalogue explains.
	Other []Evidence `json:"other,omitempty"`
	// Standing is what waits of an object that is on its way, and what a failure has left behind.
	Standing []Evidence `json:"standing,omitempty"`
	Unseen   []Unseen   `json:"unseen,omitempty"`
}

// Overview is all that is wrong with an installation.
type Overview struct {
	Reports []Report `json:"reports"`
	// Unseen is what could not be looked at.
	Unseen []Unseen `json:"unseen,omitempty"`
}
