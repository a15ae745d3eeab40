// SPDX-License-Identifier: Apache-2.0

package accessentries

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

// accessEntry is EKS's, as it is answered.
type accessEntry struct {
	ClusterName, PrincipalARN, AccessEntryARN, Username, Type string
	KubernetesGroups                                          []string
	CreatedAt, ModifiedAt                                     time.Time
	Tags                                                      map[string]string
}

type accessEntryOutput struct{ AccessEntry *accessEntry }

// namedEntry is the input of actions about one access entry.
type namedEntry struct{ ClusterName, PrincipalARN string }

// entries are where a cluster keeps its access entries.
type entries struct {
	client.Client

	of *v1alpha1.Cluster
}

// entriesOf reaches a cluster that has access entries.
func (a *API) entriesOf(ctx context.Context, cluster string) (entries, error) {
	of, err := a.store.Cluster(ctx, cluster)
	if err != nil {
		return entries{}, err
	}
	if of.Spec.AccessConfig.AuthenticationMode == v1alpha1.AuthenticationConfigMap {
		return entries{}, eksfault.New(eksfault.InvalidRequest, cluster, "", "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this operation.")
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return entries{}, eksfault.New(eksfault.InvalidRequest, cluster, "", "Cluster '%s' is not in ACTIVE status: it is %s", cluster, status)
	}
	reach, err := a.config.Cluster(of.Namespace)
	if err != nil {
		return entries{}, eksfault.Away(fmt.Errorf("reaching cluster %s: %w", cluster, err))
	}
	return entries{reach, of}, nil
}

func (e entries) all(ctx context.Context) ([]accessv1alpha1.AccessEntry, error) {
	var list accessv1alpha1.AccessEntryList
	if err := e.List(ctx, &list); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing access entries: %w", err))
	}
	return list.Items, nil
}

// find finds the entry of a principal; nil if there is none.
func (e entries) find(ctx context.Context, principal string) (*accessv1alpha1.AccessEntry, error) {
	all, err := e.all(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Spec.PrincipalARN == principal {
			return &all[i], nil
		}
	}
	return nil, nil
}

// entry finds the entry that a request names.
func (a *API) entry(ctx context.Context, in namedEntry) (entries, *accessv1alpha1.AccessEntry, error) {
	in2, err := a.entriesOf(ctx, in.ClusterName)
	if err != nil {
		return in2, nil, err
	}
	found, err := in2.find(ctx, in.PrincipalARN)
	if err == nil && found == nil {
		err = eksfault.New(eksfault.NotFound, in.ClusterName, "", "The specified principalArn could not be found. You can view your available access entries with 'list-access-entries'.")
	}
	return in2, found, err
}

// change changes an entry, and nothing that somebody else changes meanwhile, such as the id of the principal, which is
// recorded a moment after an entry is made: the change is made to what there is then. It may be called again.
func (e entries) change(ctx context.Context, entry *accessv1alpha1.AccessEntry, change func(*accessv1alpha1.AccessEntrySpec)) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := entry.DeepCopy()
		change(&entry.Spec)
		err := e.Patch(ctx, entry, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			if err := e.Get(ctx, client.ObjectKeyFromObject(before), entry); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return eksfault.Away(fmt.Errorf("changing access entry %s: %w", entry.Name, err))
	}
	return nil
}

// entryName is the name of the object of a principal that the API makes: two requests at once make one.
func entryName(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return "eks-" + hex.EncodeToString(sum[:])[:20]
}

// entryResource is the resource of an entry's ARN. An entry that is not there has * for its UUID.
func entryResource(cluster, principal, uid string) string {
	kind, account, name := "*", "*", "*"
	if parsed, err := arn.Parse(principal); err == nil {
		parts := strings.Split(parsed.Resource, "/")
		kind, account, name = parts[0], parsed.Account, parts[len(parts)-1]
	}
	return "access-entry/" + cluster + "/" + kind + "/" + account + "/" + name + "/" + uid
}

// aboutEntry is the entry as IAM is asked about it.
func (a *API) aboutEntry(ctx context.Context, call *awsfront.Call, in *namedEntry) ([]awsfront.Target, error) {
	target := awsfront.Target{Resource: a.store.ARN(call, entryResource(in.ClusterName, in.PrincipalARN, "*")), Conditions: map[string][]string{
		"eks:clusterName": {in.ClusterName}, "eks:principalArn": {in.PrincipalARN},
	}}
	e, err := a.entriesOf(ctx, in.ClusterName)
	if err != nil {
		return []awsfront.Target{target}, nil //nolint:nilerr // a caller who may do it is told so by the action
	}
	found, err := e.find(ctx, in.PrincipalARN)
	if err != nil || found == nil {
		return []awsfront.Target{target}, err
	}
	shown := a.showEntry(call, e.of, found)
	target.Resource = shown.AccessEntryARN
	target.Conditions["eks:accessEntryType"], target.Conditions["eks:username"] = []string{shown.Type}, []string{shown.Username}
	if len(shown.KubernetesGroups) > 0 {
		target.Conditions["eks:kubernetesGroups"] = shown.KubernetesGroups
	}
	awsresource.ResourceTags(target.Conditions, shown.Tags)
	return []awsfront.Target{target}, nil
}

// showEntry is an entry as EKS tells of it.
func (a *API) showEntry(call *awsfront.Call, of *v1alpha1.Cluster, e *accessv1alpha1.AccessEntry) *accessEntry {
	shown := &accessEntry{
		ClusterName: of.Spec.Name, PrincipalARN: e.Spec.PrincipalARN, AccessEntryARN: a.store.ARN(call, entryResource(of.Spec.Name, e.Spec.PrincipalARN, string(e.UID))),
		Username: e.Spec.Username, Type: string(e.Spec.Type), KubernetesGroups: slices.Clone(e.Spec.KubernetesGroups),
		CreatedAt: e.CreationTimestamp.Time, ModifiedAt: eksresource.ChangedAt(e), Tags: Tags(e),
	}
	if shown.Type == "" {
		shown.Type = string(accessv1alpha1.TypeStandard)
	}
	switch {
	case e.Spec.Type == accessv1alpha1.TypeEC2Linux:
		shown.Username, shown.KubernetesGroups = "system:node:{{EC2PrivateDNSName}}", []string{"system:nodes"}
	case shown.Username == "":
		shown.Username = usernameOf(e.Spec.PrincipalARN)
	}
	if shown.KubernetesGroups == nil {
		shown.KubernetesGroups = []string{}
	}
	return shown
}

// usernameOf is the user name of an entry that has none: the ARN of a user, and of a role that of its sessions.
func usernameOf(principal string) string {
	parsed, err := arn.Parse(principal)
	if err != nil || !strings.HasPrefix(parsed.Resource, "role/") {
		return principal
	}
	return "arn:" + parsed.Partition + ":sts::" + parsed.Account + ":assumed-role/" + parsed.Resource[strings.LastIndex(parsed.Resource, "/")+1:] + "/{{SessionName}}"
}

// principalID finds the user or role of an ARN.
func (a *API) principalID(ctx context.Context, principal string) (string, error) {
	role, err := passrole.Find(ctx, a.store.Management, principal)
	if err != nil {
		return "", err
	}
	if role != nil {
		return role.Spec.RoleID, nil
	}
	var users v1alpha1.IAMUserList
	if err := a.store.Management.List(ctx, &users); err != nil {
		return "", eksfault.Away(fmt.Errorf("listing users: %w", err))
	}
	for i := range users.Items {
		if users.Items[i].Spec.ARN == principal {
			return users.Items[i].Spec.UserID, nil
		}
	}
	return "", awsfault.Errorf(eksfault.InvalidParameter, "The specified principalArn is invalid: invalid principal.")
}
