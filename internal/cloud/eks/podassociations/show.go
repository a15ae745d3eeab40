// SPDX-License-Identifier: Apache-2.0

package podassociations

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/iam/iampolicy"
)

var associationID = regexp.MustCompile(`^a-[0-9a-z]{17}$`)

// association is EKS's, as it is answered.
type association struct {
	ClusterName, Namespace, ServiceAccount, RoleARN, AssociationARN, AssociationID string
	OwnerARN, TargetRoleARN, ExternalID, Policy                                    string
	DisableSessionTags                                                             *bool
	CreatedAt, ModifiedAt                                                          time.Time
	Tags                                                                           map[string]string
}

type associationSummary struct {
	ClusterName, Namespace, ServiceAccount, AssociationARN, AssociationID, OwnerARN string
}

type associationOutput struct{ Association *association }

// named is the input of actions about one association.
type named struct{ ClusterName, AssociationID string }

// showAssociation is an association as EKS tells of it.
func (a *API) showAssociation(call *awsfront.Call, p *v1alpha1.PodIdentityAssociation) *association {
	shown := &association{
		ClusterName: p.Spec.ClusterName, Namespace: p.Spec.Namespace, ServiceAccount: p.Spec.ServiceAccount, RoleARN: p.Spec.RoleARN,
		AssociationARN: a.associationARN(call, p.Spec.ClusterName, p.Name), AssociationID: p.Name, OwnerARN: p.Spec.OwnerARN,
		TargetRoleARN: p.Spec.TargetRoleARN, Policy: p.Spec.Policy, DisableSessionTags: new(p.Spec.DisableSessionTags),
		CreatedAt: p.CreationTimestamp.Time, ModifiedAt: eksresource.ChangedAt(p), Tags: awsresource.PlainTags(p.Spec.Tags),
	}
	if p.Spec.TargetRoleARN != "" { // what the trust policy of the target role compares with sts:ExternalId
		shown.ExternalID = a.store.Region + "/" + call.Caller.Account() + "/" + p.Spec.ClusterName + "/" + p.Spec.Namespace + "/" + p.Spec.ServiceAccount
	}
	return shown
}

func (a *API) associationARN(call *awsfront.Call, cluster, id string) string {
	return a.store.ARN(call, associationResource(cluster, id))
}

func associationResource(cluster, id string) string {
	return "podidentityassociation/" + cluster + "/" + id
}

// associations lists those of a cluster.
func (a *API) associations(ctx context.Context, of *v1alpha1.Cluster) ([]v1alpha1.PodIdentityAssociation, error) {
	var all v1alpha1.PodIdentityAssociationList
	if err := a.store.Management.List(ctx, &all, client.InNamespace(of.Namespace)); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing the pod identity associations of cluster %s: %w", of.Spec.Name, err))
	}
	return slices.DeleteFunc(all.Items, func(p v1alpha1.PodIdentityAssociation) bool { return p.Spec.ClusterName != of.Spec.Name }), nil
}

// association reads an association of a cluster that is there.
func (a *API) association(ctx context.Context, in named) (*v1alpha1.PodIdentityAssociation, error) {
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	found, err := a.Find(ctx, of, in.AssociationID)
	if err == nil && found == nil {
		return nil, eksfault.New(eksfault.NotFound, in.ClusterName, "", "No pod identity association found for id: %.100s.", in.AssociationID)
	}
	return found, err
}

// Find returns nil if there is no association of the id.
func (a *API) Find(ctx context.Context, of *v1alpha1.Cluster, id string) (*v1alpha1.PodIdentityAssociation, error) {
	if !associationID.MatchString(id) {
		return nil, nil
	}
	found := &v1alpha1.PodIdentityAssociation{}
	err := a.store.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: id}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.ClusterName != of.Spec.Name:
		return nil, nil
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading pod identity association %s: %w", id, err))
	}
	return found, nil
}

// aboutAssociation is the association as IAM is asked about it. A missing association has no tags.
func (a *API) aboutAssociation(ctx context.Context, call *awsfront.Call, in *named) ([]awsfront.Target, error) {
	return a.store.AboutPart(ctx, call, in.ClusterName, associationResource(in.ClusterName, in.AssociationID), func(of *v1alpha1.Cluster) (string, v1alpha1.Tags, error) {
		found, err := a.Find(ctx, of, in.AssociationID)
		if err != nil || found == nil {
			return "", nil, err
		}
		return a.associationARN(call, in.ClusterName, found.Name), found.Spec.Tags, nil
	})
}

// checkAssociation refuses what no pod could get credentials by.
func (a *API) checkAssociation(ctx context.Context, call *awsfront.Call, s v1alpha1.PodIdentityAssociationSpec) error {
	refuse := eksfault.Invalid(s.ClusterName, "")
	switch {
	case len(validation.IsDNS1123Label(s.Namespace)) > 0:
		return refuse("The namespace %.80q is not valid: it must be the name of a Kubernetes namespace", s.Namespace)
	case len(validation.IsDNS1123Subdomain(s.ServiceAccount)) > 0:
		return refuse("The serviceAccount %.80q is not valid: it must be the name of a Kubernetes service account", s.ServiceAccount)
	case !passrole.IsARN(s.RoleARN):
		return refuse("The roleArn %.300q is not the ARN of a role", s.RoleARN)
	case s.TargetRoleARN != "" && !passrole.IsARN(s.TargetRoleARN):
		return refuse("The targetRoleArn %.300q is not the ARN of a role", s.TargetRoleARN)
	case s.Policy != "" && !s.DisableSessionTags:
		return refuse("disableSessionTags must be true when a policy is given")
	}
	if s.Policy != "" {
		if _, err := iampolicy.Parse(iampolicy.Session, s.Policy); err != nil {
			return refuse("The policy is not valid: %v", err)
		}
	}
	found, err := passrole.Find(ctx, a.store.Management, s.RoleARN)
	switch {
	case err != nil:
		return err
	case found == nil:
		return refuse("Role provided in the request does not exist.")
	case found.Spec.Account != call.Caller.Account():
		return refuse("The role %s is of another account than the cluster: make it the targetRoleArn of a role of account %s", s.RoleARN, call.Caller.Account())
	case !a.letsPodsIn(call, found, s):
		return refuse("Trust policy of the role %s is not valid: it must let %s do sts:AssumeRole and sts:TagSession", s.RoleARN, passrole.Pods)
	}
	return nil
}

// letsPodsIn reports whether the trust policy of a role lets EKS give it to pods of an association, as far as that is
// known before there is a pod.
func (a *API) letsPodsIn(call *awsfront.Call, role *v1alpha1.IAMRole, s v1alpha1.PodIdentityAssociationSpec) bool {
	source := a.store.ClusterARN(call, s.ClusterName)
	known := map[string][]string{"aws:sourceaccount": {call.Caller.Account()}, "aws:sourcearn": {source}, "aws:resourceaccount": {role.Spec.Account}}
	if s.DisableSessionTags {
		return passrole.LetsIn(role, a.store.Region, passrole.Pods, "sts:AssumeRole", known)
	}
	for tag, value := range map[string]string{
		"eks-cluster-arn": source, "eks-cluster-name": s.ClusterName, "kubernetes-namespace": s.Namespace, "kubernetes-service-account": s.ServiceAccount,
	} {
		known["aws:requesttag/"+tag] = []string{value}
	}
	return passrole.LetsIn(role, a.store.Region, passrole.Pods, "sts:AssumeRole", known) && passrole.LetsIn(role, a.store.Region, passrole.Pods, "sts:TagSession", known)
}
