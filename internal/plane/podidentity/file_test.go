// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod-identity-webhook", "associations.json")
	for _, c := range []struct {
		accounts []ServiceAccount
		want     string
	}{
		{nil, `{"identities":[]}`},
		{[]ServiceAccount{{Namespace: "a", Name: "b"}}, `{"identities":[{"namespace":"a","serviceAccount":"b"}]}`},
	} {
		if err := WriteFile(path, c.accounts); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil || string(raw) != c.want+"\n" {
			t.Errorf("%s, %v; want %s", raw, err, c.want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Fatal(info, err)
	}
	// What says the same is not written again: the webhook would read it for nothing.
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []ServiceAccount{{Namespace: "a", Name: "b"}}); err != nil {
		t.Fatal(err)
	}
	if info, err = os.Stat(path); err != nil || !info.ModTime().Equal(before) {
		t.Errorf("it was written again: %v, %v", info.ModTime(), err)
	}
}
