// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// AMI type and capacity type of all node groups.
const (
	amiType  = "AL2023_x86_64_STANDARD"
	onDemand = "ON_DEMAND"
)

// nodegroup is EKS's, as it is answered.
type nodegroup struct {
	NodegroupName, NodegroupARN, ClusterName, Version, ReleaseVersion, Status, CapacityType, AMIType, NodeRole string
	CreatedAt, ModifiedAt                                                                                      time.Time
	ScalingConfig                                                                                              *scaling
	InstanceTypes, Subnets                                                                                     []string
	Labels                                                                                                     map[string]string
	Taints                                                                                                     []taint
	Resources                                                                                                  resources
	Health                                                                                                     eksresource.Health
	LaunchTemplate                                                                                             *launchTemplate
	UpdateConfig                                                                                               *updateConfig
	NodeRepairConfig                                                                                           *nodeRepairConfig
	WarmPoolConfig                                                                                             *warmPoolConfig
	DiskSize                                                                                                   *int32
	RemoteAccess                                                                                               *remoteAccess
	Tags                                                                                                       map[string]string
}

type scaling struct{ MinSize, MaxSize, DesiredSize *int32 }

type taint struct{ Key, Value, Effect string }

type resources struct{ AutoScalingGroups []group }

type group struct{ Name string }

// The effects of taints, as EKS and Kubernetes call them.
var effects = map[string]corev1.TaintEffect{
	"NO_SCHEDULE": corev1.TaintEffectNoSchedule, "NO_EXECUTE": corev1.TaintEffectNoExecute, "PREFER_NO_SCHEDULE": corev1.TaintEffectPreferNoSchedule,
}

// showNodegroup is a node group as EKS tells of it.
func (a *API) showNodegroup(call *awsfront.Call, of *v1alpha1.Cluster, g *v1alpha1.NodeGroup) *nodegroup {
	shown := &nodegroup{
		NodegroupName: g.Spec.Name, NodegroupARN: a.nodegroupARN(call, of.Spec.Name, g), ClusterName: of.Spec.Name,
		Version: versionOf(of, g), CapacityType: onDemand, AMIType: amiType, ReleaseVersion: releaseVersion(versionOf(of, g)),
		NodeRole: roleARN(call, g.Role()), CreatedAt: g.CreationTimestamp.Time, ModifiedAt: modified(g),
		ScalingConfig: &scaling{new(g.Spec.ScalingConfig.MinSize), new(g.Spec.ScalingConfig.MaxSize), new(g.Spec.ScalingConfig.DesiredSize)},
		Subnets:       vpcconfig.Shown(g.Spec.SubnetIDs, of.Status.SubnetIDs, of.Spec.Network.SubnetIDs), Labels: map[string]string{}, Taints: []taint{},
		Resources: resources{[]group{{v1alpha1.AutoScalingGroupName(g.Spec.Name, g.UID)}}}, Tags: awsresource.PlainTags(g.Spec.Tags),
	}
	shown.LaunchTemplate, shown.InstanceTypes = showLaunch(g)
	shown.showKept(g.Spec.EKS)
	shown.WarmPoolConfig = showWarmPool(g.Spec.WarmPool)
	for key, value := range g.Spec.Labels {
		shown.Labels[key] = string(value)
	}
	for _, t := range g.Spec.Taints {
		for name, effect := range effects {
			if effect == t.Effect {
				shown.Taints = append(shown.Taints, taint{t.Key, string(t.Value), name})
			}
		}
	}
	shown.Status, shown.Health.Issues = nodegroupStatus(g)
	shown.Health.Issues = append(shown.Health.Issues, repairIssues(g)...)
	return shown
}

// versionOf is the minor of a group's new machines, as EKS has it. It is the cluster's until the group has said its own.
func versionOf(of *v1alpha1.Cluster, g *v1alpha1.NodeGroup) string {
	return cmp.Or(g.Spec.Version, g.Status.Version, eksresource.Version(of))
}

// releaseVersion is the release of what machines of a minor run, as EKS calls it: that of the newest image.
func releaseVersion(minor string) string {
	recommended, _ := ami.Recommended(minor)
	return recommended.ReleaseVersion
}

// checkVersion refuses a minor that machines of a cluster cannot be of, and a release that is not the one of its machines.
func (a *API) checkVersion(of *v1alpha1.Cluster, minor, releaseAsked string, refuse eksfault.Refuse) error {
	wanted, err := release.All().OfMinor(minor)
	if err == nil {
		err = release.CheckSkew(wanted, eksresource.Release(of))
	}
	if err != nil {
		return refuse("Requested Nodegroup version is not supported: %s", err)
	}
	if missing := a.config.Unbuilt(wanted); missing != "" {
		return refuse("%s", missing)
	}
	if newest := releaseVersion(minor); releaseAsked != "" && releaseAsked != newest {
		return refuse("Requested release version %.60q is not valid: Muster has machines of release %s", releaseAsked, newest)
	}
	return nil
}

// roleARN is the ARN of a role that may be written as a name.
func roleARN(call *awsfront.Call, role string) string {
	if role == "" || strings.HasPrefix(role, "arn:") {
		return role
	}
	return "arn:aws:iam::" + call.Caller.Account() + ":role/" + role
}

// modified is when the group was changed last, as far as it is known: by a person, or by what its machines did.
func modified(g *v1alpha1.NodeGroup) time.Time {
	last := g.CreationTimestamp.Time
	if ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.LastTransitionTime.After(last) {
		last = ready.LastTransitionTime.Time
	}
	if changed := eksresource.ChangedAt(g); changed.After(last) {
		return changed
	}
	return last
}

// nodegroupStatus is the word and the issues that EKS has for what a group's conditions say. A group of which a machine
// is Ready, or that was changed since it was made, is ACTIVE: what ails it is an issue of its health.
func nodegroupStatus(g *v1alpha1.NodeGroup) (status string, issues []eksresource.Issue) {
	issues = []eksresource.Issue{}
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	if obstacle := readiness.Obstacle(g); obstacle != "" {
		issues = append(issues, eksresource.Issue{Code: healthCode(ready.Reason), Message: obstacle, ResourceIDs: []string{g.Spec.Name}})
	}
	switch {
	case !g.DeletionTimestamp.IsZero():
		return eksresource.Deleting, issues
	case ready != nil && ready.Status == metav1.ConditionTrue, g.Status.ReadyReplicas > 0, g.Generation > 1:
		return eksresource.Active, issues
	case len(issues) > 0:
		return eksresource.CreateFailed, issues
	}
	return eksresource.Creating, issues
}

// healthCode is EKS's code for the reason of a group that is not Ready.
func healthCode(reason string) string {
	switch reason {
	case "IamNodeRoleNotFound", "NodeCreationFailure", "AccessDenied", "InstanceLimitExceeded", "InsufficientFreeAddresses", "Ec2SubnetNotFound", "Ec2SubnetInvalidConfiguration":
		return reason
	case "InsufficientInstanceCapacity":
		return "AsgInstanceLaunchFailures"
	}
	return "InternalFailure"
}
