// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// eksctlCluster is a cluster as people describe it to eksctl: nodes that SSH reaches by a key's name, policies of add-ons, OIDC, and all logs.
const eksctlCluster = `apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {name: ironman-2022, region: eu-west-1, version: "1.36"}
managedNodeGroups:
- name: ng1-public-ssh
  instanceType: t3.small
  desiredCapacity: 2
  ssh: {allow: true, publicKeyName: ironman-2022}
  iam: {withAddonPolicies: {ebs: true, fsx: true, efs: true, awsLoadBalancerController: true, autoScaler: true}}
iam: {withOIDC: true}
cloudWatch: {clusterLogging: {enableTypes: ["*"]}}
`

// TestEksctl makes a cluster by the real eksctl from a file, reads and scales its node group, changes its add-ons, upgrades it and the group, and
// deletes all of it. Without a program in bin/eksctl, or in the directory that MUSTER_EKSCTL names, it is skipped, and says so.
//
//story:about cloud/cloudformation aws/cloudformation cloud/eks
//story:needs logs kubernetes MINOR=1.37
func TestEksctl(t *testing.T) {
	t.Parallel()
	program := eksctlProgram(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "0", "--region", "eu-west-1")
	i.ready()
	e := &eksctl{iam: newIAM(t, i), program: program}
	before := e.whatThereIs()
	for _, step := range []struct {
		name string
		run  func(*eksctl)
	}{
		{"create", (*eksctl).create},
		{"get", (*eksctl).get},
		{"scale", (*eksctl).scale},
		{"add-ons", (*eksctl).addons},
		{"upgrade", (*eksctl).upgrade},
		{"delete", (*eksctl).delete},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			of := *e
			of.iam = e.step(t)
			step.run(&of)
		}) {
			return
		}
	}
	e.mustAWS(nil, "ec2", "delete-key-pair", "--key-name", "ironman-2022")
	e.mustAWS(nil, "logs", "delete-log-group", "--log-group-name", "/aws/eks/ironman-2022/cluster") // it outlives its cluster
	e.eventually("there is what there was before", func() error { return is(e.whatThereIs(), before) })
}

// eksctl is an account, and the program that works on it.
type eksctl struct {
	*iam
	program string
}

// eksctlProgram is the path of the real eksctl. It skips the story, with the way out, where the machine has no such program.
func eksctlProgram(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{os.Getenv("MUSTER_EKSCTL"), programs(t)} {
		if path := filepath.Join(dir, "eksctl"); dir != "" {
			if _, err := exec.LookPath(path); err == nil {
				return path
			}
		}
	}
	t.Skip("there is no eksctl on this machine: the real eksctl is NOT tested; make eksctl DIR=DIRECTORY builds it from a checkout, and MUSTER_EKSCTL names a directory that has it")
	return ""
}

// must runs eksctl as the first user, and returns what it prints. Its talk goes to the log of the story.
func (e *eksctl) must(args ...string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), e.program, args...)
	cmd.Env = e.environmentOf(e.admin)
	var out, all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &all
	err := cmd.Run()
	e.t.Logf("eksctl %s\n%s%s", strings.Join(args, " "), out.String(), all.String())
	if err != nil {
		e.t.Fatalf("eksctl %s: %v", strings.Join(args, " "), err)
	}
	return out.String() + all.String()
}

// create makes the cluster. Its nodes are Ready and its kubeconfig works when eksctl has ended.
func (e *eksctl) create() {
	e.mustAWS(nil, "ec2", "create-key-pair", "--key-name", "ironman-2022")
	file := filepath.Join(filepath.Dir(e.kubeconfig), "cluster.yaml")
	if err := os.WriteFile(file, []byte(eksctlCluster), 0o600); err != nil {
		e.t.Fatal(err)
	}
	out := e.must("create", "cluster", "-f", file, "--kubeconfig", e.owned())
	for _, line := range []string{
		`will create a CloudFormation stack for cluster itself and 1 managed nodegroup stack\(s\)`,
		`nodegroup "ng1-public-ssh" has 2 node\(s\)`,
		`EKS cluster "ironman-2022" in "eu-west-1" region is ready`,
	} {
		if !regexp.MustCompile(line).MatchString(out) {
			e.t.Errorf("eksctl create cluster does not say %s", line)
		}
	}
	e.hasNodes(2)
}

// owned is the kubeconfig that eksctl writes.
func (e *eksctl) owned() string { return e.kubeconfig + ".eksctl" }

// hasNodes waits until the node group has a number of Ready nodes, by the kubeconfig of eksctl.
func (e *eksctl) hasNodes(want int) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("%d nodes are Ready", want), func() error {
		out, err := e.run(e.admin, filepath.Join(e.bin, "kubectl"), "--kubeconfig", e.owned(), "get", "nodes", "-l", "alpha.eksctl.io/nodegroup-name=ng1-public-ssh", "--no-headers")
		if err != nil {
			return err
		}
		if ready := strings.Count(out, " Ready "); ready != want {
			return fmt.Errorf("%d are Ready of %s", ready, out)
		}
		return nil
	})
}

// row is the values of the first row of a table of eksctl, whose columns two tabs or more separate.
func row(table string) map[string]string {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	cells := func(line string) []string { return regexp.MustCompile(`\t+`).Split(strings.TrimRight(line, "\t "), -1) }
	values := map[string]string{}
	for n, name := range cells(lines[0]) {
		if len(lines) > 1 && n < len(cells(lines[1])) {
			values[strings.TrimSpace(name)] = strings.TrimSpace(cells(lines[1])[n])
		}
	}
	return values
}

// get reads what there is, by the columns that people know.
func (e *eksctl) get() {
	if got := row(e.must("get", "cluster")); got["NAME"] != "ironman-2022" || got["REGION"] != "eu-west-1" || got["EKSCTL CREATED"] != "True" {
		e.t.Errorf("clusters: %v", got)
	}
	got := row(e.must("get", "ng", "--cluster=ironman-2022"))
	for name, want := range map[string]string{
		"CLUSTER": "ironman-2022", "NODEGROUP": "ng1-public-ssh", "STATUS": "ACTIVE", "MIN SIZE": "2", "MAX SIZE": "2", "DESIRED CAPACITY": "2", "INSTANCE TYPE": "t3.small",
		"IMAGE ID": "AL2023_x86_64_STANDARD", "TYPE": "managed",
	} {
		if got[name] != want {
			e.t.Errorf("the node group's %s is %q, want %q", name, got[name], want)
		}
	}
	if !strings.HasPrefix(got["ASG NAME"], "eks-ng1-public-ssh-") {
		e.t.Errorf("the node group's ASG NAME is %q", got["ASG NAME"])
	}
	if names, want := e.addonNames(), []string{"coredns", "kube-proxy", "metrics-server", "vpc-cni"}; !slices.Equal(names, want) {
		e.t.Errorf("add-ons: %v, want %v", names, want)
	}
}

// addonNames are the names of the cluster's add-ons, in their order.
func (e *eksctl) addonNames() []string {
	var names []string
	for line := range strings.Lines(e.must("get", "addon", "--cluster=ironman-2022", "-o", "json")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), `"Name": `); ok {
			names = append(names, strings.Trim(name, `",`))
		}
	}
	slices.Sort(names)
	return names
}

// addons creates, updates and deletes add-ons.
func (e *eksctl) addons() {
	if out := e.must("create", "addon", "--name=eks-pod-identity-agent", "--cluster=ironman-2022"); !strings.Contains(out, `addon "eks-pod-identity-agent" active`) {
		e.t.Error("eksctl create addon says something else")
	}
	if out := e.must("update", "addon", "--name=coredns", "--version=latest", "--cluster=ironman-2022"); !strings.Contains(out, "updating addon") {
		e.t.Error("eksctl update addon says something else")
	}
	if out := e.must("delete", "addon", "--name=metrics-server", "--cluster=ironman-2022"); !strings.Contains(out, "deleted addon: metrics-server") {
		e.t.Error("eksctl delete addon says something else")
	}
	e.eventually("the add-on is gone", func() error {
		return is(strings.Join(e.addonNames(), " "), "coredns eks-pod-identity-agent kube-proxy vpc-cni")
	})
}

// upgrade brings the control plane to the next minor, and then the node group.
func (e *eksctl) upgrade() {
	if out := e.must("upgrade", "cluster", "--name=ironman-2022", "--approve"); !strings.Contains(out, `cluster "ironman-2022" control plane has been upgraded to version "1.37"`) {
		e.t.Error("eksctl upgrade cluster says something else")
	}
	if out := e.must("upgrade", "nodegroup", "--name=ng1-public-ssh", "--cluster=ironman-2022", "--kubernetes-version=1.37"); !strings.Contains(out, "nodegroup successfully upgraded") {
		e.t.Error("eksctl upgrade nodegroup says something else")
	}
	e.hasNodes(3)
	out, err := e.run(e.admin, filepath.Join(e.bin, "kubectl"), "--kubeconfig", e.owned(), "get", "nodes", "--no-headers")
	if err != nil || strings.Count(out, "v1.37.") != 3 {
		e.t.Errorf("not all nodes are of 1.37: %v, %s", err, out)
	}
}

// scale has the group grow, with a maximum that is larger than before, and waits as people do.
func (e *eksctl) scale() {
	out := e.must("scale", "ng", "--nodes=3", "--nodes-max=10", "--name=ng1-public-ssh", "--cluster=ironman-2022", "--wait")
	if !strings.Contains(out, `scaling nodegroup "ng1-public-ssh" in cluster ironman-2022`) || !strings.Contains(out, "nodegroup successfully scaled") {
		e.t.Error("eksctl scale says something else")
	}
	e.hasNodes(3)
	if got := row(e.must("get", "ng", "--cluster=ironman-2022")); got["DESIRED CAPACITY"] != "3" || got["MAX SIZE"] != "10" {
		e.t.Errorf("the node group: %v", got)
	}
}

// delete deletes the cluster and waits.
func (e *eksctl) delete() {
	if out := e.must("delete", "cluster", "--name=ironman-2022", "--wait"); !strings.Contains(out, "all cluster resources were deleted") {
		e.t.Error("eksctl delete cluster says something else")
	}
	if out := e.told("cloudformation", "list-stacks", "--query", "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName", "--output", "text"); out != "" {
		e.t.Errorf("stacks are left: %s", out)
	}
}
