// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

// The codes are those of EKS's API (NodegroupIssueCode): reasons that have EKS's words are told in them, others in the
// nearest.
func TestNodegroupIssues(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"AccessDenied":                  "AccessDenied",
		"IamNodeRoleNotFound":           "IamNodeRoleNotFound",
		"NodeCreationFailure":           "NodeCreationFailure",
		"InstanceLimitExceeded":         "InstanceLimitExceeded",
		"InsufficientFreeAddresses":     "InsufficientFreeAddresses",
		"Ec2SubnetNotFound":             "Ec2SubnetNotFound",
		"Ec2SubnetInvalidConfiguration": "Ec2SubnetInvalidConfiguration",
		"InsufficientInstanceCapacity":  "AsgInstanceLaunchFailures",
		"ClusterNotFound":               "InternalFailure",
	} {
		group := &v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{Name: "web"}}
		group.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "because"}}
		status, issues := nodegroupStatus(group)
		if diff := cmp.Diff([]eksresource.Issue{{Code: want, Message: "because", ResourceIDs: []string{"web"}}}, issues); diff != "" || status != eksresource.CreateFailed {
			t.Errorf("%s: %s, (-want +got):\n%s", reason, status, diff)
		}
	}
}
