// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// resolving is a pod with the cluster's name server and one with its machine's, on one node. Both see the machine's
// /srv.
const resolving = `apiVersion: v1
kind: Pod
metadata: {name: names-cluster}
spec:
  nodeName: %[1]s
  terminationGracePeriodSeconds: 1
  containers:
  - {name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve], volumeMounts: [{name: srv, mountPath: /srv}]}
  volumes: [{name: srv, hostPath: {path: /srv}}]
---
apiVersion: v1
kind: Pod
metadata: {name: names-machine}
spec:
  nodeName: %[1]s
  hostNetwork: true
  dnsPolicy: Default
  terminationGracePeriodSeconds: 1
  containers:
  - {name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve, -listen, "127.0.0.1:18080"], volumeMounts: [{name: srv, mountPath: /srv}]}
  volumes: [{name: srv, hostPath: {path: /srv}}]
`

// namesResolve asks for names as two C libraries' worth of programs do: Go's resolver goes on to the next search domain
// after any failure, musl's (Alpine's) only after "no such name".
func namesResolve(t *testing.T, i *installation) {
	node := strings.Fields(i.mustKubectl("get", "nodes", "-o", `jsonpath={.items[0].metadata.name} {.items[0].spec.providerID} {.items[0].status.addresses[?(@.type=="InternalIP")].address}`))
	if len(node) != 3 {
		t.Fatalf("want a node's name, machine and address, got %q", node)
	}
	name, machine, address := node[0], path.Base(node[1]), node[2]
	compile := exec.CommandContext(t.Context(), "musl-gcc", "-static", "-Wall", "-Werror", "-O1", "-o", filepath.Join(i.dir.Machines(), machine, "root/srv/resolve"), "testdata/resolve.c")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compiling with musl, which tools/testneeds.sh installs: %v\n%s", err, out)
	}
	i.apply(fmt.Sprintf(resolving, name))
	i.mustKubectl("wait", "--for=condition=Ready", "pod/names-cluster", "pod/names-machine", "--timeout=60s")

	service := i.mustKubectl("get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}")
	short, _, _ := strings.Cut(name, ".")
	const nowhere = "nowhere.example.com"
	for pod, names := range map[string][][2]string{
		"names-cluster": {
			{"kubernetes", service},
			{"kubernetes.default.svc.cluster.local", service},
			{"kubernetes.default.svc.cluster.local.", service},
			{name, address},
			{short, address},
			{machine, address},
			{nowhere, ""},
			{"nowhere.cluster.local", ""},
		},
		"names-machine": {{name, address}, {short, address}, {machine, address}, {nowhere, ""}},
	} {
		ask := []string{"exec", pod, "--", "/srv/resolve"}
		want := ""
		for _, n := range names {
			ask = append(ask, n[0])
			if n[1] == "" {
				want += n[0] + ": Name does not resolve\n"
			} else {
				want += n[0] + " " + n[1] + "\n"
			}
		}
		i.eventually("musl resolves every name in "+pod, func() error {
			got, err := i.kubectl(ask...)
			if err == nil && got+"\n" != want {
				err = fmt.Errorf("want\n%sgot\n%s", want, got)
			}
			return err
		})
		for _, n := range names {
			got, err := i.kubectl("exec", pod, "--", "/workload", "resolve", n[0])
			if n[1] == "" && (err == nil || !strings.Contains(err.Error(), "no such host")) || n[1] != "" && got != n[1] {
				t.Errorf("Go's resolver in %s says %q of %s, want %q: %v", pod, got, n[0], n[1], err)
			}
		}
	}
	i.mustKubectl("delete", "pod", "names-cluster", "names-machine")
}
