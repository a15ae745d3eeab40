// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
)

// newStack is a stack whose creation was refused, and its deletion, too.
func newStack(status string, ago time.Duration) *v1alpha1.Stack {
	at := metav1.NewTime(clitest.Noon.Add(-ago))
	s := &v1alpha1.Stack{ObjectMeta: clitest.MadeBefore("0b1c2d3e", 2*time.Hour), Spec: v1alpha1.StackSpec{Name: "net", Template: "{}", OnFailure: "ROLLBACK"}, Status: v1alpha1.StackStatus{Status: status}}
	s.Status.Events = []v1alpha1.StackEvent{
		{ID: "1", LogicalID: "net", Type: "AWS::CloudFormation::Stack", Status: "CREATE_IN_PROGRESS", Reason: "User Initiated", Time: at},
		{ID: "2", LogicalID: "VPC", Type: "AWS::EC2::VPC", Status: "CREATE_FAILED", Reason: "User: x is not authorized to perform: ec2:CreateVpc", Time: at},
	}
	s.Status.Resources = []v1alpha1.StackResource{{LogicalID: "Gateway", Type: "AWS::EC2::InternetGateway", Status: "DELETE_IN_PROGRESS", PhysicalID: "igw-1", Reason: "it has dependencies", Time: at}}
	return s
}

func TestStacks(t *testing.T) {
	for args, test := range map[string]struct {
		code   int
		status string
		ago    time.Duration
		want   []string
	}{
		"stack net":            {1, "ROLLBACK_IN_PROGRESS", time.Minute, []string{"M-STACK-100", "stack/net/VPC CREATE_FAILED/AWS::EC2::VPC: User: x is not", "What waits, or is left:", "igw-1: it has dependencies"}},
		"stacks net -o json":   {1, "ROLLBACK_FAILED", time.Minute, []string{`"cause": "M-STACK-100"`, `"standing": [`}},
		"stack arn:x/0b1c2d3e": {1, "ROLLBACK_FAILED", time.Minute, []string{"M-STACK-100"}},
		"stack nobody":         {2, "ROLLBACK_FAILED", time.Minute, []string{"there is no stack"}},
		"stack 0b1c2d3e":       {1, "DELETE_COMPLETE", time.Minute, []string{"M-STACK-100"}},
		"":                     {1, "ROLLBACK_COMPLETE", 3 * time.Hour, []string{"stack net: the cause is known"}},
		"-o yaml":              {0, "UPDATE_ROLLBACK_COMPLETE", 3 * time.Hour, []string{"reports: []"}},
		"--output table":       {1, "UPDATE_ROLLBACK_COMPLETE", time.Minute, []string{"M-STACK-100"}},
	} {
		b := world(t, newStack(test.status, test.ago))
		got := run(t, b, strings.Fields(args)...)
		out := b.Out.String() + b.Err.String()
		for _, want := range append(test.want, "") {
			if got != test.code || !strings.Contains(out, want) {
				t.Errorf("%q: exit code %d, want %d with %q\n%s", args, got, test.code, want, out)
			}
		}
	}
}
