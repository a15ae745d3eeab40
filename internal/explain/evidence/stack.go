// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

const (
	// stackPatience is how long an operation of a stack may take: a cluster and its node groups, one after the other, and the
	// deletion of what others use.
	stackPatience = time.Hour
	// mostStanding is how many resources of a stack are told.
	mostStanding = 50
)

// consequences are the reasons of resources that failed because another one did.
var consequences = []string{"Resource creation cancelled", "Resource update cancelled"}

// Stack returns the facts of a stack of CloudFormation: what failed in its last operation, which of its resources wait, and which are
// left.
func Stack(s *v1alpha1.Stack) diagnosis.Facts {
	status, own := stack.Status(s.Status.Status), lastOperation(s)
	f := diagnosis.Facts{
		Kind: "stack", Name: s.Spec.Name, Since: s.CreationTimestamp.Time, Patience: stackPatience, Names: map[string]string{"$NAME": s.Spec.Name},
		Idle: status == stack.Review,
	}
	if len(own) > 0 {
		f.Since = own[0].Time.Time
	}
	for i := range own {
		e := &own[i]
		if strings.HasSuffix(e.Status, "_FAILED") && !ofStack(s, e) && !slices.Contains(consequences, e.Reason) {
			f.Evidence = append(f.Evidence, evidenceOfStack(s, e.LogicalID, e.Status+"/"+e.Type, e.Reason, e.Time.UTC(), true))
		}
	}
	failed := strings.HasSuffix(s.Status.Status, "_FAILED") || strings.Contains(s.Status.Status, "ROLLBACK")
	if failed && len(f.Evidence) == 0 { // no resource failed: the outputs of the template did, or somebody asked for a rollback
		if at := slices.IndexFunc(own, func(e v1alpha1.StackEvent) bool { return ofStack(s, &e) && turned(e.Status) }); at >= 0 {
			f.Evidence = append(f.Evidence, evidenceOfStack(s, "", own[at].Status, own[at].Reason, own[at].Time.UTC(), true))
		}
	}
	f.Healthy = !failed && !status.InProgress() && len(f.Evidence) == 0
	f.Standing = standing(s, status)
	return f
}

// turned reports whether a status of a stack is one that a failure leads to.
func turned(status string) bool {
	return strings.HasSuffix(status, "_FAILED") || strings.Contains(status, "ROLLBACK_IN_PROGRESS")
}

// lastOperation are the events of the last operation that somebody asked for, the oldest first.
func lastOperation(s *v1alpha1.Stack) []v1alpha1.StackEvent {
	for i, e := range slices.Backward(s.Status.Events) {
		if ofStack(s, &e) && e.Reason == stack.ByUser {
			return s.Status.Events[i:]
		}
	}
	return s.Status.Events
}

// ofStack reports whether an event is about the stack itself.
func ofStack(s *v1alpha1.Stack, e *v1alpha1.StackEvent) bool {
	return e.LogicalID == s.Spec.Name && e.Type == "AWS::CloudFormation::Stack"
}

// standing are the resources that something is being done to, and those that a failed operation leaves behind.
func standing(s *v1alpha1.Stack, status stack.Status) []diagnosis.Evidence {
	leaves := status == stack.RollbackFailed || status == stack.DeleteFailed || status == stack.CreateFailed
	var all []diagnosis.Evidence
	for i := range s.Status.Resources {
		r := &s.Status.Resources[i]
		gone := r.Status == string(stack.DeleteComplete) || r.Status == string(stack.DeleteSkipped)
		waits, stuck := strings.HasSuffix(r.Status, "_IN_PROGRESS"), strings.HasSuffix(r.Status, "_FAILED") && r.PhysicalID != ""
		if gone || !waits && !stuck && !leaves || len(all) == mostStanding {
			continue
		}
		text := r.PhysicalID
		if r.Reason != "" {
			text = strings.TrimPrefix(text+": "+r.Reason, ": ")
		}
		all = append(all, evidenceOfStack(s, r.LogicalID, r.Status+"/"+r.Type, text, r.Time.UTC(), false))
	}
	return all
}

// evidenceOfStack is something that a stack says of a resource, or of itself.
func evidenceOfStack(s *v1alpha1.Stack, id, code, text string, at time.Time, trouble bool) diagnosis.Evidence {
	object := "stack/" + s.Spec.Name
	if id != "" {
		object += "/" + id
	}
	return diagnosis.Evidence{
		Source: cause.FromStack, Object: object, Look: "aws cloudformation describe-stack-events --stack-name " + s.Spec.Name, Time: at, Code: code, Text: text, Trouble: trouble,
	}
}
