// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/componentconfig"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
)

// platformVersion is EKS's name for a release of a control plane within a minor version.
const platformVersion = "eks.1"

// cluster is EKS's, as it is answered.
type cluster struct {
	Name, ARN, Version, Endpoint, RoleARN, Status, PlatformVersion string
	CreatedAt                                                      time.Time
	ResourcesVPCConfig                                             vpcConfig
	KubernetesNetworkConfig                                        networkConfig
	Logging                                                        logging
	Identity                                                       *identity
	CertificateAuthority                                           *certificate
	Tags                                                           map[string]string
	Health                                                         clusterHealth
	AccessConfig                                                   accessConfig
	UpgradePolicy                                                  upgradePolicy
	DeletionProtection                                             *bool
	ZonalShiftConfig                                               *onOff
	EncryptionConfig                                               []encryption
	ComputeConfig                                                  *computeConfig
	StorageConfig                                                  *storageConfig

	componentconfig.Request
}

// vpcRequest is what a request says of networks.
type vpcRequest struct {
	SubnetIDs, SecurityGroupIDs                 []string
	EndpointPublicAccess, EndpointPrivateAccess *bool
	PublicAccessCIDRs                           []string
}

type vpcConfig struct {
	vpcRequest

	VPCID, ClusterSecurityGroupID string
}

type networkConfig struct {
	ServiceIPv4CIDR, IPFamily string
	ElasticLoadBalancing      *onOff
}

type logging struct{ ClusterLogging []logSetup }

type logSetup struct {
	Types   []string
	Enabled *bool
}

type identity struct{ OIDC oidc }

type oidc struct{ Issuer string }

type certificate struct{ Data string }

type clusterHealth struct{ Issues []eksresource.ClusterIssue }

type accessConfig struct {
	AuthenticationMode                      string
	BootstrapClusterCreatorAdminPermissions *bool
}

type upgradePolicy struct{ SupportType string }

// show is a cluster as EKS tells of it.
func (a *API) show(call *awsfront.Call, c *v1alpha1.Cluster) *cluster {
	eks := c.Spec.EKS
	shown := &cluster{
		Name: c.Spec.Name, ARN: a.store.ClusterARN(call, c.Spec.Name), Version: eksresource.Version(c),
		RoleARN: eks.RoleARN, PlatformVersion: platformVersion, CreatedAt: c.CreationTimestamp.Time, Endpoint: c.Status.Endpoint,
		ResourcesVPCConfig: vpcConfig{VPCID: c.Status.VPCID, ClusterSecurityGroupID: c.Status.ClusterSecurityGroupID, vpcRequest: vpcRequest{
			SubnetIDs: vpcconfig.Shown(c.Status.SubnetIDs, c.Spec.Network.SubnetIDs), SecurityGroupIDs: append([]string{}, c.Spec.SecurityGroupIDs...), PublicAccessCIDRs: []string{anywhere},
			EndpointPublicAccess: new(eksresource.Deref(eks.Endpoint.PublicAccess, true)), EndpointPrivateAccess: new(eksresource.Deref(eks.Endpoint.PrivateAccess, false)),
		}},
		KubernetesNetworkConfig: networkConfig{ServiceIPv4CIDR: c.Spec.Network.ServiceCIDR, IPFamily: ipv4},
		Logging:                 showLogging(eks.LoggingTypes),
		Tags:                    awsresource.PlainTags(c.Spec.Tags),
		AccessConfig:            accessConfig{AuthenticationMode: string(c.Spec.AccessConfig.AuthenticationMode)},
		UpgradePolicy:           upgradePolicy{cmp.Or(eks.SupportType, extended)},
		DeletionProtection:      new(c.Spec.DeletionProtection),
		Request:                 componentconfig.Show(c.Spec),
	}
	if shift := c.Spec.ZonalShift; shift != nil {
		shown.ZonalShiftConfig = &onOff{&shift.Enabled}
	}
	showCompute(c, shown)
	if key := eks.EncryptionKeyARN; key != "" {
		shown.EncryptionConfig = []encryption{{Resources: []string{secrets}, Provider: keyProvider{key}}}
	}
	if issuer := c.Status.Identity.OIDC.Issuer; issuer != "" {
		shown.Identity = &identity{oidc{issuer}}
	}
	if data := c.Status.CertificateAuthority.Data; data != "" {
		shown.CertificateAuthority = &certificate{data}
	}
	shown.Status, shown.Health.Issues = eksresource.ClusterStatus(c)
	return shown
}

// showLogging has the enabled types before those that are not, as EKS has them.
func showLogging(enabled []v1alpha1.LoggingType) logging {
	var on, off []string
	for _, kind := range v1alpha1.LoggingTypes() {
		if slices.Contains(enabled, kind) {
			on = append(on, string(kind))
		} else {
			off = append(off, string(kind))
		}
	}
	l := logging{ClusterLogging: []logSetup{}}
	if on != nil {
		l.ClusterLogging = append(l.ClusterLogging, logSetup{on, new(true)})
	}
	if off != nil {
		l.ClusterLogging = append(l.ClusterLogging, logSetup{off, new(false)})
	}
	return l
}
