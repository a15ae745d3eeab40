// SPDX-License-Identifier: Apache-2.0

package nodeconfig_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
)

var update = flag.Bool("update", false, "write the golden files anew")

const wanted = "want.golden"

func authority(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sources reads what a folder holds, in the order of names. The file user-data is the user data, the rest are files.
func sources(t *testing.T, dir string) (all []nodeconfig.Source, doubts []string, err error) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	encoded := []byte(base64.StdEncoding.EncodeToString(authority(t)))
	for _, entry := range entries {
		if entry.Name() == wanted {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		raw = bytes.ReplaceAll(raw, []byte("AUTHORITY"), encoded)
		parts, err := userdata.ReadFile(entry.Name(), raw)
		if entry.Name() == "user-data" {
			parts, err = userdata.Read(raw)
		}
		if err != nil {
			return nil, nil, err
		}
		found, more := userdata.NodeConfigs(parts)
		all, doubts = append(all, found...), append(doubts, more...)
	}
	return all, doubts, nil
}

// outcome is what came of reading a folder, as text.
func outcome(t *testing.T, dir string) (nodeconfig.Merged, string) {
	t.Helper()
	found, doubts, err := sources(t, dir)
	var text strings.Builder
	for _, doubt := range doubts {
		fmt.Fprintf(&text, "doubt: %s\n", doubt)
	}
	if err != nil {
		fmt.Fprintf(&text, "user data cannot be read: %v\n", err)
		return nodeconfig.Merged{}, text.String()
	}
	merged, err := nodeconfig.Read(found, strings.HasSuffix(dir, "-lenient"))
	for _, warning := range merged.Warnings {
		fmt.Fprintf(&text, "warning: %s\n", warning)
	}
	if err != nil {
		fmt.Fprintf(&text, "refused:\n%v\n", err)
		return nodeconfig.Merged{}, text.String()
	}
	document, err := nodeconfig.Marshal(merged.Spec)
	if err != nil {
		t.Fatal(err)
	}
	text.Write(bytes.ReplaceAll(document, []byte(base64.StdEncoding.EncodeToString(authority(t))), []byte("AUTHORITY")))
	text.WriteString("\nwhere from:\n")
	values, err := merged.Values()
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range values {
		if value.From != merged.Origins[value.Path] || value.From == "" || len(values) != len(merged.Origins) {
			t.Errorf("%s comes from %q; origins are %v", value.Path, value.From, merged.Origins)
		}
		fmt.Fprintf(&text, "%s: %s\n", value.Path, value.From)
	}
	return merged, text.String()
}

// TestRead pins what comes of every kind of source, every rule of merging and every mistake.
func TestRead(t *testing.T) {
	for dir := range folders(t, "testdata/read") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			_, got := outcome(t, dir)
			golden(t, filepath.Join(dir, wanted), got)
		})
	}
}

// TestValidate pins what a machine must be told, and how each wrong value is refused.
func TestValidate(t *testing.T) {
	for dir := range folders(t, "testdata/validate") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			merged, text := outcome(t, dir)
			if len(merged.Origins) == 0 {
				t.Fatal(text)
			}
			got := "good\n"
			if problems := merged.Spec.Validate(); len(problems) > 0 {
				var lines []string
				for _, problem := range problems {
					lines = append(lines, problem.Error())
				}
				got = strings.Join(lines, "\n") + "\n"
			}
			for _, secret := range []string{"secret", "butwrong", "word@"} {
				if strings.Contains(got, secret) {
					t.Errorf("a secret is shown: %q", secret)
				}
			}
			golden(t, filepath.Join(dir, wanted), got)
		})
	}
}

func folders(t testing.TB, root string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s: %d cases, %v", root, len(entries), err)
	}
	all := map[string]bool{}
	for _, entry := range entries {
		all[filepath.Join(root, entry.Name())] = true
	}
	return all
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; run go test ./internal/node/nodeconfig -update if that is meant (-want +got):\n%s", path, diff)
	}
}
