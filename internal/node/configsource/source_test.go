// SPDX-License-Identifier: Apache-2.0

package configsource_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/configsource"
)

const document = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"

func readers(userData string, err error, stdin string) configsource.Readers {
	return configsource.Readers{UserData: func(context.Context) ([]byte, error) { return []byte(userData), err }, Stdin: strings.NewReader(stdin)}
}

// All sources are read in the order that they are named, directories in the order of names, and only what is
// configuration.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"20.yaml": document, "10.YML": document, "30.json": `{"kind": "NodeConfig"}`, "40.txt": "not read", "50.yaml.bak": "not read",
		"script.sh": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"empty", "60.yaml"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	multipart := "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--B\nContent-Type: text/plain\n\n" + document + "\n--B--\n"
	found, err := configsource.Load(t.Context(), []string{
		dir, "file://" + dir + "/20.yaml", "-", configsource.UserData, dir + "/empty", dir + "/script.sh",
	}, readers(multipart, nil, document))
	if err != nil {
		t.Fatal(err)
	}
	var names, types []string
	for _, source := range found.Documents {
		names = append(names, strings.TrimPrefix(source.Name, dir+"/"))
	}
	for _, part := range found.Parts {
		types = append(types, part.MediaType)
	}
	if diff := cmp.Diff([]string{"10.YML", "20.yaml", "30.json", "20.yaml", "standard input"}, names); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	const own = "application/node.eks.aws"
	if diff := cmp.Diff([]string{own, own, own, own, own, "text/x-shellscript", "text/plain", "text/x-shellscript"}, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if len(found.Doubts) != 1 || !strings.Contains(found.Doubts[0], "user data, part 2 looks like a NodeConfig") {
		t.Errorf("doubts: %q", found.Doubts)
	}
}

func TestLoadFails(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long.yaml")
	if err := os.WriteFile(long, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("nobody answers")
	for _, c := range []struct {
		name, want string
		readers    configsource.Readers
	}{
		{"", "has an empty name", readers("", nil, "")},
		{"s3://bucket/node.yaml", `no source "s3://bucket/node.yaml"; there are imds://user-data, file://PATH, PATH and - for standard input`, readers("", nil, "")},
		{"imds://meta-data", "no source", readers("", nil, "")},
		{"file://", "no source", readers("", nil, "")},
		{dir + "/missing.yaml", "no such file", readers("", nil, "")},
		{dir, "more than the 1048576 bytes", readers("", nil, "")},
		{"-", "standard input: begins as gzip", readers("", nil, "\x1f\x8b")},
		{configsource.UserData, "nobody answers", readers("", broken, "")},
		{configsource.UserData, "at most 16384 are read", readers(strings.Repeat("x", 16385), nil, "")},
	} {
		if _, err := configsource.Load(t.Context(), []string{c.name}, c.readers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
	}
}
