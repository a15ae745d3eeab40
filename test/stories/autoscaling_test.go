// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// shownScalingGroup is a group as the AWS CLI shows it, in part.
type shownScalingGroup struct {
	DesiredCapacity int
	Instances       []struct {
		InstanceID     string `json:"InstanceId"`
		LifecycleState string
		LaunchTemplate struct{ Version string }
	}
}

// TestAutoScalingByTheAWSCLI makes an Auto Scaling group of its own whose machines join the cluster by their user data, lets it grow and shrink, kills
// the service meanwhile, replaces its machines by a refresh, and holds one by lifecycle hooks.
//
//story:about cloud/autoscaling cloud/scalingcontroller cloud/scalingplan cloud/scalinglaunch cloud/ec2/instance
func TestAutoScalingByTheAWSCLI(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)

	t.Run("a group is made", func(t *testing.T) { w.step(t).makeScalingGroup() })
	t.Run("it grows while the service is killed, and shrinks", func(t *testing.T) { w.step(t).scaleGroup() })
	t.Run("its machines are replaced", func(t *testing.T) { w.step(t).refreshGroup() })
	t.Run("hooks hold its machines", func(t *testing.T) { w.step(t).holdInstances() })
	t.Run("it is deleted", func(t *testing.T) { w.step(t).deleteGroup() })
}

const scalingGroup = "own"

func (w *iam) makeScalingGroup() {
	_, text := w.nodeConfig()
	subnets := strings.Fields(w.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.subnetIDs[*]}"))
	group := w.mustKubectl("--context", "muster-management", "get", "securitygroups", "-o", `jsonpath={.items[?(@.spec.clusterName=="muster")].metadata.name}`)
	image, err := w.aws(w.admin, "ssm", "get-parameter", "--name", "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id", "--query", "Parameter.Value", "--output", "text")
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{
		"ImageId": image, "InstanceType": "t3.small", "UserData": base64.StdEncoding.EncodeToString([]byte(text)), "IamInstanceProfile": map[string]string{"Name": "muster-node-muster"},
		"NetworkInterfaces": []map[string]any{{"DeviceIndex": 0, "Groups": []string{group}}},
		"TagSpecifications": []map[string]any{{"ResourceType": "instance", "Tags": []map[string]string{{"Key": "Name", "Value": "own"}}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mustAWS(nil, "ec2", "create-launch-template", "--launch-template-name", "own", "--launch-template-data", string(data))
	create := []string{
		"autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", scalingGroup, "--max-size", "3", "--vpc-zone-identifier", strings.Join(subnets, ","),
		"--tags", "Key=team,Value=a,PropagateAtLaunch=true", "Key=k8s.io/cluster-autoscaler/node-template/label/made,Value=by-hand",
	}
	template := func(version string) []string {
		return []string{"--launch-template", "LaunchTemplateName=own,Version=" + version}
	}
	for _, refused := range []struct {
		args []string
		says string
	}{
		{append(template("$Latest"), "--min-size", "4"), "Min bound, 4, must be less than or equal to max bound, 3"},
		{append(template("7"), "--min-size", "0"), "Could not find the specified version 7"},
		{append(template("$Latest"), "--min-size", "0", "--availability-zones", "mars-1a"), "Invalid availability zones: [mars-1a]"},
		{append([]string{"--min-size", "0", "--mixed-instances-policy"}, `{"LaunchTemplate":{"LaunchTemplateSpecification":{"LaunchTemplateName":"own"},"Overrides":[{"InstanceType":"x9.huge"}]}}`), `The instance type "x9.huge" is not known`},
	} {
		if _, err := w.aws(w.admin, slices.Concat(create, refused.args)...); err == nil || !strings.Contains(err.Error(), "(ValidationError)") || !strings.Contains(err.Error(), refused.says) {
			w.t.Errorf("%v: %v, want %s", refused.args, err, refused.says)
		}
	}
	made := slices.Concat(create, template("$Latest"), []string{"--min-size", "0"})
	if _, err := w.aws(w.as(w.user("alice")), made...); err == nil || !strings.Contains(err.Error(), "(AccessDenied)") {
		w.t.Errorf("a user without rights: %v", err)
	}
	w.mustAWS(nil, made...)
	if out, _ := w.muster("get", "autoscalinggroups"); !strings.Contains(out, "own") || !strings.Contains(out, "IN-SERVICE") {
		w.t.Errorf("muster get autoscalinggroups:\n%s", out)
	}
}

// scalingGroup is the group as it is described.
func (w *iam) scalingGroup() (group shownScalingGroup, err error) {
	w.t.Helper()
	text, err := w.aws(w.admin, "autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", scalingGroup, "--output", "json")
	if err != nil {
		return group, err
	}
	var out struct{ AutoScalingGroups []shownScalingGroup }
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.AutoScalingGroups) != 1 {
		return group, fmt.Errorf("groups %s: %w", text, err)
	}
	return out.AutoScalingGroups[0], nil
}

// groupBecomes waits until the group's instances are in these states, and as many nodes are Ready. It returns the instances' ids.
func (w *iam) groupBecomes(nodes int, states ...string) []string {
	w.t.Helper()
	var ids []string
	w.eventually(fmt.Sprintf("the group has %v and %d nodes", states, nodes), func() error {
		ids = nil
		var is []string
		group, err := w.scalingGroup() // the service may be killed at the moment
		if err != nil {
			return err
		}
		for _, i := range group.Instances {
			ids, is = append(ids, i.InstanceID), append(is, i.LifecycleState)
		}
		slices.Sort(is)
		out, err := w.kubectl("get", "nodes", "-l", "made=by-hand", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && (!slices.Equal(is, states) || strings.Count(out, "True") != nodes) {
			err = fmt.Errorf("instances %v, nodes %q", is, out)
		}
		return err
	})
	return ids
}

func (w *iam) desire(capacity string) {
	w.t.Helper()
	w.mustAWS(nil, "autoscaling", "set-desired-capacity", "--auto-scaling-group-name", scalingGroup, "--desired-capacity", capacity)
}

func (w *iam) scaleGroup() {
	began := time.Now()
	w.desire("2")
	w.kill("serve")
	ids := w.groupBecomes(2, "InService", "InService")
	w.t.Logf("0 to 2 Ready nodes, over a service that was killed: %v", time.Since(began).Round(100*time.Millisecond))
	all := w.instances("Name=tag:aws:autoscaling:groupName,Values=own", "Name=tag:team,Values=a")
	if len(all) != 2 || !slices.Contains(ids, all[0].InstanceID) {
		w.t.Errorf("instances %+v, and the group has %v", all, ids)
	}
	w.desire("1")
	w.kill("serve")
	left := w.groupBecomes(1, "InService")
	if !slices.Contains(ids, left[0]) {
		w.t.Errorf("%v is left of %v", left, ids)
	}
	var done struct {
		Activities []struct{ Description, Cause, StatusCode string }
	}
	w.mustAWS(&done, "autoscaling", "describe-scaling-activities", "--auto-scaling-group-name", scalingGroup)
	if len(done.Activities) != 3 || !strings.Contains(done.Activities[0].Cause, "shrinking the capacity from 2 to 1") || !strings.Contains(done.Activities[2].Cause, "a user request explicitly set group desired capacity changing the desired capacity from 0 to 2.") {
		w.t.Errorf("activities %+v", done.Activities)
	}
	if _, err := w.aws(w.admin, "autoscaling", "set-desired-capacity", "--auto-scaling-group-name", scalingGroup, "--desired-capacity", "4"); err == nil || !strings.Contains(err.Error(), "above max value 3") {
		w.t.Errorf("more than the maximum: %v", err)
	}
}

func (w *iam) refreshGroup() {
	before := w.groupBecomes(1, "InService")
	w.mustAWS(nil, "ec2", "create-launch-template-version", "--launch-template-name", "own", "--source-version", "1", "--launch-template-data", `{"InstanceType":"t3.medium"}`)
	began := time.Now()
	w.mustAWS(nil, "autoscaling", "start-instance-refresh", "--auto-scaling-group-name", scalingGroup, "--preferences", `{"MinHealthyPercentage":100,"MaxHealthyPercentage":200,"InstanceWarmup":0,"SkipMatching":true}`)
	w.eventually("the refresh is successful", func() error {
		var out struct {
			InstanceRefreshes []struct{ Status, StatusReason string }
		}
		w.mustAWS(&out, "autoscaling", "describe-instance-refreshes", "--auto-scaling-group-name", scalingGroup)
		if len(out.InstanceRefreshes) != 1 || out.InstanceRefreshes[0].Status != "Successful" {
			return fmt.Errorf("%+v", out)
		}
		return nil
	})
	w.t.Logf("refreshed: %v", time.Since(began).Round(100*time.Millisecond))
	after := w.groupBecomes(1, "InService")
	if g, err := w.scalingGroup(); err != nil || slices.Equal(before, after) || g.Instances[0].LaunchTemplate.Version != "2" {
		w.t.Errorf("%v then %v: %+v, %v", before, after, g, err)
	}
}

func (w *iam) holdInstances() {
	for hook, transition := range map[string]string{"up": "LAUNCHING", "down": "TERMINATING"} {
		w.mustAWS(nil, "autoscaling", "put-lifecycle-hook", "--auto-scaling-group-name", scalingGroup, "--lifecycle-hook-name", hook, "--lifecycle-transition", "autoscaling:EC2_INSTANCE_"+transition,
			"--heartbeat-timeout", "600", "--default-result", "CONTINUE")
	}
	act := func(verb, hook, id string, args ...string) error {
		_, err := w.aws(w.admin, slices.Concat([]string{"autoscaling", verb, "--auto-scaling-group-name", scalingGroup, "--lifecycle-hook-name", hook, "--instance-id", id}, args)...)
		return err
	}
	held := func(state string) (id string) {
		group, err := w.scalingGroup()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, i := range group.Instances {
			if i.LifecycleState == state {
				return i.InstanceID
			}
		}
		w.t.Fatalf("no instance is in %s", state)
		return ""
	}
	w.desire("2")
	w.groupBecomes(2, "InService", "Pending:Wait")
	id := held("Pending:Wait")
	stranger := w.mustKubectl("--context", "muster-management", "get", "machines", "-o", `jsonpath={.items[?(@.spec.nodeGroup=="default")].metadata.name}`)
	if err := act("record-lifecycle-action-heartbeat", "up", stranger); err == nil || !strings.Contains(err.Error(), "The instance "+stranger+" is not part of Auto Scaling group own") {
		w.t.Errorf("a heartbeat for another's machine: %v", err)
	}
	for _, err := range []error{act("record-lifecycle-action-heartbeat", "up", id), act("complete-lifecycle-action", "up", id, "--lifecycle-action-result", "CONTINUE")} {
		if err != nil {
			w.t.Error(err)
		}
	}
	w.groupBecomes(2, "InService", "InService")
	w.desire("1")
	w.groupBecomes(2, "InService", "Terminating:Wait") // its node stays
	if err := act("complete-lifecycle-action", "down", held("Terminating:Wait"), "--lifecycle-action-result", "CONTINUE"); err != nil {
		w.t.Error(err)
	}
	w.groupBecomes(1, "InService")
}

func (w *iam) deleteGroup() {
	remove := []string{"autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", scalingGroup}
	if _, err := w.aws(w.admin, remove...); err == nil || !strings.Contains(err.Error(), "(ResourceInUse)") {
		w.t.Errorf("a group with an instance: %v", err)
	}
	w.mustAWS(nil, append(remove, "--force-delete")...)
	w.eventually("the group and its machines are gone", func() error {
		groups, err := w.kubectl("--context", "muster-management", "get", "autoscalinggroups", "-o", "name")
		if err != nil {
			return err
		}
		machines, err := w.kubectl("--context", "muster-management", "get", "machines", "-o", `jsonpath={.items[?(@.spec.scalingGroup)].metadata.name}`)
		if err == nil && groups+machines != "" {
			err = errors.New(groups + machines)
		}
		return err
	})
	if out := w.mustKubectl("get", "nodes", "-l", "made=by-hand", "-o", "name"); out != "" {
		w.t.Errorf("nodes are left: %s", out)
	}
}
