// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTerraform runs examples/terraform as it stands, by Terraform and its AWS provider: a VPC, a cluster and its nodes
// are made, planned again, changed and destroyed.
//
//story:about cloud ./examples
func TestTerraform(t *testing.T) {
	t.Parallel()
	tf := newTerraform(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	tf.as = w
	// Whatever fails, the installation takes all of it along when it goes.
	steps := []struct {
		name string
		run  func(*terraform)
	}{
		{"made", (*terraform).made},
		{"nothing left to do", (*terraform).nothingToDo},
		{"nodes", (*terraform).nodes},
		{"the role for pods", (*terraform).podRole},
		{"scaled, labelled and tainted", (*terraform).edited},
		{"a new version of the launch template", (*terraform).replaced},
		{"destroyed", (*terraform).destroyed},
	}
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			step := *tf
			step.as = w.step(t)
			s.run(&step)
		}) {
			return // the others need what this was to make
		}
	}
	// An object goes when what it stands for has: a VPC a moment after DeleteVpc was answered.
	w.eventually("there is what there was before", func() error {
		if after := w.whatThereIs(); after != before {
			return fmt.Errorf("before:\n%s\nafter destroy:\n%s", before, after)
		}
		return nil
	})
}

// terraform is the example in a directory of its own.
type terraform struct {
	as         *iam
	dir        string
	kubeconfig string
}

// newTerraform is the example as it stands.
func newTerraform(t *testing.T) *terraform {
	t.Helper()
	return newTerraformOf(t, func(dir string, example map[string][]byte) { writeModule(t, dir, example) })
}

// writeModule writes the files of a module.
func writeModule(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// newTerraformOf is a module that is made of the example's files. It skips the story, with the reason, where a machine
// lacks the programs: `make test` names what it has not run.
func newTerraformOf(t *testing.T, write func(dir string, example map[string][]byte)) *terraform {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		t.Skip("there is no terraform on this machine: the Terraform example is NOT tested")
	}
	tf := &terraform{dir: t.TempDir()}
	tf.kubeconfig = filepath.Join(tf.dir, "kubeconfig")
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "terraform", "*.tf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the example: %v, %v", files, err)
	}
	example := map[string][]byte{}
	for _, file := range files {
		if example[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	write(tf.dir, example)
	init := exec.CommandContext(t.Context(), "terraform", append([]string{"init", "-no-color", "-input=false"}, providers()...)...)
	init.Dir, init.Env = tf.dir, append(os.Environ(), "CHECKPOINT_DISABLE=1")
	if out, err := init.CombinedOutput(); err != nil {
		t.Logf("%s", out)
		t.Skipf("terraform has no provider hashicorp/aws here (%v): the Terraform example is NOT tested; unpack the provider below a directory that a mirror's layout has, such as /usr/local/share/terraform/plugins", err)
	}
	return tf
}

// providers says where Terraform finds the provider, if it was unpacked on this machine in the layout of a filesystem
// mirror. Otherwise it looks where it is set up to look.
func providers() []string {
	home, _ := os.UserHomeDir()
	roots := []string{filepath.Join(home, ".terraform.d", "plugins"), "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins", "/opt/*"}
	for _, root := range roots {
		found, _ := filepath.Glob(filepath.Join(root, "registry.terraform.io", "hashicorp", "aws", "*", runtime.GOOS+"_"+runtime.GOARCH))
		if len(found) > 0 {
			mirror, _, _ := strings.Cut(found[0], string(filepath.Separator)+"registry.terraform.io")
			return []string{"-plugin-dir=" + mirror}
		}
	}
	return nil
}

// try runs terraform as the account's first user.
func (tf *terraform) try(args ...string) (string, error) {
	began := time.Now()
	out, err := tf.as.runIn(tf.dir, append(tf.as.admin, "CHECKPOINT_DISABLE=1", "TF_LOG_PROVIDER=debug", "TF_LOG_PATH="+filepath.Join(tf.dir, "provider.log")), "terraform", args...)
	tf.as.t.Logf("terraform %s: %v", args[0], time.Since(began).Round(time.Second))
	return out, err
}

func (tf *terraform) must(args ...string) string {
	tf.as.t.Helper()
	out, err := tf.try(args...)
	if err != nil {
		tf.as.t.Fatalf("%s\n%v", out, err)
	}
	return out
}

func (tf *terraform) apply(variables ...string) {
	tf.as.t.Helper()
	tf.must(append([]string{"apply", "-no-color", "-input=false", "-auto-approve"}, variables...)...)
	tf.unchanged(variables...)
}

// unchanged fails the test unless a plan has nothing to do.
func (tf *terraform) unchanged(variables ...string) {
	tf.as.t.Helper()
	if out, err := tf.try(append([]string{"plan", "-no-color", "-input=false", "-detailed-exitcode"}, variables...)...); err != nil {
		tf.as.t.Errorf("a plan right after an apply has something to do:\n%s\n%v", out, err)
	}
}

func (tf *terraform) made() {
	tf.must("apply", "-no-color", "-input=false", "-auto-approve")
	tf.refusals()
}

// refusals fails the test for what the provider was refused, and went on without.
func (tf *terraform) refusals() {
	log, err := os.ReadFile(filepath.Join(tf.dir, "provider.log"))
	if err != nil {
		tf.as.t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		for _, code := range []string{"UnknownOperationException", "InvalidAction", "UnsupportedOperation", "does not answer"} {
			if strings.Contains(line, code) {
				tf.as.t.Errorf("the provider was refused: %.600s", line)
				break
			}
		}
	}
}

func (tf *terraform) nothingToDo() { tf.unchanged() }

// tfNode is what the story looks at of a node.
type tfNode struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Taints []struct{ Key, Value, Effect string }
	}
	Status struct {
		Capacity   map[string]string
		Conditions []struct{ Type, Status string }
	}
}

// list asks the cluster by the kubeconfig that the AWS CLI wrote.
func (tf *terraform) list() ([]tfNode, error) {
	out, err := tf.as.run(tf.as.admin, filepath.Join(tf.as.bin, "kubectl"), "--kubeconfig", tf.kubeconfig, "get", "nodes", "-o", "json")
	var list struct{ Items []tfNode }
	if err == nil {
		err = json.Unmarshal([]byte(out), &list)
	}
	return list.Items, err
}

// ready waits until so many nodes are Ready and like something.
func (tf *terraform) ready(n int, like func(tfNode) error) []tfNode {
	tf.as.t.Helper()
	var nodes []tfNode
	tf.as.eventually(fmt.Sprintf("%d nodes are as they should be", n), func() (err error) {
		if nodes, err = tf.list(); err != nil {
			return err
		}
		if len(nodes) != n {
			return fmt.Errorf("there are %d nodes", len(nodes))
		}
		for _, node := range nodes {
			err = errors.Join(err, isReady(node), like(node))
		}
		return err
	})
	return nodes
}

func isReady(node tfNode) error {
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("%s is not Ready", node.Metadata.Name)
}

func labelled(value string) func(tfNode) error {
	return func(node tfNode) error { return is(node.Metadata.Labels["pool"], value) }
}

func (tf *terraform) nodes() {
	if _, err := exec.LookPath("aws"); err != nil {
		tf.as.t.Fatal("there is no AWS CLI, which tools/testneeds.sh installs")
	}
	if _, err := tf.as.aws(tf.as.admin, "eks", "update-kubeconfig", "--name", "blue", "--kubeconfig", tf.kubeconfig); err != nil {
		tf.as.t.Fatal(err)
	}
	node := tf.ready(1, labelled("web"))[0]
	// The launch template's NodeConfig says so.
	if err := is(node.Status.Capacity["pods"], "40"); err != nil {
		tf.as.t.Error(err)
	}
}

// podRole exchanges the token of the service account for which the example has a role, and that of another, by the AWS
// CLI with a pod's environment.
func (tf *terraform) podRole() {
	arn := strings.TrimSpace(tf.must("output", "-raw", "app_role_arn"))
	kubectl := func(args ...string) string {
		tf.as.t.Helper()
		out, err := tf.as.run(tf.as.admin, filepath.Join(tf.as.bin, "kubectl"), append([]string{"--kubeconfig", tf.kubeconfig}, args...)...)
		if err != nil {
			tf.as.t.Fatal(err)
		}
		return out
	}
	whoami := func(account string) (string, error) {
		kubectl("create", "serviceaccount", account)
		file := filepath.Join(tf.as.t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(strings.TrimSpace(kubectl("create", "token", account, "--audience=sts.amazonaws.com"))), 0o600); err != nil {
			tf.as.t.Fatal(err)
		}
		// The CLI keeps credentials by role and session name.
		return tf.as.aws(append([]string{"AWS_ROLE_ARN=" + arn, "AWS_ROLE_SESSION_NAME=" + account, "AWS_WEB_IDENTITY_TOKEN_FILE=" + file}, tf.as.endpoint...), "sts", "get-caller-identity", "--query", "Arn", "--output", "text")
	}
	want := strings.Replace(strings.Replace(arn, ":iam:", ":sts:", 1), ":role/", ":assumed-role/", 1) + "/app"
	if got, err := whoami("app"); err != nil || strings.TrimSpace(got) != want {
		tf.as.t.Errorf("the service account app is %q (%v), not %s", got, err, want)
	}
	if got, err := whoami("other"); err == nil || !strings.Contains(err.Error(), "Not authorized to perform sts:AssumeRoleWithWebIdentity") {
		tf.as.t.Errorf("another service account is %q, %v", got, err)
	}
}

func (tf *terraform) edited() {
	variables := []string{"-var=node_count=2", `-var=node_labels={pool="api"}`, `-var=node_taints=[{key="only",value="api",effect="PREFER_NO_SCHEDULE"}]`}
	tf.apply(variables...)
	tf.ready(2, func(node tfNode) error {
		if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "only" {
			return fmt.Errorf("%s has the taints %v", node.Metadata.Name, node.Spec.Taints)
		}
		return labelled("api")(node)
	})
	tf.apply() // and back
	tf.ready(1, labelled("web"))
}

func (tf *terraform) replaced() {
	old := tf.ready(1, labelled("web"))[0].Metadata.Name
	tf.apply("-var=node_user_data=apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 50}}}\n")
	node := tf.ready(1, func(node tfNode) error { return is(node.Status.Capacity["pods"], "50") })[0]
	if node.Metadata.Name == old {
		tf.as.t.Errorf("%s is the node that there was", old)
	}
}

func (tf *terraform) destroyed() {
	tf.must("destroy", "-no-color", "-input=false", "-auto-approve")
	tf.refusals()
}

// whatThereIs lists the objects of the account, but for those that come and go by themselves.
func (w *iam) whatThereIs() string {
	w.t.Helper()
	const kinds = "vpcs,subnets,clusters,nodegroups,machines,launchtemplates,securitygroups,awsrecords,iamroles,iampolicies,iamopenidconnectproviders,iaminstanceprofiles,addons"
	out := w.mustKubectl("--context=muster-management", "get", kinds, "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.spec.type}{"\n"}{end}`)
	var lines []string
	for line := range strings.Lines(out) {
		// Keys are deleted some days later, and terminated instances are described for an hour.
		if !strings.Contains(line, "kms-key") && !strings.Contains(line, "terminated-instance") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
