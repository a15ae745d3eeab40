// SPDX-License-Identifier: Apache-2.0

package hostagent

import (
	"bytes"
	"testing"
)

// FuzzDecode reads one text as every request. A request that is taken is valid, and is the same when it is sent on.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"provider":"any"}`, `{"provider":"any","id":"i-0123456789abcdef0"}`, `{"provider":"any","id":"../../etc"}`,
		`{"provider":"any","id":"i-0123456789abcdef0","address":"127.0.0.1:80"}`, `{"provider":"any","id":"i-0123456789abcdef0","address":"[fe80::1%eth0]:80"}`,
		`{"provider":"any","request":{"id":"i-0123456789abcdef0","userData":"dG9sZA==","pods":8,"securityGroups":["sg-0123456789abcdef0"]}}`,
		`{"provider":"any","mount":{"machine":"i-0123456789abcdef0","volume":{"cluster":"blue","fileSystemID":"fs-00000000000000001","path":"/db"},"target":"/var/lib/x"}}`,
		`{"provider":"any","id":"i-0123456789abcdef0","target":"/var/lib/../x"}`, `{"provider":"any","cluster":"blue"}`,
		`{"provider":"any","volume":{"fileSystemID":"fs-00000000000000001","path":"/db","disk":"fsap-00000000000000001"}}`,
		`{"namespaces":["blue"],"image":"docker.io/library/web:dev"}`, `{"names":["docker.io/library/web:dev"],"namespaces":["../blue"]}`, `{"namespace":"blue"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		again[Machine](t, raw)
		again[List](t, raw)
		again[Launch](t, raw)
		again[Dial](t, raw)
		again[Mount](t, raw)
		again[Unmount](t, raw)
		again[Volume](t, raw)
		again[Sweep](t, raw)
		again[Listen](t, raw)
		again[Load](t, raw)
		again[Unload](t, raw)
		again[Shown](t, raw)
	})
}

func again[Q request](t *testing.T, raw []byte) {
	t.Helper()
	ask, err := decode[Q](raw)
	if err != nil {
		return
	}
	first, err := encode(ask)
	if err != nil {
		t.Fatal(err)
	}
	same, err := decode[Q](first)
	if err != nil {
		t.Fatalf("%s is taken as %s, which is refused: %v", raw, first, err)
	}
	if second, err := encode(same); err != nil || !bytes.Equal(first, second) {
		t.Fatalf("%s becomes %s, %v", first, second, err)
	}
}
