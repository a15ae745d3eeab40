// SPDX-License-Identifier: Apache-2.0

package stackrecord

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/cloud/cloudformation/stackplan"
)

const (
	// mostEvents is how many events a stack keeps, and mostOfEvents how many bytes of text they have at most: etcd takes no object
	// above 1.5 MiB.
	mostEvents   = 500
	mostOfEvents = 256 << 10
	// mostInReason is how many bytes a reason has. An action may answer with a text of any length.
	mostInReason = 1024
)

// stackType is the type of a stack in its own events.
const stackType = "AWS::CloudFormation::Stack"

// Record is a stack.
type Record struct {
	// ID is the name of the object, a UUID, which is the last part of the ARN.
	ID                    string
	Name                  string
	Description           string
	TerminationProtection bool
	Created               time.Time
	Updated, Deleted      time.Time // zero if it never was
	Hidden
	Outputs []Output
	Events  []v1alpha1.StackEvent
}

// Hidden is what is sealed.
type Hidden struct {
	// ARN is the name of the stack in IAM's policies, which Ref of AWS::StackId returns.
	ARN string
	// Asked is what the stack is to be, and Before what it was before the update that is under way; nil without one.
	Asked  stackplan.Asked
	Before *stackplan.Asked
	State  stack.State
	// Operation is the one that is under way, or was the last.
	Operation Operation
	// Sets are the change sets that were not executed.
	Sets []ChangeSet
	// Told counts all events of the stack, also those that are forgotten.
	Told int
	// Changed is when the status of a resource changed last, by serial.
	Changed map[int]time.Time
	// Secrets are the values of outputs that do not show, by name.
	Secrets map[string]string
	// Seed is what the tokens of creations are made of, and Unsown the last serial of a resource that is older than it.
	Seed   string
	Unsown int
}

// Sow gives a stack without a seed one. The tokens of its resources stay as they are.
func (r *Record) Sow() {
	if r.Seed == "" {
		r.Seed, r.Unsown = uuid.NewString(), r.State.Serial
	}
}

// SeedOf is what the token of the creation of a resource is made of: the seed of the stack, or the stack's ARN for a resource that is
// older than the seed.
func (r *Record) SeedOf(serial int) string {
	if r.Seed == "" || serial <= r.Unsown {
		return r.ARN
	}
	return r.Seed
}

// Operation is a creation, an update or a deletion of a stack.
type Operation struct {
	// ID is another one for each.
	ID string
	// Action is the action of the API that began it.
	Action string
	// Token is the client token of the request; empty without one.
	Token string
	// RoleARN is the role that requests are made with; empty if those are made with the rights of Caller.
	RoleARN string
	// Caller is who asked for it, as the identity service keeps callers.
	Caller []byte
}

// ChangeSet is a change that is described before it is made.
type ChangeSet struct {
	ARN, Name, Description string
	// Token is the client token of the request; empty without one.
	Token     string
	Created   time.Time
	Asked     stackplan.Asked
	OnFailure stack.OnFailure
	RoleARN   string
	// Reason says why the set cannot be executed; empty if it can.
	Reason string
	// Obsolete reports that the stack was updated since.
	Obsolete bool
	Changes  []Change
}

// Change is what a change set does to one resource.
type Change struct {
	Action, LogicalID, PhysicalID, Type string
	// Replacement is True, False or Conditional; empty for a resource that is added or removed.
	Replacement string
	// Properties are the properties that change, and Replaces those among them whose change replaces the resource.
	Properties, Replaces []string
}

// Output is an output of a stack.
type Output struct {
	Name, Value, Description, Export string
	// Secret values are shown as ****.
	Secret bool
}

// hidden stands for a value that nobody is shown.
const hidden = "****"

// Shown is the value as it is shown.
func (o Output) Shown() string {
	if o.Secret {
		return hidden
	}
	return o.Value
}

// ARNOf is the name of a stack of an account.
func ARNOf(region, account, name, id string) string {
	return arn.ARN{Partition: "aws", Service: "cloudformation", Region: region, Account: account, Resource: "stack/" + name + "/" + id}.String()
}

// Tell adds events at a time. Reasons that are too long are cut, and the oldest events are forgotten.
func (r *Record) Tell(now time.Time, events []stack.Event) {
	r.State.Reason = cut(r.State.Reason)
	r.State.Resources = slices.Clone(r.State.Resources)
	for i := range r.State.Resources {
		r.State.Resources[i].Reason = cut(r.State.Resources[i].Reason)
	}
	for _, e := range events {
		r.Told++
		e.Reason = cut(e.Reason)
		told := v1alpha1.StackEvent{
			ID: fmt.Sprintf("%s-%d", r.ID, r.Told), Time: metav1.NewTime(now), LogicalID: e.LogicalID, PhysicalID: e.PhysicalID, Type: e.Type,
			Status: string(e.Status), Reason: e.Reason, Token: r.Operation.Token,
		}
		if e.LogicalID == "" {
			told.LogicalID, told.PhysicalID, told.Type = r.Name, r.ARN, stackType
		}
		r.Events = append(r.Events, told)
	}
	if n := len(r.Events) - kept(r.Events); n > 0 {
		r.Events = slices.Clone(r.Events[n:])
	}
	if r.Changed == nil {
		r.Changed = map[int]time.Time{}
	}
	there := map[int]bool{}
	for _, one := range r.State.Resources {
		there[one.Serial] = true
		if _, ok := r.Changed[one.Serial]; !ok {
			r.Changed[one.Serial] = now
		}
		for _, e := range events {
			if e.LogicalID == one.LogicalID && e.Status == one.Status {
				r.Changed[one.Serial] = now
			}
		}
	}
	for serial := range r.Changed {
		if !there[serial] {
			delete(r.Changed, serial)
		}
	}
}

// kept is how many of the newest events are kept.
func kept(events []v1alpha1.StackEvent) int {
	n, bytes := 0, 0
	for _, e := range slices.Backward(events) {
		bytes += len(e.ID) + len(e.LogicalID) + len(e.PhysicalID) + len(e.Type) + len(e.Status) + len(e.Reason) + len(e.Token)
		if n == mostEvents || bytes > mostOfEvents {
			break
		}
		n++
	}
	return n
}

// cut is a reason of no more than mostInReason bytes, at a whole character.
func cut(reason string) string {
	if len(reason) <= mostInReason {
		return reason
	}
	const more = "…"
	return strings.ToValidUTF8(reason[:mostInReason-len(more)], "") + more
}

// IsARN reports whether a text that names a stack is an ARN.
func IsARN(text string) bool { return strings.HasPrefix(text, "arn:") }
