// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/supervise"
)

// TestClusterFromUpToNothingLeft is the life of one cluster with local machines.
//
//story:about cluster/serve cluster/servicestatus plane/supervise ./cmd/muster/service
func TestClusterFromUpToNothingLeft(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	out, talk := i.muster("up", "--nodes", "2")
	t.Logf("muster up printed:\n%s%s", out, talk)
	i.ready()

	steps := []struct {
		name string
		run  func(*testing.T, *installation)
	}{
		{"join table has every step", joinTable},
		{"up again changes nothing", upAgain},
		{"pods on different nodes reach each other", podsTalk},
		{"names resolve in pods and on machines", namesResolve},
		{"anybody can verify the tokens of pods", tokensVerified},
		{"half-closed connections are remembered", halfClosed},
		{"kubectl can be copied into a pod", kubectlCopied},
		{"Services that only the VPC reaches say so", servicesNotExposed},
		{"logs, exec, port-forward and metrics over verified TLS", kubeletsVerified},
		{"a machine has its role, a serving certificate, and no other credential", credentialsOfMachine},
		{"secrets are sealed in etcd", secretsSealed},
		{"strangers see health and cluster-info only", strangers},
		{"nothing listens outside loopback and the VPC", loopbackOnly},
		{"a second service is refused", secondService},
		{"people ask for certificates and are told what came of it", requestsExplained},
		{"kubectl manages node groups", nodeGroupsByKubectl},
		{"scale to three and back to one", scale},
		{"a deleted machine is replaced", replaceMachine},
		{"certificates are renewed without a restart", renewal},
		{"the authority of kubelets begins to be replaced", rotationBegins},
		{"every process may be killed", killEach},
		{"the service is taken over after kill -9", takeOver},
		{"a machine that loses its power boots again", powerLoss},
		{"stop and start keep every object", stopAndStart},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t)) }) {
			return // the rest would tell of the same fault again
		}
	}
}

func joinTable(t *testing.T, i *installation) {
	out, _ := i.muster("up", "-o", "json")
	var joins []struct {
		Node  string
		Steps map[string]time.Duration
	}
	if err := json.Unmarshal([]byte(out), &joins); err != nil {
		t.Fatal(err)
	}
	if len(joins) != 2 {
		t.Fatalf("up tells of %d machines, not 2: %s", len(joins), out)
	}
	i.eventually("every step is recorded", func() error {
		out, _ := i.muster("get", "machines", "-o", "json")
		for _, step := range []string{
			"Launched", "APIReached", "NodeRegistered", "ServingCSRCreated", "ServingCSRApproved", "ServingCSRIssued", "Ready",
		} {
			if strings.Count(out, `"step": "`+step+`"`) != 2 {
				return fmt.Errorf("step %s is not recorded for both machines", step)
			}
		}
		if strings.Contains(out, "ClientCSR") {
			return fmt.Errorf("machines that join by their role asked for client certificates: %s", out)
		}
		return nil
	})
}

func upAgain(t *testing.T, i *installation) {
	before := i.processes()
	_, talk := i.muster("up")
	if !strings.Contains(talk, "nothing was changed") {
		t.Errorf("up does not say that it changed nothing: %s", talk)
	}
	for name, p := range i.processes() {
		if before[name].PID != p.PID {
			t.Errorf("%s was process %d and is %d", name, before[name].PID, p.PID)
		}
	}
}

func podsTalk(t *testing.T, i *installation) {
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	pods := strings.Fields(i.mustKubectl("get", "pods", "-l", "app=hello", "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.podIP}={.spec.nodeName} {end}`))
	if len(pods) != 2 {
		t.Fatalf("%d pods, not 2: %v", len(pods), pods)
	}
	a, b := strings.Split(pods[0], "="), strings.Split(pods[1], "=")
	if a[2] == b[2] {
		t.Fatalf("both pods are on %s", a[2])
	}
	if got := i.mustKubectl("exec", a[0], "--", "/workload", "fetch", "http://"+b[1]+":8080/"); !strings.Contains(got, b[0]) {
		t.Errorf("pod %s asked pod %s and got %q", a[0], b[0], got)
	}
	address := i.mustKubectl("get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	for _, target := range []string{address, "hello", "hello.default.svc.cluster.local"} {
		i.eventually("service answers at "+target, func() error {
			got, err := i.kubectl("exec", a[0], "--", "/workload", "fetch", "http://"+target+"/")
			if err == nil && !strings.Contains(got, a[0]) && !strings.Contains(got, b[0]) {
				return fmt.Errorf("it answers %q", got)
			}
			return err
		})
	}
}

func kubeletsVerified(t *testing.T, i *installation) {
	nodes := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
	for node := range strings.FieldsSeq(nodes) {
		pod := i.mustKubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}")
		i.mustKubectl("logs", pod)
		if got := i.mustKubectl("exec", pod, "--", "/workload", "env"); !strings.Contains(got, "KUBERNETES_SERVICE_HOST") {
			t.Errorf("exec on %s printed %q", node, got)
		}
		if got := i.mustKubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/metrics"); !strings.Contains(got, "kubelet_node_name") {
			t.Errorf("metrics of the kubelet on %s do not look like any", node)
		}
		i.portForward(pod)
	}
	arguments := i.mustCommandLine("kube-apiserver")
	if !slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--kubelet-certificate-authority=") }) {
		t.Error("the API server does not verify kubelets")
	}
}

func credentialsOfMachine(t *testing.T, i *installation) {
	machine := strings.TrimPrefix(strings.Fields(first(i.muster("get", "machines", "-o", "name")))[0], "machine.muster.dev/")
	listing, _ := i.muster("exec", machine, "--", "ls", "-l", "/var/lib/kubelet/pki")
	if !strings.Contains(listing, "kubelet-server-current.pem -> /var/lib/kubelet/pki/kubelet-server-") || strings.Contains(listing, "kubelet-client") {
		t.Errorf("not the serving certificate alone:\n%s", listing)
	}
	if out, talk := i.muster("node", "certs", machine); !strings.Contains(out, "\nserver ") || strings.Contains(out, "\nclient ") || !strings.Contains(talk, "joined by its machine's role") {
		t.Errorf("muster node certs says:\n%s%s", out, talk)
	}
	old, _ := i.muster("exec", machine, "--", "readlink", "/var/lib/kubelet/pki/kubelet-server-current.pem")
	before := time.Now().Truncate(time.Second)
	if out, _ := i.muster("node", "rotate", machine); !strings.Contains(out, "server certificate ") || strings.Contains(out, "client") {
		t.Errorf("muster node rotate says:\n%s", out)
	}
	if now, _ := i.muster("exec", machine, "--", "readlink", "/var/lib/kubelet/pki/kubelet-server-current.pem"); now == old {
		t.Errorf("the serving certificate is still %s", now)
	}
	if _, talk, err := i.try("node", "rotate", machine, "--client"); err == nil || !strings.Contains(talk, "has no client certificate") {
		t.Errorf("a client certificate was replaced: %v, %s", err, talk)
	}
	csr := i.mustKubectl("get", "csr", "-o", "yaml")
	for _, want := range []string{"AutoApproved", "Auto approving self kubelet server certificate after SubjectAccessReview."} {
		if !strings.Contains(csr, want) {
			t.Errorf("no CSR says %q", want)
		}
	}
	if strings.Contains(csr, "kube-apiserver-client-kubelet") || strings.Contains(csr, "system:bootstrap") {
		t.Errorf("a machine asked for a client certificate:\n%s", csr)
	}
	if secrets := i.mustKubectl("-n", "kube-system", "get", "secrets", "--field-selector", "type=bootstrap.kubernetes.io/token", "-o", "name"); secrets != "" {
		t.Errorf("there are bootstrap tokens: %s", secrets)
	}
	i.kubeletIsBack(machine, before)
}

// kubeletIsBack waits until a kubelet that was restarted says that its node is Ready. It says first that it is not, and
// looks again after ten seconds (nodeStatusUpdateFrequency): what is deployed meanwhile leaves the node out.
func (i *installation) kubeletIsBack(machine string, after time.Time) {
	i.t.Helper()
	node := i.mustKubectl("--context=muster-management", "get", "machines", machine, "-o", "jsonpath={.status.nodeName}")
	i.eventually("node "+node+" is Ready again", func() error {
		said, err := i.kubectl("get", "node", node, "-o", `jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.lastHeartbeatTime}{end}`)
		if err != nil {
			return err
		}
		status, heartbeat, _ := strings.Cut(said, " ")
		at, err := time.Parse(time.RFC3339, heartbeat)
		if err == nil && (status != "True" || at.Before(after)) {
			err = fmt.Errorf("it said %s at %s", status, heartbeat)
		}
		return err
	})
}

func first(out, _ string) string { return out }

func scale(t *testing.T, i *installation) {
	i.muster("scale", "nodegroup", "default", "3", "--wait")
	i.ready()
	if nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "name")); len(nodes) != 3 {
		t.Errorf("%d nodes, not 3", len(nodes))
	}
	i.muster("scale", "nodegroup", "default", "1", "--wait")
	i.eventually("one node is left", func() error {
		nodes, err := i.kubectl("get", "nodes", "-o", "name")
		if err == nil && len(strings.Fields(nodes)) != 1 {
			err = fmt.Errorf("nodes: %s", nodes)
		}
		return err
	})
	i.eventually("one machine is left on disk", func() error {
		disks, err := filepath.Glob(filepath.Join(i.dir.Machines(), "i-*"))
		if err == nil && len(disks) != 1 {
			err = fmt.Errorf("there are %v", disks)
		}
		return err
	})
	i.muster("scale", "nodegroup", "default", "2", "--wait")
	i.ready()
}

func replaceMachine(t *testing.T, i *installation) {
	names := strings.Fields(first(i.muster("get", "machines", "-o", "name")))
	i.muster("delete", "machine", strings.TrimPrefix(names[0], "machine.muster.dev/"))
	i.eventually("another machine takes its place", func() error {
		now := strings.Fields(first(i.muster("get", "machines", "-o", "name")))
		if slices.Contains(now, names[0]) || len(now) != 2 {
			return fmt.Errorf("machines are %v", now)
		}
		return nil
	})
	i.ready()
	i.eventually("no pod is bound to a machine that is gone", func() error {
		nodes, err := i.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
		if err != nil {
			return err
		}
		pods, err := i.kubectl("get", "pods", "-A", "-o", "jsonpath={.items[*].spec.nodeName}")
		for node := range strings.FieldsSeq(pods) {
			if !strings.Contains(nodes, node) {
				err = fmt.Errorf("a pod is bound to %s still", node)
			}
		}
		return err
	})
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=60s")
}

func killEach(t *testing.T, i *installation) {
	i.mustKubectl("create", "configmap", "keepsake", "--from-literal=a=b")
	for _, name := range []string{
		"etcd", "management-etcd", "front", "kube-apiserver", "management-front", "management-apiserver", "kube-controller-manager", "kube-scheduler", "certificate-controller", "authenticator", i.vpcProcess(),
	} {
		old := i.kill(name)
		took := i.eventually(name+" is back", func() error {
			if p, ok := i.processes()[name]; !ok || p.PID == old.PID {
				return errors.New("not started again")
			}
			return nil
		})
		took += i.ready()
		t.Logf("%s was killed, and everything was ready again after %s", name, took.Round(100*time.Millisecond))
	}
	i.mustKubectl("get", "configmap", "keepsake")
	for _, program := range []string{"kubelet", "containerd", "kube-proxy"} {
		old := i.killInMachine(program)
		took := i.eventually(program+" is back", func() error {
			if pid, ok := i.inMachine(program); !ok || pid == old {
				return errors.New("not started again")
			}
			return nil
		})
		took += i.ready()
		t.Logf("%s of a machine was killed, and everything was ready again after %s", program, took.Round(100*time.Millisecond))
	}
	i.eventually("pods still answer", func() error {
		pod, err := i.kubectl("get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[0].metadata.name}")
		if err != nil {
			return err
		}
		_, err = i.kubectl("exec", pod, "--", "/workload", "fetch", "http://hello/")
		return err
	})
}

func takeOver(t *testing.T, i *installation) {
	before := i.processes()
	i.mustKubectl("delete", "clusterrolebinding", "eks:node-bootstrapper")
	containers := i.settled()
	i.kill("serve")
	i.eventually("the guard starts the service again", func() error {
		status, err := i.status()
		if err == nil && status.PID == before["serve"].PID {
			err = errors.New("it is the old one")
		}
		return err
	})
	i.ready()
	i.eventually("RBAC is put right at every start", func() error {
		_, err := i.kubectl("get", "clusterrolebinding", "eks:node-bootstrapper")
		return err
	})
	i.kill("guard")
	i.eventually("the service starts its guard again", func() error {
		if p, ok := i.processes()["guard"]; !ok || p.PID == before["guard"].PID {
			return errors.New("no guard")
		}
		return nil
	})
	// Both at once: nobody is left to start the other, until somebody types `muster up`.
	guard, serve := i.processes()["guard"], i.processes()["serve"]
	for _, p := range []supervise.Process{guard, serve} {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	i.muster("up")
	i.ready()
	for name, p := range i.processes() {
		if name != "serve" && name != "guard" && before[name].PID != p.PID {
			t.Errorf("%s was restarted (process %d, was %d)", name, p.PID, before[name].PID)
		}
	}
	if after := i.containers(); after != containers {
		t.Errorf("containers did not survive:\n%s\nbefore:\n%s", after, containers)
	}
}

func powerLoss(t *testing.T, i *installation) {
	for id, pid := range i.machines() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		i.eventually("the machine boots again", func() error {
			if again, ok := i.machines()[id]; !ok || again == pid {
				return errors.New("not yet")
			}
			return nil
		})
		break
	}
	// The Node is Ready still, by what its last kubelet said; the new one has to answer.
	nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	took := i.eventually("every kubelet answers", func() error {
		for _, node := range nodes {
			if _, err := i.kubectl("get", "--raw", "/api/v1/nodes/"+node+"/proxy/healthz"); err != nil {
				return err
			}
		}
		return nil
	})
	t.Logf("every kubelet answers after %s", took)
	i.ready()
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
}

func stopAndStart(t *testing.T, i *installation) {
	nodes := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.uid}")
	i.muster("down")
	if left := i.processes(); len(left) != 0 {
		t.Fatalf("still running after down: %v", left)
	}
	if _, talk := i.muster("up"); !strings.Contains(talk, "Pods of before are started again") {
		t.Errorf("up does not say what becomes of pods:\n%s", talk)
	}
	if after := i.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.uid}"); after != nodes {
		t.Errorf("nodes are %s, were %s", after, nodes)
	}
	i.mustKubectl("get", "configmap", "keepsake")
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
}
