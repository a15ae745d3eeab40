// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/platform/release"
)

// CheckRole refuses a group whose role does not exist: its machines would wait for the role, and nobody who does not
// wait for them would hear why. Roles that the service makes by itself may be about to be made.
func (p *Client) CheckRole(ctx context.Context, group *v1alpha1.NodeGroup) error {
	role := group.Spec.NodeRole
	if role == "" || role == v1alpha1.AccountNodeRole || role == v1alpha1.ClusterNodeRole(group.Namespace) {
		return nil
	}
	var roles v1alpha1.IAMRoleList
	if err := p.ReadAll(ctx, &roles); err != nil {
		return err
	}
	var names []string
	for i := range roles.Items {
		spec := &roles.Items[i].Spec
		if spec.Account != identityservice.DefaultAccount {
			continue
		}
		if role == spec.Name || role == spec.ARN {
			return nil
		}
		names = append(names, spec.Name, spec.ARN)
	}
	return fmt.Errorf("--node-role: there is no IAM role %q%s; aws iam create-role makes one, aws iam list-roles shows those there are "+
		"(`eval \"$(muster env)\"` lets aws speak to muster)", role, terminal.DidYouMean(role, names))
}

// CheckVersion refuses a group whose machines do not fit their cluster: only the group's condition would say so later. A
// cluster that has not run yet is not known to fit or not.
func (p *Client) CheckVersion(ctx context.Context, group *v1alpha1.NodeGroup) error {
	cluster := &v1alpha1.Cluster{}
	if group.Spec.Version == "" {
		return nil
	}
	if err := p.ReadKey(ctx, client.ObjectKey{Namespace: group.Namespace, Name: group.Namespace}, cluster); err != nil {
		return err
	}
	plane, err := release.All().OfMinor(release.Minor(cluster.Status.Version))
	if err != nil {
		return nil //nolint:nilerr // the cluster has not run, or is of a later Muster, whose service decides
	}
	machines, err := release.All().OfMinor(group.Spec.Version)
	if err == nil {
		err = release.CheckSkew(machines, plane)
	}
	if err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	return nil
}

// NodeGroup reads a node group of the cluster that --cluster names, or of the only one; if there is none of that name,
// the error suggests one.
func (p *Client) NodeGroup(ctx context.Context, cluster, name string) (*v1alpha1.NodeGroup, error) {
	cluster, err := p.Cluster(ctx, cluster)
	if err != nil {
		return nil, err
	}
	k := NodeGroups()
	objects, _, err := p.Objects(ctx, k, client.InNamespace(v1alpha1.ClusterSlug(cluster)))
	if err != nil {
		return nil, err
	}
	object, err := k.find(objects, name)
	if err != nil {
		return nil, err
	}
	return object.(*v1alpha1.NodeGroup), nil
}

// Scale changes nothing but the size. The API server checks it against the bounds there are by then.
func (p *Client) Scale(ctx context.Context, group *v1alpha1.NodeGroup, wanted v1alpha1.ScalingConfig) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	changed := group.DeepCopy()
	changed.Spec.ScalingConfig = wanted
	return p.Explain(p.Patch(ctx, changed, client.MergeFrom(group)))
}
