// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeSaying is a Node whose status says all this: kinds of addresses and addresses, in turn.
func nodeSaying(name, id string, says ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.SystemUUID = id
	for i := 0; i+1 < len(says); i += 2 {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(says[i]), Address: says[i+1]})
	}
	return n
}

func listOf(t *testing.T, nodes ...corev1.Node) (list string, leftOut map[string]string) {
	t.Helper()
	out, left, err := ListOfNodes(nodes)
	if err != nil {
		t.Fatal(err)
	}
	leftOut = map[string]string{}
	for _, l := range left {
		leftOut[l.Node] = l.Why
	}
	return string(out), leftOut
}

func TestListOfNodes(t *testing.T) {
	list, leftOut := listOf(t,
		nodeSaying("plain", "1", "InternalIP", "10.0.0.5", "InternalIP", "2001:DB8::5", "Hostname", "plain"),
		nodeSaying("named-otherwise", "2", "InternalIP", "10.0.0.9", "Hostname", "Host9.example.com."),
		nodeSaying("10.0.0.7", "3", "InternalIP", "10.0.0.7", "Hostname", "10.0.0.7", "ExternalIP", "::ffff:198.51.100.7"),
		nodeSaying("repeats", "4", "InternalIP", "10.0.0.11", "ExternalIP", "10.0.0.11", "InternalDNS", "a.b", "ExternalDNS", "A.b"),
	)
	const want = `machines:
- addresses:
  - 10.0.0.7
  - 198.51.100.7
  id: "3"
  nodeName: 10.0.0.7
- addresses:
  - 10.0.0.9
  id: "2"
  names:
  - host9.example.com
  nodeName: named-otherwise
- addresses:
  - 10.0.0.5
  - 2001:db8::5
  id: "1"
  nodeName: plain
- addresses:
  - 10.0.0.11
  id: "4"
  names:
  - a.b
  nodeName: repeats
`
	if diff := cmp.Diff(want, list); diff != "" || len(leftOut) > 0 {
		t.Errorf("%v (-want +got):\n%s", leftOut, diff)
	}
}

// Names that YAML takes for something else than text are names.
func TestListOfNodesWithNamesLikeNumbers(t *testing.T) {
	names := []string{"1234", "0x10", "1e3", "0o17", "010", "1.5", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "0b1", "2026-11-22", "12e03", "nan", "inf"}
	var nodes []corev1.Node
	for i, name := range names {
		nodes = append(nodes, nodeSaying(name, name, "InternalIP", fmt.Sprintf("10.0.0.%d", i+1), "Hostname", name+"0", "InternalDNS", name+".e5"))
	}
	list, leftOut := listOf(t, nodes...)
	machines, err := ReadList([]byte(list))
	if err != nil || len(leftOut) > 0 {
		t.Fatalf("%v, %v in:\n%s", err, leftOut, list)
	}
	got := map[string]bool{}
	for _, m := range machines {
		got[m.NodeName] = m.ID == m.NodeName && len(m.Names) == 2
	}
	for _, name := range names {
		if !got[name] {
			t.Errorf("%s is not in:\n%s", name, list)
		}
	}
}

// Whatever a node says of itself, the list has at most that node, and never anything else than its name, addresses and
// ID.
func TestListOfNodesThatLie(t *testing.T) {
	const injected = "x\n- id: evil\n  nodeName: evil\n  addresses: [\"10.0.0.66\"]"
	honest := nodeSaying("honest", "h", "InternalIP", "10.0.0.1", "Hostname", "honest")
	for name, says := range map[string][]string{
		"a host's name of several lines":     {"i", "Hostname", injected},
		"an address of several lines":        {"i", "InternalIP", "10.0.0.2\n- 10.0.0.3"},
		"an address in quotes":               {"i", "InternalIP", "10.0.0.2\", \"10.0.0.3"},
		"a range":                            {"i", "InternalIP", "10.0.0.0/8"},
		"an address with a zone":             {"i", "InternalIP", "fe80::1%eth0"},
		"loopback":                           {"i", "InternalIP", "127.0.0.1"},
		"an ID of several lines":             {injected, "InternalIP", "10.0.0.2"},
		"an ID with a comment":               {"i # x", "InternalIP", "10.0.0.2"},
		"no ID":                              {"", "InternalIP", "10.0.0.2"},
		"a name with a quote":                {"i", "Hostname", "a'b"},
		"a name that is a map":               {"i", "Hostname", "{a: b}"},
		"an anchor":                          {"i", "Hostname", "&a"},
		"letters that look like others":      {"i", "Hostname", "hоnest.example"}, // a Cyrillic о
		"a line break of Unicode":            {"i", "InternalDNS", "a\u2028b"},
		"a wildcard":                         {"i", "InternalDNS", "*.example.com"},
		"another kind":                       {"i", "Nickname", "a"},
		"a kind of several lines":            {"i", injected, "a"},
		"a control character":                {"i", "Hostname", "a\x1b[2Jb"},
		"too many":                           append([]string{"i"}, strings.Split(strings.Repeat("InternalIP,10.0.0.2,", maxOfMachine+1)+"Hostname,a", ",")...),
		"the honest node's name":             {"i", "Hostname", "honest"},
		"the honest node's name in capitals": {"i", "InternalDNS", "HONEST."},
	} {
		list, leftOut := listOf(t, honest, nodeSaying("liar", says[0], says[1:]...))
		machines, err := ReadList([]byte(list))
		if err != nil || len(machines) != 1 || machines[0].NodeName != "honest" || len(leftOut) != 1 || leftOut["liar"] == "" || strings.ContainsAny(leftOut["liar"], "\n\x1b\u2028") {
			t.Errorf("%s: left out %q, %v in:\n%s", name, leftOut, err, list)
		}
	}
}

// Of two nodes that say they have the same, nobody knows which one is right.
func TestListOfNodesThatContradict(t *testing.T) {
	a := nodeSaying("a", "a", "InternalIP", "10.0.0.1")
	b := nodeSaying("b", "b", "InternalIP", "::ffff:10.0.0.1")
	c := nodeSaying("c", "c", "InternalIP", "10.0.0.3")
	list, leftOut := listOf(t, a, b, c)
	want := map[string]string{
		"a": "it says that it has 10.0.0.1, and so does node b",
		"b": "it says that it has 10.0.0.1, and so does node a",
	}
	if diff := cmp.Diff(want, leftOut); diff != "" || strings.Contains(list, "10.0.0.1") || !strings.Contains(list, "nodeName: c") {
		t.Errorf("(-want +got):\n%s\n%s", diff, list)
	}
}

// Containers of one host have the UUID of its hardware, and IDs of their own.
func TestListOfNodesOfOneHost(t *testing.T) {
	a, b, c := nodeSaying("a", "same"), nodeSaying("b", "same"), nodeSaying("c", "same")
	a.Status.NodeInfo.MachineID, b.Status.NodeInfo.MachineID = "ma", "mb"
	list, leftOut := listOf(t, a, b, c)
	if !strings.Contains(list, "id: ma") || !strings.Contains(list, "id: mb") || strings.Contains(list, "same") || len(leftOut) != 1 || !strings.Contains(leftOut["c"], "neither a systemUUID nor a machineID") {
		t.Errorf("left out %v in:\n%s", leftOut, list)
	}
	b.Status.NodeInfo.MachineID = "ma"
	if _, leftOut := listOf(t, a, b); leftOut["a"] != "it says that it has ID ma, and so does node b" {
		t.Errorf("left out %v", leftOut)
	}
}

func FuzzListOfNodes(f *testing.F) {
	f.Add("b", "Hostname", "x\n- id: evil", "uuid")
	f.Add("1e3", "InternalIP", "10.0.0.1", "null")
	f.Fuzz(func(t *testing.T, name, kind, address, id string) {
		list, leftOut, err := ListOfNodes([]corev1.Node{nodeSaying("a", "a", "InternalIP", "10.0.0.9"), nodeSaying(name, id, kind, address)})
		if err != nil {
			t.Fatal(err)
		}
		machines, err := ReadList(list)
		if err != nil || len(machines)+len(leftOut) != 2 {
			t.Fatalf("%d machines, left out %v, %v", len(machines), leftOut, err)
		}
		for _, m := range machines {
			if m.NodeName != "a" && m.NodeName != name {
				t.Errorf("machine %+v", m)
			}
		}
	})
}
