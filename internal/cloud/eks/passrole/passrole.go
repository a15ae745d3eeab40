// SPDX-License-Identifier: Apache-2.0

// Package passrole finds the roles that requests give to services of AWS, asks IAM whether the caller may pass them,
// and says which services a role lets in.
package passrole

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/iam/iampolicy"
)

// The services whose principals must be let into roles.
const (
	EKS  = "eks.amazonaws.com"
	EC2  = "ec2.amazonaws.com"
	Pods = iampolicy.PodsService

	Fargate = iampolicy.FargateService
)

// Find finds a role by its ARN; nil if there is none.
func Find(ctx context.Context, management client.Reader, text string) (*v1alpha1.IAMRole, error) {
	var all v1alpha1.IAMRoleList
	if err := management.List(ctx, &all); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing roles: %w", err))
	}
	for i := range all.Items {
		if all.Items[i].Spec.ARN == text {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

// Targets is what IAM is asked about a role that a request gives to a service, for the use of a resource: nobody gets
// the rights of a role that they may not pass, by having machines or pods use it. Nothing is asked about a text that is
// not the ARN of a role, which is refused later.
func Targets(ctx context.Context, management client.Reader, text, to, resource string) ([]awsfront.Target, error) {
	if !IsARN(text) {
		return nil, nil
	}
	conditions := map[string][]string{"iam:PassedToService": {to}}
	if resource != "" {
		conditions["iam:AssociatedResourceArn"] = []string{resource}
	}
	found, err := Find(ctx, management, text)
	if err != nil {
		return nil, err
	}
	if found != nil {
		for _, tag := range found.Spec.Tags {
			conditions["aws:ResourceTag/"+tag.Key], conditions["iam:ResourceTag/"+tag.Key] = []string{tag.Value}, []string{tag.Value}
		}
	}
	return []awsfront.Target{{Action: "iam:PassRole", Resource: text, Conditions: conditions}}, nil
}

// LetsIn reports whether the trust policy of a role lets a service do what it takes to assume it, under conditions
// beside the global ones; the region is that of the request. A policy that cannot be read lets nobody.
func LetsIn(role *v1alpha1.IAMRole, region, principal, action string, conditions map[string][]string) bool {
	document, err := iampolicy.Parse(iampolicy.Trust, role.Spec.TrustPolicy)
	if err != nil {
		return false
	}
	caller := iampolicy.Caller{Service: principal}
	known := iampolicy.NewContext(caller, iampolicy.Facts{Now: time.Now(), Secure: true, Region: region})
	maps.Copy(known, conditions)
	return document.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: role.Spec.ARN, Context: known}).Verdict == iampolicy.Allow
}

// IsARN reports whether a text is the ARN of a role of IAM.
func IsARN(text string) bool {
	_, rest, ok := strings.Cut(text, ":iam::")
	return ok && strings.Contains(rest, ":role/")
}
