// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"time"

	"muster.dev/muster/internal/explain/cause"
)

// Recent is how old a line of a log may be to say how things are now. A kubelet tries again every few seconds, and its
// longest pause is that of an ended program, 10 s.
const Recent = time.Minute

// Facts are what is known of an object.
type Facts struct {
	// Kind and Name of the object, such as machine and i-0123456789abcdef0.
	Kind, Name string
	// Names fill in the placeholders of fixes, with their dollar sign: $MACHINE, $NODE, $GROUP, $CLUSTER, $NAME.
	Names map[string]string
	// Healthy reports whether the object is as it should be.
	Healthy bool
	// OnNode reports whether the facts were gathered on the node itself, which need not be a machine of Muster's: fixes are
	// then those for a node.
	OnNode bool
	// Idle reports whether the object stands still because it is to, such as a machine that is stopped.
	Idle bool
	// Steps that have been done, with their times; nil for an object without steps.
	Steps map[cause.Step]time.Time
	// ByRole reports whether the object is a machine that proves itself by its role, and so asks for no client certificate.
	ByRole bool
	// Since is when the object began to be on its way: the launch of a machine, the change of an update.
	Since time.Time
	// Patience is how long objects of the kind may be on their way before that needs a cause.
	Patience time.Duration
	// Evidence in any order.
	Evidence []Evidence
	// Parts are the facts of what the object consists of, such as the machines of a node group. A trouble of a part is
	// decided by its own facts, and is a trouble of the object.
	Parts []Facts
	// Standing is how parts of the object stand that are not as they should be: what waits, and what a failure has left behind.
	Standing []Evidence
	// Unseen is what could not be looked at.
	Unseen []Unseen
}

// Evidence is one thing that was seen.
type Evidence struct {
	Source cause.Source `json:"source"`
	// Object that it is about, such as machine/i-0123456789abcdef0.
	Object string `json:"object"`
	// Look is a command that shows the evidence.
	Look string `json:"look,omitempty"`
	// Time when it was written, or since when it is so; zero if that is not known.
	Time time.Time `json:"time,omitzero"`
	// Code is a word for programs, as the source has it; see package cause.
	Code string `json:"code,omitempty"`
	// Text is the evidence as it was written. Parts of it may be a stranger's.
	Text string `json:"text,omitempty"`
	// Cause is the identifier that the part wrote which saw it; empty if it wrote none.
	Cause cause.ID `json:"cause,omitempty"`
	// Trouble reports whether it says that something is wrong, whatever that is.
	Trouble bool `json:"trouble,omitempty"`
}

// Unseen is what could not be looked at, and why.
type Unseen struct {
	What string `json:"what"`
	Why  string `json:"why"`
}
