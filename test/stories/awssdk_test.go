// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestActionsByTheSDK calls every action of the AWS APIs by the clients of AWS's SDK for Go (test/awssdk/live). They
// are a module of their own, since this one does not link them.
//
//story:about cloud
func TestActionsByTheSDK(t *testing.T) {
	t.Parallel()
	tests := sdkTests(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)
	subnets := strings.Fields(i.mustKubectl("--context", "muster-management", "get", "subnets", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(subnets) < 2 {
		t.Fatalf("the default VPC has the subnets %v", subnets)
	}
	t.Run("by the services' own names", func(t *testing.T) { w.step(t).servicesByName(tests) })
	out, err := w.run(append(w.admin, "MUSTER_LIVE_SUBNETS="+strings.Join(subnets[:2], " ")), tests, "-test.v", "-test.count=1", "-test.timeout=10m", "-test.skip=ByTheirNames|ClusterAutoscaler")
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") {
			t.Log(strings.TrimRight(line, "\n")) // hundreds that passed would hide the one that did not
		}
	}
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(out, "--- SKIP") || strings.Count(out, "--- PASS: TestActions/") < 20 {
		t.Error("tests did not run")
	}
}

// sdkTests builds the calls of the actions by the SDK.
func sdkTests(t *testing.T) string {
	t.Helper()
	tests := filepath.Join(t.TempDir(), "live.test")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "awssdk"), "test", "-vet=off", "-c", "-o", tests, "./live")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // it runs in a pod without a libc, too
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests: %v\n%s", err, out)
	}
	return tests
}

// servicesByName has the SDK call each service on a machine and in a pod, which have the account's authority and no
// endpoint.
func (w *iam) servicesByName(tests string) {
	machine := w.machineAt(pageMachine)
	program, err := os.ReadFile(tests)
	if err == nil {
		err = os.WriteFile(filepath.Join(string(w.dir), "machines", machine, "root", "opt", "live.test"), program, 0o755)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	const run = "/opt/live.test -test.v -test.run=ByTheirNames"
	out, talk := w.muster("exec", pageMachine, "--", "env", "-u", "AWS_CONFIG_FILE", "MUSTER_LIVE_NAMES=1", "AWS_CA_BUNDLE=/etc/aws/ca.pem", "AWS_REGION=us-east-1", "sh", "-c", run)
	if strings.Count(out, "    --- PASS") < 10 {
		w.t.Errorf("on a machine: %s%s", out, talk)
	}
	admin := w.creator()
	w.apply(`apiVersion: v1
kind: Pod
metadata: {name: live}
spec:
  restartPolicy: Never
  containers:
  - name: live
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    command: [` + strings.Join(strings.Fields(run), ", ") + `]
    env:
    - {name: MUSTER_LIVE_NAMES, value: "1"}
    - {name: AWS_CA_BUNDLE, value: /etc/aws/ca.pem}
    - {name: AWS_REGION, value: us-east-1}
    - {name: AWS_ACCESS_KEY_ID, value: "` + admin.AccessKeyID + `"}
    - {name: AWS_SECRET_ACCESS_KEY, value: "` + admin.SecretAccessKey + `"}
    volumeMounts:
    - {name: opt, mountPath: /opt}
    - {name: aws, mountPath: /etc/aws}
  volumes:
  - {name: opt, hostPath: {path: /opt}}
  - {name: aws, hostPath: {path: /etc/aws}}
`)
	w.eventually("the pod has ended", func() error {
		phase, err := w.kubectl("get", "pod", "live", "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" && phase != "Failed" {
			err = fmt.Errorf("it is %s", phase)
		}
		return err
	})
	if out := w.mustKubectl("logs", "live"); strings.Count(out, "    --- PASS") < 10 {
		w.t.Errorf("in a pod: %s", out)
	}
	w.mustKubectl("delete", "pod", "live", "--wait=false")
}
