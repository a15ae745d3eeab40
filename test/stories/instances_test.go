// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// cliInstance is an instance as the AWS CLI shows it, in part.
type cliInstance struct {
	InstanceID string `json:"InstanceId"`
	State      struct{ Name string }
	VpcID      string `json:"VpcId"`
	Tags       []struct{ Key, Value string }
}

// TestInstancesAndAddonsByTheAWSCLI launches an instance whose user data is a NodeConfig, which joins the cluster, and
// ends machines of a node group by EC2 and Auto Scaling. On the node that is left it makes add-ons, changes and deletes
// them.
//
//story:about cloud/ec2 cloud/autoscaling machine/instancecontroller machine/launchdata addons/addon addons/addoncontroller
func TestInstancesAndAddonsByTheAWSCLI(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)

	t.Run("an instance of nobody's group joins", func(t *testing.T) { w.step(t).runInstance() })
	t.Run("a machine of a node group", func(t *testing.T) { w.step(t).groupOfMachines() })
	t.Run("the add-ons", func(t *testing.T) { w.step(t).addonsByTheAWSCLI() })
}

// nodeConfig writes user data as an EKS node's, with the endpoint that DescribeCluster answers.
func (w *iam) nodeConfig() (file, text string) {
	of := func(path string) string {
		return w.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={"+path+"}")
	}
	text = fmt.Sprintf(`apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: muster
    apiServerEndpoint: %s
    certificateAuthority: %s
    cidr: %s
  kubelet:
    flags: ["--node-labels=made=by-hand"]
`, of(".status.endpoint"), of(".status.certificateAuthority.data"), of(".spec.network.serviceCIDR"))
	file = filepath.Join(w.t.TempDir(), "user-data")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return file, text
}

func (w *iam) runInstance() {
	file, text := w.nodeConfig()
	subnet := w.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.subnetIDs[0]}")
	group := w.mustKubectl("--context", "muster-management", "get", "securitygroups", "-o", `jsonpath={.items[?(@.spec.clusterName=="muster")].metadata.name}`)
	image, err := w.aws(w.admin, "ssm", "get-parameter", "--name", "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id", "--query", "Parameter.Value", "--output", "text")
	if err != nil {
		w.t.Fatal(err)
	}
	run := []string{
		"ec2", "run-instances", "--image-id", image, "--instance-type", "t3.medium", "--subnet-id", subnet, "--security-group-ids", group, "--iam-instance-profile", "Name=muster-node-muster",
		"--user-data", "file://" + file, "--tag-specifications", "ResourceType=instance,Tags=[{Key=Name,Value=mine}]", "--client-token", "one",
	}
	if _, err := w.aws(w.admin, append(run, "--dry-run")...); err == nil || !strings.Contains(err.Error(), "(DryRunOperation)") {
		w.t.Errorf("a dry run: %v", err)
	}
	if _, err := w.aws(w.as(w.user("alice")), run...); err == nil || !strings.Contains(err.Error(), "(UnauthorizedOperation)") {
		w.t.Errorf("a user without rights: %v", err)
	}
	if _, err := w.aws(w.admin, append(slices.Replace(slices.Clone(run), len(run)-1, len(run), "too-many"), "--count", "100")...); err == nil || !strings.Contains(err.Error(), "(InsufficientInstanceCapacity)") || !strings.Contains(err.Error(), "that it offers machines") {
		w.t.Errorf("more instances than the host has room for: %v", err)
	}
	began := time.Now()
	var made, again struct{ Instances []cliInstance }
	w.mustAWS(&made, run...)
	w.mustAWS(&again, run...) // sent again with its token
	if len(made.Instances) != 1 || len(again.Instances) != 1 || made.Instances[0].InstanceID != again.Instances[0].InstanceID {
		w.t.Fatalf("made %+v, then %+v", made, again)
	}
	id := made.Instances[0].InstanceID
	w.eventually("its node is Ready", func() error {
		out, err := w.kubectl("get", "nodes", "-l", "made=by-hand", "-o", `jsonpath={.items[*].spec.providerID} {.items[*].status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && (!strings.Contains(out, id) || !strings.Contains(out, "True")) {
			err = fmt.Errorf("got %q", out)
		}
		return err
	})
	w.t.Logf("run-instances to a Ready node: %v", time.Since(began).Round(100*time.Millisecond))
	w.mustAWS(nil, "ec2", "wait", "instance-running", "--instance-ids", id) // which asks every 15 s
	data, err := w.aws(w.admin, "ec2", "describe-instance-attribute", "--instance-id", id, "--attribute", "userData", "--query", "UserData.Value", "--output", "text")
	if raw, decoding := base64.StdEncoding.DecodeString(data); err != nil || decoding != nil || string(raw) != text {
		w.t.Errorf("user data %q, %v, %v", raw, err, decoding)
	}
	if all := w.instances("Name=tag:Name,Values=mine"); len(all) != 1 || all[0].InstanceID != id || all[0].State.Name != "running" {
		w.t.Errorf("instances with the tag: %+v", all)
	}

	w.mustAWS(nil, "ec2", "terminate-instances", "--instance-ids", id)
	c := newAWSClient(w.t, w)
	w.eventually("it is terminated", func() error {
		if answer := c.must(awsForm("ec2", "DescribeInstances", "InstanceId.1", id)); !strings.Contains(answer, "<name>terminated</name>") {
			return errors.New(answer)
		}
		return nil
	})
	w.mustAWS(nil, "ec2", "wait", "instance-terminated", "--instance-ids", id)
	if out := w.mustKubectl("get", "nodes", "-l", "made=by-hand", "-o", "name"); out != "" {
		w.t.Errorf("its node is left: %s", out)
	}
	if all := w.instances("Name=instance-id,Values=" + id); len(all) != 1 || all[0].State.Name != "terminated" {
		w.t.Errorf("what is told of it: %+v", all)
	}
}

// instances are those that filters choose.
func (w *iam) instances(filters ...string) []cliInstance {
	w.t.Helper()
	var found struct {
		Reservations []struct{ Instances []cliInstance }
	}
	w.mustAWS(&found, append([]string{"ec2", "describe-instances", "--filters"}, filters...)...)
	var all []cliInstance
	for _, r := range found.Reservations {
		all = append(all, r.Instances...)
	}
	return all
}

func (w *iam) groupOfMachines() {
	var node struct {
		Nodegroup struct {
			Resources struct {
				AutoScalingGroups []struct{ Name string }
			}
		}
	}
	w.mustAWS(&node, "eks", "describe-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "default")
	if len(node.Nodegroup.Resources.AutoScalingGroups) != 1 {
		w.t.Fatalf("describe-nodegroup: %+v", node)
	}
	name := node.Nodegroup.Resources.AutoScalingGroups[0].Name
	first := w.instances("Name=tag:aws:autoscaling:groupName,Values=" + name)
	if len(first) != 1 {
		w.t.Fatalf("instances of %s: %+v", name, first)
	}
	ready := func(count int, without string) func() error {
		return func() error {
			out, err := w.kubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.spec.providerID} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
			if err == nil && (strings.Count(out, " True") != count || without != "" && strings.Contains(out, without)) {
				err = fmt.Errorf("nodes:\n%s", out)
			}
			return err
		}
	}
	began := time.Now()
	w.mustAWS(nil, "autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", first[0].InstanceID, "--no-should-decrement-desired-capacity")
	w.eventually("another machine is in its place", ready(1, first[0].InstanceID))
	w.t.Logf("terminated to replaced: %v", time.Since(began).Round(100*time.Millisecond))

	w.mustAWS(nil, "autoscaling", "set-desired-capacity", "--auto-scaling-group-name", name, "--desired-capacity", "2")
	w.eventually("two nodes are Ready", ready(2, ""))
	all := w.instances("Name=tag:aws:autoscaling:groupName,Values="+name, "Name=instance-state-name,Values=running")
	if len(all) != 2 {
		w.t.Fatalf("running: %+v", all)
	}
	w.mustAWS(nil, "autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", all[0].InstanceID, "--should-decrement-desired-capacity")
	w.eventually("that one is gone, and the other stays", ready(1, all[0].InstanceID))
	var groups struct {
		AutoScalingGroups []struct{ DesiredCapacity int }
	}
	w.mustAWS(&groups, "autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", name)
	if len(groups.AutoScalingGroups) != 1 || groups.AutoScalingGroups[0].DesiredCapacity != 1 {
		w.t.Errorf("the group: %+v", groups)
	}
	var done struct {
		Activities []struct{ Description, Cause, StatusCode string }
	}
	w.mustAWS(&done, "autoscaling", "describe-scaling-activities", "--auto-scaling-group-name", name)
	if len(done.Activities) < 5 || !strings.Contains(done.Activities[0].Description, "Terminating EC2 instance: "+all[0].InstanceID) || !strings.Contains(done.Activities[0].Cause, "shrinking the capacity from 2 to 1") {
		w.t.Errorf("activities: %+v", done.Activities)
	}
}
