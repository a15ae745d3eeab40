// SPDX-License-Identifier: Apache-2.0

package addons

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
)

// addonShape is EKS's add-on, as it is answered.
type addonShape struct {
	AddonName, ClusterName, Status, AddonVersion, AddonARN, ServiceAccountRoleARN, Publisher, Owner, ConfigurationValues string
	Health                                                                                                               eksresource.Health
	CreatedAt, ModifiedAt                                                                                                time.Time
	Tags                                                                                                                 map[string]string
	PodIdentityAssociations                                                                                              []string
	NamespaceConfig                                                                                                      *namespaceConfig
}

type namespaceConfig struct{ Namespace string }

type addonOutput struct{ Addon *addonShape }

// Named is an input that names an add-on.
type Named struct{ ClusterName, AddonName string }

// addonAssociation is a pod identity association that a request wants for an add-on.
type addonAssociation struct{ ServiceAccount, RoleARN string }

// addonFault is a refusal with the names that EKS puts beside its message.
func addonFault(code string, in Named, format string, args ...any) *awsfault.Error {
	e := eksfault.New(code, in.ClusterName, "", format, args...)
	e.Members["addonName"] = in.AddonName
	return e
}

// Get reads an add-on of a cluster that is there.
func (a *API) Get(ctx context.Context, in Named) (*v1alpha1.Cluster, *v1alpha1.Addon, error) {
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, nil, err
	}
	found, err := a.Find(ctx, of, in.AddonName)
	if err == nil && found == nil {
		return nil, nil, addonFault(eksfault.NotFound, in, "No addon: %s found in cluster: %s", in.AddonName, in.ClusterName)
	}
	return of, found, err
}

// Find returns nil if there is no add-on of the name.
func (a *API) Find(ctx context.Context, of *v1alpha1.Cluster, name string) (*v1alpha1.Addon, error) {
	if _, ok := catalogue.New().Find(name); !ok { // a name that no object has is no question to the API server
		return nil, nil
	}
	found := &v1alpha1.Addon{}
	err := a.store.Management.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, eksfault.Away(fmt.Errorf("reading add-on %s: %w", name, err))
	}
	return found, nil
}

func (a *API) addonARN(call *awsfront.Call, cluster string, found *v1alpha1.Addon) string {
	return a.store.ARN(call, "addon/"+cluster+"/"+found.Name+"/"+string(found.UID))
}

// About is the add-on as IAM is asked about it. A missing add-on has * for its UUID, so that policies about its name
// decide.
func (a *API) About(ctx context.Context, call *awsfront.Call, in *Named) ([]awsfront.Target, error) {
	return a.store.AboutPart(ctx, call, in.ClusterName, "addon/"+in.ClusterName+"/"+in.AddonName+"/*", func(of *v1alpha1.Cluster) (string, v1alpha1.Tags, error) {
		found, err := a.Find(ctx, of, in.AddonName)
		if err != nil || found == nil {
			return "", nil, err
		}
		return a.addonARN(call, in.ClusterName, found), found.Spec.Tags, nil
	})
}

// showAddon is an add-on as EKS tells of it. While an update of it is in progress it is UPDATING.
func (a *API) showAddon(ctx context.Context, call *awsfront.Call, of *v1alpha1.Cluster, found *v1alpha1.Addon) (*addonShape, error) {
	known, _ := catalogue.For(eksresource.Release(of)).Find(found.Name)
	shown := &addonShape{
		AddonName: found.Name, ClusterName: of.Spec.Name, Status: string(found.Phase()), AddonARN: a.addonARN(call, of.Spec.Name, found),
		AddonVersion: cmp.Or(found.Status.Version, found.Spec.Version, known.Version), ServiceAccountRoleARN: found.Spec.ServiceAccountRoleARN,
		Publisher: known.Publisher, Owner: known.Owner, ConfigurationValues: found.Spec.ConfigurationValues, Health: eksresource.Health{Issues: []eksresource.Issue{}},
		CreatedAt: found.CreationTimestamp.Time, ModifiedAt: eksresource.ChangedAt(found), Tags: awsresource.PlainTags(found.Spec.Tags), PodIdentityAssociations: []string{},
		NamespaceConfig: &namespaceConfig{known.Namespace},
	}
	if ready := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.LastTransitionTime.After(shown.ModifiedAt) {
		shown.ModifiedAt = ready.LastTransitionTime.Time
	}
	if shown.Status != string(v1alpha1.AddonCreating) { // while it is created, what it waits for is no issue
		for _, i := range found.Status.Issues {
			shown.Health.Issues = append(shown.Health.Issues, eksresource.Issue{Code: i.Code, Message: i.Message, ResourceIDs: slices.Clone(i.ResourceIDs)})
		}
	}
	if shown.Status == string(v1alpha1.AddonCreating) || shown.Status == string(v1alpha1.AddonDeleting) {
		return shown, nil
	}
	all, err := a.addonUpdates(ctx, of, found)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, change.InProgress) {
		shown.Status = eksresource.Updating
	}
	return shown, nil
}

// checkAddon refuses what no add-on can be, and returns the entry of the catalogue.
func (a *API) checkAddon(ctx context.Context, of *v1alpha1.Cluster, in Named, wanted v1alpha1.AddonSpec, associations []addonAssociation) (addon.Addon, error) {
	runs := eksresource.Release(of)
	known, ok := catalogue.For(runs).Find(in.AddonName)
	resolve := []v1alpha1.ResolveConflicts{"", v1alpha1.ConflictsNone, v1alpha1.ConflictsOverwrite, v1alpha1.ConflictsPreserve}
	refuse := func(format string, args ...any) (addon.Addon, error) {
		return known, addonFault(eksfault.InvalidParameter, in, format, args...)
	}
	switch {
	case !ok:
		return refuse("Addon %.80s specified is not supported in %s kubernetes version", in.AddonName, runs.Minor())
	case wanted.Version != "" && wanted.Version != known.Version:
		return refuse("Addon version specified is not supported: %.60s is not a version of %s for clusters of %s, %s is", wanted.Version, known.Name, runs.Minor(), known.Version)
	case !slices.Contains(resolve, wanted.ResolveConflicts):
		return refuse("resolveConflicts %.40q is not known: it must be NONE, OVERWRITE or PRESERVE", wanted.ResolveConflicts)
	case len(wanted.ConfigurationValues) > v1alpha1.MaxAddonValues:
		return refuse("The configurationValues are of %d bytes: there may be %d", len(wanted.ConfigurationValues), v1alpha1.MaxAddonValues)
	case len(associations) > 0:
		return refuse("Add-on %s has no pods that take credentials by pod identity associations: leave podIdentityAssociations out", known.Name)
	}
	if _, err := known.Read(wanted.ConfigurationValues); err != nil {
		return refuse("ConfigurationValue provided in request is not supported: Json schema validation failed with error: %v", err)
	}
	if wanted.ServiceAccountRoleARN == "" {
		return known, nil
	}
	if !passrole.IsARN(wanted.ServiceAccountRoleARN) {
		return refuse("The serviceAccountRoleArn %.300q is not the ARN of a role", wanted.ServiceAccountRoleARN)
	}
	found, err := passrole.Find(ctx, a.store.Management, wanted.ServiceAccountRoleARN)
	if err == nil && found == nil {
		return refuse("The role %s does not exist", wanted.ServiceAccountRoleARN)
	}
	return known, err
}
