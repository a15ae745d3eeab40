// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"
)

// inside is a pod of the cluster's network and one of its machine's.
const inside = `apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]
---
apiVersion: v1
kind: Pod
metadata: {name: machine}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 1
  containers: [{name: workload, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve, -listen, "127.0.0.1:18081"]}]
`

// reach has a pod fetch a page, and returns an error that says why it could not.
func (i *installation) reach(pod, url string) error {
	out, err := i.kubectl("exec", pod, "--", "/workload", "fetch", url)
	if err == nil && !strings.Contains(out, farGreeting) {
		return fmt.Errorf("%s answers %q", url, out)
	}
	return err
}

// refused has a pod fetch a page that it must not get.
func (i *installation) refused(pod, url, why string) {
	i.t.Helper()
	if err := i.reach(pod, url); err == nil || !strings.Contains(err.Error(), why) {
		i.t.Errorf("%s of %s: want %q, got %v", pod, url, why, err)
	}
}

// setEgress changes what leaves the default VPC.
func (i *installation) setEgress(patch string) {
	i.t.Helper()
	i.mustKubectl("--context=muster-management", "patch", "vpc", i.vpcProcess(), "--type=merge", "-p", `{"spec":{"egress":`+patch+`}}`)
}

// TestWayOut is the tale of a cluster whose machines and pods reach a server far from their host, by address and by
// name, and nothing of the host or of its networks. The host is a namespace of the test's own: nothing of it changes.
//
//story:about ./egress network/egresspolicy network/vpc
func TestWayOut(t *testing.T) {
	h := newFarHost(t)
	i := newInstallation(t)
	i.host, i.egress = h, "NAT"
	before := h.state()
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	i.apply(inside)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/pod", "pod/machine", "--timeout=60s")

	for _, pod := range []string{"pod", "machine"} {
		if err := i.reach(pod, "http://"+farAddress+"/"); err != nil {
			t.Errorf("%s by address: %v", pod, err)
		}
		i.eventually(pod+" reaches a server by its name", func() error { return i.reach(pod, "http://"+farName+"/") })
		i.refused(pod, "http://"+farHostAddress+":8080/", "connection refused") // a server of the host's own listens there
		i.refused(pod, "http://"+farPrivateAddress+"/", "connection refused")
		i.refused(pod, "http://100.64.0.1/", "connection refused")
		i.refused(pod, "http://nowhere.example.com/", "no such host")
	}
	// They speak HTTP: an API server gets as far as its TLS.
	i.webhookSays("https://"+farAddress+":80/", i.clusterCA(), "server gave HTTP response to HTTPS client")
	i.webhookSays("https://"+farName+":80/", i.clusterCA(), "server gave HTTP response to HTTPS client")
	i.webhookSays("https://"+farHostAddress+":8080/", i.clusterCA(), "connection refused")
	i.webhookSays("https://"+farPrivateAddress+"/", i.clusterCA(), "whose way out refuses it (private-range)")
	if got := h.callers(); len(got) != 1 || got[0] != farHostAddress {
		t.Errorf("the server far away was called by %q, want the host's address alone", got)
	}

	i.setEgress(`{"mode": "NAT", "allowedRanges": ["10.99.0.0/16"]}`)
	i.eventually("a private range that is allowed is reached", func() error { return i.reach("pod", "http://"+farPrivateAddress+"/") })
	i.kill(i.vpcProcess() + "-egress")
	i.eventually("the way out comes back", func() error { return i.reach("pod", "http://"+farAddress+"/") })
	i.kill(i.vpcProcess())
	i.eventually("names come back", func() error { return i.reach("machine", "http://"+farName+"/") })
	if err := i.reach("pod", "http://"+farAddress+"/"); err != nil {
		t.Errorf("the end of the VPC's own process harmed the way out: %v", err)
	}
	h.expectSame(before, "while it runs")

	i.setEgress(`{"mode": "None"}`)
	i.eventually("nothing leaves any more", func() error {
		if err := i.reach("pod", "http://"+farAddress+"/"); err == nil {
			return fmt.Errorf("%s is still reached", farAddress)
		}
		return nil
	})
	i.eventually("names outside are not known any more", func() error { // CoreDNS keeps what it heard for half a minute
		if err := i.reach("pod", "http://"+farName+"/"); err == nil || !strings.Contains(err.Error(), "no such host") {
			return fmt.Errorf("%s: %w", farName, err)
		}
		return nil
	})
	if _, ok := i.processes()[i.vpcProcess()+"-egress"]; ok {
		t.Error("the process of the way out runs without one")
	}
	i.muster("down", "--delete")
	h.expectSame(before, "afterwards")
}

// TestNothingLeaves is the tale of a cluster as all other stories have it: whatever its pods and machines send, not one
// packet leaves the host, and nobody far away is asked anything.
//
//story:about ./egress network/egresspolicy network/vpc plane/webhookproxy platform/connectproxy
func TestNothingLeaves(t *testing.T) {
	h := newFarHost(t)
	i := newInstallation(t)
	i.host = h
	before := h.state()
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	i.mustKubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	i.apply(inside)
	i.mustKubectl("wait", "--for=condition=Ready", "pod/pod", "pod/machine", "--timeout=60s")
	for _, pod := range []string{"pod", "machine"} {
		i.refused(pod, "http://"+farAddress+"/", "network is unreachable")
		i.refused(pod, "http://"+farHostAddress+":8080/", "network is unreachable")
		i.refused(pod, "http://"+farName+"/", "no such host")
	}
	loopbackIsRefused(t, i, "is a loopback address")
	webhooksInTheVPC(t, i)
	for url, why := range map[string]string{
		"https://" + farAddress + "/":           "whose way out refuses it (egress-none)",
		"https://" + farHostAddress + ":8080/":  "whose way out refuses it (egress-none)",
		"https://" + farName + "/":              "has no IPv4 address",
		"https://sts.amazonaws.com/":            "is an address of the VPC itself",
		"https://169.254.169.254/":              "is an address of the VPC itself",
		"https://" + i.endpoint() + "/":         "is the API server of cluster muster",
		"https://web.default.svc.cluster.local": "has no IPv4 address",
		"https://[::1]/":                        "a VPC has no IPv6",
	} {
		i.webhookSays(url, i.clusterCA(), why)
	}
	if sent := h.sent(); sent != 0 {
		t.Errorf("%d packets have left the host", sent)
	}
	if got := h.callers(); len(got) != 0 {
		t.Errorf("the server far away was called by %q", got)
	}
	if asked := h.queries.Load(); asked != 0 {
		t.Errorf("the name server far away was asked %d times", asked)
	}
	h.expectSame(before, "while it runs")
}
