// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// used asks metrics-server what the node and the pods use, as people do. It verifies the kubelet: of one that it does
// not trust it knows nothing.
func (i *installation) used(t *testing.T) {
	t.Helper()
	if args := i.mustKubectl("-n", "kube-system", "get", "deployment", "metrics-server", "-o", "jsonpath={.spec.template.spec.containers[0].args}"); strings.Contains(args, "insecure") {
		t.Errorf("metrics-server does not verify kubelets: %s", args)
	}
	i.eventually("kubectl top knows the node and the pods", func() error {
		nodes, err := i.kubectl("top", "nodes", "--no-headers")
		if err != nil {
			return fmt.Errorf("%w: %s", err, nodes)
		}
		pods, err := i.kubectl("top", "pods", "-l", "app=hello", "--no-headers")
		if err != nil {
			return fmt.Errorf("%w: %s", err, pods)
		}
		for _, out := range []string{nodes, pods} {
			fields := strings.Fields(out) // such as: hello-x 1m 5Mi
			if len(fields) < 3 || !strings.HasSuffix(fields[1], "m") {
				return fmt.Errorf("kubectl top says %q", out)
			}
		}
		return nil
	})
}

// loaded is a Deployment of one pod that a HorizontalPodAutoscaler makes two of as soon as it uses 2m of a processor.
const loaded = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: loaded}
spec:
  selector: {matchLabels: {app: loaded}}
  template:
    metadata: {labels: {app: loaded}}
    spec:
      containers:
      - name: loaded
        image: muster.dev/workload:v1
        ports: [{containerPort: 8080}]
        resources: {requests: {cpu: 4m}}
---
apiVersion: v1
kind: Service
metadata: {name: loaded}
spec:
  selector: {app: loaded}
  ports: [{port: 80, targetPort: 8080}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: loaded}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: loaded}
  minReplicas: 1
  maxReplicas: 2
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
`

// scalesByProcessor loads a Deployment until its autoscaler has made another pod.
func (i *installation) scalesByProcessor(t *testing.T) {
	t.Helper()
	i.apply(loaded)
	i.mustKubectl("rollout", "status", "deployment/loaded", "--timeout=60s")
	end := i.loads(t)
	defer end()
	took := i.eventually("the autoscaler makes a second pod", func() error {
		replicas, err := strconv.Atoi(i.mustKubectl("get", "deployment", "loaded", "-o", "jsonpath={.spec.replicas}"))
		if err != nil {
			return err
		}
		if replicas != 2 {
			return errors.New(i.mustKubectl("get", "hpa", "loaded", "-o", "jsonpath={.status}"))
		}
		return nil
	})
	t.Logf("from the first request to a second pod: %v", took.Round(time.Second))
	i.mustKubectl("delete", "hpa/loaded", "deployment/loaded", "service/loaded")
}

// loads has a pod ask the Service loaded again and again until the function that it returns is called.
func (i *installation) loads(t *testing.T) (end func()) {
	t.Helper()
	pod := i.mustKubectl("get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[0].metadata.name}")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for range 5000 {
			select {
			case <-stop:
				return
			default:
				_, _ = i.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/"+pod+":8080/proxy/fetch?url=http://loaded/env")
			}
		}
	}()
	return func() { close(stop); <-ended }
}
