// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/plane/baseline"
)

const (
	// namespaceGoes is far more than a namespace without a cluster takes to go, and less than clients wait for an
	// answer.
	namespaceGoes = 20 * time.Second
	namespaceLook = 50 * time.Millisecond
)

// makeCluster makes the object of a cluster, and its namespace. That of a cluster of the same name, which is gone for
// DescribeCluster, may be there for a moment more and takes no objects: then it is waited for, since a name that is
// said to be free must be free.
func (a *API) makeCluster(ctx context.Context, wanted *v1alpha1.Cluster) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, namespaceLook, namespaceGoes, true, func(ctx context.Context) (bool, error) {
		if last = baseline.EnsureNamespace(ctx, a.store.Management, wanted.Namespace); last == nil {
			last = a.store.Management.Create(ctx, wanted)
		}
		going := apierrors.HasStatusCause(last, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(last)
		return !going, nil
	})
	if last != nil {
		return last
	}
	return err
}

// secondServiceRange is the range of Services that EKS chooses where the first one is the VPC's.
const secondServiceRange = "172.20.0.0/16"

// chooseServiceRange refuses a range of Services that is of the VPC, where machines could not reach either of the two.
// A range that nobody asked for is another one then, as on EKS.
func (a *API) chooseServiceRange(ctx context.Context, c *v1alpha1.Cluster, in *createClusterInput) error {
	vpc, err := a.rangeOfVPC(ctx, in.ResourcesVPCConfig.SubnetIDs)
	if err != nil || !vpc.IsValid() {
		return err
	}
	services, err := netip.ParsePrefix(c.Spec.Network.ServiceCIDR)
	if err != nil || !services.Overlaps(vpc) {
		return err
	}
	if in.KubernetesNetworkConfig == nil || in.KubernetesNetworkConfig.ServiceIPv4CIDR == "" {
		c.Spec.Network.ServiceCIDR = secondServiceRange
		return nil
	}
	return eksfault.New(eksfault.InvalidParameter, in.Name, "", "serviceIpv4Cidr %s overlaps %s, the range of the cluster's VPC: choose another one, such as %s", services, vpc, secondServiceRange)
}

// rangeOfVPC is the range of the VPC of some subnets, or of the default VPC. It is not valid if that VPC is not there:
// the cluster says so.
func (a *API) rangeOfVPC(ctx context.Context, subnets []string) (netip.Prefix, error) {
	_, id, _, err := vpcconfig.Subnets(ctx, a.store.Management, subnets)
	if err != nil {
		return netip.Prefix{}, err
	}
	var all v1alpha1.VPCList
	if err := a.store.Management.List(ctx, &all); err != nil {
		return netip.Prefix{}, eksfault.Away(fmt.Errorf("listing VPCs: %w", err))
	}
	for i := range all.Items {
		if v := &all.Items[i]; v.Name == id || id == "" && v.Spec.IsDefault {
			if prefix, err := netip.ParsePrefix(v.Spec.CIDRBlock); err == nil {
				return prefix, nil
			}
		}
	}
	return netip.Prefix{}, nil
}
