// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/power"
)

// Settings that EKS gives the groups that it makes.
const (
	cooldown    = 300
	gracePeriod = 15
	healthCheck = "EC2"
)

// shownGroup is a group as it is answered.
type shownGroup struct {
	AutoScalingGroupName, AutoScalingGroupARN, HealthCheckType, VPCZoneIdentifier, ServiceLinkedRoleARN, Status string
	MinSize, MaxSize, DesiredCapacity, DefaultCooldown, HealthCheckGracePeriod                                  int32
	AvailabilityZones, LoadBalancerNames, TargetGroupARNs, TerminationPolicies                                  []string
	CreatedTime                                                                                                 time.Time
	NewInstancesProtectedFromScaleIn, CapacityRebalance                                                         bool
	DefaultInstanceWarmup                                                                                       *int32
	LaunchTemplate                                                                                              *templateSpecification
	MixedInstancesPolicy                                                                                        *mixedInstances
	WarmPoolConfiguration                                                                                       *shownWarmPool
	WarmPoolSize                                                                                                *int32
	Instances                                                                                                   []shownInstance
	SuspendedProcesses                                                                                          []suspended
	EnabledMetrics                                                                                              []metric
	Tags                                                                                                        []shownTag
	TrafficSources                                                                                              []struct{}
}

type shownInstance struct {
	InstanceID, InstanceType, AvailabilityZone, AvailabilityZoneID, LifecycleState, HealthStatus, ImageID, WeightedCapacity string
	LaunchTemplate                                                                                                          *templateSpecification
	ProtectedFromScaleIn                                                                                                    bool
}

type templateSpecification struct{ LaunchTemplateID, LaunchTemplateName, Version string }

type suspended struct{ ProcessName, SuspensionReason string }

type metric struct{ Metric, Granularity string }

type describeGroupsInput struct {
	AutoScalingGroupNames []string
	Filters               []ec2filter.Filter
	IncludeInstances      *bool
	MaxRecords            *int32
	NextToken             string
}

type describeGroupsOutput struct {
	AutoScalingGroups []shownGroup
	NextToken         string
}

func describeGroups(a *api) awsfront.Spec[describeGroupsInput, describeGroupsOutput] {
	return awsfront.Spec[describeGroupsInput, describeGroupsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeGroupsInput) (*describeGroupsOutput, error) {
			filters, err := ec2filter.Rules{Tags: true, Exact: true}.Compile(in.Filters)
			if err != nil {
				return nil, asValidation(err)
			}
			all, err := a.groups(ctx)
			if err != nil {
				return nil, err
			}
			zones, err := a.zones(ctx)
			if err != nil {
				return nil, err
			}
			shown := []shownGroup{}
			for _, g := range all {
				named := len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, g.name)
				if named && filters.Match(ec2filter.Resource{Tags: g.tagMap()}) {
					shown = append(shown, a.show(call, g, zones))
				}
			}
			out := &describeGroupsOutput{}
			out.AutoScalingGroups, out.NextToken, err = awsresource.Page(a.Account, call, []any{in.AutoScalingGroupNames, in.Filters}, shown,
				func(g shownGroup) string { return g.AutoScalingGroupName }, in.MaxRecords, in.NextToken)
			if in.IncludeInstances != nil && !*in.IncludeInstances {
				for i := range out.AutoScalingGroups {
					out.AutoScalingGroups[i].Instances = []shownInstance{}
				}
			}
			return out, err
		},
	}
}

// zones are the availability zones of subnets, by their ids.
func (a *api) zones(ctx context.Context) (map[string]string, error) {
	var subnets v1alpha1.SubnetList
	if err := a.Management.List(ctx, &subnets); err != nil {
		return nil, away(fmt.Errorf("listing subnets: %w", err))
	}
	zones := map[string]string{}
	for _, s := range subnets.Items {
		zones[s.Name] = s.Spec.AvailabilityZone
	}
	return zones, nil
}

func (a *api) show(call *awsfront.Call, g *group, zones map[string]string) shownGroup {
	kept, sizes := g.kept(), g.sizes()
	shown := shownGroup{
		AutoScalingGroupName: g.name, AutoScalingGroupARN: a.arn(call, g.uid(), g.name), HealthCheckType: healthCheck, HealthCheckGracePeriod: gracePeriod,
		MinSize: sizes.Min, MaxSize: sizes.Max, DesiredCapacity: sizes.Desired, DefaultCooldown: cooldown,
		VPCZoneIdentifier:    strings.Join(g.subnets(), ","),
		ServiceLinkedRoleARN: "arn:aws:iam::" + call.Caller.Account() + ":role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling",
		AvailabilityZones:    []string{}, LoadBalancerNames: []string{}, TargetGroupARNs: []string{},
		TerminationPolicies: []string{"AllocationStrategy", "OldestLaunchTemplate", "OldestInstance"}, CreatedTime: g.object().GetCreationTimestamp().Time,
		NewInstancesProtectedFromScaleIn: kept.ProtectNewMachines, CapacityRebalance: true,
		Instances: []shownInstance{}, SuspendedProcesses: []suspended{}, EnabledMetrics: []metric{}, Tags: g.tags(), TrafficSources: []struct{}{},
	}
	if g.own != nil {
		showOwn(&shown, g.own)
	} else {
		shown.MixedInstancesPolicy = g.policy()
	}
	if g.deleting() {
		shown.Status = "Delete in progress"
	}
	for _, id := range g.subnets() {
		if zone := zones[id]; zone != "" && !slices.Contains(shown.AvailabilityZones, zone) {
			shown.AvailabilityZones = append(shown.AvailabilityZones, zone)
		}
	}
	slices.Sort(shown.AvailabilityZones)
	if g.node != nil {
		shown.WarmPoolConfiguration = showWarmPool(g.node)
	}
	warmed := int32(0)
	for _, i := range a.showInstances(g, zones) {
		if m := g.machine(i.InstanceID); m != nil && m.Spec.WarmPool != "" {
			warmed++
			continue
		}
		shown.Instances = append(shown.Instances, i)
	}
	if shown.WarmPoolConfiguration != nil {
		shown.WarmPoolSize = &warmed
	}
	for _, name := range kept.SuspendedProcesses {
		shown.SuspendedProcesses = append(shown.SuspendedProcesses, suspended{name, "User suspended"})
	}
	for _, name := range kept.EnabledMetrics {
		shown.EnabledMetrics = append(shown.EnabledMetrics, metric{name, "1Minute"})
	}
	return shown
}

// subnets are those that machines are launched in.
func (g *group) subnets() []string {
	var of []v1alpha1.SubnetID
	switch {
	case g.own != nil:
		of = g.own.Spec.SubnetIDs
	case len(g.node.Spec.SubnetIDs) > 0:
		of = g.node.Spec.SubnetIDs
	case g.cluster != nil:
		of = g.cluster.Status.SubnetIDs
	}
	ids := make([]string, 0, len(of))
	for _, id := range of {
		ids = append(ids, string(id))
	}
	return ids
}

// template is the launch template of machines: the node group's own, or one that EKS would make for it.
func templateOf(uid string, t *v1alpha1.NodeGroupLaunchTemplate) *templateSpecification {
	if t != nil && t.ID != "" {
		return &templateSpecification{t.ID, t.Name, strconv.FormatInt(t.Version, 10)}
	}
	sum := sha256.Sum256([]byte("the launch template of node group " + uid))
	return &templateSpecification{"lt-" + hex.EncodeToString(sum[:])[:17], "eks-" + uid, "1"}
}

// policy is what says which instance types the group has. EKS makes groups so; the Cluster Autoscaler reads the types
// of it.
func (g *group) policy() *mixedInstances {
	launched := g.node.Spec.Launched()
	p := &mixedInstances{
		LaunchTemplate: &mixedTemplate{LaunchTemplateSpecification: templateOf(string(g.node.UID), launched), Overrides: []override{}},
		InstancesDistribution: &distribution{
			OnDemandAllocationStrategy: "prioritized", SpotAllocationStrategy: "lowest-price", OnDemandBaseCapacity: new(int32), OnDemandPercentageAboveBaseCapacity: new(int32(100)),
		},
	}
	if launched != nil && launched.InstanceType != "" {
		p.LaunchTemplate.Overrides = []override{{InstanceType: launched.InstanceType}}
	}
	return p
}

func (a *api) showInstance(g *group, m *v1alpha1.Machine, zones map[string]string) shownInstance {
	shown := shownInstance{
		InstanceID: m.Name, InstanceType: cmp.Or(m.Spec.Type(), machine.DefaultType), AvailabilityZone: zones[string(m.Spec.SubnetID)], ImageID: m.Spec.ImageID,
		LifecycleState: lifecycle(m), HealthStatus: "Healthy", LaunchTemplate: templateOf(string(g.node.UID), m.Spec.LaunchTemplate), ProtectedFromScaleIn: m.Spec.ProtectedFromScaleIn,
	}
	if zone, err := a.region.Zone(shown.AvailabilityZone); err == nil {
		shown.AvailabilityZoneID = zone.ID
	}
	if !m.DeletionTimestamp.IsZero() || m.Spec.WarmPool == "" && power.IsStopped(m) && !g.node.Spec.ScalingGroup().Suspends(v1alpha1.ProcessHealthCheck) {
		shown.HealthStatus = "Unhealthy"
	}
	return shown
}

// lifecycle is the state of a machine in its group. It is in service as soon as its instance runs, as on EKS: the Node
// is the cluster's affair.
func lifecycle(m *v1alpha1.Machine) string {
	switch {
	case m.Lifecycle() != "":
		return m.Lifecycle()
	case !m.DeletionTimestamp.IsZero() && m.Status.Phase != v1alpha1.MachineTerminating:
		return "Terminating:Wait" // its pods are evicted
	case !m.DeletionTimestamp.IsZero():
		return "Terminating"
	case m.Status.ProviderID == "":
		return "Pending"
	}
	return "InService"
}
