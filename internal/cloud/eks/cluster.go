// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/version"
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
	EncryptionConfig                                               []encryption
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

type networkConfig struct{ ServiceIPv4CIDR, IPFamily string }

type logging struct{ ClusterLogging []logSetup }

type logSetup struct {
	Types   []string
	Enabled *bool
}

type identity struct{ OIDC oidc }

type oidc struct{ Issuer string }

type certificate struct{ Data string }

type clusterHealth struct{ Issues []clusterIssue }

type clusterIssue struct{ Code, Message string }

type accessConfig struct {
	AuthenticationMode                      string
	BootstrapClusterCreatorAdminPermissions *bool
}

type upgradePolicy struct{ SupportType string }

// The status of a cluster.
const (
	creating = "CREATING"
	active   = "ACTIVE"
	deleting = "DELETING"
	failed   = "FAILED"
	updating = "UPDATING"
)

// show is a cluster as EKS tells of it.
func (a *api) show(call *awsfront.Call, c *v1alpha1.Cluster) *cluster {
	eks := c.Spec.EKS
	shown := &cluster{
		Name: c.Spec.Name, ARN: a.clusterARN(call, c.Spec.Name), Version: minor(cmp.Or(c.Status.Version, c.Spec.Version, version.Kubernetes)),
		RoleARN: eks.RoleARN, PlatformVersion: platformVersion, CreatedAt: c.CreationTimestamp.Time, Endpoint: c.Status.Endpoint,
		ResourcesVPCConfig: vpcConfig{VPCID: c.Status.VPCID, ClusterSecurityGroupID: c.Status.ClusterSecurityGroupID, vpcRequest: vpcRequest{
			SubnetIDs: shownSubnets(c.Status.SubnetIDs, c.Spec.Network.SubnetIDs), SecurityGroupIDs: append([]string{}, c.Spec.SecurityGroupIDs...), PublicAccessCIDRs: []string{anywhere},
			EndpointPublicAccess: new(deref(eks.Endpoint.PublicAccess, true)), EndpointPrivateAccess: new(deref(eks.Endpoint.PrivateAccess, false)),
		}},
		KubernetesNetworkConfig: networkConfig{ServiceIPv4CIDR: c.Spec.Network.ServiceCIDR, IPFamily: ipv4},
		Logging:                 showLogging(eks.LoggingTypes),
		Tags:                    shownTags(c.Spec.Tags),
		AccessConfig:            accessConfig{AuthenticationMode: string(c.Spec.AccessConfig.AuthenticationMode)},
		UpgradePolicy:           upgradePolicy{cmp.Or(eks.SupportType, extended)},
		DeletionProtection:      new(c.Spec.DeletionProtection),
	}
	if key := eks.EncryptionKeyARN; key != "" {
		shown.EncryptionConfig = []encryption{{Resources: []string{secrets}, Provider: keyProvider{key}}}
	}
	if issuer := c.Status.Identity.OIDC.Issuer; issuer != "" {
		shown.Identity = &identity{oidc{issuer}}
	}
	if data := c.Status.CertificateAuthority.Data; data != "" {
		shown.CertificateAuthority = &certificate{data}
	}
	shown.Status, shown.Health.Issues = clusterStatus(c)
	return shown
}

func deref[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// minor is the version as EKS has it: 1.36 of v1.36.3.
func minor(full string) string {
	parts := strings.SplitN(strings.TrimPrefix(full, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// clusterStatus is the word and the issues that EKS has for what a cluster's conditions say. A cluster that was served once is ACTIVE: what
// ails it since is an issue of its health.
func clusterStatus(c *v1alpha1.Cluster) (status string, issues []clusterIssue) {
	issues = []clusterIssue{}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	refusal := readiness.Refusal(c)
	switch {
	case !c.DeletionTimestamp.IsZero():
		return deleting, issues
	case refusal != "":
		code := "ConfigurationConflict"
		if ready.Reason == "InsufficientMemory" {
			code = "ResourceLimitExceeded"
		}
		issues = append(issues, clusterIssue{code, refusal})
		if c.Status.Version == "" {
			return failed, issues
		}
		return active, issues
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return active, issues
	case c.Status.Version != "":
		if ready != nil {
			issues = append(issues, clusterIssue{"ClusterUnreachable", ready.Message})
		}
		return active, issues
	}
	return creating, issues
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
