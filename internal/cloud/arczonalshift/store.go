// SPDX-License-Identifier: Apache-2.0

package arczonalshift

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/network/zonalshift"
)

// fault puts an error into ARC's words. Refusals of others are passed on.
func fault(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*zonalshift.Refusal](err); ok {
		e := awsfault.Errorf(string(refusal.Code), "%s", refusal.Message)
		e.Members = map[string]any{}
		if refusal.Reason != "" {
			e.Members["reason"] = refusal.Reason
		}
		if refusal.ShiftID != "" {
			e.Members["zonalShiftId"] = refusal.ShiftID
		}
		return e
	}
	if fault, ok := errors.AsType[*awsfault.Error](err); ok {
		return fault
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return &awsfault.Error{Code: string(zonalshift.Invalid), Message: err.Error(), Cause: err}
	}
	return &awsfault.Error{Code: "InternalServerException", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// clusterARN is the ARN of a cluster of the caller's account.
func (a *api) clusterARN(call *awsfront.Call, name string) string {
	return arn.ARN{Partition: "aws", Service: "eks", Region: a.Region, Account: call.Caller.Account(), Resource: "cluster/" + name}.String()
}

// clusterName is the name of the cluster that a resource identifier is the ARN of.
func (a *api) clusterName(call *awsfront.Call, identifier string) (string, error) {
	prefix := a.clusterARN(call, "")
	if name, ok := strings.CutPrefix(identifier, prefix); ok && name != "" {
		return name, nil
	}
	named, err := arn.Parse(identifier)
	switch {
	case err == nil && named.Service == "eks" && named.Account != call.Caller.Account():
		return "", awsfault.Errorf(string(zonalshift.NotFound), "%.200s is of the account %s: this is the account %s", identifier, named.Account, call.Caller.Account())
	case err == nil && named.Service == "eks" && named.Region != a.Region:
		return "", awsfault.Errorf(string(zonalshift.NotFound), "%.200s is of the region %s: this is %s", identifier, named.Region, a.Region)
	}
	e := awsfault.Errorf(string(zonalshift.Invalid), "resourceIdentifier %.200q is not the ARN of a cluster of EKS: it must be %sNAME", identifier, prefix)
	e.Members = map[string]any{"reason": "InvalidResourceIdentifier"}
	return "", e
}

// about is a cluster for IAM, with its tags if it is there.
func (a *api) about(ctx context.Context, call *awsfront.Call, name string) ([]awsfront.Target, error) {
	of := a.clusterARN(call, name)
	conditions := map[string][]string{"arc-zonal-shift:ResourceIdentifier": {of}}
	found, err := a.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		awsresource.ResourceTags(conditions, found.Spec.Tags)
	}
	return []awsfront.Target{{Resource: of, Conditions: conditions}}, nil
}

// aboutShift is the cluster of a shift for IAM, or any cluster if there is no shift of that id.
func (a *api) aboutShift(ctx context.Context, call *awsfront.Call, id string) ([]awsfront.Target, error) {
	found, err := a.shift(ctx, id)
	if refusal, ok := errors.AsType[*awsfault.Error](err); ok && refusal.Code == string(zonalshift.NotFound) {
		return []awsfront.Target{{Resource: a.clusterARN(call, "*")}}, nil
	}
	if err != nil {
		return nil, err
	}
	return a.about(ctx, call, found.Spec.ClusterName)
}

// find returns nil if there is no cluster of the name.
func (a *api) find(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	slug := v1alpha1.ClusterSlug(name)
	found := &v1alpha1.Cluster{}
	err := a.Management.Get(ctx, client.ObjectKey{Namespace: slug, Name: slug}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && found.Spec.Name != name:
		return nil, nil //nolint:nilnil // a missing cluster is not an error
	case err != nil:
		return nil, fault(fmt.Errorf("reading cluster %s: %w", name, err))
	}
	return found, nil
}

// managed reads a cluster that can be shifted, and refuses a name that no such cluster has.
func (a *api) managed(ctx context.Context, name string) (*v1alpha1.Cluster, error) {
	found, err := a.find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, awsfault.Errorf(string(zonalshift.NotFound), "There is no cluster %.100s", name)
	case !isManaged(found):
		return nil, fault(zonalshift.NotEnabled(found))
	}
	return found, nil
}

// isManaged reports whether shifts of a cluster can be started.
func isManaged(c *v1alpha1.Cluster) bool {
	return c.Spec.ZonalShift.On() && c.DeletionTimestamp.IsZero()
}

// shift reads a shift by its id, and refuses an id that no shift has.
func (a *api) shift(ctx context.Context, id string) (*v1alpha1.ZonalShift, error) {
	all, err := a.shifts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == id {
			return &all[i], nil
		}
	}
	return nil, awsfault.Errorf(string(zonalshift.NotFound), "There is no zonal shift %.40s", id)
}

// shifts lists the shifts of some namespaces, or of the account without any.
func (a *api) shifts(ctx context.Context, of ...client.ListOption) ([]v1alpha1.ZonalShift, error) {
	var all v1alpha1.ZonalShiftList
	if err := a.Management.List(ctx, &all, of...); err != nil {
		return nil, fault(fmt.Errorf("listing zonal shifts: %w", err))
	}
	return all.Items, nil
}

// zones are those that a cluster is in.
func (a *api) zones(ctx context.Context, c *v1alpha1.Cluster) ([]region.Zone, error) {
	var groups v1alpha1.NodeGroupList
	var subnets v1alpha1.SubnetList
	err := a.Management.List(ctx, &groups, client.InNamespace(c.Namespace))
	if err == nil {
		err = a.Management.List(ctx, &subnets)
	}
	if err != nil {
		return nil, fault(fmt.Errorf("looking for the zones of cluster %s: %w", c.Spec.Name, err))
	}
	return zonalshift.Zones(a.region, c, groups.Items, subnets.Items), nil
}

// zoneID is the id of a zone by its name.
func (a *api) zoneID(name string) string {
	zone, err := a.region.Zone(name)
	if err != nil {
		return name // somebody else's object says so
	}
	return zone.ID
}
