// SPDX-License-Identifier: Apache-2.0

package fargateprofiles

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/machine/fargate"
)

// profile is a Fargate profile as EKS shows it.
type profile struct {
	FargateProfileName, FargateProfileARN, ClusterName, PodExecutionRoleARN, Status string
	CreatedAt                                                                       time.Time
	Subnets                                                                         []string
	Selectors                                                                       []selector
	Tags                                                                            map[string]string
	Health                                                                          eksresource.Health
}

type selector struct {
	Namespace string
	Labels    map[string]string
}

type profileOutput struct{ FargateProfile *profile }

// Named is the input of actions about one profile.
type Named struct{ ClusterName, FargateProfileName string }

// refusal is a refusal with the names that EKS puts beside its message.
func refusal(code string, in Named, format string, args ...any) *awsfault.Error {
	e := eksfault.New(code, in.ClusterName, "", format, args...)
	if in.FargateProfileName != "" {
		e.Members["fargateProfileName"] = in.FargateProfileName
	}
	return e
}

// show is a profile as EKS tells of it.
func (a *API) show(call *awsfront.Call, of *v1alpha1.Cluster, p *v1alpha1.FargateProfile) *profile {
	shown := &profile{
		FargateProfileName: p.Spec.Name, FargateProfileARN: a.arn(call, of.Spec.Name, p), ClusterName: of.Spec.Name, PodExecutionRoleARN: p.Spec.PodExecutionRoleARN,
		CreatedAt: p.CreationTimestamp.Time, Subnets: vpcconfig.Shown(p.Spec.SubnetIDs, of.Status.SubnetIDs, of.Spec.Network.SubnetIDs),
		Tags: awsresource.PlainTags(p.Spec.Tags), Status: eksresource.Creating, Health: eksresource.Health{Issues: []eksresource.Issue{}},
	}
	for _, s := range p.Spec.Selectors {
		one := selector{Namespace: s.Namespace, Labels: map[string]string{}}
		for key, value := range s.Labels {
			one.Labels[key] = string(value)
		}
		shown.Selectors = append(shown.Selectors, one)
	}
	shown.Status = statusOf(p)
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready != nil && fargate.IsRoleProblem(ready.Reason) {
		shown.Health.Issues = append(shown.Health.Issues, eksresource.Issue{Code: ready.Reason, Message: ready.Message, ResourceIDs: []string{p.Spec.PodExecutionRoleARN}})
	}
	return shown
}

// statusOf is EKS's word for the state of a profile. A profile whose role was good once is ACTIVE.
func statusOf(p *v1alpha1.FargateProfile) string {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !p.DeletionTimestamp.IsZero():
		return eksresource.Deleting
	case ready != nil && ready.Status == metav1.ConditionTrue, p.Status.InstanceProfile != "":
		return eksresource.Active
	case ready != nil && fargate.IsRoleProblem(ready.Reason):
		return eksresource.CreateFailed
	}
	return eksresource.Creating
}

func (a *API) arn(call *awsfront.Call, cluster string, p *v1alpha1.FargateProfile) string {
	return a.store.ARN(call, "fargateprofile/"+cluster+"/"+p.Spec.Name+"/"+string(p.UID))
}

// profiles lists those of a cluster, by name.
func (a *API) profiles(ctx context.Context, of *v1alpha1.Cluster) ([]v1alpha1.FargateProfile, error) {
	var all v1alpha1.FargateProfileList
	if err := a.store.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing Fargate profiles of cluster %s: %w", of.Spec.Name, err))
	}
	return slices.DeleteFunc(all.Items, func(p v1alpha1.FargateProfile) bool {
		return p.Spec.ClusterName != of.Spec.Name || p.Name != v1alpha1.FargateProfileSlug(p.Spec.Name)
	}), nil
}

// get reads a profile of a cluster that is there.
func (a *API) get(ctx context.Context, in Named) (*v1alpha1.Cluster, *v1alpha1.FargateProfile, error) {
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.Find(ctx, of, in.FargateProfileName)
	if err == nil && found == nil {
		return nil, nil, refusal(eksfault.NotFound, in, "No Fargate Profile found with name: %.100s.", in.FargateProfileName)
	}
	return of, found, err
}

// Find returns nil if there is no profile of the name.
func (a *API) Find(ctx context.Context, of *v1alpha1.Cluster, name string) (*v1alpha1.FargateProfile, error) {
	found := &v1alpha1.FargateProfile{}
	err := a.store.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: v1alpha1.FargateProfileSlug(name)}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading Fargate profile %s: %w", name, err))
	}
	return found, nil
}

// about is the profile as IAM is asked about it. A missing profile has * for its UUID, so that policies about its name
// decide.
func (a *API) about(ctx context.Context, call *awsfront.Call, in *Named) ([]awsfront.Target, error) {
	return a.store.AboutPart(ctx, call, in.ClusterName, "fargateprofile/"+in.ClusterName+"/"+in.FargateProfileName+"/*", func(of *v1alpha1.Cluster) (string, v1alpha1.Tags, error) {
		found, err := a.Find(ctx, of, in.FargateProfileName)
		if err != nil || found == nil {
			return "", nil, err
		}
		return a.arn(call, in.ClusterName, found), found.Spec.Tags, nil
	})
}
