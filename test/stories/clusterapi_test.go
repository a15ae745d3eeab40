// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// managedDeleted is how long Cluster API takes to delete a cluster: it waits for what is being deleted with pauses of its own.
var managedDeleted = upstreamWait{10 * time.Minute, "cluster-api-provider-aws: dependants, node groups, the cluster and its network go one after another, with waits of 30 s and more between"}

// managedUpgraded is how long Cluster API takes to upgrade a control plane or a node group: it looks at each every 30 s.
var managedUpgraded = upstreamWait{8 * time.Minute, "cluster-api-provider-aws: looks at a cluster, and at a node group, every 30 s while they are updated"}

// TestClusterAPI makes a cluster by Cluster API and its AWS provider, unmodified, from one file, scales its machine pool, upgrades both, adds a
// machine pool of plain instances, and deletes all of it.
//
//story:about cloud/eks cloud/ec2 cloud/autoscaling cloud/cloudformation
//story:needs cluster-api kubernetes MINOR=1.37
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	c := newClusterAPI(w)
	for _, step := range []clusterAPIStep{
		{"clusterawsadm", (*clusterAPI).preparedByStack},
		{"create", (*clusterAPI).create},
		{"scale", (*clusterAPI).scale},
		{"upgrade", (*clusterAPI).upgrade},
		{"machine pool", (*clusterAPI).machinePool},
	} {
		if !c.does(t, step) {
			return
		}
	}
	second := newClusterAPI(w)
	if c.does(t, clusterAPIStep{"move", func(c *clusterAPI) { c.move(second) }}) && second.does(t, clusterAPIStep{"delete", (*clusterAPI).delete}) {
		c.eventually("there is what there was before", func() error { return is(c.whatThereIs(), before) })
	}
}

// clusterAPIStep is a part of the story, and its name.
type clusterAPIStep struct {
	name string
	run  func(*clusterAPI)
}

// does runs a step as a test of its own, and reports whether it passed.
func (c *clusterAPI) does(t *testing.T, step clusterAPIStep) bool {
	return t.Run(step.name, func(t *testing.T) {
		of := *c
		of.iam = c.step(t)
		step.run(&of)
	})
}

// bootstrapIAM runs clusterawsadm.
func (c *clusterAPI) bootstrapIAM(command string) string {
	c.t.Helper()
	out, err := c.run(c.admin, filepath.Join(c.bin, "cluster-api", "clusterawsadm"), "bootstrap", "iam", command)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// preparedByStack has clusterawsadm make the roles, policies and instance profiles of the provider by a stack.
func (c *clusterAPI) preparedByStack() {
	out := c.bootstrapIAM("create-cloudformation-stack")
	for _, line := range []string{"AWS::IAM::Role", "controllers.cluster-api-provider-aws.sigs.k8s.io", "nodes.cluster-api-provider-aws.sigs.k8s.io", "CREATE_COMPLETE"} {
		if !strings.Contains(out, line) {
			c.t.Errorf("clusterawsadm says nothing of %s:\n%s", line, out)
		}
	}
}

// create applies one file, and waits for Ready nodes.
func (c *clusterAPI) create() {
	file, err := filepath.Abs(filepath.Join("testdata", "clusterapi.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.manage("apply", "-f", file)
	c.hasNodes(2)
	c.replicas("workers", 2)
	c.manage("wait", "--for=condition=Available", "--timeout=180s", "cluster/blue")
}

// replicas waits until a machine pool has a number of nodes, as Cluster API counts them.
func (c *clusterAPI) replicas(pool string, want int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("the machine pool %s has %d replicas", pool, want), func() error {
		return is(c.manage("get", "machinepool", pool, "-o", "jsonpath={.spec.replicas} {.status.replicas} {.status.readyReplicas}"), fmt.Sprintf("%[1]d %[1]d %[1]d", want))
	})
}

// hasNodes waits until the cluster has a number of Ready nodes, by the kubeconfig that the provider writes for people.
func (c *clusterAPI) hasNodes(want int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d nodes are Ready", want), func() error { return c.nodesAre("blue", "v1.36.", want) })
}

// nodesAre looks whether so many nodes of a team are Ready and of a version, by the kubeconfig that the provider writes for people.
func (c *clusterAPI) nodesAre(team, version string, want int) error {
	raw, err := base64.StdEncoding.DecodeString(c.manage("get", "secret", "blue-kubeconfig", "--ignore-not-found", "-o", "jsonpath={.data.value}"))
	if err != nil || len(raw) == 0 {
		return fmt.Errorf("there is no kubeconfig: %w", err)
	}
	file := filepath.Join(c.management.Dir(), "blue.kubeconfig")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	out, err := c.run(c.admin, filepath.Join(c.bin, "kubectl"), "--kubeconfig", file, "get", "nodes", "-l", "team="+team, "--no-headers")
	if err != nil {
		return err
	}
	if ready := strings.Count(out, " Ready "); ready != want || strings.Count(out, version) != want {
		return fmt.Errorf("%d are Ready, and not all of %s, of %s", ready, version, out)
	}
	return nil
}

// scale has the machine pool grow and shrink.
func (c *clusterAPI) scale() {
	for _, n := range []int{3, 1} {
		c.manage("scale", "machinepool", "workers", fmt.Sprintf("--replicas=%d", n))
		c.hasNodes(n)
		c.replicas("workers", n)
	}
}

// upgrade asks for the next minor, of the control plane and then of the machine pool.
func (c *clusterAPI) upgrade() {
	c.manage("patch", "awsmanagedcontrolplane", "blue", "--type=merge", "-p", `{"spec": {"version": "v1.37.0"}}`)
	c.upstream(managedUpgraded, "the control plane is of the next minor", func() error {
		out, err := c.aws(c.admin, "eks", "describe-cluster", "--name", "blue", "--query", "cluster.[version,status]", "--output", "text")
		if err != nil {
			return err
		}
		return is(strings.Join(strings.Fields(out), " "), "1.37 ACTIVE")
	})
	c.manage("patch", "machinepool", "workers", "--type=merge", "-p", `{"spec": {"template": {"spec": {"version": "v1.37.0"}}}}`)
	c.upstream(managedUpgraded, "the node is of the next minor", func() error { return c.nodesAre("blue", "v1.37.", 1) })
}

// machinePool adds a pool of instances of an Auto Scaling group that CAPA makes, whose user data is its own.
func (c *clusterAPI) machinePool() {
	file, err := filepath.Abs(filepath.Join("testdata", "clusterapi-machinepool.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.manage("apply", "-f", file)
	c.upstream(managedUpgraded, "the pool has a node", func() error { return c.nodesAre("plain", "v1.37.", 1) })
	c.replicas("plain", 1)
}

// move has clusterctl move the cluster's objects to a second management cluster, whose managers go on with it: it scales the pool.
func (c *clusterAPI) move(second *clusterAPI) {
	out, err := c.run(c.admin, filepath.Join(c.bin, "cluster-api", "clusterctl"), "move", "--kubeconfig", c.kubeconfig, "--to-kubeconfig", second.kubeconfig, "--namespace", "default")
	if err != nil {
		c.t.Fatal(err)
	}
	if left := c.manage("get", "clusters,awsmanagedcontrolplanes,machinepools", "-o", "name"); left != "" {
		c.t.Errorf("left behind after %s: %s", out, left)
	}
	to := *second
	to.iam = c.iam
	to.manage("scale", "machinepool", "workers", "--replicas=2")
	to.upstream(managedUpgraded, "the second management cluster scales the pool", func() error { return to.nodesAre("blue", "v1.37.", 2) })
	to.replicas("workers", 2)
}

// delete deletes the Cluster, and with it all that its file made.
func (c *clusterAPI) delete() {
	c.manage("delete", "cluster", "blue", "--wait=false")
	c.upstream(managedDeleted, "the cluster is deleted", func() error {
		return is(c.manage("get", "clusters,awsmanagedcontrolplanes,machinepools,awsmanagedmachinepools,awsmachinepools,awsmanagedclusters", "-o", "name"), "")
	})
	c.bootstrapIAM("delete-cloudformation-stack")
}
