// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"muster.dev/muster/internal/platform/host"
)

// upgradeWorkloads are of the kinds that upstream's upgrade suite (k8s.io/kubernetes/test/e2e/upgrades) has live through
// an upgrade, besides the DaemonSet with a Service of workload and upgradeJob: a StatefulSet with a volume, a Deployment,
// a Secret and a ConfigMap.
const upgradeWorkloads = `---
apiVersion: v1
kind: Secret
metadata: {name: kept}
stringData: {WORD: secret-before}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept}
data: {TEXT: text-before}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: counts}
spec:
  serviceName: counts
  selector: {matchLabels: {app: counts}}
  template:
    metadata: {labels: {app: counts}}
    spec:
      terminationGracePeriodSeconds: 1
      securityContext: {runAsUser: 1000, fsGroup: 2000}
      containers:
      - {name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [count, -pause, 50ms, /data], volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reads}
spec:
  selector: {matchLabels: {app: reads}}
  template:
    metadata: {labels: {app: reads}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve], envFrom: [{secretRef: {name: kept}}, {configMapRef: {name: kept}}]}
`

// upgradeJob is a Job whose pods ask the Service, a pod at a time. No pod may fail.
const upgradeJob = `apiVersion: batch/v1
kind: Job
metadata: {name: goes-on}
spec:
  completions: 25
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [fetch, "http://hello/"]}
`

// startWorkloads starts workloads as upstream's upgrade suite does.
func (i *installation) startWorkloads() {
	i.t.Helper()
	i.apply(workload + upgradeWorkloads)
	i.workloadsAreReady()
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	i.apply(upgradeJob)
}

// workloadsAreReady waits until the workloads are.
func (i *installation) workloadsAreReady() {
	i.t.Helper()
	for _, name := range []string{"daemonset/hello", "statefulset/counts", "deployment/reads"} {
		i.mustKubectl("rollout", "status", name, "--timeout=120s")
	}
}

// workloadContainers are the containers of the workloads but for those of the Job, and how often each was restarted.
func (i *installation) workloadContainers() string {
	i.t.Helper()
	return i.mustKubectl("get", "pods", "-l", "app in (hello, counts, reads)", "--sort-by=.metadata.name",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].containerID} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// workloadsGoOn fails unless what was counted is there, with nothing missing, and more is counted. The environment of a pod
// that runs, and of a new one, is as it was.
func (i *installation) workloadsGoOn(before int) (counted int) {
	i.t.Helper()
	i.eventually("the StatefulSet counts on", func() (err error) {
		if counted, err = i.counted("counts-0"); err == nil && counted <= before {
			err = fmt.Errorf("it counted to %d, and counts %d", before, counted)
		}
		return err
	})
	i.mustKubectl("delete", "pod", "fresh", "--ignore-not-found")
	i.apply(`{apiVersion: v1, kind: Pod, metadata: {name: fresh}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve], ` +
		`envFrom: [{secretRef: {name: kept}}, {configMapRef: {name: kept}}]}]}}`)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/fresh", "--timeout=60s")
	for _, pod := range []string{"deployment/reads", "pod/fresh"} {
		if said := i.mustKubectl("exec", pod, "--", "/workload", "env"); !strings.Contains(said, "WORD=secret-before") || !strings.Contains(said, "TEXT=text-before") {
			i.t.Errorf("%s has the environment %s", pod, said)
		}
	}
	return counted
}

// jobEnds waits until each pod of the Job has succeeded.
func (i *installation) jobEnds() {
	i.t.Helper()
	i.mustKubectl("wait", "--for=condition=Complete", "job/goes-on", "--timeout=180s")
	if said := i.mustKubectl("get", "job", "goes-on", "-o", "jsonpath={.status.succeeded} {.status.failed}"); strings.TrimSpace(said) != "25" {
		i.t.Errorf("pods of the Job that succeeded, and failed: %s", said)
	}
}

// keepAsking asks the Service from a machine, each time by a new connection and never twice, until the function that it
// returns is called, which says how that went.
func (i *installation) keepAsking(machine *os.File) (stop func()) {
	i.t.Helper()
	address := i.mustKubectl("get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (connection net.Conn, err error) {
		err = host.InNetwork(machine, func() error {
			connection, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, address)
			return err
		})
		return connection, err
	}}}
	var asked atomic.Int64
	ask := func() error {
		request, err := http.NewRequestWithContext(i.t.Context(), http.MethodGet, "http://"+address+"/", http.NoBody)
		if err != nil {
			return err
		}
		asked.Add(1)
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(response.Status))
		}
		return nil
	}
	ended, over := make(chan struct{}), make(chan error, 1)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		var failed []error
		for {
			select {
			case <-ended:
				over <- errors.Join(failed...)
				return
			case <-ticker.C:
				if err := ask(); err != nil && len(failed) < 20 {
					failed = append(failed, err)
				}
			}
		}
	}()
	return func() {
		i.t.Helper()
		close(ended)
		err := <-over
		i.t.Logf("the Service was asked %d times", asked.Load())
		if err != nil || asked.Load() < 100 {
			i.t.Errorf("the Service was asked %d times: %v", asked.Load(), err)
		}
	}
}
