// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestExperimentsInterrupt has FIS interrupt a spot instance, as Karpenter's tests do, by the AWS CLI, with the service killed as soon as the
// experiment runs: the notice comes to instance metadata and to a queue, and what was announced does not happen once the experiment is
// stopped. A role without rights interrupts nothing.
//
//story:about cloud/fis cloud/experiment cloud/events iam/identityservice machine/drill
func TestExperimentsInterrupt(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	w := newIAM(t, i)
	subnet, err := w.aws(w.admin, "ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	if err != nil {
		t.Fatal(err)
	}
	url := w.interruptionQueue()
	id := w.spotInstance(strings.TrimSpace(subnet))
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"fis.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	w.mustAWS(nil, "iam", "create-role", "--role-name", "fis", "--assume-role-policy-document", trust)
	template := w.experimentTemplate(id)

	t.Run("a role without rights", func(t *testing.T) {
		w := w.step(t)
		run := w.experiment(template)
		if state := w.experimentIs(run, "failed"); !strings.Contains(state, "may not interrupt instance "+id) || !strings.Contains(state, "ec2:SendSpotInstanceInterruptions") {
			t.Errorf("the experiment says %s", state)
		}
	})
	w.mustAWS(nil, "iam", "put-role-policy", "--role-name", "fis", "--policy-name", "interrupt", "--policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:SendSpotInstanceInterruptions","Resource":"arn:aws:ec2:*:*:instance/*","Condition":{"StringEquals":{"aws:ResourceTag/Name":"spot"}}}]}`)
	t.Run("a notice without an end", func(t *testing.T) {
		w := w.step(t)
		if _, err := w.aws(w.as(w.user("carol")), "fis", "start-experiment", "--experiment-template-id", template); err == nil || !strings.Contains(err.Error(), "(AccessDeniedException)") {
			t.Errorf("a user without rights: %v", err)
		}
		run := w.experiment(template)
		w.kill("serve")
		if detail := w.nextEvent(url, "EC2 Spot Instance Interruption Warning", id); detail["instance-action"] != "terminate" {
			t.Errorf("interrupted: %v", detail)
		}
		w.experimentIs(run, "running")
		w.mustAWS(nil, "fis", "stop-experiment", "--id", run)
		w.experimentIs(run, "stopped")
		w.eventually("the drill has ended", func() error {
			out, err := w.kubectl("get", "--context=muster-management", "machine", id, "-o", "jsonpath={.spec.drill}{.status.drill.endedAt}")
			if _, wrong := time.Parse(time.RFC3339, out); err == nil && wrong != nil {
				err = errors.New(out)
			}
			return err
		})
	})
	t.Run("a notice and the end", func(t *testing.T) {
		w := w.step(t)
		run := w.experiment(template)
		began := time.Now()
		w.nextEvent(url, "EC2 Spot Instance Interruption Warning", id)
		if detail := w.nextEvent(url, "EC2 Instance State-change Notification", id); detail["state"] != "shutting-down" && detail["state"] != "terminated" {
			t.Errorf("the instance that ends: %v", detail)
		}
		took := time.Since(began)
		if w.t.Logf("interrupted %v after the experiment began", took.Round(time.Second)); took < 110*time.Second {
			t.Errorf("interrupted %v after the experiment began, and 2m were announced", took)
		}
		w.experimentIs(run, "completed")
		w.mustAWS(nil, "fis", "delete-experiment-template", "--id", template)
	})
}

// spotInstance is a spot instance of the cluster that CreateFleet launches, as Karpenter does, whose node is Ready.
func (w *iam) spotInstance(subnet string) string {
	w.t.Helper()
	_, text := w.nodeConfig()
	image, err := w.aws(w.admin, "ssm", "get-parameter", "--name", "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id", "--query", "Parameter.Value", "--output", "text")
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{
		"UserData": base64.StdEncoding.EncodeToString([]byte(text)), "IamInstanceProfile": map[string]string{"Name": "muster-node-muster"}, "ImageId": image,
		"SecurityGroupIds": []string{w.mustKubectl("--context", "muster-management", "get", "securitygroups", "-o", `jsonpath={.items[?(@.spec.clusterName=="muster")].metadata.name}`)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mustAWS(nil, "ec2", "create-launch-template", "--launch-template-name", "spot", "--launch-template-data", string(data))
	var fleet struct {
		Instances []struct {
			InstanceIds []string
			Lifecycle   string
		}
		Errors []any
	}
	w.mustAWS(&fleet, "ec2", "create-fleet", "--type", "instant", "--target-capacity-specification", "TotalTargetCapacity=1,DefaultTargetCapacityType=spot",
		"--launch-template-configs", `[{"LaunchTemplateSpecification":{"LaunchTemplateName":"spot","Version":"$Latest"},"Overrides":[{"InstanceType":"t3.small","SubnetId":"`+subnet+`"}]}]`,
		"--tag-specifications", `[{"ResourceType":"instance","Tags":[{"Key":"Name","Value":"spot"}]}]`)
	if len(fleet.Instances) != 1 || fleet.Instances[0].Lifecycle != "spot" {
		w.t.Fatalf("the fleet: %+v", fleet)
	}
	w.eventually("its node is Ready", func() error {
		out, err := w.kubectl("get", "nodes", "-l", "made=by-hand", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}`)
		if err == nil && out != "True" {
			err = fmt.Errorf("%q", out)
		}
		return err
	})
	return fleet.Instances[0].InstanceIds[0]
}

// experimentTemplate is a template that interrupts an instance after two minutes.
func (w *iam) experimentTemplate(id string) string {
	w.t.Helper()
	in, err := json.Marshal(map[string]any{
		"description": "interrupt", "roleArn": "arn:aws:iam::" + iamAccount + ":role/fis", "stopConditions": []any{map[string]string{"source": "none"}},
		"targets": map[string]any{"itn": map[string]any{"resourceType": "aws:ec2:spot-instance", "selectionMode": "ALL", "resourceArns": []string{"arn:aws:ec2:us-east-1:" + iamAccount + ":instance/" + id}}},
		"actions": map[string]any{"itn": map[string]any{
			"actionId": "aws:ec2:send-spot-instance-interruptions", "parameters": map[string]string{"durationBeforeInterruption": "PT2M"}, "targets": map[string]string{"SpotInstances": "itn"},
		}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var made struct {
		ExperimentTemplate struct{ ID string }
	}
	w.mustAWS(&made, "fis", "create-experiment-template", "--cli-input-json", string(in))
	return made.ExperimentTemplate.ID
}

// experiment starts an experiment.
func (w *iam) experiment(template string) string {
	w.t.Helper()
	var made struct{ Experiment struct{ ID string } }
	w.mustAWS(&made, "fis", "start-experiment", "--experiment-template-id", template)
	return made.Experiment.ID
}

// experimentIs waits until an experiment has a status, and returns why it has it.
func (w *iam) experimentIs(id, status string) (reason string) {
	w.t.Helper()
	w.eventually("the experiment is "+status, func() error {
		out, err := w.aws(w.admin, "fis", "get-experiment", "--id", id, "--output", "json")
		if err != nil {
			return err
		}
		var is struct {
			Experiment struct {
				State struct{ Status, Reason string }
			}
		}
		if err := json.Unmarshal([]byte(out), &is); err != nil {
			return err
		}
		if reason = is.Experiment.State.Reason; is.Experiment.State.Status != status {
			return fmt.Errorf("it is %s: %s", is.Experiment.State.Status, reason)
		}
		return nil
	})
	return reason
}
