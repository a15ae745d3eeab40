// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// stackOf is a stack with events, each "LOGICALID STATUS REASON", the stack's own without an id, and resources, each "LOGICALID STATUS PHYSICALID REASON".
func stackOf(status string, events, resources []string) *v1alpha1.Stack {
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "0b1c", CreationTimestamp: at(time.Hour)}, Spec: v1alpha1.StackSpec{Name: "net"}, Status: v1alpha1.StackStatus{Status: status}}
	for i, line := range events {
		words := strings.SplitN(line, " ", 3)
		e := v1alpha1.StackEvent{LogicalID: words[0], Type: "AWS::EC2::VPC", Status: words[1], Reason: words[2], Time: at(30*time.Minute - time.Duration(i)*time.Second)}
		if e.LogicalID == "net" {
			e.Type = "AWS::CloudFormation::Stack"
		}
		s.Status.Events = append(s.Status.Events, e)
	}
	for _, line := range resources {
		words := strings.SplitN(line, " ", 4)
		s.Status.Resources = append(s.Status.Resources, v1alpha1.StackResource{LogicalID: words[0], Type: "AWS::EC2::VPC", Status: words[1], PhysicalID: words[2], Reason: words[3], Time: at(time.Minute)})
	}
	return s
}

func TestStack(t *testing.T) {
	t.Parallel()
	catalogue, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	begun := "net CREATE_IN_PROGRESS User Initiated"
	denied := "VPC CREATE_FAILED User: x is not authorized to perform: ec2:CreateVpc (Error Code: UnauthorizedOperation)"
	for name, c := range map[string]struct {
		status            string
		events, resources []string
		verdict           diagnosis.Verdict
		cause             cause.ID
		failed, standing  []string
	}{
		"complete": {"CREATE_COMPLETE", []string{begun, "VPC CREATE_COMPLETE "}, []string{"VPC CREATE_COMPLETE vpc-1 "}, diagnosis.Healthy, "", nil, nil},
		"under way": {
			"CREATE_IN_PROGRESS",
			[]string{begun, "VPC CREATE_IN_PROGRESS "},
			[]string{"VPC CREATE_COMPLETE vpc-1 ", "NAT CREATE_IN_PROGRESS nat-1 "},
			diagnosis.OnItsWay, "", nil,
			[]string{"stack/net/NAT CREATE_IN_PROGRESS/AWS::EC2::VPC nat-1"},
		},
		"a deletion that waits": {
			"DELETE_IN_PROGRESS",
			[]string{begun, "VPC CREATE_FAILED long ago", "net DELETE_IN_PROGRESS User Initiated"},
			[]string{"VPC DELETE_IN_PROGRESS vpc-1 it has dependencies", "Gone DELETE_COMPLETE igw-1 "},
			diagnosis.OnItsWay, "", nil,
			[]string{"stack/net/VPC DELETE_IN_PROGRESS/AWS::EC2::VPC vpc-1: it has dependencies"},
		},
		"denied and rolled back": {
			"ROLLBACK_COMPLETE",
			[]string{begun, denied, "Other CREATE_FAILED Resource creation cancelled", "net ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [VPC]."},
			[]string{"VPC DELETE_COMPLETE  "},
			diagnosis.Found, "M-STACK-100",
			[]string{"stack/net/VPC"},
			nil,
		},
		"a name that is taken": {"UPDATE_ROLLBACK_COMPLETE", []string{begun, "net UPDATE_IN_PROGRESS User Initiated", "Role CREATE_FAILED Role x already exists"}, nil, diagnosis.NotKnown, "", []string{"stack/net/Role"}, nil},
		"in use": {
			"DELETE_FAILED",
			[]string{"net DELETE_IN_PROGRESS User Initiated", "VPC DELETE_FAILED The vpc 'vpc-1' has dependencies (Error Code: DependencyViolation)"},
			[]string{"VPC DELETE_FAILED vpc-1 in use", "Gateway CREATE_COMPLETE igw-1 "},
			diagnosis.Found, "M-STACK-101",
			[]string{"stack/net/VPC"},
			[]string{"stack/net/VPC DELETE_FAILED/AWS::EC2::VPC vpc-1: in use", "stack/net/Gateway CREATE_COMPLETE/AWS::EC2::VPC igw-1"},
		},
		"the key ended": {"CREATE_FAILED", []string{begun, "VPC CREATE_FAILED The security token included in the request is invalid. (Error Code: InvalidClientTokenId)"}, nil, diagnosis.Found, "M-STACK-102", []string{"stack/net/VPC"}, nil},
		"its outputs": {
			"UPDATE_ROLLBACK_COMPLETE",
			[]string{"net UPDATE_IN_PROGRESS User Initiated", "net UPDATE_ROLLBACK_IN_PROGRESS Export a cannot be updated as it is in use by b"},
			nil, diagnosis.NotKnown, "",
			[]string{"stack/net"},
			nil,
		},
		"only reserved": {"REVIEW_IN_PROGRESS", []string{"net REVIEW_IN_PROGRESS User Initiated"}, nil, diagnosis.Healthy, "", nil, nil},
	} {
		f := evidence.Stack(stackOf(c.status, c.events, c.resources))
		r := diagnosis.Decide(catalogue, f, noon)
		var failed, standing []string
		for _, e := range f.Evidence {
			failed = append(failed, e.Object)
		}
		for _, e := range r.Standing {
			standing = append(standing, e.Object+" "+e.Code+" "+e.Text)
		}
		if r.Verdict != c.verdict || !slices.Equal(failed, c.failed) || !slices.Equal(standing, c.standing) {
			t.Errorf("%s: %s, failed %q, standing %q", name, r.Verdict, failed, standing)
		}
		if c.cause != "" && (len(r.Causes) != 1 || r.Causes[0].Cause != c.cause) {
			t.Errorf("%s: causes %+v, want %s", name, r.Causes, c.cause)
		}
	}
}
