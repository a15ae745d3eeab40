// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	dnsLabel  = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	maxLabels = 50
	maxTaints = 50
	// maxSubnets is as on EKS.
	maxSubnets = 16

	maxRoleARN = 2048
	// maxClusterDomain is one label of DNS.
	maxClusterDomain = 63
)

var (
	eksNamePattern  = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]*$`)
	dnsLabelPattern = regexp.MustCompile(`^` + dnsLabel + `$`)
	domainPattern   = regexp.MustCompile(`^` + dnsLabel + `(\.` + dnsLabel + `)*$`)
	rolePattern     = regexp.MustCompile(`^(arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]+/)?)?[A-Za-z0-9_+=,.@-]{1,64}$`)
	subnetPattern   = regexp.MustCompile(`^subnet-[0-9a-f]{17}$`)
	minorPattern    = regexp.MustCompile(`^1\.[0-9]{1,6}$`)
	versionPattern  = regexp.MustCompile(`^(1\.[0-9]+|v?1\.[0-9]+\.[0-9]+)$`)
	kubernetesLabel = regexp.MustCompile(`^([^/]*[.])?(kubernetes|k8s)[.]io/`)
	kubeletLabel    = regexp.MustCompile(`^([^/]*[.])?(kubelet|node)[.]kubernetes[.]io/`)
)

// wellKnownLabels are the labels outside its own domains that a kubelet may set (k8s.io/kubelet/pkg/apis, KubeletLabels).
func wellKnownLabels() []string {
	return []string{
		corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable,
		"beta.kubernetes.io/os", "beta.kubernetes.io/arch", corev1.LabelInstanceType,
		corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
		corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	}
}

// ValidateCluster reports everything that is wrong with a defaulted Cluster: what the CRD refuses, this refuses. It also refuses names
// with another hash than that of spec.name and another namespace, which a CRD cannot compare.
func ValidateCluster(c *Cluster) field.ErrorList {
	errs := validateClusterNames(c)
	spec := field.NewPath("spec")
	if c.Spec.Version != "" && !versionPattern.MatchString(c.Spec.Version) {
		errs = append(errs, field.Invalid(spec.Child("version"), c.Spec.Version, "must be a minor version such as 1.36, or left out"))
	}
	errs = append(errs, validateNetwork(spec.Child("network"), c.Spec.Network)...)
	if replicas := c.Spec.ControlPlane.Replicas; replicas != nil && (*replicas < 1 || *replicas > MaxReplicas) {
		errs = append(errs, field.Invalid(spec.Child("controlPlane", "replicas"), *replicas, "must be 1 or 2, or left out"))
	}
	if port := c.Spec.APIServer.Port; port < 0 || port > 65535 {
		errs = append(errs, field.Invalid(spec.Child("apiServer", "port"), port, "must be from 1 to 65535, or 0 for any free port"))
	}
	errs = append(errs, validateMemoryLimit(spec.Child("apiServer", "memoryLimit"), c.Spec.APIServer.MemoryLimit)...)
	errs = append(errs, validateSettings(spec, c.Spec)...)
	certificates := spec.Child("certificates")
	errs = append(errs, validateDuration(certificates.Child("clientDuration"), c.Spec.Certificates.ClientDuration)...)
	errs = append(errs, validateDuration(certificates.Child("servingDuration"), c.Spec.Certificates.ServingDuration)...)
	if mode := c.Spec.AccessConfig.AuthenticationMode; !slices.Contains(AuthenticationModes(), mode) {
		errs = append(errs, field.NotSupported(spec.Child("accessConfig", "authenticationMode"), mode, AuthenticationModes()))
	}
	errs = append(errs, validateTags(spec.Child("tags"), c.Spec.Tags)...)
	return append(errs, validateEKS(spec.Child("eks"), c.Spec.EKS)...)
}

// ValidateNodeGroup reports everything that is wrong with a defaulted NodeGroup: what the CRD refuses, this refuses. It also refuses a
// name with another hash than that of spec.name, which a CRD cannot compute.
func ValidateNodeGroup(g *NodeGroup) field.ErrorList {
	errs := validateNodeGroupNames(g)
	spec := field.NewPath("spec")
	if !slices.Contains(Providers(), g.Spec.Provider) {
		errs = append(errs, field.NotSupported(spec.Child("provider"), g.Spec.Provider, Providers()))
	}
	if g.Spec.Version != "" && !minorPattern.MatchString(g.Spec.Version) {
		errs = append(errs, field.Invalid(spec.Child("version"), g.Spec.Version, "must be a minor version such as 1.36, or left out"))
	}
	errs = append(errs, validateScaling(spec.Child("scalingConfig"), g.Spec.ScalingConfig)...)
	errs = append(errs, validateWarmPool(spec.Child("warmPool"), g.Spec)...)
	errs = append(errs, validateLabels(spec.Child("labels"), g.Spec.Labels)...)
	errs = append(errs, validateTaints(spec.Child("taints"), g.Spec.Taints)...)
	errs = append(errs, validateSubnetIDs(spec.Child("subnetIDs"), g.Spec.SubnetIDs)...)
	errs = append(errs, validateInstanceTypes(spec.Child("instanceTypes"), g.Spec.InstanceTypes)...)
	if g.Spec.LaunchTemplate != nil {
		errs = append(errs, validateLaunchTemplate(spec.Child("launchTemplate"), *g.Spec.LaunchTemplate)...)
	}
	errs = append(errs, validateTags(spec.Child("tags"), g.Spec.Tags)...)
	errs = append(errs, validateNodeGroupEKS(spec.Child("eks"), g.Spec.EKS)...)
	if drain := g.Spec.DrainTimeout; drain != nil && (drain.Duration < time.Second || drain.Duration > MaxDrainTimeout) {
		errs = append(errs, field.Invalid(spec.Child("drainTimeout"), drain.Duration.String(), "must be from 1s to 15m"))
	}
	if g.Spec.SimulatePods && g.Spec.Provider != ProviderSimulated {
		errs = append(errs, field.Invalid(spec.Child("simulatePods"), true, "only simulated machines simulate pods; leave it out"))
	}
	return append(errs, validateBootstrap(spec, g.Spec)...)
}

func validateBootstrap(path *field.Path, s NodeGroupSpec) field.ErrorList {
	var errs field.ErrorList
	if kinds := []Bootstrap{BootstrapRole, BootstrapToken}; s.Bootstrap != "" && !slices.Contains(kinds, s.Bootstrap) {
		errs = append(errs, field.NotSupported(path.Child("bootstrap"), s.Bootstrap, kinds))
	} else if s.Bootstrap == BootstrapRole && s.Provider == ProviderSimulated {
		errs = append(errs, field.Invalid(path.Child("bootstrap"), s.Bootstrap, "simulated machines have no instance metadata to get a role's credentials from; leave it out"))
	}
	switch {
	case s.NodeRole == "":
	case utf8.RuneCountInString(s.NodeRole) > maxRoleARN || !rolePattern.MatchString(s.NodeRole):
		errs = append(errs, field.Invalid(path.Child("nodeRole"), s.NodeRole, "must be the name of an IAM role, or its ARN like arn:aws:iam::000000000000:role/muster-node"))
	case s.Provider == ProviderSimulated || s.Bootstrap == BootstrapToken:
		errs = append(errs, field.Invalid(path.Child("nodeRole"), s.NodeRole, "machines that join by a bootstrap token have no role; leave it out"))
	}
	return errs
}

func validateNetwork(path *field.Path, network ClusterNetwork) field.ErrorList {
	errs := validateSubnetIDs(path.Child("subnetIDs"), network.SubnetIDs)
	errs = append(errs, validateSubnetIDs(path.Child("podSubnetIDs"), network.PodSubnetIDs)...)
	if len(network.PodSubnetIDs) > 0 && network.PodCIDR != "" {
		errs = append(errs, field.Forbidden(path.Child("podSubnetIDs"), "pods have addresses of podCIDR or of podSubnetIDs: give one of the two"))
	}
	ranges := []struct {
		name, value      string
		largest, tiniest int
		prefix           netip.Prefix
	}{
		{name: "podCIDR", value: network.PodCIDR, largest: 8, tiniest: 22},
		{name: "serviceCIDR", value: network.ServiceCIDR, largest: 12, tiniest: 24},
	}
	for i := range ranges {
		r := &ranges[i]
		if r.name == "podCIDR" && r.value == "" {
			continue // the service chooses a range
		}
		prefix, err := netip.ParsePrefix(r.value)
		if err == nil {
			r.prefix = prefix
		}
		if err != nil || !prefix.Addr().Is4() || prefix != prefix.Masked() || !prefix.Addr().IsGlobalUnicast() ||
			prefix.Bits() < r.largest || prefix.Bits() > r.tiniest {
			errs = append(errs, field.Invalid(path.Child(r.name), r.value,
				fmt.Sprintf("must be an IPv4 network from /%d to /%d, without host bits", r.largest, r.tiniest)))
		}
		for _, other := range ranges[:i] {
			if r.prefix.IsValid() && other.prefix.IsValid() && r.prefix.Overlaps(other.prefix) {
				errs = append(errs, field.Invalid(path.Child(r.name), r.value, fmt.Sprintf("must not overlap %s, %s", other.name, other.value)))
			}
		}
	}
	if domain := network.ClusterDomain; len(domain) > maxClusterDomain || !domainPattern.MatchString(domain) {
		errs = append(errs, field.Invalid(path.Child("clusterDomain"), domain,
			fmt.Sprintf("must be a lower case DNS name of at most %d characters", maxClusterDomain)))
	}
	return errs
}

func validateSubnetIDs(path *field.Path, ids []SubnetID) field.ErrorList {
	var errs field.ErrorList
	if len(ids) > maxSubnets {
		errs = append(errs, field.TooMany(path, len(ids), maxSubnets))
	}
	for i, id := range ids {
		if !subnetPattern.MatchString(string(id)) {
			errs = append(errs, field.Invalid(path.Index(i), id, "must be the id of a subnet: subnet- and 17 hexadecimal digits"))
		}
		if slices.Contains(ids[:i], id) {
			errs = append(errs, field.Duplicate(path.Index(i), id))
		}
	}
	return errs
}

func validateDuration(path *field.Path, duration *metav1.Duration) field.ErrorList {
	if duration == nil || (duration.Duration >= 10*time.Minute && duration.Duration <= 8760*time.Hour) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, duration.Duration.String(), "must be from 10m to 8760h (a year)")}
}

func validateScaling(path *field.Path, scaling ScalingConfig) field.ErrorList {
	var errs field.ErrorList
	for _, size := range []struct {
		name  string
		value int32
	}{{"minSize", scaling.MinSize}, {"maxSize", scaling.MaxSize}, {"desiredSize", scaling.DesiredSize}} {
		if size.value < 0 || (size.name == "maxSize" && size.value > MaxGroupSize) {
			errs = append(errs, field.Invalid(path.Child(size.name), size.value, fmt.Sprintf("must be from 0 to %d", MaxGroupSize)))
		}
	}
	if len(errs) == 0 && (scaling.DesiredSize < scaling.MinSize || scaling.DesiredSize > scaling.MaxSize) {
		errs = append(errs, field.Invalid(path.Child("desiredSize"), scaling.DesiredSize,
			fmt.Sprintf("must be from minSize, %d, to maxSize, %d", scaling.MinSize, scaling.MaxSize)))
	}
	return errs
}

func validateLabels(path *field.Path, labels NodeLabels) field.ErrorList {
	var errs field.ErrorList
	if len(labels) > maxLabels {
		errs = append(errs, field.TooMany(path, len(labels), maxLabels))
	}
	known := wellKnownLabels()
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			errs = append(errs, field.Invalid(path.Key(key), key, strings.Join(problems, "; ")))
		} else if kubernetesLabel.MatchString(key) && !kubeletLabel.MatchString(key) && !slices.Contains(known, key) {
			errs = append(errs, field.Invalid(path.Key(key), key, "is refused by the kubelet; below kubernetes.io and k8s.io it takes only "+
				"those below node.kubernetes.io and kubelet.kubernetes.io and a few well-known ones"))
		}
		errs = append(errs, validateLabelValue(path.Key(key), labels[key])...)
	}
	return errs
}

func validateLabelValue(path *field.Path, value LabelValue) field.ErrorList {
	problems := validation.IsValidLabelValue(string(value))
	if len(problems) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, strings.Join(problems, "; "))}
}

func validateTaints(path *field.Path, taints NodeTaints) field.ErrorList {
	var errs field.ErrorList
	if len(taints) > maxTaints {
		errs = append(errs, field.TooMany(path, len(taints), maxTaints))
	}
	for i, taint := range taints {
		at := path.Index(i)
		if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Child("key"), taint.Key, strings.Join(problems, "; ")))
		}
		errs = append(errs, validateLabelValue(at.Child("value"), taint.Value)...)
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !slices.Contains(effects, taint.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), taint.Effect, effects))
		}
		if slices.ContainsFunc(taints[:i], func(other NodeTaint) bool { return other.Key == taint.Key && other.Effect == taint.Effect }) {
			errs = append(errs, field.Duplicate(at, taint.Key+":"+string(taint.Effect)))
		}
	}
	return errs
}
