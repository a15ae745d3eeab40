// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
)

// describing runs the source against the cloud, in the bubble of the test.
func describing(t *testing.T, c *cloud, change func(*Config)) *facts.Batch {
	t.Helper()
	config := Config{Region: "us-west-2", Client: c.client(), PerSecond: 1000, OnChange: func(facts.Change) {}, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	return run(t, config)
}

func run(t *testing.T, config Config) *facts.Batch {
	t.Helper()
	s, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

// settled polls until a lookup is answered.
func settled[T any](t *testing.T, get func() policy.Fact[T]) policy.Fact[T] {
	t.Helper()
	var f policy.Fact[T]
	until(t, "it is looked up", func() bool { f = get(); return !f.Soon })
	return f
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

const (
	idA   = "i-0123456789abcdef0"
	idB   = "i-0123456789abcdef1"
	idOld = "i-01234567"
	nameA = "ip-10-0-0-1.us-west-2.compute.internal"
	nics  = `<privateIpAddress>10.0.0.1</privateIpAddress><ipAddress>192.0.2.1</ipAddress><dnsName>EC2-192-0-2-1.compute.example</dnsName>
<tagSet><item><key>Name</key><value>x</value></item><item><key>eks:nodegroup-name</key><value>workers</value></item></tagSet>
<networkInterfaceSet><item><privateIpAddress>10.0.0.1</privateIpAddress><privateDnsName>ip-10-0-0-1.us-west-2.compute.internal</privateDnsName>
<association><publicIp>192.0.2.1</publicIp><publicDnsName>ec2-192-0-2-1.compute.example</publicDnsName></association>
<privateIpAddressesSet><item><privateIpAddress>10.0.0.1</privateIpAddress><association><publicIp>192.0.2.1</publicIp></association></item>
<item><privateIpAddress>10.0.0.2</privateIpAddress><privateDnsName>ip-10-0-0-2.us-west-2.compute.internal</privateDnsName>
<association><publicIp>192.0.2.2</publicIp></association></item></privateIpAddressesSet></item>
<item><privateIpAddress>10.0.1.1</privateIpAddress><privateIpAddressesSet><item><privateIpAddress>10.0.1.1</privateIpAddress></item></privateIpAddressesSet>
<ipv6AddressesSet><item><ipv6Address>2001:db8::1</ipv6Address></item></ipv6AddressesSet></item></networkInterfaceSet>`
)

func TestInstancesAreMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := policy.Machine{
			ID: idA, NodeName: nameA, Group: "workers",
			Names: []string{"ec2-192-0-2-1.compute.example", nameA, "ip-10-0-0-2.us-west-2.compute.internal"},
		}
		for _, a := range []string{"10.0.0.1", "10.0.0.2", "10.0.1.1", "192.0.2.1", "192.0.2.2", "2001:db8::1"} {
			want.Addresses = append(want.Addresses, netip.MustParseAddr(a))
		}
		c := newCloud(instance{idA, nameA, "running", nics}, instance{idB, "other", "running", ""})
		s := describing(t, c, func(c *Config) { c.Filters = map[string][]string{"vpc-id": {"vpc-0", "vpc-1"}} })
		for name, f := range map[string]policy.Fact[policy.Machine]{
			"by node": settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(nameA) }),
			"by ID":   settled(t, func() policy.Fact[policy.Machine] { return s.Machine(idA) }),
		} {
			if f.State != policy.Known || f.Source != "ec2" {
				t.Errorf("%s: %+v", name, f)
			}
			if diff := cmp.Diff(want, f.Value, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		for _, call := range c.called() {
			if call.Get("Filter.2.Name") != "vpc-id" || !cmp.Equal(values(call, 2), []string{"vpc-0", "vpc-1"}) || call.Get("MaxResults") != "1000" {
				t.Errorf("called with %v", call)
			}
		}
	})
}

func TestStatesOfInstances(t *testing.T) {
	for _, tc := range []struct {
		state           string
		byNode, byID    policy.State
		deleting, named bool
	}{
		{"pending", policy.Known, policy.Known, false, true},
		{"running", policy.Known, policy.Known, false, true},
		{"shutting-down", policy.Known, policy.Known, true, true},
		{"terminated", policy.Absent, policy.Known, true, false},
		{"stopping", policy.Absent, policy.Absent, false, true},
		{"stopped", policy.Absent, policy.Absent, false, true},
		{"of another kind", policy.Absent, policy.Absent, false, true},
	} {
		t.Run(tc.state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := instance{idA, "", tc.state, ""}
				if tc.named {
					i.private = nameA
				}
				s := describing(t, newCloud(i), nil)
				node := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(nameA) })
				id := settled(t, func() policy.Fact[policy.Machine] { return s.Machine(idA) })
				if node.State != tc.byNode || id.State != tc.byID || node.Value.Deleting && !tc.deleting || id.Value.Deleting != tc.deleting {
					t.Errorf("by node %+v, by ID %+v", node, id)
				}
			})
		})
	}
}

func TestANameOfSeveralInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		states []string
		want   policy.State
		id     string
	}{
		"two live ones":         {[]string{"running", "pending"}, policy.Unknown, ""},
		"a live one and others": {[]string{"terminated", "running"}, policy.Known, idB},
		"one that goes":         {[]string{"shutting-down", "stopped"}, policy.Known, idA},
		"two that go":           {[]string{"shutting-down", "shutting-down"}, policy.Known, idA},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := describing(t, newCloud(instance{idA, nameA, tc.states[0], ""}, instance{idB, nameA, tc.states[1], ""}), nil)
				if f := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(nameA) }); f.State != tc.want || f.Value.ID != tc.id {
					t.Errorf("got %+v", f)
				}
			})
		})
	}
}

func TestNamesOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			names         NodeNames
			private, node string
			filter, value string
		}{
			{PrivateDNSName, "IP-10-0-0-1.corp.example", "ip-10-0-0-1.corp.example", "private-dns-name", "ip-10-0-0-1.corp.example"},
			{ResourceName, nameA, idA + ".us-west-2.compute.internal", "instance-id", idA},
			{ResourceName, idA + ".corp.example", idA + ".corp.example", "instance-id", idA},
			{InstanceID, nameA, idA, "instance-id", idA},
		} {
			c := newCloud(instance{idA, strings.ToLower(tc.private), "running", ""})
			s := describing(t, c, func(c *Config) { c.NodeNames = tc.names })
			f := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(tc.node) })
			if f.State != policy.Known || f.Value.ID != idA || f.Value.NodeName != tc.node {
				t.Errorf("%s: %+v", tc.node, f)
			}
			if call := c.called()[0]; call.Get("Filter.1.Name") != tc.filter || !cmp.Equal(values(call, 1), []string{tc.value}) {
				t.Errorf("%s: called with %v", tc.node, call)
			}
		}
		// A name that an instance does not have is not its node's.
		s := describing(t, newCloud(instance{idA, nameA, "running", ""}), func(c *Config) { c.NodeNames = ResourceName })
		if f := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(idA + ".evil.example") }); f.State != policy.Absent {
			t.Errorf("another domain: %+v", f)
		}
	})
}

// EC2 takes * and ? in a filter for any text.
func TestWhatNoInstanceIsCalledIsNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idA, nameA, "running", ""})
		for names, nodes := range map[NodeNames][]string{
			PrivateDNSName: {"*", "ip-10-0-0-?.example", "IP", "a b", "", "a."},
			ResourceName:   {"*", nameA, "i-012345678", idA + ".*", strings.ToUpper(idA) + ".example"},
			InstanceID:     {"i-*", "i-0123456789abcdefg", "i-", nameA, idA + ".example"},
		} {
			s := describing(t, c, func(c *Config) { c.NodeNames = names })
			for _, node := range nodes {
				if f := s.MachineOfNode(node); f.State != policy.Absent {
					t.Errorf("%s: node %q: %+v", names, node, f)
				}
			}
			for _, id := range []string{"", "*", "i-?", "i-0123", "x" + idA, idA + "\n"} {
				if f := s.Machine(id); f.State != policy.Absent {
					t.Errorf("machine %q: %+v", id, f)
				}
			}
		}
		if calls := c.called(); len(calls) > 0 {
			t.Errorf("called with %v", calls)
		}
	})
}

func TestManyLookupsAreFewCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var instances []instance
		var nodes []string
		for n := range 450 {
			nodes = append(nodes, fmt.Sprintf("ip-10-0-%d-%d.example", n/250, n%250))
			instances = append(instances, instance{fmt.Sprintf("i-%017x", n), nodes[n], "running", ""})
		}
		c := newCloud(instances...)
		c.page = 150
		s := describing(t, c, func(c *Config) { c.MaxAge = time.Hour })
		until(t, "all are known", func() bool {
			known := 0
			for _, n := range nodes {
				if s.MachineOfNode(n).State == policy.Known {
					known++
				}
			}
			return known == len(nodes)
		})
		calls, asked := 0, 0
		for _, call := range c.called() {
			if !call.Has("NextToken") {
				calls++
				asked += len(values(call, 1))
			}
		}
		if asked != 450 || calls > 4 {
			t.Errorf("asked for %d names in %d calls, without pages", asked, calls)
		}
	})
}

func TestWhenEC2Fails(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func(w http.ResponseWriter, r *http.Request)
		why  string
	}{
		"throttling": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusServiceUnavailable, "RequestLimitExceeded")
		}, "RequestLimitExceeded"},
		"an error": {func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusInternalServerError, "InternalError")
		}, "InternalError"},
		"no rights": {func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusForbidden, "UnauthorizedOperation") }, "UnauthorizedOperation"},
		"a proxy": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>bad gateway", http.StatusBadGateway)
		}, "502"},
		"no XML": {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "{}") }, "not EC2's"},
		"half the XML": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "<DescribeInstancesResponse><reservationSet><item>")
		}, "EOF"},
		"a hang-up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"pages without end": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, "<DescribeInstancesResponse><reservationSet/><nextToken>x</nextToken></DescribeInstancesResponse>")
		}, "more than 20 pages"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(instance{idA, nameA, "running", ""})
				c.before = func(_ int, w http.ResponseWriter, r *http.Request) bool { tc.fail(w, r); return true }
				s := describing(t, c, nil)
				f := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(nameA) })
				if f.State != policy.Unknown || !strings.Contains(f.Why, tc.why) {
					t.Errorf("got %+v", f)
				}
				if status := s.Status(); !strings.Contains(status.Problem, tc.why) {
					t.Errorf("status %+v", status)
				}
				c.set(func() { c.before = nil })
				until(t, "it is known", func() bool { return s.MachineOfNode(nameA).State == policy.Known })
				if status := s.Status(); status.Problem != "" {
					t.Errorf("status %+v", status)
				}
			})
		})
	}
}

func TestThrottlingOnceIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(instance{idA, nameA, "running", ""})
		c.before = func(call int, w http.ResponseWriter, _ *http.Request) bool {
			if call < 3 {
				refuse(w, http.StatusServiceUnavailable, "RequestLimitExceeded")
			}
			return call < 3
		}
		s := describing(t, c, nil)
		started := time.Now()
		if f := settled(t, func() policy.Fact[policy.Machine] { return s.MachineOfNode(nameA) }); f.State != policy.Known {
			t.Errorf("got %+v", f)
		}
		if n, took := len(c.called()), time.Since(started); n != 3 || took < 600*time.Millisecond {
			t.Errorf("%d calls in %s", n, took)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for name, c := range map[string]Config{
		"no region":                {},
		"another way to name":      {Region: "r", NodeNames: "x"},
		"an endpoint that is none": {Region: "r", Endpoint: "ec2.example"},
		"a filter by name":         {Region: "r", Filters: map[string][]string{"private-dns-name": {"*"}}},
		"a filter by ID":           {Region: "r", Filters: map[string][]string{"instance-id": {"*"}}},
		"a filter by public name":  {Region: "r", Filters: map[string][]string{"dns-name": {"*"}}},
		"a filter by private IPv4": {Region: "r", Filters: map[string][]string{"network-interface.addresses.private-ip-address": {"10.*"}}},
		"a filter by public IPv4":  {Region: "r", Filters: map[string][]string{"network-interface.addresses.association.public-ip": {"*"}}},
		"a filter by IPv6":         {Region: "r", Filters: map[string][]string{"network-interface.ipv6-addresses.ipv6-address": {"*"}}},
		"a filter without values":  {Region: "r", Filters: map[string][]string{"vpc-id": nil}},
		"resource names nowhere":   {NodeNames: ResourceName, Client: describer{}},
	} {
		c.OnChange, c.Logger = func(facts.Change) {}, slog.New(slog.DiscardHandler)
		if _, err := New(t.Context(), c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(t.Context(), Config{Client: describer{}}); err == nil {
		t.Error("without a logger: accepted")
	}
}

func TestAnswersAreReadToALimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "12345") }))
	defer server.Close()
	for most, ok := range map[int64]bool{4: false, 5: true} {
		r, err := http.NewRequest(http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := bounded{http.DefaultClient, most}.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if (err == nil) != ok {
			t.Errorf("with a limit of %d: %v", most, err)
		}
	}
}

type describer struct{ Describer }
