// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestClusterAutoscalerReplayed scales groups from zero, for pods that wait, and back, by the calls of the Cluster Autoscaler, which AWS's SDK
// sends in its order (test/awssdk/live): its own module is not to be had. The node that it believes in for an empty group, by tags and by
// DescribeNodegroup, is compared with the node that comes. A group that the host has no room for says so.
//
//story:about cloud/autoscaling cloud/scalingcontroller cloud/scalingplan cloud/eks/nodegroups cloud/ec2/offering cloud/ec2/template
func TestClusterAutoscalerReplayed(t *testing.T) {
	t.Parallel()
	tests := sdkTests(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	a := &replayedAutoscaler{iam: newIAM(t, i), tests: tests}
	for _, step := range []struct {
		name string
		run  func(*replayedAutoscaler)
	}{
		{"groups are made", (*replayedAutoscaler).makeGroups},
		{"from zero for pods that wait", (*replayedAutoscaler).up},
		{"a node that cannot be", (*replayedAutoscaler).fail},
		{"to zero", (*replayedAutoscaler).down},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			of := *a
			of.iam = a.step(t)
			step.run(&of)
			a.managed = of.managed
		}) {
			return
		}
	}
}

// replayedAutoscaler is the replay, and the name of the managed node group's Auto Scaling group.
type replayedAutoscaler struct {
	*iam
	tests, managed string
}

// largeGroup is the group of a type that no host of these tests has room for.
const largeGroup = "large"

// makeGroups makes a managed node group and two groups of the account's own, all empty, as docs/cluster-autoscaler.md has it.
func (a *replayedAutoscaler) makeGroups() {
	subnet, err := a.aws(a.admin, "ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	if err != nil {
		a.t.Fatal(err)
	}
	a.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "web", "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
		"--subnets", strings.TrimSpace(subnet), "--scaling-config", "minSize=0,maxSize=2,desiredSize=0", "--instance-types", "t3.small", "--labels", "pool=web",
		"--taints", "key=dedicated,value=web,effect=NO_SCHEDULE", "--tags", "k8s.io/cluster-autoscaler/node-template/resources/example.com/slots=3")
	a.eksBecomes(nodegroupPath("muster", "web"), "ACTIVE")
	a.makeScalingGroup()
	a.mustAWS(nil, "autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", largeGroup, "--min-size", "0", "--max-size", "1", "--vpc-zone-identifier", strings.TrimSpace(subnet),
		"--mixed-instances-policy", `{"LaunchTemplate":{"LaunchTemplateSpecification":{"LaunchTemplateName":"own"},"Overrides":[{"InstanceType":"m5.4xlarge"}]}}`)
	for _, group := range []string{scalingGroup, largeGroup} {
		for _, tag := range []string{"k8s.io/cluster-autoscaler/enabled", "k8s.io/cluster-autoscaler/muster"} {
			a.mustAWS(nil, "autoscaling", "create-or-update-tags", "--tags", "ResourceId="+group+",ResourceType=auto-scaling-group,PropagateAtLaunch=false,Value=true,Key="+tag)
		}
	}
	a.mustAWS(nil, "autoscaling", "create-or-update-tags", "--tags",
		"ResourceId="+scalingGroup+",ResourceType=auto-scaling-group,PropagateAtLaunch=false,Value=20Gi,Key=k8s.io/cluster-autoscaler/node-template/resources/ephemeral-storage")
	out, err := a.aws(a.admin, "eks", "describe-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "web", "--query", "nodegroup.resources.autoScalingGroups[0].name", "--output", "text")
	if err != nil {
		a.t.Fatal(err)
	}
	a.managed = strings.TrimSpace(out)
}

// replay runs a step of the replay for groups, and reads what it says of each into values of a type.
func replay[T any](a *replayedAutoscaler, step string, groups ...string) map[string]T {
	a.t.Helper()
	out, err := a.run(append(a.admin, "MUSTER_LIVE_AUTOSCALER=muster", "MUSTER_LIVE_WANTED="+strings.Join(groups, " ")), a.tests, "-test.v", "-test.count=1", "-test.timeout=10m", "-test.run=TestClusterAutoscaler/"+step)
	if err != nil {
		a.t.Fatalf("%s\n%v", out, err)
	}
	found := map[string]T{}
	for line := range strings.Lines(out) {
		text, is := strings.CutPrefix(line, "autoscaler ")
		if !is {
			continue
		}
		var said struct {
			Group string
			Is    T
		}
		if err := json.Unmarshal([]byte(text), &said); err != nil {
			a.t.Fatalf("%s: %v", line, err)
		}
		found[said.Group] = said.Is
	}
	if len(found) != len(groups) {
		a.t.Fatalf("%s of %v says:\n%s", step, groups, out)
	}
	return found
}

// believed is what the autoscaler believes of a group's next node.
type believed struct {
	InstanceType      string
	CPU, MemoryMiB    int64
	Labels, Resources map[string]string
	Taints            []string
}

// waiting makes a pod that only a node with a label can run.
func (a *replayedAutoscaler) waiting(name, label string) {
	a.t.Helper()
	key, value, _ := strings.Cut(label, "=")
	a.apply(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {%s: %s}
  tolerations:
  - {key: dedicated, operator: Exists}
  containers:
  - name: pod
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
`, name, key, value))
}

// up has both groups grow for a pod each, and compares the nodes with what was believed of them.
func (a *replayedAutoscaler) up() {
	templates := replay[believed](a, "describe", a.managed, scalingGroup)
	managed, own := templates[a.managed], templates[scalingGroup]
	if managed.Labels["pool"] != "web" || !slices.Equal(managed.Taints, []string{"dedicated=web:NO_SCHEDULE"}) || managed.InstanceType != "t3.small" || managed.Resources["example.com/slots"] != "3" {
		a.t.Errorf("the node group's next node: %+v", managed)
	}
	if own.Labels["made"] != "by-hand" || len(own.Taints) != 0 || own.InstanceType != "t3.small" || own.Resources["ephemeral-storage"] != "20Gi" || own.CPU != 2 || own.MemoryMiB != 2048 {
		a.t.Errorf("the own group's next node: %+v", own)
	}
	a.waiting("web", "pool=web")
	a.waiting("own", "made=by-hand")
	nodes := replay[[]string](a, "up", a.managed, scalingGroup)
	a.runs("web", nodes[a.managed], managed)
	a.runs("own", nodes[scalingGroup], own)
}

// runs waits until a pod runs on the node of a group, and compares the node with what was believed of it.
func (a *replayedAutoscaler) runs(pod string, ids []string, want believed) {
	a.t.Helper()
	if len(ids) != 1 {
		a.t.Fatalf("the group of %s has the nodes %v", pod, ids)
	}
	var node corev1.Node
	a.eventually("pod "+pod+" runs on the new node", func() error {
		phase, err := a.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase} {.spec.nodeName}")
		name, is := strings.CutPrefix(phase, "Running ")
		if err != nil || !is {
			return errors.Join(err, errors.New(phase))
		}
		out, err := a.kubectl("get", "node", name, "-o", "json")
		if err != nil {
			return err
		}
		return json.Unmarshal([]byte(out), &node)
	})
	if node.Spec.ProviderID != ids[0] {
		a.t.Errorf("pod %s runs on %s, and the group has %s", pod, node.Spec.ProviderID, ids[0])
	}
	for key, value := range want.Labels {
		own := []string{"amiType", "k8sVersion", "capacityType"} // labels of the autoscaler alone
		if pod == "own" {
			own = append(own, corev1.LabelTopologyZone) // the first zone of several
		}
		if !slices.Contains(own, key) && node.Labels[key] != value {
			a.t.Errorf("node %s has the label %s=%q, and %q was believed", node.Name, key, node.Labels[key], value)
		}
	}
	for _, taint := range want.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return taint == t.Key+"="+t.Value+":NO_SCHEDULE" && t.Effect == corev1.TaintEffectNoSchedule
		}) {
			a.t.Errorf("node %s has the taints %v, and %s was believed", node.Name, node.Spec.Taints, taint)
		}
	}
	cpu, memory := node.Status.Capacity.Cpu().Value(), node.Status.Capacity.Memory().Value()>>20
	if cpu != want.CPU || memory > want.MemoryMiB || memory < want.MemoryMiB*9/10 {
		a.t.Errorf("node %s has %d processors and %d MiB, and %d and %d were believed", node.Name, cpu, memory, want.CPU, want.MemoryMiB)
	}
}

// fail has the autoscaler want a node that the host has no room for: it sees why, and nothing is launched.
func (a *replayedAutoscaler) fail() {
	before := a.instances("Name=instance-state-name,Values=pending,running")
	if why := replay[string](a, "fail", largeGroup)[largeGroup]; !strings.Contains(why, "InsufficientInstanceCapacity") && !strings.Contains(why, "that it offers machines") {
		a.t.Errorf("the activity says %q", why)
	}
	if after := a.instances("Name=instance-state-name,Values=pending,running"); len(after) != len(before) {
		a.t.Errorf("instances %+v, and %+v before", after, before)
	}
}

// down removes the pods and, as they have nothing to run any more, the nodes.
func (a *replayedAutoscaler) down() {
	a.mustKubectl("delete", "pod", "web", "own", "--wait=true")
	replay[string](a, "down", a.managed, scalingGroup)
	a.eventually("their nodes are gone", func() error {
		out, err := a.kubectl("get", "nodes", "-o", `jsonpath={.items[*].metadata.labels.pool}{.items[*].metadata.labels.made}`)
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}
