// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
)

// asked is an inventory that remembers what it was asked.
type asked struct {
	Inventory
	mu   sync.Mutex
	what []string
}

func (a *asked) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.what = append(a.what, what)
}

func (a *asked) Machine(id string) policy.Fact[policy.Machine] {
	a.note("machine " + id)
	return a.Inventory.Machine(id)
}

func (a *asked) MachineOfNode(node string) policy.Fact[policy.Machine] {
	a.note("node " + node)
	return a.Inventory.MachineOfNode(node)
}

func (a *asked) Owners(name string) policy.Fact[[]string] {
	a.note("name " + name)
	return a.Inventory.Owners(name)
}

func (a *asked) told() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.what)
	return strings.Join(slices.Compact(a.what), ", ")
}

// A machine may be known as another cluster's later than its request comes.
func TestAMachineThatTurnsOutToBeAnotherClustersIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	byRole := serving(t, "role", 15, address(15))
	byRole.Spec.Extra = map[string]certificatesv1.ExtraValue{"sessionName": {machineID(14)}}
	w.create(bootstrap(t, "token", 14), byRole)
	w.stays("token", "")
	w.stays("role", "")
	w.facts.PutElsewhere(machineID(14), "blue")
	w.becomes("token", "Denied/machine-cluster")
	w.becomes("role", "Denied/machine-cluster")
}

// No source looks up names for a requester that nobody vouches for.
func TestWhoseNamesAreLookedUp(t *testing.T) {
	node, other := nodeName(11), nodeName(12)
	named := func(node string) string {
		group, err := token.Scope{Kind: token.ScopeName, Value: node}.Group()
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	first := func(user string, groups ...string) *certificatesv1.CertificateSigningRequest {
		return object("csr", pki.SignerKubeletClient, pkitest.Kubelet(t, node), user, groups...)
	}
	made := func(groups ...string) *certificatesv1.CertificateSigningRequest {
		return first("system:bootstrap:abcdef", append(groups, "system:bootstrappers")...)
	}
	strangers := serving(t, "csr", 11, address(11))
	strangers.Spec.Username = "alice"
	elsewhere := serving(t, "csr", 11, address(11))
	elsewhere.Spec.Username = "system:node:" + other
	byPerson := first("alice")
	byPerson.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", Reason: policy.ReasonKubectl}}
	for _, tc := range []struct {
		name string
		csr  *certificatesv1.CertificateSigningRequest
		want string
		ends string
	}{
		{"a person's", first("alice"), "", "requester"},
		{"a person's for a serving certificate", strangers, "", "requester"},
		{"an unbound token's", made(), "", "requester"},
		{"a garbled token's", made("system:bootstrappers:muster:"), "", "requester"},
		{"another node's", elsewhere, "", "requester-name"},
		{"another node name's token's", made(named(other)), "", "bootstrap-name"},
		{"a token's that the policy binds to other names", made("bound"), "", "bootstrap-binding"},
		{"another machine's token's", made("system:bootstrappers:muster:" + machineID(12)), "machine " + machineID(12), "bootstrap-machine"},
		{"the token's of a machine that is gone", made("system:bootstrappers:muster:" + machineID(13)), "machine " + machineID(13), "bootstrap-machine"},
		{"the token's of a machine of another cluster", made("system:bootstrappers:muster:" + machineID(14)), "machine " + machineID(14), "machine-cluster"},
		{"the machine's token's", made("system:bootstrappers:muster:" + machineID(11)), "machine " + machineID(11) + ", node " + node, ""},
		{"the node name's token's", made(named(node)), "node " + node, ""},
		{"a person's who was approved by a person", byPerson, "node " + node, ""},
		{"the node's", serving(t, "csr", 11, address(11)), fmt.Sprintf("name %s, node %s", address(11), node), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &asked{}
			w := newWorld(t, func(w *world) {
				a.Inventory = w.config.Inventory
				w.config.Inventory = a
				w.config.Policy.Bootstrap.Bindings = []policy.Binding{{Group: "bound", NodeNames: []string{other}}}
				w.machine(12)
				w.facts.PutElsewhere(machineID(14), "blue")
			})
			i := itemOf(tc.csr)
			d, release := w.judge(t.Context(), i, policy.Read(tc.csr, w.config.Policy))
			defer release()
			if string(d.Rule) != tc.ends {
				t.Errorf("%s %s", d.Verdict, d.Summary())
			}
			if got := a.told(); got != tc.want {
				t.Errorf("asked about %q, want %q", got, tc.want)
			}
		})
	}
}
