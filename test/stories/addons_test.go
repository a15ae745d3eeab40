// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// shownAddon is what the story looks at of an add-on.
type shownAddon struct {
	Status, AddonVersion string
	Health               struct {
		Issues []struct{ Code, Message string }
	}
}

// addonsByTheAWSCLI makes the CoreDNS that a cluster begins with an add-on, configures it, runs into conflicts, and
// deletes it. DNS answers all the while.
func (w *iam) addonsByTheAWSCLI() {
	t, i := w.t, w.installation
	i.eventually("CoreDNS runs", func() error {
		return is(i.coreDNS(`{.status.availableReplicas}`), "1")
	})
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")

	t.Run("a conflict with what is there", func(t *testing.T) {
		w := w.step(t)
		w.createAddon("--addon-name", "coredns", "--configuration-values", `{"replicaCount":1,"resources":{"limits":{"memory":"180Mi"}}}`)
		shown := w.addonBecomes("coredns", "CREATE_FAILED")
		const says = `Deployment.apps coredns - .spec.template.spec.containers[name="coredns"].resources.limits.memory (set by muster)`
		if issues := shown.Health.Issues; len(issues) != 1 || issues[0].Code != "ConfigurationConflict" || !strings.Contains(issues[0].Message, says) {
			t.Errorf("%+v", issues)
		}
		w.mustAWS(nil, "eks", "delete-addon", "--cluster-name", "muster", "--addon-name", "coredns")
		w.eksGone(addonPath("muster", "coredns"))
	})
	t.Run("taken over", func(t *testing.T) {
		w := w.step(t)
		before, began := w.podsOfCoreDNS(), time.Now()
		w.createAddon("--addon-name", "coredns", "--configuration-values", `{"replicaCount":1}`)
		w.addonBecomes("coredns", "ACTIVE")
		t.Logf("create-addon to ACTIVE: %v", time.Since(began).Round(100*time.Millisecond))
		if after := w.podsOfCoreDNS(); after != before {
			t.Errorf("the pods were %s and are %s", before, after)
		}
		managers := w.coreDNS(`{.metadata.managedFields[*].manager}`)
		if !strings.Contains(managers, "eks") || strings.Contains(managers, "muster") {
			t.Errorf("the managers of CoreDNS are %s", managers)
		}
	})
	t.Run("configured", func(t *testing.T) {
		w := w.step(t)
		end := w.asksDNS(t)
		w.updated(w.updateCoreDNS("--configuration-values", `{"replicaCount":2,"podAnnotations":{"a":"b"},"resources":{"limits":{"memory":"180Mi"}}}`), "muster", "--addon-name", "coredns")
		if got := w.coreDNS(`{.spec.replicas} {.status.availableReplicas} {.spec.template.metadata.annotations.a} {.spec.template.spec.containers[0].resources.limits.memory}`); got != "2 2 b 180Mi" {
			t.Errorf("CoreDNS has %s", got)
		}
		w.updated(w.updateCoreDNS("--configuration-values", `{"replicaCount":1}`), "muster", "--addon-name", "coredns")
		if got := w.coreDNS(`{.spec.replicas} {.spec.template.metadata.annotations.a}`); got != "1" {
			t.Errorf("CoreDNS has %s", got)
		}
		end()
	})
	t.Run("a conflict with somebody", func(t *testing.T) {
		w := w.step(t)
		w.mustKubectl("-n", "kube-system", "scale", "deployment", "coredns", "--replicas", "2")
		u := w.updateCoreDNS("--configuration-values", `{"replicaCount":1,"podLabels":{"a":"b"}}`)
		w.eksBecomes(updatePath("muster", u.ID, "--addon-name", "coredns"), "Failed")
		shown := w.update("describe-update", "--name", "muster", "--addon-name", "coredns", "--update-id", u.ID)
		if e := shown.Errors; len(e) != 1 || e[0].ErrorCode != "ConfigurationConflict" || !strings.Contains(e[0].ErrorMessage, "Deployment.apps coredns - .spec.replicas (set by kubectl)") {
			t.Errorf("%+v", e)
		}
		w.addonBecomes("coredns", "UPDATE_FAILED")
		w.updated(w.updateCoreDNS("--resolve-conflicts", "PRESERVE"), "muster", "--addon-name", "coredns")
		if got := w.coreDNS(`{.spec.replicas} {.spec.template.metadata.labels.a}`); got != "2 b" {
			t.Errorf("with PRESERVE CoreDNS has %s", got)
		}
		w.updated(w.updateCoreDNS("--resolve-conflicts", "OVERWRITE"), "muster", "--addon-name", "coredns")
		if got := w.coreDNS(`{.spec.replicas}`); got != "1" {
			t.Errorf("with OVERWRITE CoreDNS has %s pods", got)
		}
	})
	t.Run("the others", func(t *testing.T) {
		w := w.step(t)
		for _, name := range []string{"kube-proxy", "vpc-cni"} {
			w.createAddon("--addon-name", name)
			w.addonBecomes(name, "ACTIVE")
		}
		w.createAddon("--addon-name", "metrics-server", "--configuration-values", `{"replicas":1}`)
		w.addonBecomes("metrics-server", "ACTIVE")
		w.used(t)
		w.scalesByProcessor(t)
		w.mustAWS(nil, "eks", "delete-addon", "--cluster-name", "muster", "--addon-name", "metrics-server")
		w.eventually("the metrics API is gone", func() error {
			return is(w.mustKubectl("get", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found", "-o", "name"), "")
		})
	})
	t.Run("unhealthy", func(t *testing.T) {
		w := w.step(t)
		u := w.updateCoreDNS("--configuration-values", `{"replicaCount":1,"nodeSelector":{"there":"is-none"}}`)
		shown := w.addonBecomes("coredns", "DEGRADED")
		if issues := shown.Health.Issues; len(issues) != 1 || issues[0].Code != "InsufficientNumberOfReplicas" || !strings.Contains(issues[0].Message, "didn't match Pod's node affinity/selector") {
			t.Errorf("%+v", issues)
		}
		if shown := w.update("describe-update", "--name", "muster", "--addon-name", "coredns", "--update-id", u.ID); shown.Status != "Failed" {
			t.Errorf("%+v", shown)
		}
		w.updated(w.updateCoreDNS("--configuration-values", `{"replicaCount":1}`), "muster", "--addon-name", "coredns")
	})
	t.Run("deleted", func(t *testing.T) {
		w := w.step(t)
		w.mustAWS(nil, "eks", "delete-addon", "--cluster-name", "muster", "--addon-name", "coredns")
		w.eksGone(addonPath("muster", "coredns"))
		if out := w.mustKubectl("-n", "kube-system", "get", "deployment,service,configmap,serviceaccount,pdb", "-o", "name"); strings.Contains(out, "dns") {
			t.Errorf("what is left: %s", out)
		}
	})
}

// addonBecomes waits until an add-on has a status.
func (w *iam) addonBecomes(name, status string) shownAddon {
	w.t.Helper()
	w.eksBecomes(addonPath("muster", name), status)
	var out struct{ Addon shownAddon }
	w.mustAWS(&out, "eks", "describe-addon", "--cluster-name", "muster", "--addon-name", name)
	return out.Addon
}

func (w *iam) createAddon(args ...string) {
	w.t.Helper()
	w.mustAWS(nil, append([]string{"eks", "create-addon", "--cluster-name", "muster"}, args...)...)
}

func (w *iam) updateCoreDNS(args ...string) shownUpdate {
	w.t.Helper()
	return w.update(append([]string{"update-addon", "--cluster-name", "muster", "--addon-name", "coredns"}, args...)...)
}

func (w *iam) podsOfCoreDNS() string {
	w.t.Helper()
	return w.mustKubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].metadata.uid}")
}

// asksDNS asks the cluster's DNS for a name again and again, in a pod, until the function that it returns is called,
// which tells of failures.
func (i *installation) asksDNS(t *testing.T) (end func()) {
	t.Helper()
	pod := i.mustKubectl("get", "pods", "-l", "app=hello", "-o", "jsonpath={.items[0].metadata.name}")
	stop, asked := make(chan struct{}), 0
	var failures []error
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-t.Context().Done():
				return
			default:
			}
			asked++
			if out, err := i.kubectl("exec", pod, "--", "/workload", "resolve", "hello.default.svc.cluster.local"); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", out, err))
			}
		}
	})
	return func() {
		close(stop)
		group.Wait()
		t.Logf("DNS was asked %d times", asked)
		if len(failures) > 0 || asked == 0 {
			t.Errorf("DNS failed %d of %d times: %v", len(failures), asked, errors.Join(failures...))
		}
	}
}

// coreDNS is what a JSON path finds in the Deployment of CoreDNS.
func (i *installation) coreDNS(path string) string {
	i.t.Helper()
	return i.mustKubectl("-n", "kube-system", "get", "deployment", "coredns", "-o", "jsonpath="+path)
}
