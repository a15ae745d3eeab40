// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNoticeNamesEveryRequiredModule(t *testing.T) {
	raw, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"go.mod", "*/go.mod", "runtime/*/go.mod", "kubernetes/*/go.mod"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	checked := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range required(string(content)) {
			checked++
			if path == module {
				continue
			}
			if !strings.Contains(string(raw), "\n"+path+"\n") && !onlyForTests[path] {
				t.Errorf("%s requires %s, which NOTICE does not name", file, path)
			}
		}
	}
	if checked < 50 {
		t.Fatalf("found %d required modules in %v only", checked, files)
	}
}

// onlyForTests are modules that no program links.
var onlyForTests = map[string]bool{
	"github.com/google/go-cmp": true, "github.com/rogpeppe/go-internal": true, "go.uber.org/goleak": true, "pgregory.net/rapid": true,
	"github.com/aws/aws-sdk-go-v2/service/iam": true,
}

// required are the modules that a go.mod requires directly.
func required(mod string) []string {
	var paths []string
	block := false
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			block = true
			continue
		case line == ")":
			block = false
		case strings.HasPrefix(line, "require "):
			line = strings.TrimPrefix(line, "require ")
		case !block:
			continue
		}
		if fields := strings.Fields(line); len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			paths = append(paths, fields[0])
		}
	}
	return paths
}
