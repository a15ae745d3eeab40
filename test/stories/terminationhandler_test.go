// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// terminationHandler is the program of AWS's node termination handler on a machine.
const terminationHandler = "/opt/node-termination-handler"

// handlerRights are those of the handler's chart (config/helm/aws-node-termination-handler/templates/clusterrole.yaml of
// v1.25.6).
const handlerRights = `apiVersion: v1
kind: ServiceAccount
metadata: {name: handler, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: handler}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [get, list, patch, update]}
- {apiGroups: [""], resources: [pods], verbs: [list, get]}
- {apiGroups: [""], resources: [pods/eviction], verbs: [create]}
- {apiGroups: [extensions, apps], resources: [daemonsets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: handler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: handler}
subjects:
- {kind: ServiceAccount, name: handler, namespace: kube-system}
`

// handlerPods is the DaemonSet or Deployment of the handler, with a node selector and variables of the environment.
const handlerPods = `apiVersion: apps/v1
kind: %[1]s
metadata: {name: handler, namespace: kube-system}
spec:
  selector: {matchLabels: {app: handler}}
  template:
    metadata: {labels: {app: handler}}
    spec:
      serviceAccountName: handler
      hostNetwork: true
      dnsPolicy: Default
      terminationGracePeriodSeconds: 1
      nodeSelector: {%[2]s}
      tolerations: [{operator: Exists}]
      containers:
      - name: handler
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        command: [` + terminationHandler + `]
        env:
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - {name: LOG_LEVEL, value: debug}
%[3]s
        volumeMounts:
        - {name: opt, mountPath: /opt}
      volumes:
      - {name: opt, hostPath: {path: /opt}}
`

// drainedByHandler is a pod that ends at once, on a node.
const drainedByHandler = `apiVersion: v1
kind: Pod
metadata: {name: drained}
spec:
  terminationGracePeriodSeconds: 0
  nodeName: %s
  containers: [{name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]
`

// TestTerminationHandler runs AWS's node termination handler, unmodified, in its two modes: on each machine, where it
// reads instance metadata, and once for all machines, where it hears of them by a queue. In both it drains the node of a
// machine with a drill of each kind that announces something, while the machine is still there.
//
//story:about node/imds cloud/sqs cloud/events cloud/ec2/instance machine/drill network/vpc ./test/terminationhandler
func TestTerminationHandler(t *testing.T) {
	t.Parallel()
	program := buildTerminationHandler(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	i.ready()
	h := &handled{newIAM(t, i)}
	h.apply(handlerRights)
	_, machines := h.nodes()
	for _, machine := range machines {
		if err := os.WriteFile(filepath.Join(string(h.dir), "machines", machine, "root", terminationHandler), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("by instance metadata", func(t *testing.T) { h.in(t).byMetadata() })
	t.Run("by a queue", func(t *testing.T) { h.in(t).byQueue() })
}

// buildTerminationHandler builds the program, of a module of its own.
func buildTerminationHandler(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "handler")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "terminationhandler"), "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "-o", program,
		"github.com/aws/aws-node-termination-handler/cmd")
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOWORK=off") // it runs in a pod without a libc
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the node termination handler: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// handled is a cluster whose nodes the handler drains.
type handled struct{ *iam }

func (h *handled) in(t *testing.T) *handled { return &handled{h.step(t)} }

// nodes are the names of the nodes and the machines' ids, in the order of the names.
func (h *handled) nodes() (names, machines []string) {
	h.t.Helper()
	for line := range strings.FieldsSeq(h.mustKubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name}/{.spec.providerID}{"\n"}{end}`)) {
		name, id, _ := strings.Cut(line, "/")
		names, machines = append(names, name), append(machines, id[strings.LastIndex(id, "/")+1:])
	}
	return names, machines
}

// start runs the handler, and waits until all of its pods watch.
func (h *handled) start(kind, selector string, variables ...string) {
	h.t.Helper()
	h.apply(fmt.Sprintf(handlerPods, kind, selector, "        - {name: "+strings.Join(variables, "}\n        - {name: ")+"}"))
	h.mustKubectl("rollout", "status", "--namespace=kube-system", "--timeout=120s", strings.ToLower(kind)+"/handler")
	for pod := range strings.FieldsSeq(h.mustKubectl("get", "pods", "--namespace=kube-system", "-l", "app=handler", "-o", "name")) {
		h.eventually(pod+" watches", func() error {
			out, err := h.kubectl("logs", "--namespace=kube-system", pod)
			if err == nil && !strings.Contains(out, "has started successfully") {
				err = errors.New(out)
			}
			return err
		})
	}
}

// drain has each announcement once. The first one comes twice, as events of their own.
func (h *handled) drain(node, machine string) {
	h.t.Helper()
	for n, kind := range []string{"maintenance", "spot-interruption", "rebalance", "maintenance"} {
		h.drains(kind, node, machine)
		h.eventually("the handler is done", func() error { // an event that it hears of just before that, it would ignore
			out, err := h.kubectl("logs", "--namespace=kube-system", "-l", "app=handler", "--tail=-1")
			if err == nil && strings.Count(out, "Node successfully cordoned and drained") != n+1 {
				err = errors.New(out)
			}
			return err
		})
		h.mustKubectl("uncordon", node)
	}
}

// drains announces something about a machine whose node has a pod, and waits until the pod is gone and the node takes no
// others. The machine goes on, and its drill is ended.
func (h *handled) drains(kind, node, machine string) {
	h.t.Helper()
	h.apply(fmt.Sprintf(drainedByHandler, node))
	h.mustKubectl("wait", "--for=condition=Ready", "--timeout=120s", "pod/drained")
	h.muster("drill", machine, kind, "--for", "2m") // an interruption is heeded for two minutes before its time
	took := h.eventually("the node is drained for the drill "+kind, func() error {
		out, err := h.kubectl("get", "node", node, "-o", "jsonpath={.spec.unschedulable}")
		if err != nil {
			return err
		}
		if left, err := h.kubectl("get", "pod", "drained", "--ignore-not-found", "-o", "name"); err != nil || left != "" || out != "true" {
			logs, _ := h.kubectl("logs", "--namespace=kube-system", "-l", "app=handler", "--tail=5", "--prefix")
			return errors.Join(err, fmt.Errorf("unschedulable %q, %s is left\n%s", out, left, logs))
		}
		return nil
	})
	h.t.Logf("drill %s to drained: %v", kind, took.Round(100*time.Millisecond))
	if is := h.mustKubectl(managementContext, "get", "machine", machine, "-o", "jsonpath={.status.drill.kind}{.status.drill.endedAt}"); is != kind {
		h.t.Errorf("the machine has the drill %q", is)
	}
	h.muster("drill", machine, "end")
	h.eventually("the drill ends", func() error {
		out, err := h.kubectl(managementContext, "get", "machine", machine, "-o", "jsonpath={.status.drill.endedAt}")
		if err == nil && out == "" {
			err = errors.New("it goes on")
		}
		return err
	})
}

func (h *handled) byMetadata() {
	h.start("DaemonSet", "kubernetes.io/os: linux", `ENABLE_REBALANCE_DRAINING, value: "true"`)
	names, machines := h.nodes()
	h.drain(names[0], machines[0])
	if other := h.mustKubectl("get", "node", names[1], "-o", "jsonpath={.spec.unschedulable}"); other != "" {
		h.t.Errorf("the node of the other machine is unschedulable: %s", other)
	}
	h.mustKubectl("delete", "daemonset", "--namespace=kube-system", "handler")
	h.mustKubectl("wait", "--for=delete", "--namespace=kube-system", "--timeout=60s", "pods", "-l", "app=handler")
}

// byQueue has the handler, on one node, hear of the other one's machine, with the policy of its documentation and a role
// by pod identity.
func (h *handled) byQueue() {
	url := h.interruptionQueue()
	h.mustAWS(nil, "iam", "create-role", "--role-name", "handler", "--assume-role-policy-document", podTrust)
	h.mustAWS(nil, "iam", "put-role-policy", "--role-name", "handler", "--policy-name", "handler", "--policy-document",
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["autoscaling:CompleteLifecycleAction","autoscaling:DescribeAutoScalingInstances","autoscaling:DescribeTags","ec2:DescribeInstances","sqs:DeleteMessage","sqs:ReceiveMessage"],"Resource":"*"}]}`)
	h.mustAWS(nil, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "kube-system", "--service-account", "handler", "--role-arn", "arn:aws:iam::"+iamAccount+":role/handler")
	names, machines := h.nodes()
	h.start("Deployment", "kubernetes.io/hostname: "+names[0], `ENABLE_SQS_TERMINATION_DRAINING, value: "true"`, `CHECK_TAG_BEFORE_DRAINING, value: "false"`, "QUEUE_URL, value: "+url)
	h.drain(names[1], machines[1])
	h.eventually("all messages are acknowledged", func() error {
		out, err := h.aws(h.admin, "sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "All", "--query", "Attributes.[ApproximateNumberOfMessages,ApproximateNumberOfMessagesNotVisible]", "--output", "text")
		if err == nil && strings.Join(strings.Fields(out), " ") != "0 0" {
			err = errors.New(out)
		}
		return err
	})
}
