// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// envAutoscaler names the cluster whose groups are scaled; a story sets it, and what is asked of the replay.
const (
	envAutoscaler = "MUSTER_LIVE_AUTOSCALER"
	envWanted     = "MUSTER_LIVE_WANTED"
)

// nodeTemplate is what the Cluster Autoscaler believes of the next node of a group (buildNodeFromTemplate of
// cluster-autoscaler/cloudprovider/aws/aws_manager.go, 1.36.1).
type nodeTemplate struct {
	InstanceType string
	CPU          int64
	MemoryMiB    int64
	Labels       map[string]string
	Taints       []string
	// Resources are by name, as the tags of the group say.
	Resources map[string]string
}

// clusterAutoscaler replays the calls of cluster-autoscaler 1.36.1 by their parameters and in their order, and reads of the answers what
// it reads: a member that it uses without a look whether it is there must be there.
type clusterAutoscaler struct {
	*world
	cluster string
	types   map[string][2]int64 // vCPUs and MiB
}

// newClusterAutoscaler reads the instance types, as the autoscaler does when it begins (aws_util.go).
func newClusterAutoscaler(t *testing.T) *clusterAutoscaler {
	t.Helper()
	cluster := os.Getenv(envAutoscaler)
	if cluster == "" {
		t.Skip("no story has made groups")
	}
	c := &clusterAutoscaler{world: newWorld(t), cluster: cluster, types: map[string][2]int64{}}
	pages := ec2.NewDescribeInstanceTypesPaginator(c.ec2, &ec2.DescribeInstanceTypesInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(c.ctx())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range page.InstanceTypes {
			c.types[string(i.InstanceType)] = [2]int64{int64(*i.VCpuInfo.DefaultVCpus), *i.MemoryInfo.SizeInMiB}
		}
	}
	return c
}

// groups are those that the autoscaler discovers by --node-group-auto-discovery, by name (aws_wrapper.go). It stops at sizes that contradict
// each other (auto_scaling_groups.go).
func (c *clusterAutoscaler) groups() map[string]autoscalingtypes.AutoScalingGroup {
	c.Helper()
	found := map[string]autoscalingtypes.AutoScalingGroup{}
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(c.autoscaling, &autoscaling.DescribeAutoScalingGroupsInput{
		MaxRecords: aws.Int32(100),
		Filters: []autoscalingtypes.Filter{
			{Name: aws.String("tag-key"), Values: []string{"k8s.io/cluster-autoscaler/enabled"}}, {Name: aws.String("tag-key"), Values: []string{"k8s.io/cluster-autoscaler/" + c.cluster}},
		},
	})
	for pages.HasMorePages() {
		for _, g := range need(pages.NextPage(c.ctx())).AutoScalingGroups {
			if *g.MinSize < 0 || *g.MaxSize < *g.MinSize || *g.DesiredCapacity < 0 || len(g.AvailabilityZones) == 0 {
				c.Fatalf("%s: sizes %d, %d, %d, zones %v", *g.AutoScalingGroupName, *g.MinSize, *g.MaxSize, *g.DesiredCapacity, g.AvailabilityZones)
			}
			found[*g.AutoScalingGroupName] = g
		}
	}
	return found
}

// instanceType is that of the next node of a group: the first override of its policy, or what its launch template says (aws_wrapper.go).
func (c *clusterAutoscaler) instanceType(g autoscalingtypes.AutoScalingGroup) string {
	c.Helper()
	specification := g.LaunchTemplate
	if p := g.MixedInstancesPolicy; p != nil {
		if len(p.LaunchTemplate.Overrides) > 0 {
			return *p.LaunchTemplate.Overrides[0].InstanceType
		}
		specification = p.LaunchTemplate.LaunchTemplateSpecification
	}
	versions := need(c.ec2.DescribeLaunchTemplateVersions(c.ctx(), &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: specification.LaunchTemplateName, Versions: []string{cmp.Or(aws.ToString(specification.Version), "$Default")},
	})).LaunchTemplateVersions
	return string(versions[0].LaunchTemplateData.InstanceType)
}

// template is the next node of a group, by its tags and its node group's labels and taints.
func (c *clusterAutoscaler) template(g autoscalingtypes.AutoScalingGroup) nodeTemplate {
	c.Helper()
	const prefix = "k8s.io/cluster-autoscaler/node-template/"
	node := nodeTemplate{InstanceType: c.instanceType(g), Labels: map[string]string{"topology.kubernetes.io/zone": g.AvailabilityZones[0]}, Resources: map[string]string{}}
	of, known := c.types[node.InstanceType]
	if !known {
		c.Fatalf("%s uses the unknown EC2 instance type %q", *g.AutoScalingGroupName, node.InstanceType)
	}
	node.CPU, node.MemoryMiB = of[0], of[1]
	var nodeGroup, cluster string
	for _, t := range g.Tags {
		switch key, value := *t.Key, *t.Value; {
		case key == "eks:nodegroup-name":
			nodeGroup = value
		case key == "eks:cluster-name":
			cluster = value
		case strings.HasPrefix(key, prefix+"label/"):
			node.Labels[strings.TrimPrefix(key, prefix+"label/")] = value
		case strings.HasPrefix(key, prefix+"taint/"):
			node.Taints = append(node.Taints, strings.TrimPrefix(key, prefix+"taint/")+"="+value)
		case strings.HasPrefix(key, prefix+"resources/"):
			node.Resources[strings.TrimPrefix(key, prefix+"resources/")] = value
		}
	}
	if nodeGroup != "" && cluster != "" { // managed_nodegroup_cache.go
		managed := need(c.eks.DescribeNodegroup(c.ctx(), &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: &nodeGroup})).Nodegroup
		maps.Copy(node.Labels, managed.Labels)
		for _, t := range managed.Taints {
			if t.Key == nil || t.Value == nil { // it would be left out
				c.Fatalf("a taint of %s has no key or no value", nodeGroup)
			}
			node.Taints = append(node.Taints, *t.Key+"="+*t.Value+":"+string(t.Effect))
		}
		for key, value := range managed.Tags {
			if name, is := strings.CutPrefix(key, prefix+"resources/"); is {
				node.Resources[name] = value
			}
		}
		node.Labels["amiType"], node.Labels["k8sVersion"], node.Labels["capacityType"] = string(managed.AmiType), *managed.Version, string(managed.CapacityType)
	}
	slices.Sort(node.Taints)
	return node
}

// resize asks for a group's size, as the autoscaler does before it waits for nodes.
func (c *clusterAutoscaler) resize(name string, size int32) {
	c.Helper()
	need(c.autoscaling.SetDesiredCapacity(c.ctx(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: &name, DesiredCapacity: &size, HonorCooldown: aws.Bool(false)}))
}

// missing is why instances that a group wants are not there, as the autoscaler asks for each look at such a group
// (isNodeGroupAvailable of auto_scaling_groups.go): an activity that began after the last change of the size and failed.
func (c *clusterAutoscaler) missing(name string) string {
	c.Helper()
	for _, a := range need(c.autoscaling.DescribeScalingActivities(c.ctx(), &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name})).Activities {
		if a.StartTime.IsZero() {
			c.Fatal("an activity has no StartTime")
		}
		if a.StatusCode == autoscalingtypes.ScalingActivityStatusCodeFailed {
			return aws.ToString(a.StatusMessage)
		}
	}
	return ""
}

// providerIDs are the nodes of a group, by the ids that its instances' nodes have.
func providerIDs(g autoscalingtypes.AutoScalingGroup) []string {
	var ids []string
	for _, i := range g.Instances {
		if i.LifecycleState != "" && i.HealthStatus != nil {
			ids = append(ids, "aws:///"+*i.AvailabilityZone+"/"+*i.InstanceId)
		}
	}
	return ids
}

// TestClusterAutoscaler does one thing of the autoscaler's, which a story chooses by the name of the subtest, and prints what it finds as
// JSON: "describe" the templates of all groups, "up" brings the named groups from zero to one, "fail" asks for a node that the host has no
// room for, "down" removes the node of each group.
func TestClusterAutoscaler(t *testing.T) {
	steps := []struct {
		name string
		run  func(*clusterAutoscaler, string)
	}{
		{"describe", (*clusterAutoscaler).describe}, {"up", (*clusterAutoscaler).up}, {"fail", (*clusterAutoscaler).fail}, {"down", (*clusterAutoscaler).down},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			c := newClusterAutoscaler(t)
			defer c.fatal()
			for name := range strings.FieldsSeq(os.Getenv(envWanted)) {
				step.run(c, name)
			}
		})
	}
}

// say prints what a step found of a group.
func (c *clusterAutoscaler) say(name string, what any) {
	c.Helper()
	raw, err := json.Marshal(map[string]any{"group": name, "is": what})
	if err != nil {
		c.Fatal(err)
	}
	fmt.Printf("autoscaler %s\n", raw)
}

// group is one of those that are discovered.
func (c *clusterAutoscaler) group(name string) autoscalingtypes.AutoScalingGroup {
	c.Helper()
	g, ok := c.groups()[name]
	if !ok {
		c.Fatalf("the group %s is not discovered", name)
	}
	return g
}

func (c *clusterAutoscaler) describe(name string) { c.say(name, c.template(c.group(name))) }

func (c *clusterAutoscaler) up(name string) {
	if g := c.group(name); *g.DesiredCapacity != 0 || len(g.Instances) != 0 {
		c.Fatalf("%s has %d instances and wants %d", name, len(g.Instances), *g.DesiredCapacity)
	}
	c.resize(name, 1)
	c.eventually(3*time.Minute, func() error {
		g := c.group(name)
		if *g.DesiredCapacity > int32(len(g.Instances)) {
			return fmt.Errorf("%s waits: %s", name, c.missing(name))
		}
		if g.Instances[0].LifecycleState != autoscalingtypes.LifecycleStateInService {
			return fmt.Errorf("%s is %s", *g.Instances[0].InstanceId, g.Instances[0].LifecycleState)
		}
		return nil
	})
	c.say(name, providerIDs(c.group(name)))
}

// fail wants a node that cannot be, sees why, and takes the wish back, as the autoscaler does of a placeholder.
func (c *clusterAutoscaler) fail(name string) {
	c.resize(name, 1)
	var why string
	c.eventually(2*time.Minute, func() error {
		if why = c.missing(name); why == "" {
			return fmt.Errorf("no activity of %s has failed", name)
		}
		return nil
	})
	c.resize(name, 0)
	if g := c.group(name); *g.DesiredCapacity != 0 || len(g.Instances) != 0 {
		c.Errorf("%s has %d instances and wants %d", name, len(g.Instances), *g.DesiredCapacity)
	}
	c.say(name, why)
}

func (c *clusterAutoscaler) down(name string) {
	g := c.group(name)
	if len(g.Instances) != 1 {
		c.Fatalf("%s has %d instances", name, len(g.Instances))
	}
	out := need(c.autoscaling.TerminateInstanceInAutoScalingGroup(c.ctx(), &autoscaling.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: g.Instances[0].InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(true),
	}))
	if out.Activity == nil || aws.ToString(out.Activity.ActivityId) == "" {
		c.Fatalf("%s: no activity", name)
	}
	c.eventually(3*time.Minute, func() error {
		if g := c.group(name); *g.DesiredCapacity != 0 || len(g.Instances) != 0 {
			return fmt.Errorf("%s has %d instances and wants %d", name, len(g.Instances), *g.DesiredCapacity)
		}
		return nil
	})
	c.say(name, aws.ToString(out.Activity.Description))
}
