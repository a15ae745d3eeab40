// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
)

// bootstrapCall is how user data of EKS's Amazon Linux 2 nodes names its cluster.
var bootstrapCall = regexp.MustCompile(`(?m)^[^#\n]*/etc/eks/bootstrap\.sh\s+['"]?([0-9A-Za-z][0-9A-Za-z_-]*)`)

// clusterNamed is the cluster that user data names: in a NodeConfig, or as the argument of bootstrap.sh. Empty if it
// names none: user data that cannot be read is the machine's own affair, as on EC2.
func clusterNamed(raw []byte) string {
	parts, err := userdata.Read(raw)
	if err != nil {
		return ""
	}
	sources, _ := userdata.NodeConfigs(parts)
	if merged, err := nodeconfig.Read(sources, true); err == nil && merged.Spec.Cluster.Name != "" {
		return merged.Spec.Cluster.Name
	}
	for _, part := range parts {
		if found := bootstrapCall.FindSubmatch(part.Content); found != nil && part.MediaType == userdata.TypeShellScript {
			return string(found[1])
		}
	}
	return ""
}

// clusterOf is the cluster of the account that runs a machine with some user data in a VPC, or nil. It decides about
// nothing but who looks after the machine: the cluster lets it in by its role or does not.
func (a *Actions) clusterOf(ctx context.Context, raw []byte, vpc string) (*v1alpha1.Cluster, error) {
	name := clusterNamed(raw)
	if name == "" {
		return nil, nil //nolint:nilnil // no cluster is not an error
	}
	slug := v1alpha1.ClusterSlug(name)
	found := &v1alpha1.Cluster{}
	err := a.ec2.Management.Get(ctx, client.ObjectKey{Namespace: slug, Name: slug}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no cluster is not an error
	case err != nil:
		return nil, ec2resource.Away(fmt.Errorf("reading cluster %s, which user data names: %w", name, err))
	case found.Spec.Name != name || found.Status.VPCID != vpc || !found.DeletionTimestamp.IsZero():
		return nil, nil //nolint:nilnil // no cluster is not an error
	}
	return found, nil
}

// podsInSubnets reports whether pods of a cluster's machines have addresses of subnets, the machines' own or others.
func podsInSubnets(cluster *v1alpha1.Cluster, subnet *v1alpha1.Subnet) bool {
	pods, err := netip.ParsePrefix(cluster.Status.PodCIDR)
	if err != nil {
		return false
	}
	own, err := netip.ParsePrefix(subnet.Spec.CIDRBlock)
	return err == nil && pods.Overlaps(own)
}
