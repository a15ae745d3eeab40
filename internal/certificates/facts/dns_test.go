// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"muster.dev/muster/internal/certificates/policy"
)

// zone answers queries from records in text; "NXDOMAIN", "SERVFAIL" and the like are answered, "-" is not.
type zone struct {
	mu      sync.Mutex
	records map[string][]string // by name and type
	mangle  func(network string, r *dns.Msg)
	queries atomic.Int32
}

func (z *zone) set(key string, records ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.records == nil {
		z.records = map[string][]string{}
	}
	z.records[key] = records
}

func (z *zone) answer(network string, q *dns.Msg) (*dns.Msg, error) {
	z.queries.Add(1)
	z.mu.Lock()
	defer z.mu.Unlock()
	r := new(dns.Msg).SetReply(q)
	question := q.Question[0]
	name := strings.TrimSuffix(question.Name, ".")
	records, ok := z.records[name+" "+dns.TypeToString[question.Qtype]]
	if !ok {
		records, ok = z.records[name]
	}
	if !ok {
		records = []string{"NXDOMAIN"}
	}
	for _, text := range records {
		if text == "-" {
			return nil, context.DeadlineExceeded
		}
		if code, ok := dns.StringToRcode[text]; ok {
			r.Rcode = code
			continue
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		switch rr.Header().Rrtype {
		case dns.TypeSOA, dns.TypeNS:
			r.Ns = append(r.Ns, rr)
		default:
			r.Answer = append(r.Answer, rr)
		}
	}
	if z.mangle != nil {
		z.mangle(network, r)
	}
	return r, nil
}

// asking is a DNS source in a bubble that asks zones instead of servers.
func asking(t *testing.T, c DNSConfig, zones ...*zone) (*DNS, *ear) {
	t.Helper()
	servers := map[string]*zone{}
	for i, z := range zones {
		server := fmt.Sprintf("10.0.0.%d:53", 2+i)
		c.Resolvers = append(c.Resolvers, server)
		servers[server] = z
	}
	e := &ear{}
	c.OnChange, c.Logger = e.hear, e.logger()
	d, err := NewDNS(c)
	if err != nil {
		t.Fatal(err)
	}
	d.exchange = func(ctx context.Context, network, server string, q *dns.Msg) (*dns.Msg, error) {
		r, err := servers[server].answer(network, q)
		if errors.Is(err, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		return r, err
	}
	running(t, d)
	return d, e
}

const soa = "example. 7 IN SOA ns. mail. 1 2 3 4 7"

func TestWhatResolversSay(t *testing.T) {
	known := func(names, addresses string) policy.Fact[policy.Machine] {
		return policy.Fact[policy.Machine]{State: policy.Known, Source: "dns", Value: made("n", "n", names, addresses)}
	}
	absent := policy.Fact[policy.Machine]{State: policy.Absent, Source: "dns"}
	unknown := func(why string) policy.Fact[policy.Machine] { return policy.DontKnow[policy.Machine]("dns", why) }
	good := []string{"n.example. 60 IN A 10.0.0.9", "n.example. 60 IN A 10.0.0.8"}
	good6 := []string{"n.example. 60 IN AAAA 2001:DB8::1"}
	const says, trouble = "the resolvers do not agree about n.example: ", "not all resolvers answered about n.example: "
	for _, tc := range []struct {
		name string
		set  func(a, b *zone)
		want policy.Fact[policy.Machine]
		keep time.Duration
	}{
		{"both agree", func(a, b *zone) {
			a.set("n.example A", good...)
			b.set("n.example A", good[1], good[0])
			a.set("n.example AAAA", good6...)
			b.set("n.example AAAA", good6...)
		}, known("n n.example", "10.0.0.8 10.0.0.9 2001:db8::1"), 30 * time.Second},
		{"one kind only", func(a, b *zone) {
			a.set("n.example AAAA", good6...)
			b.set("n.example AAAA", good6...)
			a.set("n.example A", soa)
			b.set("n.example A", soa)
		}, known("n n.example", "2001:db8::1"), 30 * time.Second},
		{"short-lived for one", func(a, b *zone) {
			a.set("n.example A", good[0])
			b.set("n.example A", "n.example. 11 IN A 10.0.0.9")
		}, known("n n.example", "10.0.0.9"), 11 * time.Second},
		{"too short-lived to be used", func(a, b *zone) {
			a.set("n.example A", "n.example. 0 IN A 10.0.0.9")
			b.set("n.example A", good[0])
		}, known("n n.example", "10.0.0.9"), 5 * time.Second},
		{"an alias", func(a, b *zone) {
			a.set("n.example A", "N.example. 20 IN CNAME M.example.", "m.EXAMPLE. 60 IN CNAME o.example.", "o.example. 60 IN A 10.0.0.9", "p.example. 1 IN A 10.0.0.8")
			b.set("n.example A", good[0])
		}, known("n n.example", "10.0.0.9"), 20 * time.Second},
		{"an alias in circles", func(a, b *zone) {
			for _, z := range []*zone{a, b} {
				z.set("n.example A", "n.example. 20 IN CNAME m.example.", "m.example. 60 IN CNAME n.example.")
			}
		}, absent, 10 * time.Second},
		{"addresses of other names, kinds and classes", func(a, b *zone) {
			for _, z := range []*zone{a, b} {
				z.set("n.example", "m.example. 60 IN A 10.0.0.9", "n.example. 60 CH A 10.0.0.9", "n.example. 60 IN TXT 10.0.0.9")
			}
		}, absent, 10 * time.Second},
		{"the other kind in an answer", func(a, b *zone) {
			for _, z := range []*zone{a, b} {
				z.set("n.example A", good6...)
				z.set("n.example AAAA", good...)
			}
		}, absent, 10 * time.Second},
		{"neither has it", func(_, _ *zone) {}, absent, 10 * time.Second},
		{"neither has it, and it says for how long", func(a, b *zone) { a.set("n.example", "NXDOMAIN", soa) }, absent, 7 * time.Second},
		{"neither has an address", func(a, b *zone) { a.set("n.example", soa); b.set("n.example", soa) }, absent, 7 * time.Second},
		{
			"one has it", func(a, _ *zone) { a.set("n.example A", good...) },
			unknown(says + "10.0.0.2:53 says 10.0.0.8, 10.0.0.9; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"one has more", func(a, b *zone) { a.set("n.example A", good[0]); b.set("n.example A", good...) },
			unknown(says + "10.0.0.2:53 says 10.0.0.9; 10.0.0.3:53 says 10.0.0.8, 10.0.0.9"), leastKept,
		},
		{
			"one fails", func(a, b *zone) { a.set("n.example A", good[0]); b.set("n.example A", "SERVFAIL") },
			unknown(trouble + "10.0.0.2:53 says 10.0.0.9; 10.0.0.3:53 fails: it answers SERVFAIL"), leastKept,
		},
		{"one refuses one kind", func(a, b *zone) {
			a.set("n.example A", good[0])
			b.set("n.example A", good[0])
			b.set("n.example AAAA", "REFUSED")
		}, unknown(trouble + "10.0.0.2:53 says 10.0.0.9; 10.0.0.3:53 fails: it answers REFUSED"), leastKept},
		{
			"one is silent", func(_, b *zone) { b.set("n.example", "-") },
			unknown(trouble + "10.0.0.2:53 says that it does not exist; 10.0.0.3:53 fails: no answer within 2s"), leastKept,
		},
		{
			"addresses of a name that does not exist", func(a, _ *zone) { a.set("n.example A", "NXDOMAIN", good[0]) },
			unknown(trouble + "10.0.0.2:53 fails: it gives addresses to a name that does not exist; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"one only knows whom to ask", func(a, _ *zone) { a.set("n.example", "example. 60 IN NS ns.example.") },
			unknown(trouble + "10.0.0.2:53 fails: it says whom else to ask; a resolver must ask by itself; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"another number", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Id++ } },
			unknown(trouble + "10.0.0.2:53 fails: it answers something else; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"a question", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Response = false } },
			unknown(trouble + "10.0.0.2:53 fails: it answers something else; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"no question", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Question = nil } },
			unknown(trouble + "10.0.0.2:53 fails: it answers something else; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"another question", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Question[0].Name = "m.example." } },
			unknown(trouble + "10.0.0.2:53 fails: it answers about m.example.; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"another kind of question", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Question[0].Qtype = dns.TypeTXT } },
			unknown(trouble + "10.0.0.2:53 fails: it answers about n.example.; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{
			"longer than can be", func(a, _ *zone) { a.mangle = func(_ string, r *dns.Msg) { r.Truncated = true } },
			unknown(trouble + "10.0.0.2:53 fails: the answer is too long; 10.0.0.3:53 says that it does not exist"), leastKept,
		},
		{"more addresses than a machine has", func(a, _ *zone) {
			var many []string
			for n := range maxOfHost + 1 {
				many = append(many, fmt.Sprintf("n.example. 60 IN A 10.0.1.%d", n))
			}
			a.set("n.example A", many...)
		}, unknown(trouble + "10.0.0.2:53 fails: it has 65 addresses, more than 64; 10.0.0.3:53 says that it does not exist"), leastKept},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := &zone{}, &zone{}
				tc.set(a, b)
				d, e := asking(t, DNSConfig{Domain: "Example."}, a, b)
				asked := time.Now()
				soon(t, d.MachineOfNode("n"))
				elapse(4500 * time.Millisecond) // two tries of 2 s each
				answered := time.Now()
				f := d.MachineOfNode("n")
				if f.State != policy.Unknown && f.At.Before(asked) || f.At.After(answered) {
					t.Errorf("at %v", f.At)
				}
				if diff := cmp.Diff(tc.want, f, cmpopts.EquateComparable(netip.Addr{}), cmpopts.IgnoreFields(f, "At")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if len(e.heard()) != 1 {
					t.Error("that it was looked up was not told once")
				}
				if _, keep := d.lookUp(t.Context(), "n"); keep != tc.keep {
					t.Errorf("it is good for %s, want %s", keep, tc.keep)
				}
			})
		})
	}
}

func TestNamesThatAreLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set("example A", "example. 60 IN A 10.0.0.1")
		z.set("n.example A", "n.example. 60 IN A 10.0.0.2")
		z.set("notexample.example A", "notexample.example. 60 IN A 10.0.0.3")
		d, _ := asking(t, DNSConfig{Domain: "example"}, z)
		for node, want := range map[string][]string{"example": {"example"}, "n.example": {"n.example"}, "notexample": {"notexample", "notexample.example"}} {
			d.MachineOfNode(node)
			synctest.Wait()
			if f := d.Machine(node); f.State != policy.Known || f.Value.ID != node || f.Value.NodeName != node || !cmp.Equal(f.Value.Names, want) {
				t.Errorf("%s: %+v", node, f)
			}
		}
		if f := d.Owners("10.0.0.2"); !cmp.Equal(ids(f.Value), []string{"n.example"}) {
			t.Errorf("owners %+v", f)
		}
		if f := d.Owners("n.example"); !cmp.Equal(ids(f.Value), []string{"n.example"}) {
			t.Errorf("owners %+v", f)
		}
		asked := z.queries.Load()
		for _, node := range []string{"", "N", "n.", ".n", "a b", "*", "n\x00", "n\\.x", strings.Repeat("a.", 125) + "aa"} {
			if f := d.MachineOfNode(node); f.State != policy.Absent {
				t.Errorf("%q: %+v", node, f)
			}
		}
		synctest.Wait()
		if z.queries.Load() != asked {
			t.Error("a name that nobody can have was looked up")
		}
	})
}

func TestDNSTriesTwiceAndByTCP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z, lost := &zone{}, 0
		z.set("n A", "n. 60 IN A 10.0.0.1")
		z.mangle = func(network string, r *dns.Msg) {
			switch {
			case r.Question[0].Qtype == dns.TypeAAAA && r.IsEdns0() == nil && lost == 0:
				lost++
				r.Rcode = dns.RcodeFormatError
			case network == "udp":
				r.Truncated, r.Answer = true, nil
			}
		}
		d, _ := asking(t, DNSConfig{}, z)
		d.MachineOfNode("n")
		synctest.Wait()
		if f := d.MachineOfNode("n"); f.State != policy.Known || lost != 1 {
			t.Errorf("got %+v, lost %d", f, lost)
		}
	})
}

func TestDNSIsAskedBoundedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, _ := asking(t, DNSConfig{Workers: 3, Most: 50}, &zone{})
		var now, most atomic.Int32
		inner := d.exchange
		d.exchange = func(ctx context.Context, network, server string, q *dns.Msg) (*dns.Msg, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			elapse(time.Second)
			return inner(ctx, network, server, q)
		}
		for n := range 1000 {
			d.MachineOfNode(fmt.Sprint("n", n))
		}
		elapse(time.Minute)
		if n := most.Load(); n != 6 { // a name is two queries
			t.Errorf("%d queries at once", n)
		}
		if n := len(d.answers.entries); n != 50 {
			t.Errorf("%d answers are kept", n)
		}
	})
}

func TestTroubleWithDNSIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &zone{}
		z.set("bad", "SERVFAIL")
		d, e := asking(t, DNSConfig{}, z)
		if s := d.Status(); s != (SourceStatus{Name: "dns", Synced: true}) {
			t.Errorf("before it was asked: %+v", s)
		}
		for range 5 {
			d.MachineOfNode("bad")
			elapse(6 * time.Second)
		}
		if s := d.Status(); s.Age != 30*time.Second || !strings.Contains(s.Problem, "10.0.0.2:53 fails: it answers SERVFAIL") {
			t.Errorf("when it fails: %+v", s)
		}
		if n := e.logged("does not answer"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		d.MachineOfNode("good")
		synctest.Wait()
		if s := d.Status(); s != (SourceStatus{Name: "dns", Synced: true}) {
			t.Errorf("when it works: %+v", s)
		}
		elapse(time.Minute)
		d.MachineOfNode("bad")
		synctest.Wait()
		if n := e.logged("does not answer"); n != 2 {
			t.Errorf("logged %d times", n)
		}
	})
}
