// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// loggingOfFargate is the ConfigMap aws-logging as the EKS user guide has it.
const loggingOfFargate = `apiVersion: v1
kind: Namespace
metadata: {name: aws-observability, labels: {aws-observability: enabled}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: aws-logging, namespace: aws-observability}
data:
  flb_log_cw: "false"
  filters.conf: |
    [FILTER]
        Name parser
        Match *
        Key_name log
        Parser crio
    [FILTER]
        Name kubernetes
        Match kube.*
        Merge_Log On
        Keep_Log Off
        Buffer_Size 0
        Kube_Meta_Cache_TTL 300s
  output.conf: |
    [OUTPUT]
        Name %s
        Match   kube.*
        region us-east-1
        log_group_name /shop/pods
        log_stream_prefix pods-
        log_retention_days 7
        auto_create_group true
  parsers.conf: |
    [PARSER]
        Name crio
        Format regex
        Regex ^(?<time>[^ ]+) (?<stream>stdout|stderr) (?<logtag>P|F) (?<log>.*)$
        Time_Key    time
        Time_Format %%Y-%%m-%%dT%%H:%%M:%%S.%%L%%z
`

// TestFargateLogs has the logs of pods on Fargate in CloudWatch Logs, as the ConfigMap aws-logging says, and only where the pod
// execution role may put them: until then lines wait. Each line is there once, though the log store and the service are killed. A pod
// whose configuration is refused runs without, and says why.
//
//story:about node/logrouter node/fluentbit machine/fargate cluster/fargatecontroller node/agent cloud/cloudwatchlogs
//story:needs logs
func TestFargateLogs(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	w := &fargateStory{newIAM(t, i)}
	w.mustAWS(nil, "iam", "create-role", "--role-name", "fargate-pods", "--assume-role-policy-document", fargateTrust)
	w.makesProfile()
	w.mustKubectl("create", "namespace", "jobs")

	w.talks("early")
	w.loggingOf("early", "LoggingDisabled: LOGGING_CONFIGMAP_NOT_FOUND", `configmap "aws-logging" not found`)
	w.apply(fmt.Sprintf(loggingOfFargate, "kinesis"))
	w.talks("refused")
	w.loggingOf("refused", "LoggingDisabled: LOGGING_CONFIGMAP_INVALID", "output.conf:1: the output kinesis is not supported")
	w.apply(fmt.Sprintf(loggingOfFargate, "cloudwatch_logs"))
	w.talks("kept")
	w.loggingOf("kept", "LoggingEnabled", "Successfully enabled logging for pod")

	// The role may not yet: nothing is there, not even the log group.
	machine := w.machinesOfPods()["jobs/kept"]
	w.eventually("the machine says that its role may not", func() error {
		log, _ := w.muster("logs", machine)
		if !strings.Contains(log, "logs of containers are not sent") || !strings.Contains(log, "AccessDenied") {
			return fmt.Errorf("it says %.500s", log)
		}
		return nil
	})
	if out, err := w.aws(w.admin, "logs", "filter-log-events", "--log-group-name", "/shop/pods"); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		w.t.Fatalf("without a right: %s, %v", out, err)
	}
	w.mustAWS(nil, "iam", "put-role-policy", "--role-name", "fargate-pods", "--policy-name", "logs", "--policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["logs:CreateLogGroup","logs:CreateLogStream","logs:PutRetentionPolicy","logs:PutLogEvents"],"Resource":"arn:aws:logs:*:*:log-group:/shop/*"}]}`)
	n := w.numbers(5)
	w.kill("log-store")
	n = w.numbers(n + 5)
	w.kill("serve")
	w.numbers(n + 20)
	// The last line of the pod is there when the pod is gone.
	last, err := strconv.Atoi(w.mustKubectl("-n", "jobs", "logs", "kept", "--tail=1"))
	if err != nil {
		t.Fatal(err)
	}
	w.mustKubectl("-n", "jobs", "delete", "pod", "kept")
	w.numbers(last)
}

// counting is a pod that writes number after number.
const counting = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: jobs}
spec:
  terminationGracePeriodSeconds: 1
  volumes: [{name: numbers, emptyDir: {}}]
  containers:
  - name: %[1]s
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    args: [count, -pause, 200ms, /numbers]
    volumeMounts: [{name: numbers, mountPath: /numbers}]
`

// talks runs a pod that writes number after number.
func (w *fargateStory) talks(name string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(counting, name))
	w.mustKubectl("-n", "jobs", "wait", "pod/"+name, "--for=condition=Ready", "--timeout=300s")
}

// loggingOf compares what a pod says of its logs.
func (w *fargateStory) loggingOf(pod, annotation, event string) {
	w.t.Helper()
	if got := w.mustKubectl("-n", "jobs", "get", "pod", pod, "-o", "jsonpath={.metadata.annotations.Logging}"); got != annotation {
		w.t.Errorf("pod %s has the annotation %q", pod, got)
	}
	reason, _, _ := strings.Cut(annotation, ":")
	w.eventually("pod "+pod+" has its Event", func() error {
		got, err := w.kubectl("-n", "jobs", "get", "events", "--field-selector", "involvedObject.name="+pod+",reason="+reason, "-o", "jsonpath={.items[*].message}")
		if err == nil && !strings.Contains(got, event) {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// numbers waits until so many lines of the pod are kept: all its numbers from the first on, each once. It returns how many there are.
func (w *fargateStory) numbers(least int) (n int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d lines of the pod are kept", least), func() error {
		out, err := w.aws(w.admin, "logs", "filter-log-events", "--log-group-name", "/shop/pods", "--log-stream-name-prefix", "pods-kube.var.log.containers.kept_jobs_kept-", "--output", "json")
		if err != nil {
			return err
		}
		var page foundEvents
		if err := json.Unmarshal([]byte(out), &page); err != nil {
			return err
		}
		if n = len(page.Events); n < least {
			return fmt.Errorf("there are %d", n)
		}
		seen := map[int]bool{}
		for _, e := range page.Events {
			var line struct {
				Log, Stream string
				Kubernetes  map[string]any
			}
			if err := json.Unmarshal([]byte(e.Message), &line); err != nil || line.Stream != "stdout" || line.Kubernetes["pod_name"] != "kept" || line.Kubernetes["namespace_name"] != "jobs" || line.Kubernetes["container_name"] != "kept" {
				w.t.Fatalf("a line is %s", e.Message)
			}
			number, err := strconv.Atoi(line.Log)
			if err != nil || seen[number] {
				w.t.Fatalf("%q is no number, or is there twice", line.Log)
			}
			seen[number] = true
		}
		for number := 1; number <= n; number++ {
			if !seen[number] {
				return fmt.Errorf("of %d lines number %d is missing", n, number)
			}
		}
		return nil
	})
	return n
}
