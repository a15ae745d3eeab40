// SPDX-License-Identifier: Apache-2.0

package trustfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	system, corporate := file("system", "SYSTEM\n"), file("corporate", "CORPORATE")
	places := []string{filepath.Join(dir, "none"), system}
	path := filepath.Join(dir, "bundle")
	for _, step := range []struct {
		name, current string
		places        []string
		want          string
	}{
		{"the system's", "", places, "the system\nSYSTEM\nACCOUNT\n"},
		{"the system's again", path, places, "the system\nSYSTEM\nACCOUNT\n"},
		{"others", corporate, places, corporate + "\nCORPORATE\nACCOUNT\n"},
		{"others again", path, places, corporate + "\nCORPORATE\nACCOUNT\n"},
		{"back to the system's", "", places, "the system\nSYSTEM\nACCOUNT\n"},
		{"a system without", "", places[:1], "the system\n\nACCOUNT\n"},
	} {
		if err := write(path, step.current, []byte("ACCOUNT\n"), step.places); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := header + step.want; string(got) != want {
			t.Errorf("%s: got %q, want %q", step.name, got, want)
		}
	}
	if err := write(path, filepath.Join(dir, "none"), nil, places); err == nil || !strings.Contains(err.Error(), "SSL_CERT_FILE names") {
		t.Errorf("a variable that names no file: %v", err)
	}
}
