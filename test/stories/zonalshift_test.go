// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/host"
)

// shownShift is what the AWS CLI prints of a zonal shift.
type shownShift struct{ ZonalShiftID, Status, AwayFrom string }

// TestZonalShift shifts a cluster of real machines in two zones away from one of them, while clients on both machines ask
// a Service at its cluster address without a pause: after a few seconds no request reaches a pod of the zone, and none
// fails. The service is killed in the middle, the policy is deleted, machines are added, and Services are changed
// meanwhile. A cancelled shift and one that expires bring the pods back. At last the node group, whose machines were launched
// in the other zone meanwhile, is rebalanced, while the service is killed at each step.
//
//story:about network/zonalshift cluster/zonalshiftcontroller cloud/arczonalshift machine/zonebalance machine/plan
func TestZonalShift(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	w := newIAM(t, i)
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
	z := &shiftedZone{iam: w, cluster: "arn:aws:eks:us-east-1:" + iamAccount + ":cluster/muster"}
	z.refusals()
	z.enable()
	z.pods = strings.Fields(z.podsOf("us-east-1a"))
	if len(z.pods) != 1 {
		t.Fatalf("pods of the zone: %q", z.pods)
	}
	z.placed()
	asker := z.ask()

	began := time.Now()
	shift := z.start("2h")
	z.left(asker, began, "StartZonalShift")
	z.applied(shift)
	z.nodesAre("True", "")
	i.kill("serve")
	z.untouched(asker)
	z.changedMeanwhile(asker)
	z.launchedElsewhere()

	began = time.Now()
	w.mustAWS(&shift, "arc-zonal-shift", "cancel-zonal-shift", "--zonal-shift-id", shift.ZonalShiftID)
	z.back(asker, began, "CancelZonalShift")
	z.nodesAre("", "")
	z.ended(shift, "CANCELED")

	began = time.Now()
	out, _ := i.muster("zonal-shift", "start", "us-east-1a", "--expires-in", "2h", "--comment", "by name", "-o", "name")
	i.kill("serve") // before it is applied
	_, id, _ := strings.Cut(strings.Fields(out)[0], "/")
	shift = shownShift{ZonalShiftID: id}
	z.left(asker, began, "muster zonal-shift start and a kill of the service")
	z.applied(shift)
	began = time.Now()
	i.mustKubectl(managementContext, "-n", "muster", "patch", "zonalshift", id, "--type=merge", "-p", `{"spec":{"expiryTime":"`+time.Now().Add(2*time.Second).UTC().Format(time.RFC3339)+`"}}`)
	z.back(asker, began, "a change of its expiry to 2 s later")
	z.ended(shift, "EXPIRED")
	asker.end()
	z.rebalanced()
	i.muster("down", "--delete")
}

// shiftedZone is a cluster of which us-east-1a is shifted.
type shiftedZone struct {
	*iam
	cluster string   // its ARN
	pods    []string // of the zone
}

// placed puts a Service with one pod into the zone, and the cluster's DNS elsewhere: with all its pods in the zone
// nobody would find names.
func (z *shiftedZone) placed() {
	z.t.Helper()
	z.mustKubectl("-n", "kube-system", "patch", "deployment", "coredns", "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"topology.kubernetes.io/zone":"us-east-1b"}}}}}`)
	z.apply(`{apiVersion: v1, kind: Pod, metadata: {name: alone, labels: {app: alone}}, spec: {nodeSelector: {topology.kubernetes.io/zone: us-east-1a}, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: alone}, spec: {selector: {app: alone}, ports: [{port: 80, targetPort: 8080}]}}`)
	z.mustKubectl("wait", "--for=condition=Ready", "pod/alone", "--timeout=60s")
	z.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
}

// refusals are requests that change nothing.
func (z *shiftedZone) refusals() {
	z.t.Helper()
	if _, err := z.aws(z.admin, "arc-zonal-shift", "start-zonal-shift", "--resource-identifier", z.cluster, "--away-from", "use1-az1", "--expires-in", "1h", "--comment", "x"); err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") || !strings.Contains(err.Error(), "zonalShiftConfig enabled=true") {
		z.t.Errorf("a cluster without zonal shifts: %v", err)
	}
	if _, _, err := z.try("zonal-shift", "start", "us-east-1z", "--expires-in", "1h"); err == nil {
		z.t.Error("a zone that is not there is shifted")
	}
}

// enable has EKS's API enable zonal shifts.
func (z *shiftedZone) enable() {
	z.t.Helper()
	z.mustAWS(nil, "eks", "update-cluster-config", "--name", "muster", "--zonal-shift-config", "enabled=true")
	z.mustAWS(nil, "eks", "wait", "cluster-active", "--name", "muster")
	var shown struct {
		Cluster struct{ ZonalShiftConfig struct{ Enabled bool } }
	}
	if z.mustAWS(&shown, "eks", "describe-cluster", "--name", "muster"); !shown.Cluster.ZonalShiftConfig.Enabled {
		z.t.Error("zonal shifts are not enabled")
	}
}

func (z *shiftedZone) start(expires string) shownShift {
	z.t.Helper()
	var shift shownShift
	z.mustAWS(&shift, "arc-zonal-shift", "start-zonal-shift", "--resource-identifier", z.cluster, "--away-from", "use1-az1", "--expires-in", expires, "--comment", "story")
	if shift.Status != "ACTIVE" || shift.AwayFrom != "use1-az1" {
		z.t.Errorf("it starts as %+v", shift)
	}
	return shift
}

// podsOf are the names of the workload's pods in a zone.
func (z *shiftedZone) podsOf(zone string) string {
	z.t.Helper()
	var names []string
	for node := range strings.FieldsSeq(z.mustKubectl("get", "nodes", "-l", "topology.kubernetes.io/zone="+zone, "-o", "jsonpath={.items[*].metadata.name}")) {
		names = append(names, z.mustKubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[*].metadata.name}"))
	}
	return strings.Join(names, " ")
}

// left waits until no request has reached the zone for ten seconds, and says when the last one did, counted from the
// moment before what caused it.
func (z *shiftedZone) left(a *asker, began time.Time, cause string) {
	z.t.Helper()
	z.eventually("no request reaches the zone", func() error {
		if last := a.last(z.pods); time.Since(last) < 10*time.Second || time.Since(began) < 10*time.Second {
			return fmt.Errorf("the last one %s ago", time.Since(last))
		}
		return nil
	})
	z.t.Logf("after %s the last request reached the zone after %.1f s", cause, a.last(z.pods).Sub(began).Seconds())
}

// back waits until requests reach the zone again, and says when, counted in the same way.
func (z *shiftedZone) back(a *asker, began time.Time, cause string) {
	z.t.Helper()
	z.eventually("requests reach the zone again", func() error {
		if a.last(z.pods).Before(began) {
			return errors.New("none does")
		}
		return nil
	})
	z.t.Logf("after %s the first request reached the zone again after %.1f s", cause, time.Since(began).Seconds())
}

// applied waits until a shift says that it is, and which Service has no pod elsewhere.
func (z *shiftedZone) applied(s shownShift) {
	z.t.Helper()
	z.mustKubectl(managementContext, "-n", "muster", "wait", "zonalshift/"+s.ZonalShiftID, "--for=condition=Applied", "--timeout=30s")
	const want = "no Service reaches a pod in us-east-1a; without a ready pod elsewhere: default/alone"
	if said := z.mustKubectl(managementContext, "-n", "muster", "get", "zonalshift", s.ZonalShiftID, "-o", `jsonpath={.status.conditions[?(@.type=="Applied")].message}`); said != want {
		z.t.Errorf("it says %q, want %q", said, want)
	}
}

// ended waits until a shift is undone.
func (z *shiftedZone) ended(s shownShift, phase string) {
	z.t.Helper()
	z.mustKubectl(managementContext, "-n", "muster", "wait", "zonalshift/"+s.ZonalShiftID, "--for=jsonpath={.status.phase}="+phase, "--timeout=30s")
	if left := z.mustKubectl("get", "mutatingadmissionpolicies", "-o", "name") + z.mustKubectl("get", "endpointslices", "-A", "-l", "muster.dev/zonal-shift", "-o", "name"); left != "" {
		z.t.Errorf("after the shift there is %s", left)
	}
}

// nodesAre compares which nodes of the two zones are cordoned: True or nothing.
func (z *shiftedZone) nodesAre(a, b string) {
	z.t.Helper()
	for zone, want := range map[string]string{"us-east-1a": strings.ToLower(a), "us-east-1b": strings.ToLower(b)} {
		z.eventually("nodes of "+zone, func() error {
			if got := z.mustKubectl("get", "nodes", "-l", "topology.kubernetes.io/zone="+zone, "-o", "jsonpath={.items[*].spec.unschedulable}"); got != want {
				return fmt.Errorf("cordoned: %q, want %q", got, want)
			}
			return nil
		})
	}
}

// untouched shows that a slice that is shifted is left alone: no controller writes it again and again.
func (z *shiftedZone) untouched(a *asker) {
	z.t.Helper()
	version := func() string {
		return z.mustKubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=hello", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	}
	var before string
	began := time.Now()
	z.eventually("slices are quiet", func() error {
		if now := version(); now != before {
			before, began = now, time.Now()
		}
		if quiet := time.Since(began); quiet < 12*time.Second {
			return fmt.Errorf("for %s", quiet)
		}
		return nil
	})
	if last := a.last(z.pods); last.After(began) {
		z.t.Errorf("a request reached the zone %s ago", time.Since(last))
	}
}

// changedMeanwhile has the controller write slices, of Services that are new and that publish addresses of pods that are
// not ready, and takes the policy away.
func (z *shiftedZone) changedMeanwhile(a *asker) {
	z.t.Helper()
	began := time.Now()
	z.mustKubectl("delete", "mutatingadmissionpolicies/zonal-shift.muster.dev")
	z.eventually("the policy is there again", func() error {
		_, err := z.kubectl("get", "mutatingadmissionpolicies/zonal-shift.muster.dev")
		return err
	})
	z.mustKubectl("label", "service", "hello", "changed=yes") // its slices are written
	z.apply(`{apiVersion: v1, kind: Service, metadata: {name: anyway}, spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: hello}, ports: [{port: 8080}]}}`)
	z.eventually("slices of both are as the shift says", func() error {
		for _, service := range []string{"hello", "anyway"} {
			got := z.mustKubectl("get", "endpointslices", "-l", "kubernetes.io/service-name="+service, "-o", `jsonpath={range .items[*].endpoints[*]}{.zone}={.conditions.ready} {end}`)
			if !strings.Contains(got, "us-east-1a=false") || !strings.Contains(got, "us-east-1b=true") {
				return fmt.Errorf("%s: %s", service, got)
			}
		}
		return nil
	})
	names, err := z.kubectl("exec", z.podsOf("us-east-1b"), "--", "/workload", "resolve", "anyway.default.svc.cluster.local")
	if err != nil || len(strings.Fields(names)) != 1 {
		z.t.Errorf("the headless Service has %q: %v", names, err)
	}
	alone := z.mustKubectl("get", "service", "alone", "-o", "jsonpath={.spec.clusterIP}")
	if out, err := z.kubectl("exec", z.podsOf("us-east-1b"), "--", "/workload", "fetch", "http://"+alone+"/"); err == nil || !strings.Contains(err.Error(), "refused") {
		z.t.Errorf("a Service without a pod elsewhere answers %q: %v", out, err)
	}
	z.left(a, began, "the policy was deleted, and a Service changed,")
}

// launchedElsewhere adds machines, and none of them is in the zone.
func (z *shiftedZone) launchedElsewhere() {
	z.t.Helper()
	// After the shift no machine is to end on which pods answer: a Service sends requests to pods that are gone for a moment.
	z.suspend("suspend-processes")
	z.muster("scale", "nodegroup", "default", "6", "--max", "6", "--wait", "--timeout", "5m")
	if nodes := strings.Fields(z.mustKubectl("get", "nodes", "-l", "topology.kubernetes.io/zone=us-east-1a", "-o", "name")); len(nodes) != 1 {
		z.t.Errorf("nodes in the zone: %q", nodes)
	}
}

// asker sends requests to a Service at its cluster address from the network of each machine, each by a connection of its
// own, without a pause.
type asker struct {
	end func()

	mu       sync.Mutex
	answered map[string]time.Time // when each pod answered last
}

// last is when one of some pods answered last.
func (a *asker) last(pods []string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var last time.Time
	for _, pod := range pods {
		if at := a.answered[pod]; at.After(last) {
			last = at
		}
	}
	return last
}

// ask begins to ask, until the end. No request may fail.
func (z *shiftedZone) ask() *asker {
	z.t.Helper()
	a := &asker{answered: map[string]time.Time{}}
	address := net.JoinHostPort(z.mustKubectl("get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}"), "80")
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for id, pid := range z.machines() {
		network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			z.t.Fatal(err)
		}
		z.eventually("the Service answers machine "+id, func() error { _, err := fetchIn(network, address); return err })
		clients.Go(func() {
			defer network.Close()
			for failed := 0; failed < 5; {
				pod, err := fetchIn(network, address)
				if err != nil {
					failed++
					z.t.Errorf("a request of machine %s failed: %v", id, err)
				}
				a.mu.Lock()
				a.answered[pod] = time.Now()
				a.mu.Unlock()
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	a.end = sync.OnceFunc(func() { close(stop); clients.Wait() })
	z.t.Cleanup(a.end)
	return a
}

// fetchIn asks an address from a network, and returns the name of the pod that answers.
func fetchIn(network *os.File, address string) (pod string, err error) {
	err = host.InNetwork(network, func() error {
		connection, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer connection.Close()
		if err := connection.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(connection, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		answer, err := io.ReadAll(connection)
		if err != nil {
			return err
		}
		head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
		if pod = strings.TrimSpace(body); !strings.Contains(head, " 200 ") || !strings.HasPrefix(pod, "hello-") {
			return fmt.Errorf("%q", answer)
		}
		return nil
	})
	return pod, err
}
