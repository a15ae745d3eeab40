// SPDX-License-Identifier: Apache-2.0

// Package rotation replaces the authority that signs kubelets' certificates by another one, in steps that no TLS
// handshake notices:
//
//	Trust     both are trusted, the old one signs   until every verifier has read both
//	Replace   the new one signs                     until no node has used a certificate of the old one for a while
//	Withdraw  only the new one is trusted           until every verifier has forgotten the old one
//
// It decides only: other packages look at the disk, the cluster and the nodes, and hand in the findings. A rotation is
// a value that is kept after each step, so that the next process goes on where another was killed.
package rotation

import (
	"fmt"
	"strings"
	"time"
)

// Phase is how far a rotation has come.
type Phase string

// The phases, in order.
const (
	Trust    Phase = "Trust"
	Replace  Phase = "Replace"
	Withdraw Phase = "Withdraw"
	// Done is never stored: the rotation is over.
	Done Phase = "Done"
)

// Grace is how long the old authority stays trusted after the last node has a new certificate. A client that reads its
// certificate from a file, as kube-proxy does, keeps a connection that it made with the old one for up to five minutes
// (client-go transport/cert_rotation.go, CertCallbackRefreshDuration), and the API server judges every request on it
// anew.
const Grace = 6 * time.Minute

// Hold is what keeps a rotation from going on by itself: somebody decides when the new authority signs, and when the
// old one goes.
type Hold string

// The holds, in order. A rotation without one goes on by itself.
const (
	// HoldActivation keeps it in Trust.
	HoldActivation Hold = "Activation"
	// HoldRemoval keeps it in Replace.
	HoldRemoval Hold = "Removal"
)

// Rotation is one rotation under way.
type Rotation struct {
	// Old and New are the names of the authorities.
	Old   string `json:"old"`
	New   string `json:"new"`
	Phase Phase  `json:"phase"`
	// Started is when it was asked for, Since when it came into its phase.
	Started time.Time `json:"started"`
	Since   time.Time `json:"since"`
	// Clear is since when no node has a certificate of the old authority; in Replace only.
	Clear time.Time `json:"clear,omitzero"`
	// Hold keeps it in a phase.
	Hold Hold `json:"hold,omitempty"`
	// Distributed is since when all verifiers trust the new authority; in Trust only.
	Distributed time.Time `json:"distributed,omitzero"`
}

// Start begins a rotation.
func Start(old, next string, now time.Time) Rotation {
	now = now.UTC() // times that are kept and read again must compare as equal
	return Rotation{Old: old, New: next, Phase: Trust, Started: now, Since: now}
}

// Resting reports whether there is nothing to look at until somebody lets the rotation go on.
func (r Rotation) Resting() bool { return r.Hold == HoldActivation && !r.Distributed.IsZero() }

// Removable reports whether the old authority can go: no node has used a certificate of it for a while.
func (r Rotation) Removable(now time.Time) bool {
	return r.Phase == Replace && !r.Clear.IsZero() && !now.Before(r.Clear.Add(Grace))
}

// Abandon gives up a rotation whose new authority has not signed yet: that one is withdrawn.
func (r Rotation) Abandon(now time.Time) Rotation {
	r.Old, r.New, r.Hold = r.New, r.Old, ""
	return r.enter(Withdraw, now)
}

// Signs is the authority that signs.
func (r Rotation) Signs() string {
	if r.Phase == Trust {
		return r.Old
	}
	return r.New
}

// Trusts are the authorities that are trusted.
func (r Rotation) Trusts() []string {
	if r.Phase == Trust || r.Phase == Replace {
		return []string{r.Old, r.New}
	}
	return []string{r.New}
}

// Certificate is one that a node uses now.
type Certificate struct {
	// Authority that signed it, by name; empty if the authority is not known. The Certificate of a node that has none
	// is nil.
	Authority string    `json:"authority"`
	Ends      time.Time `json:"ends,omitzero"`
}

// Node is what one node uses now.
type Node struct {
	Name    string       `json:"name"`
	Client  *Certificate `json:"client,omitempty"`
	Serving *Certificate `json:"serving,omitempty"`
}

// Observation is what was seen at one moment.
type Observation struct {
	// Pending names what a verifier has not read yet, or what kept from seeing it; empty when all have.
	Pending []string
	// Nodes are those that there are.
	Nodes []Node
	// Unseen says what kept from looking at the nodes. An unseen certificate is taken for old.
	Unseen error
}

// Progress counts the nodes that are not done yet.
type Progress struct {
	Nodes int `json:"nodes"`
	// Client and Serving are the nodes whose certificate is the old authority's.
	Client  int `json:"client"`
	Serving int `json:"serving"`
	// Until is when the last of these certificates ends, at which a node has long asked for another.
	Until time.Time `json:"until,omitzero"`
}

// Progress counts what is under the old authority at a moment. A certificate that has ended opens nothing and counts no
// more.
func (r Rotation) Progress(nodes []Node, now time.Time) Progress {
	p := Progress{Nodes: len(nodes)}
	count := func(c *Certificate, n *int) {
		if c == nil || c.Authority != r.Old || !now.Before(c.Ends) {
			return
		}
		*n++
		if c.Ends.After(p.Until) {
			p.Until = c.Ends
		}
	}
	for _, node := range nodes {
		count(node.Client, &p.Client)
		count(node.Serving, &p.Serving)
	}
	return p
}

// Next is the rotation after these findings, and what it waits for. It goes one phase at a time.
func (r Rotation) Next(o Observation, now time.Time) (next Rotation, waits string) {
	switch r.Phase {
	case Trust:
		if r.Distributed.IsZero() {
			if len(o.Pending) > 0 {
				return r, strings.Join(o.Pending, "; ")
			}
			r.Distributed = now.UTC()
		}
		if r.Hold == HoldActivation {
			return r, "every verifier trusts " + r.New + ", which signs once it is activated"
		}
		return r.enter(Replace, now), ""
	case Replace:
		return r.replace(o, now)
	default:
		if len(o.Pending) > 0 {
			return r, strings.Join(o.Pending, "; ")
		}
		return r.enter(Done, now), ""
	}
}

func (r Rotation) replace(o Observation, now time.Time) (Rotation, string) {
	if o.Unseen != nil {
		r.Clear = time.Time{}
		return r, "cannot see which certificates nodes use: " + o.Unseen.Error()
	}
	if p := r.Progress(o.Nodes, now); p.Client+p.Serving > 0 {
		r.Clear = time.Time{}
		return r, p.String()
	}
	if r.Clear.IsZero() || r.Clear.After(now) { // or the clock was set back
		r.Clear = now.UTC()
	}
	if end := r.Clear.Add(Grace); now.Before(end) {
		return r, "every node has its new certificates; connections made with old ones may last until " + end.Format(time.RFC3339)
	}
	if r.Hold == HoldRemoval {
		return r, "every node has its new certificates; " + r.Old + " is trusted until it is deleted"
	}
	if len(o.Pending) > 0 { // a verifier that was started meanwhile from an older copy of the files
		return r, strings.Join(o.Pending, "; ")
	}
	return r.enter(Withdraw, now), ""
}

func (r Rotation) enter(phase Phase, now time.Time) Rotation {
	r.Phase, r.Since, r.Clear, r.Distributed = phase, now.UTC(), time.Time{}, time.Time{}
	return r
}

// String counts, for people, the nodes that are not done yet.
func (p Progress) String() string {
	return fmt.Sprintf("of %d nodes, %d have a client and %d a serving certificate of the old authority; the last of them ends at %s, and is renewed before",
		p.Nodes, p.Client, p.Serving, p.Until.UTC().Format(time.RFC3339))
}
