// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNodeCertificates looks at a node's certificates, replaces them by hand, has a person read about it, and sees all
// go on.
//
//story:about node/nodecerts certificates/csrcontroller
func TestNodeCertificates(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.up(clientCertificates, 1)
	i.ready()
	i.apply(workload)
	i.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=120s")
	steps := []struct {
		name string
		run  func(*testing.T, *installation)
	}{
		{"what the page shows is what happens", nodeCertificatesPage},
		{"both are replaced at once", rotateBoth},
		{"one alone", rotateOne},
		{"what is wrong is said", certsWrong},
		{"a rotation that was killed half way is completed", interruptedRotation},
		{"a machine that is gone does not come back by its certificate", goneMachine},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, i.in(t)) }) {
			return
		}
	}
}

// clientCertificates is a cluster whose machines join by bootstrap tokens and have certificates of their own: by their
// role they would need none. Its number of machines is left open.
const clientCertificates = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: muster}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: default}
spec:
  bootstrap: Token
  scalingConfig: {desiredSize: %d}
`

// up makes a cluster of a file's text, in which arguments are filled in.
func (i *installation) up(text string, args ...any) {
	i.t.Helper()
	path := filepath.Join(i.t.TempDir(), "muster.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, text, args...), 0o600); err != nil {
		i.t.Fatal(err)
	}
	i.muster("up", "-f", path)
}

// nodeCerts is what "muster node certs" says of a machine, by kind.
func (i *installation) nodeCerts(machine string) map[string]nodeCert {
	i.t.Helper()
	out, talk, err := i.try("node", "certs", machine, "-o", "json")
	var list []nodeCert
	if decoded := json.Unmarshal([]byte(out), &list); err != nil || decoded != nil {
		i.t.Fatalf("muster node certs: %v, %v\n%s%s", err, decoded, out, talk)
	}
	byKind := map[string]nodeCert{}
	for _, c := range list {
		byKind[c.Kind] = c
	}
	return byKind
}

type nodeCert struct {
	Kind, Target, Serial, CommonName string
	KeyMatches                       bool
	Rotation                         struct{ From, Until, Drawn time.Time }
}

// theMachine is the only one, and its address.
func (i *installation) theMachine() (id, address string) {
	i.t.Helper()
	id = strings.TrimPrefix(strings.TrimSpace(first(i.muster("get", "machines", "-o", "name"))), "machine.muster.dev/")
	return id, i.mustKubectl("get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
}

// logsWork asks the kubelet for a pod's log: over its serving certificate. A kubelet that has just started does not
// know of pods for a moment, and says that there is none.
func (i *installation) logsWork() {
	i.t.Helper()
	i.eventually("logs", func() error {
		_, err := i.kubectl("logs", "daemonset/hello", "--tail=1")
		return err
	})
}

func rotateBoth(t *testing.T, i *installation) {
	machine, address := i.theMachine()
	before := i.nodeCerts(machine)
	i.logsWork()
	containers := i.mustKubectl("get", "pods", "-o", `jsonpath={.items[*].status.containerStatuses[*].containerID}`)
	out, talk := i.muster("node", "rotate", machine)
	t.Logf("muster node rotate printed:\n%s%s", talk, out)
	after := i.nodeCerts(machine)
	for kind, old := range before {
		now := after[kind]
		if now.Serial == old.Serial || now.Target == old.Target || !now.KeyMatches || now.CommonName != old.CommonName || now.Rotation.From.Before(old.Rotation.From) {
			t.Errorf("%s: was %+v, is %+v", kind, old, now)
		}
	}
	i.logsWork()
	if got := i.served(address); got != after["server"].Serial {
		t.Errorf("the kubelet serves %s, not %s", got, after["server"].Serial)
	}
	i.kubeletTells(machine)
	// The lease is renewed with the new client certificate.
	i.eventually("the node's lease is renewed", func() error {
		renewed, err := time.Parse(time.RFC3339, i.mustKubectl("-n", "kube-node-lease", "get", "lease", "-o", "jsonpath={.items[0].spec.renewTime}"))
		if err == nil && time.Since(renewed) > 5*time.Second {
			err = fmt.Errorf("it was renewed at %s", renewed)
		}
		return err
	})
	if now := i.mustKubectl("get", "pods", "-o", `jsonpath={.items[*].status.containerStatuses[*].containerID}`); now != containers {
		t.Errorf("containers were %s, and are %s", containers, now)
	}
}

func rotateOne(t *testing.T, i *installation) {
	machine, _ := i.theMachine()
	before := i.nodeCerts(machine)
	i.muster("node", "rotate", machine, "--server")
	after := i.nodeCerts(machine)
	if after["client"].Serial != before["client"].Serial || after["server"].Serial == before["server"].Serial {
		t.Errorf("was %+v, is %+v", before, after)
	}
	i.logsWork()
}

// served is the number of the certificate that a machine's kubelet serves, as the machine itself sees it.
func (i *installation) served(address string) string {
	i.t.Helper()
	out, talk := i.muster("exec", address, "--", "openssl", "s_client", "-connect", net.JoinHostPort(address, "10250"))
	_, rest, _ := strings.Cut(out, "-----BEGIN CERTIFICATE-----")
	block, _ := pem.Decode([]byte("-----BEGIN CERTIFICATE-----" + rest))
	if block == nil {
		i.t.Fatalf("openssl shows no certificate:\n%s%s", out, talk)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		i.t.Fatal(err)
	}
	return fmt.Sprintf("%x", certificate.SerialNumber)
}

func certsWrong(t *testing.T, i *installation) {
	machine, _ := i.theMachine()
	i.muster("exec", machine, "--", "sh", "-c", "chmod 644 /var/lib/kubelet/pki/kubelet-client-current.pem")
	out, talk, err := i.try("node", "certs", machine)
	if err == nil || !strings.Contains(out, "Exposed") || !strings.Contains(talk, "others than root can use it; chmod 600 /var/lib/kubelet/pki/kubelet-client-2") {
		t.Errorf("%v\n%s%s", err, out, talk)
	}
	i.muster("exec", machine, "--", "sh", "-c", "chmod 600 /var/lib/kubelet/pki/kubelet-client-current.pem")
	if _, _, err := i.try("node", "certs", machine); err != nil {
		t.Errorf("when it is right again: %v", err)
	}
	if _, talk, err := i.try("node", "certs", machine, "--cert-dir", "/nowhere"); err == nil || !strings.Contains(talk, "the node has not joined a cluster") {
		t.Errorf("%v\n%s", err, talk)
	}
	if _, talk, err := i.try("node", "rotate", machine, "--kubeconfig", "/nowhere"); err == nil || !strings.Contains(talk, "reading the kubelet's kubeconfig") {
		t.Errorf("%v\n%s", err, talk)
	}
}

// interruptedRotation leaves what a kubelet leaves that is killed between removing its link and renaming the next one.
// It does not start again by itself: it reads its kubeconfig, which names the link, before it looks for what was left
// behind. The machine's agent looks every 30 seconds; the same watch, run beside it by hand, does so more often.
func interruptedRotation(t *testing.T, i *installation) {
	machine, _ := i.theMachine()
	i.muster("exec", machine, "--", "sh", "-c", "cd /var/lib/kubelet/pki && mv kubelet-client-current.pem kubelet-client-updated.pem")
	i.killInMachine("kubelet")
	i.eventually("the kubelet fails without its link: somebody need put it back", func() error {
		_, _, err := i.try("exec", machine, "--", "grep", "-q", "unable to read client-cert", "/var/log/kubelet.log")
		return err
	})
	watch := i.command(t.Context(), "exec", machine, "--", "sh", "-c", "muster node watch --interval=500ms & while [ ! -e /tmp/enough ]; do sleep 0.1; done; kill $!; rm /tmp/enough")
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		i.muster("exec", machine, "--", "touch", "/tmp/enough")
		if err := watch.Wait(); err != nil {
			t.Errorf("the watch: %v", err)
		}
	}()
	took := i.eventually("the link is back", func() error {
		_, talk, err := i.try("node", "certs", machine)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, talk)
		}
		return err
	})
	took += i.eventually("the kubelet answers again", func() error {
		_, err := i.kubectl("logs", "daemonset/hello", "--tail=1")
		return err
	})
	t.Logf("logs worked again after %s", took.Round(100*time.Millisecond))
}

// kubeletTells waits until the kubelet's log says when both certificates are rotated, within the time in which they
// must be.
func (i *installation) kubeletTells(machine string) {
	i.t.Helper()
	i.eventually("the kubelet tells when it rotates next", func() error {
		for kind, c := range i.nodeCerts(machine) {
			if c.Rotation.Drawn.Before(c.Rotation.From) || c.Rotation.Drawn.After(c.Rotation.Until) {
				return fmt.Errorf("the %s certificate at %s", kind, c.Rotation.Drawn)
			}
		}
		return nil
	})
}

// nodeCertificatesPage runs what docs/node-certificates.md shows, in its order, and compares what comes of it.
func nodeCertificatesPage(t *testing.T, i *installation) {
	machine, address := i.theMachine()
	if address != "172.31.0.5" {
		t.Fatalf("the page speaks of 172.31.0.5, and the machine has %s", address)
	}
	i.kubeletTells(machine)
	i.follow(page{name: "node-certificates.md", least: 8})
}

// shape is an output without what differs each time: names of requests, numbers, times, and the order of lines.
func shape(output string) []string {
	for _, replace := range [][2]string{
		{`(?m)^request csr-[a-z0-9]{5} waits: (it is approved, and not signed yet|nobody has decided; .*)\n`, ""}, // for as long as the controller takes
		{`(?m)^The host will be overcommitted: .*\n`, ""},                                                         // a larger host is not
		{`csr-[a-z0-9]{5}\b`, "csr-#"},
		{`system:bootstrap:[a-z0-9]{6}`, "system:bootstrap:#"},
		{`\b[0-9a-f]{24,}\b`, "#"},
		{`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`, "#"},
		{`\bA(IDA|IPA|KIA|ROA|SIA)[A-Z2-7]{16,17}\b`, "A$1#"}, // unique ids of IAM
		{`\bi-[0-9a-f]{17}\b`, "i-#"},
		{`(?m) +$`, ""},
		{`((Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d+ )?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d+ +[\d:]+( \+0000)?`, "DATE"},
		{`\b(\d+(\.\d+)?(ms|[smhdy]))+\b`, "TIME"},
		{`\d+`, "0"},
		{` +`, " "},
		{` = `, "="}, // older versions of openssl write it so
	} {
		output = regexp.MustCompile(replace[0]).ReplaceAllString(output, replace[1])
	}
	lines := strings.Split(strings.TrimSpace(output), "\n")
	slices.Sort(lines)
	return lines
}
