// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"testing"
)

func TestRoots(t *testing.T) {
	rest, err := roots()
	if err != nil {
		t.Fatal(err)
	}
	content, err := rootfs([]entry{{name: "tool", mode: 0o755, content: []byte("program")}}, rest)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, entry := range read(t, bytes.NewReader(content)) {
		found = found || entry.Name == "etc/ssl/certs/ca-certificates.crt" && bytes.Equal(entry.content, rest)
	}
	if !found {
		t.Error("the authorities are not where Go looks for them")
	}
	n := 0
	for block, after := pem.Decode(rest); block != nil; block, after = pem.Decode(after) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA {
			t.Errorf("certificate %d is no authority: %v", n, err)
		}
		n++
	}
	if n < 50 {
		t.Errorf("there are %d authorities, want more than 50", n)
	}
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	output := filepath.Join(dir, "tool.tar")
	if err := run([]string{"-output", output, "-name", "muster.dev/tool:v1", "-roots", "-label", "a=b=c", "-label", "d=", binary(t)}); err != nil {
		t.Fatal(err)
	}
	config, found := "", false
	for _, entry := range entries(t, output) {
		if bytes.Contains(entry.content, []byte(`"Labels"`)) {
			config = string(entry.content)
		}
		found = found || bytes.Contains(entry.content, []byte(`"Labels":{"a":"b=c","d":""}`))
	}
	if !found {
		t.Errorf("the labels are not in the image's config: %s", config)
	}
	if err := run([]string{"-output", output, "-name", "muster.dev/tool:v1", "-label", "=b", binary(t)}); err == nil {
		t.Error("a label without a key was taken")
	}
}
