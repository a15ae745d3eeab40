// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

const (
	idC   = "i-0123456789abcdef2"
	nameB = "ip-10-0-0-11.us-west-2.compute.internal"
)

// at is an interface with a private address.
func at(address string) string {
	return fmt.Sprintf(`<networkInterfaceSet><item><privateIpAddress>%s</privateIpAddress><privateIpAddressesSet><item><privateIpAddress>%s</privateIpAddress></item></privateIpAddressesSet></item></networkInterfaceSet>`, address, address)
}

func ids(machines []policy.Machine) (all []string) {
	for _, m := range machines {
		all = append(all, m.ID)
	}
	return all
}

func ownersOfName(t *testing.T, s *facts.Batch, name string) policy.Fact[[]policy.Machine] {
	t.Helper()
	return settled(t, func() policy.Fact[[]policy.Machine] { return s.Owners(name) })
}

// Nobody has asked about any of these machines before.
func TestOwnersAreAskedFor(t *testing.T) {
	other := instance{idB, "srv-7.corp.example", "running", `<dnsName>www.corp.example</dnsName>` + at("203.0.113.7")}
	for _, tc := range []struct {
		name   string
		owners []string
		calls  []string
	}{
		{"10.0.0.1", []string{idA}, []string{byPrivateIPv4 + "=10.0.0.1"}},
		{"10.0.0.2", []string{idA}, []string{byPrivateIPv4 + "=10.0.0.2"}},
		{"10.0.1.1", []string{idA}, []string{byPrivateIPv4 + "=10.0.1.1"}},
		{"10.0.0.9", nil, []string{byPrivateIPv4 + "=10.0.0.9"}},
		{"192.168.0.1", nil, []string{byPrivateIPv4 + "=192.168.0.1"}},
		{"100.64.0.1", nil, []string{byPrivateIPv4 + "=100.64.0.1"}},
		{"192.0.2.1", []string{idA}, []string{byPublicIPv4 + "=192.0.2.1", byPrivateIPv4 + "=192.0.2.1"}},
		{"192.0.2.2", []string{idA}, []string{byPublicIPv4 + "=192.0.2.2", byPrivateIPv4 + "=192.0.2.2"}},
		{"203.0.113.7", []string{idB}, []string{byPublicIPv4 + "=203.0.113.7", byPrivateIPv4 + "=203.0.113.7"}}, // a private one in a public range
		{"2001:db8::1", []string{idA}, []string{byIPv6 + "=2001:db8::1"}},
		{"2001:db8::2", nil, []string{byIPv6 + "=2001:db8::2"}},
		{nameA, []string{idA}, []string{byPrivateIPv4 + "=10.0.0.1", byPrivateDNSName + "=" + nameA}},
		{"ip-10-0-0-2.us-west-2.compute.internal", []string{idA}, []string{byPrivateIPv4 + "=10.0.0.2", byPrivateDNSName + "=ip-10-0-0-2.us-west-2.compute.internal"}},
		{"ip-10-0-0-1.evil.example", nil, []string{byPrivateIPv4 + "=10.0.0.1", byPrivateDNSName + "=ip-10-0-0-1.evil.example"}},
		{"ip-10-0-0-01.example", nil, []string{byPublicDNSName + "=ip-10-0-0-01.example", byPrivateDNSName + "=ip-10-0-0-01.example"}},
		{"ip-10.0.0.1.example", nil, []string{byPublicDNSName + "=ip-10.0.0.1.example", byPrivateDNSName + "=ip-10.0.0.1.example"}},
		{"ec2-192-0-2-1.compute.example", []string{idA}, []string{byPublicIPv4 + "=192.0.2.1"}}, // EC2 writes it otherwise
		{"ec2-192-0-2-2.compute.example", nil, []string{byPublicIPv4 + "=192.0.2.2"}},
		{"ec2-10-0-0-1.example", nil, []string{byPublicDNSName + "=ec2-10-0-0-1.example", byPrivateDNSName + "=ec2-10-0-0-1.example"}},
		{idA, []string{idA}, []string{byInstanceID + "=" + idA}},
		{idA + ".us-west-2.compute.internal", []string{idA}, []string{byInstanceID + "=" + idA}},
		{idA + ".corp.example", []string{idA}, []string{byInstanceID + "=" + idA}},
		{"i-0123.example", nil, []string{byPublicDNSName + "=i-0123.example", byPrivateDNSName + "=i-0123.example"}},
		{"srv-7.corp.example", []string{idB}, []string{byPublicDNSName + "=srv-7.corp.example", byPrivateDNSName + "=srv-7.corp.example"}},
		{"www.corp.example", []string{idB}, []string{byPublicDNSName + "=www.corp.example", byPrivateDNSName + "=www.corp.example"}},
		{"app.example.com", nil, []string{byPublicDNSName + "=app.example.com", byPrivateDNSName + "=app.example.com"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(instance{idA, nameA, "running", nics}, other)
				s := describing(t, c, func(c *Config) { c.Filters = map[string][]string{"vpc-id": {"vpc-1"}} })
				if f := s.Owners(tc.name); f.State != policy.Unknown || !f.Soon {
					t.Errorf("before EC2 has said anything: %+v", f)
				}
				if f := ownersOfName(t, s, tc.name); f.State != policy.Known || f.Source != "ec2" || !cmp.Equal(ids(f.Value), tc.owners) {
					t.Errorf("got %+v", f)
				}
				slices.Sort(tc.calls)
				if diff := cmp.Diff(tc.calls, c.filtered()); diff != "" {
					t.Errorf("called (-want +got):\n%s", diff)
				}
				for _, call := range c.called() {
					if call.Get("Filter.2.Name") != "vpc-id" || call.Get("Filter.3.Name") != "" {
						t.Errorf("called with %v", call)
					}
				}
			})
		})
	}
}

// EC2 takes * and ? in a filter for any text; and no instance has an address that is none of its network.
func TestWhatNobodyCanOwnIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idA, nameA, "running", nics})
		s := describing(t, c, nil)
		for _, name := range []string{
			"", "*", "?", "*.example", "ip-10-0-0-?.us-west-2.compute.internal", "ip-10-0-0-*", "i-*", "10.0.0.*", "10.0.0.?", "A.example", "a b", "a.", "a_b",
			"127.0.0.1", "169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fd00::1%*", "::ffff:10.0.0.1", "ff02::1",
		} {
			if f := s.Owners(name); f.State != policy.Known || len(f.Value) > 0 {
				t.Errorf("owners of %q: %+v", name, f)
			}
		}
		time.Sleep(time.Second) //nolint:forbidigo // in a synctest bubble it takes no time
		if calls := c.filtered(); len(calls) > 0 {
			t.Errorf("called with %v", calls)
		}
	})
}

// An instance that is stopped keeps its private addresses.
func TestStatesOfOwners(t *testing.T) {
	for state, owns := range map[string]bool{
		"pending": true, "running": true, "shutting-down": true, "stopping": true, "stopped": true, "of another kind": true, "": true, "terminated": false,
	} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := describing(t, newCloud(instance{idA, nameA, state, nics}), nil)
				for _, name := range []string{nameA, "10.0.0.2", "192.0.2.2", "2001:db8::1", idA} {
					if f := ownersOfName(t, s, name); f.State != policy.Known || (len(f.Value) == 1) != owns {
						t.Errorf("owners of %s: %+v", name, f)
					}
				}
			})
		})
	}
}

func TestSeveralOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idB, nameB, "running", at("10.0.0.1")}, instance{idA, nameA, "stopped", at("10.0.0.1")}, instance{idC, nameB, "terminated", at("10.0.0.1")})
		s := describing(t, c, nil)
		if f := ownersOfName(t, s, "10.0.0.1"); !cmp.Equal(ids(f.Value), []string{idA, idB}) || f.Value[1].NodeName != nameB {
			t.Errorf("got %+v", f)
		}
		// An instance that lost an address while it was described in two ways has had it.
		answer := ownersOf([]described{
			{policy.Machine{ID: idA, Names: []string{"a"}}, "running"}, {policy.Machine{ID: idA, Names: []string{"b"}}, "running"},
		})
		if !cmp.Equal(ids(answer["a"]), []string{idA}) || !cmp.Equal(ids(answer["b"]), []string{idA}) {
			t.Errorf("got %+v", answer)
		}
	})
}

// The cost of a kubelet's request for a serving certificate, with all that is asked about it, while nothing is known
// and again while it is.
func TestAKubeletsRequestIsFewCalls(t *testing.T) {
	resource := idA + ".us-west-2.compute.internal"
	for _, tc := range []struct {
		how   NodeNames
		node  string
		names []string
		calls []string
	}{
		{PrivateDNSName, nameA, []string{nameA, "10.0.0.1"}, []string{byPrivateIPv4 + "=10.0.0.1", byPrivateDNSName + "=" + nameA}},
		{
			PrivateDNSName, nameA,
			[]string{nameA, "ec2-192-0-2-1.compute.example", "10.0.0.1", "192.0.2.1", "2001:db8::1"},
			[]string{byPublicIPv4 + "=192.0.2.1", byPrivateIPv4 + "=10.0.0.1,192.0.2.1", byIPv6 + "=2001:db8::1", byPrivateDNSName + "=" + nameA},
		},
		{ResourceName, resource, []string{resource, "10.0.0.1"}, []string{byInstanceID + "=" + idA, byPrivateIPv4 + "=10.0.0.1"}},
		{InstanceID, idA, []string{idA, nameA, "10.0.0.1"}, []string{byInstanceID + "=" + idA, byPrivateIPv4 + "=10.0.0.1", byPrivateDNSName + "=" + nameA}},
	} {
		t.Run(string(tc.how)+" "+tc.names[len(tc.names)-1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(instance{idA, nameA, "running", nics})
				var mu sync.Mutex
				var told []facts.Change
				s := describing(t, c, func(c *Config) {
					c.NodeNames = tc.how
					c.OnChange = func(change facts.Change) { mu.Lock(); defer mu.Unlock(); told = append(told, change) }
				})
				for range 2 {
					known := 0
					until(t, "all is known", func() bool {
						known = 0
						if f := s.MachineOfNode(tc.node); f.State == policy.Known && f.Value.ID == idA {
							known++
						}
						for _, n := range tc.names {
							if f := s.Owners(n); f.State == policy.Known && cmp.Equal(ids(f.Value), []string{idA}) {
								known++
							}
						}
						return known == 1+len(tc.names)
					})
				}
				slices.Sort(tc.calls)
				if diff := cmp.Diff(tc.calls, c.filtered()); diff != "" {
					t.Errorf("called (-want +got):\n%s", diff)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(told) != 1 || slices.ContainsFunc(tc.names, func(n string) bool { return !slices.Contains(told[0].Names, n) }) {
					t.Errorf("told %+v", told)
				}
			})
		})
	}
}

// A node may ask for as many names as it likes. Another one's request is answered all the same.
func TestAFloodOfNamesDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idA, nameA, "running", nics})
		s := describing(t, c, func(c *Config) { c.PerSecond, c.Burst = 5, 10 })
		sent := 0
		flood := func() {
			for range 500 {
				sent++
				s.Owners(fmt.Sprintf("x%d.example", sent))
				s.Owners(fmt.Sprintf("2001:db8:1::%x", sent))
			}
		}
		for range 50 { // until no call is left over
			flood()
			time.Sleep(200 * time.Millisecond) //nolint:forbidigo // in a synctest bubble it takes no time
		}
		time.Sleep(7 * time.Millisecond) //nolint:forbidigo // so that nothing is taken between the request and the flood
		started := time.Now()
		until(t, "all is known", func() bool {
			node, name, address := s.MachineOfNode(nameA), s.Owners(nameA), s.Owners("10.0.0.1")
			flood()
			return node.State == policy.Known && len(name.Value) == 1 && len(address.Value) == 1
		})
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestWhoOwnsIsUnknownWhileEC2Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idA, nameA, "running", nics})
		failing := byPublicIPv4
		c.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			fails := r.PostForm.Get("Filter.1.Name") == failing
			if fails {
				refuse(w, http.StatusServiceUnavailable, "RequestLimitExceeded")
			}
			return fails
		}
		s := describing(t, c, nil)
		if f := ownersOfName(t, s, "192.0.2.1"); f.State != policy.Unknown || !strings.Contains(f.Why, "RequestLimitExceeded") {
			t.Errorf("one of two calls failed: %+v", f)
		}
		c.set(func() { failing = "" })
		until(t, "it is known", func() bool { return len(s.Owners("192.0.2.1").Value) == 1 })
		time.Sleep(31 * time.Second) //nolint:forbidigo // in a synctest bubble it takes no time
		c.set(func() { failing = byPublicIPv4 })
		if f := ownersOfName(t, s, "192.0.2.1"); f.State != policy.Unknown {
			t.Errorf("an old answer: %+v", f)
		}
	})
}

// judged is what the policy says about a request with the inventory as it is, once nothing is being looked up any more.
func judged(t *testing.T, p policy.Policy, object *certificatesv1.CertificateSigningRequest, inventory *facts.Combined) decision.Decision {
	t.Helper()
	r := policy.Read(object, p)
	q := policy.Ask(p, r)
	if len(q.Names) == 0 {
		t.Fatalf("nothing is asked: %v", r.ParseError)
	}
	var d decision.Decision
	until(t, "it is judged", func() bool {
		now := time.Now()
		f := policy.Facts{
			Nodes: map[string]policy.Fact[bool]{}, Owners: map[string]policy.Fact[[]string]{}, Node: policy.Know(true, "test", now),
			KeyOwner: policy.None[string]("test", now), Credential: policy.None[policy.Credential]("test", now), Access: policy.Know(true, "test", now),
		}
		if q.Node != "" {
			f.NodeMachine = inventory.MachineOfNode(q.Node)
		}
		for _, n := range q.Nodes {
			f.Nodes[n] = policy.Know(false, "test", now)
		}
		for _, n := range q.Names {
			f.Owners[n] = inventory.Owners(n)
		}
		d = policy.Decide(p, r, f, now)
		return !d.Soon()
	})
	return d
}

// EC2 as the only source finds the owner of a name, although the other instance was not looked up before.
func TestRequestsForWhatIsAnothers(t *testing.T) {
	const app = "example.com/app"
	profile, err := pki.CustomProfile(app, pki.KindServing)
	if err != nil {
		t.Fatal(err)
	}
	serving, _ := pki.ProfileFor(pki.SignerKubeletServing)
	p := policy.Policy{Signers: map[string]pki.Profile{app: profile, pki.SignerKubeletServing: serving}}
	custom := func(names ...string) *certificatesv1.CertificateSigningRequest {
		template := pkitest.Template("", names...)
		template.Subject = pkix.Name{CommonName: "app"}
		return &certificatesv1.CertificateSigningRequest{
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: app, Request: pkitest.Encode(t, pkitest.Key(t), template), Username: "someone", Groups: []string{"system:authenticated"},
				Usages: []certificatesv1.KeyUsage{"digital signature", "key encipherment", "server auth"},
			},
			Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{
				{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "KubectlApprove"},
			}},
		}
	}
	kubelet := func(names ...string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: pki.SignerKubeletServing, Request: pkitest.Kubelet(t, nameA, names...),
			Username: "system:node:" + nameA, Groups: []string{"system:nodes", "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{"digital signature", "server auth"},
		}}
	}
	for _, tc := range []struct {
		name    string
		object  *certificatesv1.CertificateSigningRequest
		verdict decision.Verdict
		rule    decision.RuleID
	}{
		{"an application's own name", custom("app.example.com", "198.51.100.1"), decision.Approve, ""},
		{"an instance's address", custom("10.0.0.11"), decision.Deny, "name-of-machine"},
		{"an instance's name", custom("app.example.com", nameB), decision.Deny, "name-of-machine"},
		{"a stopped instance's address", custom("10.0.0.12"), decision.Deny, "name-of-machine"},
		{"a kubelet's own", kubelet(nameA, "10.0.0.1"), decision.Approve, ""},
		{"a kubelet and another's address", kubelet(nameA, "10.0.0.11"), decision.Deny, "address-assigned"},
		{"a kubelet and another's name", kubelet(nameB, "10.0.0.1"), decision.Deny, "name-assigned"},
		{"a kubelet and nobody's address", kubelet(nameA, "10.0.0.99"), decision.Wait, "address-assigned"},
		{"a kubelet's own address, which another one has, too", kubelet(nameA, "10.0.1.1"), decision.Wait, "address-assigned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(
					instance{idA, nameA, "running", nics}, instance{idB, nameB, "running", at("10.0.0.11")}, instance{idC, "", "stopped", at("10.0.0.12")},
					instance{idOld, "", "running", at("10.0.1.1")},
				)
				inventory, err := facts.Combine(facts.Any, describing(t, c, nil))
				if err != nil {
					t.Fatal(err)
				}
				if d := judged(t, p, tc.object, inventory); d.Verdict != tc.verdict || d.Rule != tc.rule {
					t.Errorf("got %s by %q, want %s by %q\n%s", d.Verdict, d.Rule, tc.verdict, tc.rule, d)
				}
			})
		})
	}
}
