// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/terminal"
)

// TestPageOfNodeConfig runs what docs/node-config.md shows: files are written as they stand there, and commands print
// what stands below them.
func TestPageOfNodeConfig(t *testing.T) {
	page, err := os.ReadFile("../../docs/node-config.md")
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile("../../internal/node/nodeconfig/testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```(yaml|console) ?([a-z.-]*)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		if kind, name, text := block[1], block[2], block[3]; kind == "yaml" {
			text = strings.ReplaceAll(text, "AUTHORITY", base64.StdEncoding.EncodeToString(authority))
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, transcript := range strings.Split("\n"+block[3], "\n$ ")[1:] {
			command, want, _ := strings.Cut(strings.TrimSuffix(transcript, "\n"), "\n")
			var out bytes.Buffer
			run(strings.Fields(command)[1:], terminal.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			if diff := cmp.Diff(want, strings.TrimSuffix(out.String(), "\n")); diff != "" {
				t.Errorf("%s (-page +printed):\n%s", command, diff)
			}
			commands++
		}
	}
	if commands < 5 {
		t.Errorf("the page has %d commands only", commands)
	}
}
