// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// Settings that the user leaves out stay as the machine has them: a search domain that is added takes no name server
// away.
func TestResolverOfAMachine(t *testing.T) {
	scene := readScene(t, "testdata/cases/machine-plain")
	scene.facts.NameServers, scene.facts.SearchDomains = []string{"192.168.64.2"}, []string{"ec2.internal"}
	for _, c := range []struct {
		network nodeconfig.Network
		want    string
	}{
		{nodeconfig.Network{}, ""},
		{nodeconfig.Network{Domains: []string{"example.com"}}, "nameserver 192.168.64.2\nsearch example.com\n"},
		{nodeconfig.Network{Nameservers: []string{"10.0.0.2"}}, "nameserver 10.0.0.2\nsearch ec2.internal\n"},
		{nodeconfig.Network{Nameservers: []string{"10.0.0.2"}, Domains: []string{"example.com"}}, "nameserver 10.0.0.2\nsearch example.com\n"},
	} {
		scene.spec.Instance.Network = c.network
		files, err := render.Files(scene.spec, scene.instance, scene.facts, scene.layout)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, file := range files {
			if file.Path == "/etc/resolv.conf" {
				got = string(file.Content)
			}
		}
		if got != c.want {
			t.Errorf("%+v: /etc/resolv.conf is %q, want %q", c.network, got, c.want)
		}
	}
}
