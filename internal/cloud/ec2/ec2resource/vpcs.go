// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
)

// Depends says what keeps something from being deleted.
func Depends(noun, id string, on []string) error {
	const most = 10 // that a message names
	shown := on
	if len(on) > most {
		shown = append(slices.Clone(on[:most]), "…")
	}
	return awsfault.Errorf(DependencyViolated, "The %s '%s' has dependencies and cannot be deleted: %s", noun, id, strings.Join(shown, ", "))
}

// AboutNewIn is what a request makes in a VPC, and the VPC.
func (a *EC2) AboutNewIn(ctx context.Context, call *awsfront.Call, resource, vpc string, specifications []TagSpecification) ([]awsfront.Target, error) {
	of, err := a.About(ctx, call, ec2id.VPC, vpc)
	if err != nil {
		return nil, err
	}
	made, err := a.AboutNew(call, resource, specifications, map[string][]string{"ec2:Vpc": {a.ARN(call, "vpc/"+vpc)}})
	return append(made, of...), err
}

// VPC reads a VPC that has not been deleted.
func (a *EC2) VPC(ctx context.Context, id string) (*v1alpha1.VPC, error) {
	v := &v1alpha1.VPC{}
	if err := a.Get(ctx, ec2id.VPC, id, v); err != nil {
		return nil, err
	}
	if Leaving(v, v.Status.Conditions) {
		return nil, ec2id.VPC.NotFound(id)
	}
	return v, nil
}

// Leaving reports whether an object was deleted and its controller is about to remove it. A deleted object that is
// still in use is shown to everybody.
func Leaving(object client.Object, conditions []metav1.Condition) bool {
	if object.GetDeletionTimestamp().IsZero() {
		return false
	}
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	return ready == nil || ready.Reason != "InUse" && ready.Reason != "HasSubnets"
}
