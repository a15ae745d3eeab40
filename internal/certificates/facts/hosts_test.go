// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/policy"
)

func host(name string, addresses ...string) policy.Machine {
	m := policy.Machine{ID: HostID(name), NodeName: name}
	for _, a := range addresses {
		m.Addresses = append(m.Addresses, netip.MustParseAddr(a))
	}
	return m
}

func TestHostsComeAndGo(t *testing.T) {
	list := []byte("# mine\nmachines:\n- {id: rack-1, nodeName: other, names: [o.example], addresses: [10.0.0.9], group: g}\n")
	for _, step := range []struct {
		what    string
		add     policy.Machine
		remove  string
		changed bool
		want    string // names, in order
		says    string
	}{
		{what: "the first", add: host("worker-1", "10.0.0.1", "fd00::1"), changed: true, want: "other worker-1"},
		{what: "again", add: host("worker-1", "10.0.0.1", "fd00::1"), want: "other worker-1"},
		{what: "another", add: host("worker-2", "10.0.0.2"), changed: true, want: "other worker-1 worker-2"},
		{what: "another address", add: host("worker-1", "10.0.0.3"), changed: true, want: "other worker-1 worker-2"},
		{what: "a name that is there", add: host("other", "10.0.0.4"), says: "node other is machine rack-1 already: take it from machine rack-1 in the list first"},
		{what: "an address that is there", add: host("worker-3", "10.0.0.2"), says: "the address 10.0.0.2 is that of worker-2: `muster delete host worker-2` forgets that one"},
		{what: "an address of one listed by hand", add: host("worker-3", "10.0.0.9"), says: "the address 10.0.0.9 is that of other: take it from machine rack-1 in the list first"},
		{what: "no name", add: host("A B", "10.0.0.4"), says: "is not a node's name"},
		{what: "gone", remove: "worker-1", changed: true, want: "other worker-2"},
		{what: "gone already", remove: "worker-1", want: "other worker-2"},
		{what: "not ours", remove: "other", want: "other worker-2"},
	} {
		var out []byte
		var changed bool
		var err error
		if step.remove != "" {
			out, changed, err = RemoveMachine(list, HostID(step.remove))
		} else {
			out, changed, err = AddMachine(list, step.add)
		}
		if step.says != "" {
			if err == nil || !strings.Contains(err.Error(), step.says) {
				t.Errorf("%s: %v", step.what, err)
			}
			continue
		}
		if err != nil || changed != step.changed {
			t.Fatalf("%s: changed %v, %v", step.what, changed, err)
		}
		list = out
		all, err := ReadList(list)
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		var names []string
		for _, m := range all {
			names = append(names, m.NodeName)
		}
		if got := strings.Join(names, " "); got != step.want {
			t.Errorf("%s: %s", step.what, got)
		}
	}
	all, err := ReadList(list)
	want := []policy.Machine{{ID: "rack-1", NodeName: "other", Names: []string{"o.example"}, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")}, Group: "g"}, host("worker-2", "10.0.0.2")}
	if diff := cmp.Diff(want, all, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	list = []byte("machines: [{id: host-a, nodeName: a}]")
	if list, _, err = RemoveMachine(list, "host-a"); err != nil {
		t.Fatal(err)
	}
	if all, err := ReadList(list); err != nil || len(all) > 0 {
		t.Errorf("the last one gone: %v, %v", all, err)
	}
	if _, _, err := AddMachine([]byte("trash"), host("a")); err == nil {
		t.Error("trash was overwritten")
	}
}
