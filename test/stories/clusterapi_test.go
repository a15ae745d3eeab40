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

// TestClusterAPI makes a cluster by Cluster API and its AWS provider, unmodified, from one file, scales its machine pool, and deletes all of it.
//
//story:about cloud/eks cloud/ec2 cloud/autoscaling cloud/cloudformation
//story:needs cluster-api
func TestClusterAPI(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	c := newClusterAPI(w)
	for _, step := range []struct {
		name string
		run  func(*clusterAPI)
	}{
		{"clusterawsadm", (*clusterAPI).preparedByStack},
		{"create", (*clusterAPI).create},
		{"scale", (*clusterAPI).scale},
		{"delete", (*clusterAPI).delete},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			of := *c
			of.iam = c.step(t)
			step.run(&of)
		}) {
			return
		}
	}
	c.eventually("there is what there was before", func() error { return is(c.whatThereIs(), before) })
}

// preparedByStack has clusterawsadm make the roles and policies of the provider by a stack, read and remove them.
func (c *clusterAPI) preparedByStack() {
	adm := func(args ...string) string {
		out, err := c.run(c.admin, filepath.Join(c.bin, "cluster-api", "clusterawsadm"), append([]string{"bootstrap", "iam"}, args...)...)
		if err != nil {
			c.t.Fatal(err)
		}
		return out
	}
	out := adm("create-cloudformation-stack")
	for _, line := range []string{"AWS::IAM::Role", "controllers.cluster-api-provider-aws.sigs.k8s.io", "nodes.cluster-api-provider-aws.sigs.k8s.io", "CREATE_COMPLETE"} {
		if !strings.Contains(out, line) {
			c.t.Errorf("clusterawsadm says nothing of %s:\n%s", line, out)
		}
	}
	adm("delete-cloudformation-stack")
}

// create applies one file, and waits for Ready nodes.
func (c *clusterAPI) create() {
	file, err := filepath.Abs(filepath.Join("testdata", "clusterapi.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.manage("apply", "-f", file)
	c.hasNodes(2)
	c.replicas(2)
	c.manage("wait", "--for=condition=Available", "--timeout=180s", "cluster/blue")
}

// replicas waits until the machine pool has a number of nodes, as Cluster API counts them.
func (c *clusterAPI) replicas(want int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("the machine pool has %d replicas", want), func() error {
		return is(c.manage("get", "machinepool", "workers", "-o", "jsonpath={.spec.replicas} {.status.replicas} {.status.readyReplicas}"), fmt.Sprintf("%[1]d %[1]d %[1]d", want))
	})
}

// hasNodes waits until the cluster has a number of Ready nodes, by the kubeconfig that the provider writes for people.
func (c *clusterAPI) hasNodes(want int) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d nodes are Ready", want), func() error {
		raw, err := base64.StdEncoding.DecodeString(c.manage("get", "secret", "blue-kubeconfig", "--ignore-not-found", "-o", "jsonpath={.data.value}"))
		if err != nil || len(raw) == 0 {
			return fmt.Errorf("there is no kubeconfig: %w", err)
		}
		file := filepath.Join(c.management.Dir(), "blue.kubeconfig")
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			return err
		}
		out, err := c.run(c.admin, filepath.Join(c.bin, "kubectl"), "--kubeconfig", file, "get", "nodes", "-l", "team=blue", "--no-headers")
		if err != nil {
			return err
		}
		if ready := strings.Count(out, " Ready "); ready != want {
			return fmt.Errorf("%d are Ready of %s", ready, out)
		}
		return nil
	})
}

// scale has the machine pool grow and shrink.
func (c *clusterAPI) scale() {
	for _, n := range []int{3, 1} {
		c.manage("scale", "machinepool", "workers", fmt.Sprintf("--replicas=%d", n))
		c.hasNodes(n)
		c.replicas(n)
	}
}

// delete deletes the Cluster, and with it all that its file made.
func (c *clusterAPI) delete() {
	c.manage("delete", "cluster", "blue", "--wait=false")
	c.upstream(managedDeleted, "the cluster is deleted", func() error {
		return is(c.manage("get", "clusters,awsmanagedcontrolplanes,machinepools,awsmanagedmachinepools,awsmanagedclusters", "-o", "name"), "")
	})
}
