// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"
)

// TestExplainHeld has node groups that may not do what they should, each for a reason of its own, and asks for each by the name of the group:
// a host without room, a subnet without addresses, and repairs that are due and held back.
//
//story:about explain/cause explain/diagnosis explain/evidence machine/repair machine/nodegroup ./cmd/muster/explain
func TestExplainHeld(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	t.Run("a host without room", func(t *testing.T) { hostIsFull(i.in(t)) })
	t.Run("a subnet without addresses", func(t *testing.T) { subnetIsFull(w.step(t)) })
	t.Run("repairs that are held back", func(t *testing.T) { repairsHeld(w.step(t)) })
}

// hostIsFull asks for a machine of a type that no host of these tests has room for.
func hostIsFull(i *installation) {
	i.apply("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: large}, spec: {name: large, instanceTypes: [m5.4xlarge], scalingConfig: {desiredSize: 1}}}", managementContext)
	i.explains("nodegroup", "large", 1, "M-CAP-67")
	i.muster("delete", "nodegroup", "large")
}

// subnetIsFull asks for more machines than a subnet has addresses.
func subnetIsFull(w *iam) {
	var found struct {
		Vpcs []struct{ VpcID string }
	}
	w.mustAWS(&found, "ec2", "describe-vpcs", "--filters", "Name=is-default,Values=true")
	var made struct{ Subnet struct{ SubnetID string } }
	w.mustAWS(&made, "ec2", "create-subnet", "--vpc-id", found.Vpcs[0].VpcID, "--cidr-block", "172.31.48.0/28", "--availability-zone", "us-east-1a")
	id := made.Subnet.SubnetID
	w.eventually("the subnet is Ready", func() error {
		_, err := w.kubectl(managementContext, "wait", "subnet/"+id, "--for=condition=Ready", "--timeout=1s")
		return err
	})
	w.apply(fmt.Sprintf("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: small}, spec: {name: small, provider: simulated, subnetIDs: [%s], scalingConfig: {desiredSize: 12, maxSize: 12}}}", id), managementContext)
	w.explains("nodegroup", "small", 1, "M-CAP-68")
	w.muster("delete", "nodegroup", "small")
	w.eventually("the subnet is deleted", func() error {
		_, err := w.aws(w.admin, "ec2", "delete-subnet", "--subnet-id", id)
		return err
	})
}

// repairsHeld has a machine that is due for a repair, first while its Auto Scaling group has suspended what a repair needs, then while more
// machines are unhealthy than the group's threshold allows.
func repairsHeld(w *iam) {
	subnet := w.told("ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	config := strings.Replace(repairConfig("Replace"), `"maxParallelNodesRepairedCount":1`, `"maxParallelNodesRepairedCount":1,"maxUnhealthyNodeThresholdCount":1`, 1)
	w.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "web", "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
		"--subnets", strings.TrimSpace(subnet), "--scaling-config", "minSize=0,maxSize=4,desiredSize=2", "--labels", "pool=web", "--node-repair-config", config)
	w.eksBecomes(nodegroupPath("muster", "web"), "ACTIVE")
	r := &repaired{iam: w}
	r.settled()
	group := strings.TrimSpace(w.told("eks", "describe-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "web", "--query", "nodegroup.resources.autoScalingGroups[0].name", "--output", "text"))
	w.mustAWS(nil, "autoscaling", "suspend-processes", "--auto-scaling-group-name", group, "--scaling-processes", "ReplaceUnhealthy")
	silent := []string{"M-READY-65"} // the cause for which the machines are due
	first, _ := r.one()
	w.muster("drill", first, "kubelet", "--for", "30m")
	w.explainsBeside(silent, "nodegroup", "web", 1, "M-GROUP-74")
	for machine := range r.nodes {
		if machine != first {
			w.muster("drill", machine, "kubelet", "--for", "30m")
		}
	}
	w.eventually("both machines are unhealthy", func() error {
		return is(w.mustKubectl(managementContext, "-n", "muster", "get", "nodegroup", "web", "-o", "jsonpath={.status.repair.unhealthy}"), "2")
	})
	w.mustAWS(nil, "autoscaling", "resume-processes", "--auto-scaling-group-name", group, "--scaling-processes", "ReplaceUnhealthy")
	w.explainsBeside(silent, "nodegroup", "web", 1, "M-GROUP-72")
	w.muster("delete", "nodegroup", "web")
}
