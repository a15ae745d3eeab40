// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/componentconfig"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/platform/release"
)

const (
	anywhere = "0.0.0.0/0"
	ipv4     = "ipv4"
	extended = "EXTENDED"
	standard = "STANDARD"
)

type createClusterInput struct {
	Name, Version, RoleARN, ClientRequestToken string
	ResourcesVPCConfig                         vpcRequest
	KubernetesNetworkConfig                    *networkConfig
	Logging                                    *logging
	Tags                                       map[string]string
	AccessConfig                               *accessConfig
	UpgradePolicy                              *upgradePolicy
	BootstrapSelfManagedAddons                 *bool
	DeletionProtection                         *bool
	EncryptionConfig                           []encryption
	ComputeConfig                              *computeConfig
	ZonalShiftConfig                           *onOff
	StorageConfig                              *storageConfig

	componentconfig.Request
}

// onOff is a feature of EKS that can be turned on.
type onOff struct{ Enabled *bool }

// on reports whether the feature is on; otherwise is the answer where nothing says so.
func (f *onOff) on(otherwise bool) bool {
	if f == nil {
		return otherwise
	}
	return eksresource.Deref(f.Enabled, otherwise)
}

// zonalShift is what a cluster's spec has of the feature; nil where nothing was asked for.
func (f *onOff) zonalShift() *v1alpha1.ClusterZonalShift {
	if f == nil {
		return nil
	}
	return &v1alpha1.ClusterZonalShift{Enabled: f.on(false)}
}

func (a *API) createCluster() awsfront.Spec[createClusterInput, clusterOutput] {
	return awsfront.Spec[createClusterInput, clusterOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createClusterInput) ([]awsfront.Target, error) {
			passed, err := passrole.Targets(ctx, a.store.Management, in.RoleARN, passrole.EKS, a.store.ClusterARN(call, in.Name))
			if err != nil {
				return nil, err
			}
			nodes, err := in.mode().passed(ctx, a, call, in.Name)
			return slices.Concat([]awsfront.Target{{Resource: a.store.ClusterARN(call, in.Name), Conditions: in.conditions()}}, passed, nodes), err
		},
		Do: a.doCreateCluster,
	}
}

// conditions are the keys that a request sets.
func (in *createClusterInput) conditions() map[string][]string {
	set := map[string][]string{}
	awsresource.RequestTags(set, awstag.Sorted(in.Tags))
	boolean := func(key string, value *bool) {
		if value != nil {
			set[key] = []string{fmt.Sprint(*value)}
		}
	}
	text := func(key, value string) {
		if value != "" {
			set[key] = []string{value}
		}
	}
	text("eks:kubernetesVersion", in.Version)
	for _, config := range in.EncryptionConfig {
		set["eks:encryptionConfigProviderKeyArns"] = append(set["eks:encryptionConfigProviderKeyArns"], config.Provider.KeyARN)
	}
	boolean("eks:endpointPublicAccess", in.ResourcesVPCConfig.EndpointPublicAccess)
	boolean("eks:endpointPrivateAccess", in.ResourcesVPCConfig.EndpointPrivateAccess)
	boolean("eks:bootstrapSelfManagedAddons", in.BootstrapSelfManagedAddons)
	boolean("eks:deletionProtection", in.DeletionProtection)
	if in.ComputeConfig != nil {
		boolean("eks:computeConfigEnabled", in.ComputeConfig.Enabled)
	}
	mode := in.mode()
	for key, feature := range map[string]*onOff{
		"eks:blockStorageEnabled": mode.storage, "eks:elasticLoadBalancingEnabled": mode.balance, "eks:zonalShiftEnabled": in.ZonalShiftConfig,
	} {
		if feature != nil {
			boolean(key, feature.Enabled)
		}
	}
	if in.AccessConfig != nil {
		text("eks:authenticationMode", in.AccessConfig.AuthenticationMode)
		boolean("eks:bootstrapClusterCreatorAdminPermissions", in.AccessConfig.BootstrapClusterCreatorAdminPermissions)
	}
	if in.UpgradePolicy != nil {
		text("eks:supportType", in.UpgradePolicy.SupportType)
	}
	if in.Logging != nil {
		for _, setup := range in.Logging.ClusterLogging {
			for _, kind := range setup.Types {
				boolean("eks:loggingType/"+kind, setup.Enabled)
			}
		}
	}
	return set
}

func (a *API) doCreateCluster(ctx context.Context, call *awsfront.Call, in *createClusterInput) (*clusterOutput, error) {
	wanted, err := a.wanted(in)
	if err != nil {
		return nil, err
	}
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.Name)()
	exists := eksfault.New(eksfault.InUse, in.Name, "", "Cluster already exists with name: %s", in.Name)
	there, err := a.store.FindCluster(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	if there != nil {
		if err := sent.CheckMade(there, exists); err != nil {
			return nil, err
		}
		return &clusterOutput{a.show(call, there)}, nil
	}
	if wanted.Spec.Network.SubnetIDs, err = a.clusterSubnets(ctx, in.ResourcesVPCConfig.SubnetIDs); err != nil {
		return nil, err
	}
	if err := a.checkSecurityGroups(ctx, in.ResourcesVPCConfig.SubnetIDs, in.ResourcesVPCConfig.SecurityGroupIDs); err != nil {
		return nil, err
	}
	if err := a.chooseServiceRange(ctx, wanted, in); err != nil {
		return nil, err
	}
	wanted.Spec.SecurityGroupIDs = in.ResourcesVPCConfig.SecurityGroupIDs
	if err := a.checkClusterRole(ctx, in.RoleARN); err != nil {
		return nil, err
	}
	if err := a.checkNodeRole(ctx, wanted.Spec.Compute, eksfault.Invalid(in.Name, "")); err != nil {
		return nil, err
	}
	if err := a.checkCompute(ctx, nil, wanted.Spec, eksfault.Invalid(in.Name, "")); err != nil {
		return nil, err
	}
	if wanted.Spec.EKS.EncryptionKeyARN, err = a.encryptionKey(ctx, call, in.Name, in.EncryptionConfig); err != nil {
		return nil, err
	}
	sent.Mark(wanted)
	if err := a.makeCluster(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, exists)
	}
	return &clusterOutput{a.show(call, wanted)}, nil
}

// wanted is the object that a request asks for, its subnets aside.
func (a *API) wanted(in *createClusterInput) (*v1alpha1.Cluster, error) {
	refuse := func(format string, args ...any) (*v1alpha1.Cluster, error) {
		return nil, eksfault.New(eksfault.InvalidParameter, in.Name, "", format, args...)
	}
	if !eksresource.IsName(in.Name, v1alpha1.MaxClusterName) {
		return refuse("The cluster name %.120q is not valid: it must begin with a letter or digit and be of at most %d letters, digits, - and _", in.Name, v1alpha1.MaxClusterName)
	}
	slug := v1alpha1.ClusterSlug(in.Name)
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: slug, Name: slug}, Spec: v1alpha1.ClusterSpec{
		Name: in.Name, DeletionProtection: eksresource.Deref(in.DeletionProtection, false), EKS: v1alpha1.ClusterEKS{RoleARN: in.RoleARN},
		BootstrapSelfManagedAddons: in.BootstrapSelfManagedAddons, ZonalShift: in.ZonalShiftConfig.zonalShift(),
	}}
	var err error
	if err = in.setCompute(c); err != nil {
		return nil, err
	}
	if c.Spec.Tags, err = eksresource.ReadTags(in.Tags); err != nil {
		return nil, err
	}
	if in.Version != "" {
		wanted, err := release.All().OfMinor(in.Version)
		if err != nil {
			return refuse("%s", err)
		}
		if missing := a.Unbuilt(wanted); missing != "" {
			return refuse("%s", missing)
		}
		c.Spec.Version = wanted.Minor()
	}
	if err := in.network(c); err != nil {
		return nil, err
	}
	if access := in.AccessConfig; access != nil {
		mode := v1alpha1.AuthenticationMode(access.AuthenticationMode)
		if mode != "" && !slices.Contains(v1alpha1.AuthenticationModes(), mode) {
			return refuse("authenticationMode %.40q is not known: it must be one of %v", mode, v1alpha1.AuthenticationModes())
		}
		c.Spec.AccessConfig = v1alpha1.ClusterAccessConfig{AuthenticationMode: mode, BootstrapClusterCreatorAdminPermissions: access.BootstrapClusterCreatorAdminPermissions}
	}
	if in.AccessConfig == nil || in.AccessConfig.AuthenticationMode == "" {
		c.Spec.AccessConfig.AuthenticationMode = v1alpha1.AuthenticationConfigMap // EKS's default; muster's own is another
	}
	if policy := in.UpgradePolicy; policy != nil {
		if policy.SupportType != "" && policy.SupportType != extended && policy.SupportType != standard {
			return refuse("supportType %.40q is not known: it must be STANDARD or EXTENDED", policy.SupportType)
		}
		c.Spec.EKS.SupportType = policy.SupportType
	}
	if in.Logging != nil {
		if c.Spec.EKS.LoggingTypes, err = switched(nil, *in.Logging); err != nil {
			return nil, err
		}
	}
	settings, wrong := in.Read()
	if len(wrong) > 0 {
		return refuse("%s", componentconfig.Wrong(wrong))
	}
	settings.Change(&c.Spec)
	c.Default()
	return c, nil
}

// network reads what a request says of networks.
func (in *createClusterInput) network(c *v1alpha1.Cluster) error {
	asked := in.ResourcesVPCConfig
	c.Spec.EKS.Endpoint = v1alpha1.ClusterEKSEndpoint{PublicAccess: asked.EndpointPublicAccess, PrivateAccess: asked.EndpointPrivateAccess}
	switch {
	case len(asked.PublicAccessCIDRs) > 0 && !slices.Equal(asked.PublicAccessCIDRs, []string{anywhere}):
		return eksfault.New(eksfault.InvalidParameter, in.Name, "", "Muster's public endpoint is on the host's loopback address and has no publicAccessCidrs: leave %v out", asked.PublicAccessCIDRs)
	case !eksresource.Deref(asked.EndpointPublicAccess, true) && !eksresource.Deref(asked.EndpointPrivateAccess, false):
		return eksfault.New(eksfault.InvalidParameter, in.Name, "", "Private and public endpoint access cannot be false")
	case in.KubernetesNetworkConfig == nil:
		return nil
	}
	if family := in.KubernetesNetworkConfig.IPFamily; family != "" && family != ipv4 {
		return eksfault.New(eksfault.InvalidParameter, in.Name, "", "Muster's clusters have IPv4 addresses: ipFamily must be ipv4, not %.20q", family)
	}
	if text := in.KubernetesNetworkConfig.ServiceIPv4CIDR; text != "" {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || !prefix.Addr().Is4() || prefix != prefix.Masked() || !prefix.Addr().IsPrivate() || prefix.Bits() < 12 || prefix.Bits() > 24 {
			return eksfault.New(eksfault.InvalidParameter, in.Name, "", "serviceIpv4Cidr %.40q is not valid: it must be a private IPv4 network from /12 to /24, such as 10.100.0.0/16", text)
		}
		c.Spec.Network.ServiceCIDR = text
	}
	return nil
}

// switched are the types of logs that are enabled after a change.
func switched(enabled []v1alpha1.LoggingType, change logging) ([]v1alpha1.LoggingType, error) {
	on := map[v1alpha1.LoggingType]bool{}
	for _, kind := range enabled {
		on[kind] = true
	}
	for _, setup := range change.ClusterLogging {
		for _, text := range setup.Types {
			kind := v1alpha1.LoggingType(text)
			if !slices.Contains(v1alpha1.LoggingTypes(), kind) {
				return nil, awsfault.Errorf(eksfault.InvalidParameter, "The log type %.40q is not known: it must be one of %v", text, v1alpha1.LoggingTypes())
			}
			on[kind] = eksresource.Deref(setup.Enabled, false)
		}
	}
	var types []v1alpha1.LoggingType
	for _, kind := range v1alpha1.LoggingTypes() {
		if on[kind] {
			types = append(types, kind)
		}
	}
	return types, nil
}
