// SPDX-License-Identifier: Apache-2.0

package frontservers

import (
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		`{"servers":[{"address":"127.0.0.1:1"},{"address":"127.0.0.1:2","draining":true}]}`: "",
		`{"servers":[]}`: "",
		`{"servers":[{"address":"10.0.0.1:1"},{"address":"127.0.0.1:0"}]}`:                               "servers[0].address is 10.0.0.1:1: it must be a port on loopback\nservers[1].address is 127.0.0.1:0",
		`{"servers":[{"address":"127.0.0.1:1"},{"address":"127.0.0.1:1"}]}`:                              "servers[1].address is 127.0.0.1:1, as of a server before it",
		`{"servers":[` + strings.Repeat(`{"address":"127.0.0.1:1"},`, 8) + `{"address":"127.0.0.1:2"}]}`: "servers has 9 entries: a front has at most 8",
		`{"servers":[],"more":1}`:               "unknown field",
		`{"servers":[]}{}`:                      "goes on after its end",
		`{"servers":[{"address":"localhost"}]}`: "reading the file of servers",
		"":                                      "reading the file of servers",
		strings.Repeat(" ", MaxSize+1):          "has more than 16384 bytes",
	} {
		_, err := Read([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"servers":[{"address":"127.0.0.1:1"},{"address":"[::1]:2","draining":true}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		servers, err := Read(raw)
		if err != nil {
			return
		}
		if same, err := Read(Marshal(servers)); err != nil || !slices.Equal(same, servers) {
			t.Fatalf("%v, %v; want %v", same, err, servers)
		}
	})
}
