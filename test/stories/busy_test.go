// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

// busyFor is how long healthy machines are listened to; a day is 1440.
var busyFor = flag.Int("busyminutes", busyMinutes, "for how many minutes busy machines are listened to, whose monitors have nothing to say")

// busy is a pod on each node that forks, writes and asks its node's kubelet without end, in a tenth of a processor.
const busy = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: workload
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        command: [/usr/bin/sh, -c]
        args: ['while :; do for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/urandom >/work/$i; sha256sum /work/$i >/dev/null; done; sync; false; done']
        env: [{name: PATH, value: /usr/bin}]
        resources: {limits: {cpu: 100m, memory: 64Mi}, requests: {cpu: 10m, memory: 16Mi}}
        securityContext: {runAsUser: 0}
        volumeMounts:
        - {name: usr, mountPath: /usr, readOnly: true}
        - {name: lib, mountPath: /lib, readOnly: true}
        - {name: lib64, mountPath: /lib64, readOnly: true}
        - {name: work, mountPath: /work}
      - name: failing
        image: muster.dev/workload:v1
        imagePullPolicy: IfNotPresent
        command: [/no/such/program]
      volumes:
      - {name: usr, hostPath: {path: /usr}}
      - {name: lib, hostPath: {path: /lib}}
      - {name: lib64, hostPath: {path: /lib64}}
      - {name: work, emptyDir: {}}
`

// TestBusyHealthyMachines has healthy machines be busy, with a pod on each that cannot start, pods that come and go, and
// a group that would repair them after a minute: none of their conditions is ever False, no Event is made of any, no
// machine is repaired.
//
//story:about node/nodehealth node/healthprobe node/agent machine/repair
func TestBusyHealthyMachines(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "0")
	i.ready()
	i.muster("create", "nodegroup", "busy", "--nodes", fmt.Sprint(busyMachines), "--max", fmt.Sprint(busyMachines), "--repair", "--wait", "--timeout", "10m")
	i.apply(busy)
	before := i.mustKubectl(managementContext, "get", "machines", "-o", "name")
	const said = `jsonpath={range .items[*]}{.metadata.name}{range .status.conditions[*]} {.type}={.status}{end}{"\n"}{end}`
	looks, monitored := 0, 0
	for end := time.Now().Add(time.Duration(*busyFor) * time.Minute); time.Now().Before(end); <-time.After(5 * time.Second) {
		for line := range strings.Lines(i.mustKubectl("get", "nodes", "-o", said)) {
			for _, kind := range []string{"ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady", "Ready"} {
				if strings.Contains(line, " "+kind+"=False") || strings.Contains(line, " "+kind+"=Unknown") {
					t.Fatalf("a busy machine is taken for an unhealthy one: %s", line)
				}
			}
			if strings.Contains(line, " StorageReady=True") {
				monitored++
			}
		}
		if looks++; looks%6 == 0 {
			i.mustKubectl("delete", "pod", "-l", "app=busy", "--wait=false")
		}
	}
	if monitored == 0 {
		t.Error("no machine has said anything of itself")
	}
	if events := i.mustKubectl("get", "events", "-n", "default", "-o", `jsonpath={range .items[*]}{.source.component} {.reason} {.message}{"\n"}{end}`); anyLine(events, "muster-node", "Ready ") {
		t.Errorf("the monitors have made Events:\n%s", events)
	}
	if after := i.mustKubectl(managementContext, "get", "machines", "-o", "name"); after != before {
		t.Errorf("the machines are %s, and were %s", after, before)
	}
	if repair := i.mustKubectl(managementContext, "-n", "muster", "get", "nodegroup", "busy", "-o", "jsonpath={.status.repair}"); repair != `{"unhealthy":0}` {
		t.Errorf("the group says %s", repair)
	}
	t.Logf("%d machines were looked at %d times in %d minutes", busyMachines, looks, *busyFor)
}
