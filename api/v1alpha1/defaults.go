// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The defaults of the CRDs. A test holds the two against each other.
const (
	DefaultServiceCIDR         = "10.100.0.0/16"
	DefaultClusterDomain       = "cluster.local"
	DefaultCertificateDuration = 168 * time.Hour
	// MaxGroupSize is the most machines that a group may have, and the maxSize of a group of simulated ones for which nobody chose another.
	MaxGroupSize = 5000
	// DefaultLocalMaxSize is the maxSize of a group of local machines for which nobody chose one, or more.
	DefaultLocalMaxSize = 5
)

// DefaultMaxSize is the maxSize of a group for which nobody chose one: local machines share one host, and a number that
// was mistyped must not start a hundred. The management plane's policy nodegroups.muster.dev does the same for objects that leave it out.
func DefaultMaxSize(provider Provider, minSize, desiredSize int32) int32 {
	if provider == ProviderSimulated {
		return MaxGroupSize
	}
	return min(max(DefaultLocalMaxSize, minSize, desiredSize), MaxGroupSize)
}

// Default fills in what is empty, as the API server does. A document read from a file is decoded over a defaulted Cluster
// instead, so that an empty value somebody wrote is still seen, and refused.
func (c *Cluster) Default() {
	network := &c.Spec.Network
	for field, value := range map[*string]string{
		&network.ServiceCIDR:   DefaultServiceCIDR,
		&network.ClusterDomain: DefaultClusterDomain,
	} {
		if *field == "" {
			*field = value
		}
	}
	certificates := &c.Spec.Certificates
	for _, field := range []**metav1.Duration{&certificates.ClientDuration, &certificates.ServingDuration} {
		if *field == nil {
			*field = &metav1.Duration{Duration: DefaultCertificateDuration}
		}
	}
	access := &c.Spec.AccessConfig
	if access.AuthenticationMode == "" {
		access.AuthenticationMode = AuthenticationAPIAndConfigMap
	}
	if access.BootstrapClusterCreatorAdminPermissions == nil {
		yes := true
		access.BootstrapClusterCreatorAdminPermissions = &yes
	}
}

// Default fills in what is empty, as the API server does; a maxSize of 0 counts as empty here.
func (g *NodeGroup) Default() {
	if g.Spec.Provider == "" {
		g.Spec.Provider = DefaultProvider
	}
	if g.Spec.ScalingConfig.MaxSize == 0 {
		g.Spec.ScalingConfig.MaxSize = DefaultMaxSize(g.Spec.Provider, g.Spec.ScalingConfig.MinSize, g.Spec.ScalingConfig.DesiredSize)
	}
}
