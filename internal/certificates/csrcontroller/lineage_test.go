// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"encoding/pem"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/decision"
)

// gen is a request of lineage l, seen as version v, created at a second, and finished or not.
func gen(name string, second int64, version string, finished bool) *held {
	return &held{
		item: item{name, "r", "s", ""}, uid: types.UID(name), version: version, created: second, finished: finished, lineage: "l",
	}
}

func TestLineagesOrder(t *testing.T) {
	for _, tc := range []struct {
		name string
		seen []*held
		want string // requests that are superseded, told at once
	}{
		{"two live", []*held{gen("a", 1, "1", false), gen("b", 2, "2", false)}, ""},
		{"the oldest of three goes", []*held{gen("a", 1, "1", false), gen("b", 2, "2", false), gen("c", 3, "3", false)}, "a"},
		{"whatever came of it", []*held{gen("a", 1, "1", false), gen("b", 2, "2", true), gen("c", 3, "3", true)}, "a"},
		{"seen in another order", []*held{gen("c", 3, "3", false), gen("b", 2, "2", false), gen("a", 1, "1", false)}, "a"},
		{"one after another", []*held{gen("a", 1, "1", false), gen("b", 2, "2", false), gen("c", 3, "3", false), gen("d", 4, "4", false)}, "a b"},
		{"in between", []*held{gen("d", 4, "4", false), gen("c", 3, "3", false), gen("a", 1, "1", false), gen("b", 2, "2", false)}, "a b"},
		{"older than what is superseded", []*held{gen("d", 4, "4", false), gen("c", 3, "3", false), gen("b", 2, "2", false), gen("a", 1, "1", false)}, "a b"},
		{"a late one pushes one out", []*held{gen("a", 1, "1", false), gen("c", 3, "3", false), gen("b", 2, "2", false)}, "a"},
		{"of one second the version counts", []*held{gen("b", 1, "30", false), gen("z", 1, "4", false), gen("a", 1, "5", false)}, "z"},
		{"and before that whether it is open", []*held{gen("open", 1, "1", false), gen("done", 1, "2", true), gen("done-2", 1, "3", true)}, "done"},
		{"versions that are no numbers", []*held{gen("c", 1, "x", false), gen("a", 1, "y", false), gen("b", 1, "z", false)}, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLineages(2)
			var told []string
			for _, h := range tc.seen {
				if i, ok := l.see(h); ok {
					told = append(told, i.name)
				}
				if _, ok := l.see(h); ok {
					t.Errorf("%s was told twice", h.item.name)
				}
			}
			slices.Sort(told)
			if got := strings.Join(told, " "); got != tc.want {
				t.Errorf("told of %q, want %q", got, tc.want)
			}
			for _, h := range tc.seen {
				if l.superseded(h) != slices.Contains(told, h.item.name) {
					t.Errorf("%s: %t", h.item.name, l.superseded(h))
				}
			}
			for _, h := range tc.seen {
				l.forget(h.uid)
			}
			if len(l.members)+len(l.of) != 0 {
				t.Error("something is left")
			}
		})
	}
}

func TestALineageMayChange(t *testing.T) {
	l := newLineages(1)
	a, b := gen("a", 1, "1", false), gen("b", 2, "2", false)
	b.lineage = "other"
	l.see(a)
	l.see(b)
	b = gen("b", 2, "9", true)
	if i, ok := l.see(b); !ok || i.name != "a" {
		t.Errorf("told of %v %t", i, ok)
	}
	if l.superseded(b) || !l.superseded(a) {
		t.Error("the wrong one is superseded")
	}
}

func TestKeepingAll(t *testing.T) {
	l := newLineages(-1)
	for n := range 9 {
		h := gen(fmt.Sprint(n), int64(n), "1", false)
		if _, ok := l.see(h); ok || l.superseded(h) {
			t.Error("superseded")
		}
	}
}

// A flood costs each of its requests one look.
func TestAFloodIsCheap(t *testing.T) {
	l := newLineages(2)
	var all []*held
	for n := range 20_000 {
		all = append(all, gen(fmt.Sprint(n), int64(n/500), fmt.Sprint(n), false))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := processorTime(t)
	for _, h := range all {
		l.see(h)
		l.superseded(h)
	}
	if took := processorTime(t) - start; took > 2*time.Second {
		t.Errorf("20,000 requests took %s of a processor", took)
	}
}

// processorTime is what the thread has had of processors, whoever else wants them.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestLineageOf(t *testing.T) {
	w := prepareWorld(t)
	w.config.Policy.Bootstrap.Bindings = []policy.Binding{{User: "vip", NodeNames: []string{"ip-*"}}}
	profile, err := pki.CustomProfile("example.com/x", pki.KindClient)
	if err != nil {
		t.Fatal(err)
	}
	w.config.Signers["example.com/x"] = Issuance{Profile: profile, Signer: w.signer}
	w.run()
	w.stop()
	w.leading.Store(true)
	node, client := "system:node:"+nodeName(11), pki.SignerKubeletClient
	made := func(groups ...string) *certificatesv1.CertificateSigningRequest {
		return object("a", client, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:abcdef", append(groups, "system:bootstrappers")...)
	}
	issuedTo := made("system:bootstrappers:muster:" + machineID(11))
	issuedTo.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw})
	group := func(s token.Scope) string {
		g, err := s.Group()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	toName := group(token.Scope{Kind: token.ScopeName, Value: nodeName(11)})
	decided := func(csr *certificatesv1.CertificateSigningRequest, machine string, kinds ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
		for _, kind := range kinds {
			csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: "True"})
		}
		if machine != "" {
			csr.Status.Conditions = append(csr.Status.Conditions, decidedFor(decision.Deny, machine))
		}
		return csr
	}
	denied, approved, failed := certificatesv1.CertificateDenied, certificatesv1.CertificateApproved, certificatesv1.CertificateFailed
	toMachine := "system:bootstrappers:muster:" + machineID(11)
	claimed := decided(made(toMachine), "", denied)
	claimed.Annotations = map[string]string{"certificates.muster.dev/machine": machineID(11)}
	broken := made()
	broken.Spec.Request = []byte("nothing")
	for _, tc := range []struct {
		name string
		csr  *certificatesv1.CertificateSigningRequest
		want string
	}{
		{"a node's", serving(t, "a", 11, address(11)), pki.SignerKubeletServing + " " + node},
		{"a machine's token's", made("system:bootstrappers:muster:" + machineID(11)), client + " system:bootstrap:abcdef"},
		{"a token's of this node's name", made(toName), client + " " + node},
		{"a token's of another node's name", made(group(token.Scope{Kind: token.ScopeName, Value: "a"})), client + " system:bootstrap:abcdef"},
		{"a token's of two nodes' names", made(toName, group(token.Scope{Kind: token.ScopeName, Value: "a"})), client + " system:bootstrap:abcdef"},
		{"a garbled token's", made(toName, "system:bootstrappers:muster:"), client + " system:bootstrap:abcdef"},
		{"a machine's token's, denied", decided(made(toMachine), "ec2|"+machineID(11), denied), client + " " + node},
		{"a machine's token's, denied, who says himself that it is his", claimed, client + " system:bootstrap:abcdef"},
		{"another machine's token's, denied", decided(made(toMachine), "ec2|"+machineID(12), denied), client + " system:bootstrap:abcdef"},
		{"a shared token's, denied", decided(made(), machineID(11), denied), client + " system:bootstrap:abcdef " + node},
		{"a shared token's, approved by us", decided(made(), machineID(11), approved), client + " " + node},
		{"a shared token's, approved by another", decided(made(), "", approved), client + " system:bootstrap:abcdef " + node},
		{"a shared token's, approved by another and failed by us", decided(made(), machineID(11), approved, failed), client + " system:bootstrap:abcdef " + node},
		{"a group's token's, for one node", made("system:bootstrappers:muster:group:a"), client + " system:bootstrap:abcdef " + node},
		{"a shared token's, for one node", made(), client + " system:bootstrap:abcdef " + node},
		{"unreadable", broken, client + " system:bootstrap:abcdef "},
		{"issued to a token: the node's from then on", issuedTo, client + " " + node},
		{"a person's", object("a", client, pkitest.Kubelet(t, nodeName(11)), "alice", "people"), ""},
		{"a user's whom the policy lets ask for nodes", object("a", client, pkitest.Kubelet(t, nodeName(11)), "vip", "people"), client + " vip " + node},
		{"the same user's for another signer", object("a", "example.com/x", pkitest.Kubelet(t, nodeName(11)), "vip", "people"), ""},
		{"who calls himself a node", object("a", client, pkitest.Kubelet(t, nodeName(11)), node, "people"), ""},
		{"another signer's", object("a", "example.com/y", nil, node, "system:nodes"), ""},
	} {
		o, err := w.hold(tc.csr)
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := o.(*held); !ok || h.lineage != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, h.lineage, tc.want)
		}
	}
}
