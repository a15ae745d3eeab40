// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/policy"
)

const goodList = `# of the data centre
---
machines:
- id: rack-1/7
  nodeName: worker-1.corp.example
  names: [worker-1, worker-1.corp.example]
  addresses: ["10.0.0.1", "2001:DB8::1", "::ffff:10.0.0.2"]
  group: workers
- {id: b, nodeName: 10.0.0.9, addresses: [10.0.0.9]}
`

func TestReadList(t *testing.T) {
	got, err := ReadList([]byte(goodList))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Machine{
		{
			ID: "rack-1/7", NodeName: "worker-1.corp.example", Names: []string{"worker-1", "worker-1.corp.example"}, Group: "workers",
			Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.2")},
		},
		{ID: "b", NodeName: "10.0.0.9", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := ReadList([]byte("machines: []")); err != nil || len(got) > 0 {
		t.Errorf("no machines: %v, %v", got, err)
	}
}

func TestReadListOfRanges(t *testing.T) {
	list, err := ReadList([]byte(`machines:
- {id: a, nodeName: a, addresses: [10.0.3.7], addressRanges: [10.0.3.0/24, "2001:db8::/64", 10.0.3.0/24], created: 2026-11-22T10:00:00+01:00}
- {id: b, nodeName: b, addressRanges: ["2001:db8::/64", 10.0.4.0/24]}
- {id: c, nodeName: c, addresses: [10.0.5.1]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := list[0].Ranges; len(got) != 2 || got[0] != netip.MustParsePrefix("10.0.3.0/24") || got[1] != netip.MustParsePrefix("2001:db8::/64") {
		t.Errorf("ranges %v", got)
	}
	if got := list[0].Created.UTC().Format(time.RFC3339); got != "2026-11-22T09:00:00Z" {
		t.Errorf("created %s", got)
	}
	r := newRoll(list)
	for address, want := range map[string]string{
		"10.0.3.7": "a", "10.0.3.8": "a", "10.0.4.255": "b", "10.0.5.1": "c", "10.0.5.2": "", "2001:db8::1": "a b", "2001:db8:1::1": "", "10.0.3": "", "": "",
	} {
		found, err := r.find(byName, address)
		var ids []string
		for _, m := range found {
			ids = append(ids, m.ID)
		}
		if err != nil || strings.Join(ids, " ") != want {
			t.Errorf("%q is that of %v, %v; want %q", address, ids, err, want)
		}
	}
	// A list that is written again says the same.
	out, err := writeList(list)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadList(out)
	equal := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateApproxTime(0)}
	if diff := cmp.Diff(list, again, equal); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestReadListRefuses(t *testing.T) {
	const ok = "{id: a, nodeName: a}"
	of := func(machines ...string) string { return "machines: [" + strings.Join(machines, ", ") + "]" }
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":                      {"", "no key machines"},
		"null":                         {"machines:", "no key machines"},
		"not YAML":                     {"machines: [", "reading the list"},
		"a list":                       {"[]", "reading the list"},
		"another key":                  {of(ok) + "\nmachine: []", `unknown field "machine"`},
		"another key of a machine":     {of("{id: a, nodeName: a, address: []}"), `unknown field "machines[0].address"`},
		"a key in another case":        {of("{ID: a, nodeName: a}"), `unknown field "machines[0].ID"`},
		"a key twice":                  {of("{id: a, nodeName: a, id: b}"), "already set"},
		"all keys twice":               {of(ok) + "\nmachines: []", "already set"},
		"a second document":            {of(ok) + "\n---\n" + of(ok), "several YAML documents"},
		"a second document after none": {"---\n" + of(ok) + "\r\n--- # more\nmachines: []", "several YAML documents"},
		"what follows an end":          {of(ok) + "\n...\nmachines: []", "several YAML documents"},
		"no ID":                        {of("{nodeName: a}"), `machines[0].id: "" is not an ID`},
		"an ID with a space":           {of("{id: a b, nodeName: a}"), "machines[0].id"},
		"an ID with a control":         {of(`{id: "a\u0007", nodeName: a}`), "machines[0].id"},
		"a long ID":                    {of("{id: " + strings.Repeat("a", 254) + ", nodeName: a}"), "machines[0].id"},
		"no node name":                 {of("{id: a}"), "machines[0].nodeName"},
		"an upper-case node name":      {of("{id: a, nodeName: A}"), "machines[0].nodeName"},
		"a group with a space":         {of("{id: a, nodeName: a, group: a b}"), "machines[0].group"},
		"a wildcard":                   {of(`{id: a, nodeName: a, names: ["*.a"]}`), "machines[0].names[0]"},
		"a name with a dot at the end": {of(`{id: a, nodeName: a, names: [b, a.]}`), "machines[0].names[1]"},
		"an empty name":                {of(`{id: a, nodeName: a, names: [""]}`), "machines[0].names[0]"},
		"an address as a name":         {of(`{id: a, nodeName: a, names: [10.0.0.1]}`), "machines[0].names[0]"},
		"a name as an address":         {of(`{id: a, nodeName: a, addresses: [b]}`), "machines[0].addresses[0]"},
		"a range":                      {of(`{id: a, nodeName: a, addresses: [10.0.0.0/24]}`), "machines[0].addresses[0]"},
		"a zone":                       {of(`{id: a, nodeName: a, addresses: ["fe80::1%eth0"]}`), "machines[0].addresses[0]"},
		"loopback":                     {of(`{id: a, nodeName: a, addresses: ["::ffff:127.0.0.1"]}`), "machines[0].addresses[0]"},
		"any address":                  {of(`{id: a, nodeName: a, addresses: ["::"]}`), "machines[0].addresses[0]"},
		"multicast":                    {of(`{id: a, nodeName: a, addresses: [224.0.0.1]}`), "machines[0].addresses[0]"},
		"a range in the middle":        {of(`{id: a, nodeName: a, addressRanges: [10.0.3.7/24]}`), "machines[0].addressRanges[0]: 10.0.3.7/24 begins in the middle of a range; write 10.0.3.0/24"},
		"a range of one":               {of(`{id: a, nodeName: a, addressRanges: [10.0.3.7/32]}`), "write it under addresses"},
		"an address as a range":        {of(`{id: a, nodeName: a, addressRanges: [10.0.3.7]}`), "not a range of addresses"},
		"everything as a range":        {of(`{id: a, nodeName: a, addressRanges: [0.0.0.0/1]}`), "too wide"},
		"all of IPv6 as a range":       {of(`{id: a, nodeName: a, addressRanges: ["2000::/8"]}`), "too wide; use /32"},
		"a mapped range":               {of(`{id: a, nodeName: a, addressRanges: ["::ffff:10.0.0.0/120"]}`), "not a range of addresses"},
		"loopback as a range":          {of(`{id: a, nodeName: a, addressRanges: [127.0.0.0/8]}`), "holds no addresses of machines"},
		"another's in a range":         {of("{id: a, nodeName: a, addressRanges: [10.1.0.0/16, 10.0.3.0/24]}", "{id: b, nodeName: b, addresses: [10.0.3.7]}"), "line 1: machines[0].addressRanges[1]: 10.0.3.0/24 has the address 10.0.3.7 of machine b in it"},
		"another's name in a range":    {of("{id: b, nodeName: 10.0.3.7}", "{id: a, nodeName: a, addressRanges: [10.0.3.0/24]}"), "machines[1].addressRanges[0]: 10.0.3.0/24 has the address 10.0.3.7"},
		"many ranges":                  {of("{id: a, nodeName: a, addressRanges: [" + strings.Repeat("10.0.3.0/24,", maxOfMachine) + "10.0.3.0/24]}"), "may have 64"},
		"no time":                      {of("{id: a, nodeName: a, created: yesterday}"), `machines[0].created: "yesterday" is not a time such as`},
		"a line of a problem":          {"machines:\n- {id: a, nodeName: a}\n- id: b\n  nodeName: [b]\n  group: {}\n", "line 4: machines[1].nodeName: Invalid value: array: must be text, in quotes if it looks like something else; line 5: machines[1].group"},
		"a number":                     {of("{id: 1, nodeName: a}"), "reading the list"},
		"two of an ID":                 {of(ok, "{id: a, nodeName: b}"), `machines[1].id: "a" is at machines[0].id, too`},
		"two of a node name":           {of(ok, "{id: b, nodeName: a}"), `machines[1].nodeName: "a" is at machines[0].nodeName, too`},
		"another's node name":          {of(ok, "{id: b, nodeName: b, names: [a]}"), `machines[1].names[0]: "a" is at machines[0].nodeName, too`},
		"another's name in capitals":   {of(ok, "{id: b, nodeName: b, names: [A]}"), `machines[1].names[0]: "a" is at machines[0].nodeName, too`},
		"two of an address":            {of("{id: a, nodeName: a, addresses: [10.0.0.1]}", `{id: b, nodeName: b, addresses: ["::ffff:10.0.0.1"]}`), "machines[1].addresses[0]"},
		"an address that is a node":    {of("{id: a, nodeName: 10.0.0.1}", "{id: b, nodeName: b, addresses: [10.0.0.1]}"), "machines[1].addresses[0]"},
		"many names":                   {of("{id: a, nodeName: a, names: [" + strings.Repeat("a,", maxOfMachine) + "a]}"), "may have 64"},
		"many machines":                {of(strings.Repeat(ok+",", maxMachines) + ok), "more than 50000"},
		"many bytes":                   {of(ok) + "#" + strings.Repeat(" ", maxList), "16 MiB"},
	} {
		got, err := ReadList([]byte(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", name, got, err, tc.want)
		}
	}
}

// kubectl's form of a node's status may say a thing twice, or in capitals.
func TestAMachineMayRepeatItself(t *testing.T) {
	got, err := ReadList([]byte(`machines: [{id: a, nodeName: 10.0.0.1, names: [B.example, b.example, c], addresses: [10.0.0.1, "::ffff:10.0.0.1", 10.0.0.2, 10.0.0.2]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Machine{{
		ID: "a", NodeName: "10.0.0.1", Names: []string{"b.example", "c"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")},
	}}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
}

func TestAllProblemsOfAListAreTold(t *testing.T) {
	var machines []string
	for n := range 15 {
		machines = append(machines, fmt.Sprintf("{id: a%d, nodeName: A}", n))
	}
	_, err := ReadList([]byte("machines: [" + strings.Join(machines, ",") + "]"))
	if err == nil || strings.Count(err.Error(), "is not a node's name") != maxProblems || !strings.HasSuffix(err.Error(), "and 5 more") {
		t.Errorf("got %v", err)
	}
}

// Policies can compare all values that are read, and no value belongs to two machines.
func FuzzReadList(f *testing.F) {
	f.Add([]byte(goodList))
	f.Add([]byte("machines: [{id: a, nodeName: a, names: [b], addresses: [10.0.0.1], group: g}, {id: b, nodeName: c}]"))
	f.Add([]byte("a: &a [x, x, x]\nb: &b [*a, *a, *a]\nmachines: [*b, *b]\n"))
	f.Add([]byte("machines:\n- <<: {id: a}\n  nodeName: a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		machines, err := ReadList(data)
		if err != nil {
			return
		}
		owners, ids := map[string]string{}, map[string]bool{}
		for _, m := range machines {
			if m.ID == "" || ids[m.ID] || !validName(m.NodeName) {
				t.Fatalf("%+v", m)
			}
			ids[m.ID] = true
			for _, name := range namesOf(m) {
				if other, ok := owners[name]; ok && other != m.ID {
					t.Fatalf("%q belongs to %s and %s", name, other, m.ID)
				}
				owners[name] = m.ID
			}
			for _, n := range m.Names {
				if n != canonicalName(n) || strings.ContainsAny(n, "* ") {
					t.Fatalf("name %q", n)
				}
			}
			for _, a := range m.Addresses {
				if a != a.Unmap() || a.Zone() != "" || a.IsLoopback() {
					t.Fatalf("address %v", a)
				}
			}
		}
	})
}
