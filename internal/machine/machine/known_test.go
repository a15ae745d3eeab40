// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/platform/atomicfile"
)

// A record is read again when its file is another one, and only then.
func TestKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), RecordFile)
	var k known
	write := func(name string) {
		t.Helper()
		text := fmt.Sprintf(`{"id": "i-1", "privateIP": "10.0.0.1", "privateDNSName": %q, "zone": "us-east-1a"}`, name)
		if err := atomicfile.Replace(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := k.read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before there is one: %v", err)
	}
	for _, name := range []string{"one", "two"} { // of the same size
		write(name)
		for range 2 {
			if record, err := k.read(path); err != nil || record.PrivateDNSName != name {
				t.Errorf("%q, %v, want %q", record.PrivateDNSName, err, name)
			}
		}
	}
	k.records[path] = knownRecord{Record{PrivateDNSName: "remembered"}, k.records[path].file}
	if record, err := k.read(path); err != nil || record.PrivateDNSName != "remembered" {
		t.Errorf("it was read again: %q, %v", record.PrivateDNSName, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.read(path); err == nil {
		t.Error("a damaged record is what it was before")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := k.read(path); !errors.Is(err, fs.ErrNotExist) || len(k.records) > 0 {
		t.Errorf("one that is gone: %v, %v", err, k.records)
	}
}
